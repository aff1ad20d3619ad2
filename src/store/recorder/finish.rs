//! Everything that is written when a run has ended.

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::RunSpec;
use bench_results::{CommandSummary, DuelMeasured, Environment, Event};
use serde::Serialize;

use super::end::{Part, RunColumns, RunEnd, RunStatus};
use super::lines::{self, ErrorRow, EventLine};
use super::relations;
use crate::observe::audit::AuditRow;
use crate::server::jsonb::json_of;
use crate::server::rows::insert;
use crate::server::spi::run;
use crate::store::duels::put_duel;
use crate::store::totals::{Totals, ms, percentile_ms};

/// Everything that is known at a run's end.
pub struct Closing<'a> {
    /// How it ended, if all of it can be written.
    pub status: RunStatus,
    pub error: Option<&'a UserError>,
    /// Parts that could not be read, or not be written before.
    pub missing: Vec<(Part, UserError)>,
    pub horizon_held: bool,
    /// What was measured, with the latencies of what was under way at the end.
    pub measured: &'a Totals,
    /// Under a rate: transactions due before the end and neither started nor skipped.
    pub backlog: u64,
    /// Lines of bench.transactions: written, and lost.
    pub logged: (u64, u64),
    /// Processes of clients that could not be ended.
    pub clients_stuck: &'a [i32],
    /// Processor time of the clients' processes for each committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// How long connections took that were opened while measuring, as latencies.
    pub connects: &'a Totals,
    pub spec: &'a RunSpec,
    /// One for each script.
    pub scripts: &'a [Totals],
    pub statements: &'a [CommandSummary],
    pub errors: &'a [ErrorRow],
    /// What pg_stat_statements counted, by script.
    pub calls: &'a [(i32, Counts)],
    /// What was measured of a duel's arms; `None` of another run.
    pub duel: Option<&'a DuelMeasured>,
    pub audit: &'a [AuditRow],
    /// Shares of the clients' measured time, by wait event.
    pub waits: &'a [(String, f64)],
    pub events: &'a [Event],
    /// Readings of `observe::relations`, before and after.
    pub relations: (&'a serde_json::Value, &'a serde_json::Value),
    /// What of the environment is known only now.
    pub environment: &'a Environment,
    /// Seconds that the warm-up took; `None` where nothing was run.
    pub warmup_took_secs: Option<f64>,
}

/// Writes the results, each part by itself, and then how the run ended.
///
/// # Errors
/// What could not be written, where that is not all.
pub fn finish(run_id: i64, closing: &Closing) -> Result<(), UserError> {
    let mut end = RunEnd::new(run_id);
    for (part, reason) in &closing.missing {
        end.miss(part, reason.clone());
    }
    end.part("bench.latencies", || {
        (0..)
            .zip(closing.scripts)
            .try_for_each(|(script, totals)| lines::latencies(run_id, script, &totals.histogram))
    });
    end.part("bench.scripts", || {
        let scripts = (0..).zip(closing.scripts.iter().zip(&closing.spec.scripts));
        let row = |(index, (totals, script))| lines::script_line(index, script, totals, closing.spec);
        put("bench_internal.script_log", run_id, scripts.map(row))
    });
    end.part("bench.statements", || put("bench_internal.statement_log", run_id, closing.statements));
    end.part("bench_internal.call_log", || {
        let calls = closing.calls.iter().map(|(script, counts)| lines::call_line(*script, counts));
        put("bench_internal.call_log", run_id, calls)
    });
    end.part("bench.duels", || closing.duel.map_or(Ok(()), |duel| put_duel(run_id, duel)));
    end.part("bench.errors", || put("bench_internal.error_log", run_id, closing.errors));
    end.part("bench.audit", || put("bench_internal.audit_log", run_id, closing.audit));
    end.part("bench.waits", || {
        let waits = closing.waits.iter().map(|(key, share)| lines::wait_line(key, *share));
        put("bench_internal.wait_log", run_id, waits)
    });
    end.part("bench.events", || {
        let events = (1..).zip(closing.events).map(|(event, what)| EventLine { event, what });
        put("bench_internal.event_log", run_id, events)
    });
    end.part("bench.relations", || relations::lines(run_id, closing.relations));
    let m = &closing.measured.moments;
    let told = format!(
        "It committed {} measured transactions, with a mean latency of {:.3} ms; {} failed.",
        closing.measured.transactions(),
        m.mean_ns().map_or(0.0, ms),
        closing.measured.failed
    );
    end.close(closing.status, closing.error, &told, |status, error, row| match row {
        RunColumns::Whole => whole_row(run_id, status, error, closing),
        RunColumns::StatusOnly => status_only(run_id, status, error),
    })
}

