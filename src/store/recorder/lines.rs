//! The lines of each table of results.

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::{RunSpec, ScriptSpec};
use bench_model::views::Standby;
use bench_results::{CommandSummary, Event};
use bench_stats::histogram::{Histogram, bucket_bounds_ns};

use crate::observe::audit::AuditRow;
use crate::observe::waits::split;
use crate::server::jsonb::json_of;
use crate::server::spi::{run, timestamp};
use crate::store::totals::{Totals, ms, percentile_ms};

/// Writes a script's histogram of latencies into bench.latencies.
pub fn latencies(run_id: i64, script: i32, histogram: &Histogram) -> Result<(), UserError> {
    let mut lows = Vec::new();
    let mut highs = Vec::new();
    let mut counts = Vec::new();
    for (bucket, count) in histogram.iter_nonzero() {
        let (low, high) = bucket_bounds_ns(bucket);
        lows.push(ms(low as f64));
        highs.push(ms(high as f64));
        counts.push(count.cast_signed());
    }
    run(
        "INSERT INTO bench.latencies (run_id, script, low_ms, high_ms, count) \
         SELECT $1, $2, * FROM ROWS FROM (unnest($3), unnest($4), unnest($5))",
        &[run_id.into(), script.into(), lows.into(), highs.into(), counts.into()],
    )
    .map(drop)
}

/// Writes a line of bench_internal.script_log.
pub fn script_line(
    run_id: i64,
    index: i32,
    script: &ScriptSpec,
    totals: &Totals,
    spec: &RunSpec,
) -> Result<(), UserError> {
    let fixture = script.fixture.and_then(|index| spec.fixtures.get(index));
    let m = &totals.moments;
    run(
        "INSERT INTO bench_internal.script_log (run_id, script, workload, weight, fixture, transactions, failed, retried, skipped, \
             late, latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, aborted) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        &[
            run_id.into(),
            index.into(),
            script.name.as_str().into(),
            script.weight.cast_signed().into(),
            fixture.map(|fixture| fixture.name.as_str()).into(),
            totals.transactions().cast_signed().into(),
            totals.failed.cast_signed().into(),
            totals.retried.cast_signed().into(),
            totals.skipped.cast_signed().into(),
            totals.late.cast_signed().into(),
            m.mean_ns().map(ms).into(),
            m.stddev_ns().map(ms).into(),
            percentile_ms(&totals.histogram, 0.5).into(),
            percentile_ms(&totals.histogram, 0.95).into(),
            percentile_ms(&totals.histogram, 0.99).into(),
            totals.latency_max_ms().into(),
            totals.aborted.cast_signed().into(),
        ],
    )
    .map(drop)
}

/// Writes a line of bench_internal.call_log.
pub fn call_line(run_id: i64, script: i32, counts: &Counts) -> Result<(), UserError> {
    run(
        "INSERT INTO bench_internal.call_log (run_id, script, calls, rows, shared_blks_hit, shared_blks_read, exec_ms) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            run_id.into(),
            script.into(),
            counts.calls.into(),
            counts.rows.into(),
            counts.hit.into(),
            counts.read.into(),
            counts.exec_ms.into(),
        ],
    )
    .map(drop)
}

/// Writes a line of bench_internal.statement_log.
pub fn statement_line(run_id: i64, line: &CommandSummary) -> Result<(), UserError> {
    run(
        "INSERT INTO bench_internal.statement_log (run_id, script, command, line, statement, count, failed, retried, \
             latency_avg_ms, latency_p95_ms, plan, generic_plans, custom_plans, plan_changes, workers_planned, \
             workers_launched, rows, writes, empty_writes) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        &[
            run_id.into(),
            line.script.cast_signed().into(),
            line.command.cast_signed().into(),
            line.line.cast_signed().into(),
            line.statement.as_str().into(),
            line.count.cast_signed().into(),
            line.failed.cast_signed().into(),
            line.retried.cast_signed().into(),
            line.latency_avg_ms.into(),
            line.latency_p95_ms.into(),
            line.plan.as_deref().into(),
            line.generic_plans.cast_signed().into(),
            line.custom_plans.cast_signed().into(),
            line.plan_changes.cast_signed().into(),
            line.workers_planned.cast_signed().into(),
            line.workers_launched.cast_signed().into(),
            line.rows.map(u64::cast_signed).into(),
            line.writes.map(u64::cast_signed).into(),
            line.empty_writes.map(u64::cast_signed).into(),
        ],
    )
    .map(drop)
}

/// A line of bench.errors.
pub struct ErrorRow {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub context: Option<String>,
    pub count: u64,
    pub retried: u64,
    pub failed: u64,
    /// A TimestampTz.
    pub first_at: i64,
}

/// Writes a line of bench_internal.error_log.
pub fn error_line(run_id: i64, line: &ErrorRow) -> Result<(), UserError> {
    run(
        "INSERT INTO bench_internal.error_log (run_id, sqlstate, message, detail, count, retried, failed, first_at, context) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            run_id.into(),
            line.sqlstate.as_str().into(),
            line.message.as_str().into(),
            line.detail.as_deref().into(),
            line.count.cast_signed().into(),
            line.retried.cast_signed().into(),
            line.failed.cast_signed().into(),
            timestamp(line.first_at).into(),
            line.context.as_deref().into(),
        ],
    )
    .map(drop)
}

/// Writes a line of bench_internal.wait_log.
pub fn wait_line(run_id: i64, key: &str, share: f64) -> Result<(), UserError> {
    let (kind, event) = split(key);
    run(
        "INSERT INTO bench_internal.wait_log (run_id, wait_event_type, wait_event, share) VALUES ($1, $2, $3, $4)",
        &[run_id.into(), kind.into(), event.into(), share.into()],
    )
    .map(drop)
}

/// Writes a line of bench_internal.event_log.
pub fn event_line(run_id: i64, place: i32, event: &Event) -> Result<(), UserError> {
    run(
        "INSERT INTO bench_internal.event_log (run_id, event, kind, relation, detail, started, ended) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            run_id.into(),
            place.into(),
            event.kind.as_str().into(),
            event.relation.as_deref().into(),
            event.detail.as_deref().into(),
            event.started.into(),
            event.ended.into(),
        ],
    )
    .map(drop)
}

/// Writes a line of bench_internal.audit_log.
pub fn audit_line(run_id: i64, line: &AuditRow) -> Result<(), UserError> {
    run(
        "INSERT INTO bench_internal.audit_log (run_id, counter, harness, server, judged, reason) VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            run_id.into(),
            line.counter.as_str().into(),
            line.harness.into(),
            line.server.into(),
            line.judged.into(),
            line.reason.as_str().into(),
        ],
    )
    .map(drop)
}

/// Writes the lines of bench.standbys of an interval.
pub fn standby_lines(run_id: i64, elapsed_secs: f64, standbys: &[Standby]) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.standbys (run_id, elapsed, pid, name, state, sync_state, write_lag_ms, flush_lag_ms, replay_lag_ms, \
             replay_lag_bytes) \
         SELECT $1, $2, s.pid, coalesce(s.name, ''), s.state, s.sync_state, greatest(s.write_lag_ms, 0), \
             greatest(s.flush_lag_ms, 0), greatest(s.replay_lag_ms, 0), greatest(s.replay_lag_bytes, 0) \
         FROM jsonb_populate_recordset(NULL::bench.standbys, $3) s",
        &[run_id.into(), elapsed_secs.into(), pgrx::JsonB(json_of(&standbys)).into()],
    )
    .map(drop)
}
