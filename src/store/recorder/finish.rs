//! Everything that is written when a run has ended.

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::{OnDisconnect, RunOptions, RunSpec};
use bench_results::{CommandSummary, DuelMeasured, Environment, Event};
use serde::Serialize;
use serde_json::json;

use super::end::{Part, RunColumns, RunEnd, RunStatus};
use super::lines::{self, ErrorRow, EventLine};
use super::relations;
use crate::observe::audit::AuditRow;
use crate::server::jsonb::{json_of, merged};
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
    let RunOptions { rate, log_rate, on_disconnect, .. } = &closing.spec.options;
    let (whole, connects) = (closing.measured, closing.connects);
    let (logged, log_lost) = closing.logged;
    let is_logged = *log_rate > 0.0;
    let figures = json!({
        "latency_p999_ms": percentile_ms(&whole.histogram, 0.999),
        "lag_avg_ms": rate.and(whole.lag_avg_ms()),
        "lag_max_ms": rate.map(|_| ms(whole.lag_max_ns as f64)),
        "backlog": rate.map(|_| closing.backlog),
        "horizon_held": closing.horizon_held,
        "logged": is_logged.then_some(logged),
        "log_lost": is_logged.then_some(log_lost),
        "server_cpu_us": closing.server_cpu_us,
        "connect_avg_ms": connects.moments.mean_ns().map(ms),
        "connect_p50_ms": percentile_ms(&connects.histogram, 0.5),
        "connect_p95_ms": percentile_ms(&connects.histogram, 0.95),
        "connect_p99_ms": percentile_ms(&connects.histogram, 0.99),
        "connect_max_ms": connects.latency_max_ms(),
        "unknown": (*on_disconnect == OnDisconnect::Reconnect).then_some(whole.unknown),
        "warmup_took": closing.warmup_took_secs,
        "clients_stuck": Some(closing.clients_stuck).filter(|stuck| !stuck.is_empty()),
    });
    let row = merged([whole.latencies(), figures]);
    let columns = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "UPDATE bench_internal.run_log SET status = $2, finished_at = clock_timestamp(), error = $3, \
             environment = environment || $4, \
             ({columns}) = (SELECT {columns} FROM jsonb_populate_record(NULL::bench_internal.run_log, $5)) \
         WHERE run_id = $1"
    );
    run(
        &sql,
        &[
            run_id.into(),
            status.as_str().into(),
            error.map(|e| pgrx::JsonB(json_of(e))).into(),
            pgrx::JsonB(known_now(closing.environment)).into(),
            pgrx::JsonB(row.into()).into(),
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
