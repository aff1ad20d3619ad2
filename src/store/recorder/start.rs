//! The row of a run that is about to start, and its start.

use bench_base::error::UserError;
use bench_model::spec::{Before, Driver, Extent, RunSpec, ScriptSpec};
use bench_results::Environment;

use super::extension_hold::hold;
use crate::server::jsonb::json_of;
use crate::server::spi::{call, run, timestamp};
use crate::server::transaction::transaction;
use crate::shm::{Segment, Work};
use crate::store::in_use;
use crate::worker::drop_extension;

/// Writes the row of a run that is about to start; its id.
pub fn begin(spec: &RunSpec, segment: &Segment) -> Result<i64, UserError> {
    transaction(|| {
        hold()?;
        drop_extension::hold()?;
        // The coordinator of a run on several nodes has no clients of its own.
        if !spec.is_of_several_nodes() {
            in_use::check_clients_alone(spec)?;
        }
        let o = &spec.options;
        let (secs, transactions) = match o.extent {
            Extent::Secs(secs) => (Some(secs), None),
            Extent::Transactions(count) => (None, Some(count.cast_signed())),
        };
        let settings: serde_json::Map<_, _> =
            o.settings.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let run_id = call::<i64>(
            "INSERT INTO bench_internal.run_log (workload, fixture, script, clients, secs, transactions, warmup, max_tries, seed, \
                 results, variables, settings, sample_interval, tags, status, role, segment, coordinator_pid, \
                 horizon_held, query_mode, rate, latency_limit, sweep_id, fixture_rows, system, fixture_options, nodes, part_of, before, log_rate, driver, target, jobs, \
                 reconnect, on_disconnect, feeders, owner_oid, run_as, duel, applied, rates, extension_version) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'starting', bench_internal.role_name($35, $15), $16, \
                 pg_backend_pid(), $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, extversion \
             FROM pg_extension WHERE extname = 'pgbench_ext' RETURNING run_id",
            &[
                o.workload.as_str().into(),
                spec.fixture_names().into(),
                script_as_run(spec).into(),
                o.clients.cast_signed().into(),
                secs.into(),
                transactions.into(),
                o.warmup_secs.into(),
                o.max_tries.cast_signed().into(),
                spec.seed.into(),
                o.results.as_str().into(),
                pgrx::JsonB(o.variables.clone().into()).into(),
                pgrx::JsonB(settings.into()).into(),
                o.sample_interval_secs.into(),
                pgrx::JsonB(o.tags.clone()).into(),
                spec.owner().name.into(),
                i64::from(segment.handle()).into(),
                spec.horizon_held.into(),
                o.query_mode.as_str().into(),
                o.rate.into(),
                o.latency_limit_ms.into(),
                spec.sweep_id.into(),
                spec.fixture_rows().into(),
                pgrx::JsonB(spec.system.clone().into()).into(),
                spec.fixture_options().map(pgrx::JsonB).into(),
                o.nodes.as_str().into(),
                spec.part_of.as_ref().map(|part_of| pgrx::JsonB(json_of(part_of))).into(),
                Before::text(&o.before).into(),
                o.log_rate.into(),
                o.driver.as_str().into(),
                o.target.as_deref().into(),
                (o.driver == Driver::Wire).then(|| segment.shape().slots.cast_signed()).into(),
                o.reconnect.into(),
                o.on_disconnect.as_str().into(),
                spec.fed().map(pgrx::JsonB).into(),
                // The role may have been renamed since it called.
                pgrx::pg_sys::Oid::from(spec.owner().oid).into(),
                spec.run_as().into(),
                o.duel.as_ref().map(|duel| pgrx::JsonB(duel.recorded())).into(),
                spec.applied.clone().into(),
                o.rates.clone().map(|rates| pgrx::JsonB(rates.into())).into(),
            ],
        )
        ?
        .ok_or_else(|| crate::error::internal("could not record the run"))?;
        segment.claim(Work::Run(run_id));
        Ok(run_id)
    })
}

/// The script of a run; those of a mix one after the other, each under a comment with its name and weight.
fn script_as_run(spec: &RunSpec) -> String {
    match &spec.scripts[..] {
        [script] => script.source.clone(),
        scripts => {
            let titled = |s: &ScriptSpec| format!("-- {}@{}\n{}", s.name, s.weight, s.source);
            scripts.iter().map(titled).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The clients stand at the gate: the run starts at this moment. `counted_from` is when the reading of the server's
/// counters began, a TimestampTz.
pub fn running(run_id: i64, environment: &Environment, counted_from: i64) -> Result<(), UserError> {
    let environment = json_of(environment);
    transaction(|| {
        hold()?;
        run(
            "UPDATE bench_internal.run_log SET status = 'running', started_at = clock_timestamp(), \
             environment = $2, counted_from = $3 WHERE run_id = $1",
            &[run_id.into(), pgrx::JsonB(environment.clone()).into(), timestamp(counted_from).into()],
        )
        .map(drop)
    })
}
