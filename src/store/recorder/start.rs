//! The row of a run that is about to start, and its start.

use bench_base::error::UserError;
use bench_model::spec::{Driver, Duel, RunSpec, ScriptSpec};
use bench_results::Environment;
use pgrx::JsonB;
use serde_json::{Map, Value, json};

use super::extension_hold::hold;
use crate::server::jsonb::{json_of, merged};
use crate::server::process::my_pid;
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
        let row = row_of(spec, segment);
        let columns = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "INSERT INTO bench_internal.run_log (role, extension_version, {columns}) \
             SELECT bench_internal.role_name(r.owner_oid, $2), e.extversion, {columns} \
             FROM pg_extension e, jsonb_populate_record(NULL::bench_internal.run_log, $1) r \
             WHERE e.extname = 'pgbench_ext' RETURNING run_id"
        );
        // The role may have been renamed since it called.
        let run_id = call::<i64>(&sql, &[JsonB(row.into()).into(), spec.owner().name.into()])?
            .ok_or_else(|| crate::error::internal("could not record the run"))?;
        segment.claim(Work::Run(run_id));
        Ok(run_id)
    })
}

/// Options of a run that are not columns of its row.
const NOT_RECORDED: [&str; 3] = ["mix", "exit_on_abort", "continue_on_error"];

/// The columns of a run's row that are known when it starts: its options by their names, and what was found for them.
fn row_of(spec: &RunSpec, segment: &Segment) -> Map<String, Value> {
    let o = &spec.options;
    let found = json!({
        "script": script_as_run(spec),
        "fixture": spec.fixture_names(),
        "fixture_rows": spec.fixture_rows(),
        "fixture_options": spec.fixture_options(),
        "feeders": spec.fed(),
        "seed": spec.seed,
        "jobs": (o.driver == Driver::Wire).then(|| segment.shape().slots),
        "duel": o.duel.as_ref().map(Duel::recorded),
        "run_as": spec.run_as(),
        "owner_oid": spec.owner().oid,
        "status": "starting",
        "segment": segment.handle(),
        "coordinator_pid": my_pid(),
        "horizon_held": spec.horizon_held,
        "sweep_id": spec.sweep_id,
        "part_of": spec.part_of,
        "system": spec.system,
        "applied": spec.applied,
    });
    let mut row = merged([json_of(o), found]);
    row.retain(|name, _| !NOT_RECORDED.contains(&name.as_str()));
    row
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
            &[run_id.into(), JsonB(environment.clone()).into(), timestamp(counted_from).into()],
        )
        .map(drop)
    })
}