/// Writes rows of a run into a table.
fn put<T: Serialize>(table: &str, run_id: i64, rows: impl IntoIterator<Item = T>) -> Result<(), UserError> {
    insert(table, ("run_id", run_id.into()), rows)
}

/// The row of a run with its status and its error, and nothing else.
pub fn status_only(run_id: i64, status: RunStatus, error: Option<&UserError>) -> Result<usize, UserError> {
    run(
        "UPDATE bench_internal.run_log SET status = $2, finished_at = clock_timestamp(), error = $3 WHERE run_id = $1",
        &[run_id.into(), status.as_str().into(), error.map(|e| pgrx::JsonB(json_of(e))).into()],
    )
}

fn whole_row(
    run_id: i64,
    status: RunStatus,
    error: Option<&UserError>,
    closing: &Closing,
) -> Result<usize, UserError> {
    let whole = &closing.measured.histogram;
    let m = &closing.measured.moments;
    let connects = closing.connects;
    run(
        "UPDATE bench_internal.run_log SET status = $2, finished_at = clock_timestamp(), error = $3, \
             horizon_held = $4, latency_avg_ms = $5, latency_stddev_ms = $6, latency_p50_ms = $7, \
             latency_p95_ms = $8, latency_p99_ms = $9, latency_p999_ms = $10, latency_max_ms = $11, \
             lag_avg_ms = CASE WHEN rate IS NOT NULL THEN $12 END, \
             lag_max_ms = CASE WHEN rate IS NOT NULL THEN $13 END, \
             backlog = CASE WHEN rate IS NOT NULL THEN $14 END, \
             environment = environment || $15, \
             logged = CASE WHEN log_rate > 0 THEN $16 END, log_lost = CASE WHEN log_rate > 0 THEN $17 END, \
             server_cpu_us = $18, connect_avg_ms = $19, connect_p50_ms = $20, connect_p95_ms = $21, \
             connect_p99_ms = $22, connect_max_ms = $23, \
             unknown = CASE WHEN on_disconnect = 'reconnect' THEN $24 END, warmup_took = $25, \
             clients_stuck = nullif($26, '{}'::int4[]) \
         WHERE run_id = $1",
        &[
            run_id.into(),
            status.as_str().into(),
            error.map(|e| pgrx::JsonB(json_of(e))).into(),
            closing.horizon_held.into(),
            m.mean_ns().map(ms).into(),
            m.stddev_ns().map(ms).into(),
            percentile_ms(whole, 0.5).into(),
            percentile_ms(whole, 0.95).into(),
            percentile_ms(whole, 0.99).into(),
            percentile_ms(whole, 0.999).into(),
            closing.measured.latency_max_ms().into(),
            closing.measured.lag_avg_ms().into(),
            ms(closing.measured.lag_max_ns as f64).into(),
            closing.backlog.cast_signed().into(),
            pgrx::JsonB(known_now(closing.environment)).into(),
            closing.logged.0.cast_signed().into(),
            closing.logged.1.cast_signed().into(),
            closing.server_cpu_us.into(),
            connects.moments.mean_ns().map(ms).into(),
            percentile_ms(&connects.histogram, 0.5).into(),
            percentile_ms(&connects.histogram, 0.95).into(),
            percentile_ms(&connects.histogram, 0.99).into(),
            connects.latency_max_ms().into(),
            closing.measured.unknown.cast_signed().into(),
            closing.warmup_took_secs.into(),
            closing.clients_stuck.to_vec().into(),
        ],
    )
}

/// The part of an environment that is not empty: it is laid over what was known before.
fn known_now(environment: &Environment) -> serde_json::Value {
    let mut json = json_of(environment);
    if let Some(fields) = json.as_object_mut() {
        let is_empty = |value: &serde_json::Value| {
            value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        fields.retain(|_, value| !is_empty(value));
    }
    json
}
