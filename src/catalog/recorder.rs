//! What the coordinator writes: a run's row, its samples and its results.
//!
//! Each function is a transaction of its own, so that what was measured stays whatever comes
//! after. The extension is held by a lock meanwhile, see [`super::hold_extension`].

use std::cell::Cell;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::report::document::{Environment, Event, Statement};
use bench_core::spec::{Extent, RunSpec, ScriptSpec};
use bench_core::stats::histogram::{Histogram, bucket_bounds_ns};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{FromDatum, Spi, pg_sys};

pub use super::totals::ms;
pub use super::totals::{Sample, Totals};
use super::{run, spi_error, transaction};
use crate::observe::waits::split;
use crate::shm::Segment;

/// How a run, or a sweep of them, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Completed,
    /// Clients were lost on the way, or runs of a sweep; the rest is there.
    Incomplete,
    Canceled,
    /// Nothing was measured.
    Failed,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        }
    }
}

impl Sample {
    /// The same interval made longer by the one after it.
    pub fn join(&mut self, next: &Sample) {
        self.elapsed_secs = next.elapsed_secs;
        self.secs += next.secs;
        self.at = next.at;
        self.clients = self.clients.max(next.clients);
        self.totals.merge(&next.totals);
        self.observed.merge(&next.observed);
    }

    /// Transactions per second.
    pub fn tps(&self) -> f64 {
        self.totals.moments.count as f64 / self.secs
    }
}

/// A line of bench.errors.
pub struct ErrorLine {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub count: u64,
    pub retried: u64,
    pub failed: u64,
    /// A TimestampTz.
    pub first_at: i64,
}

/// A line of bench.audit: what the harness counted against what the server counted.
#[derive(Clone, Debug)]
pub struct AuditLine {
    pub counter: String,
    pub harness: Option<i64>,
    pub server: Option<i64>,
    /// Whether the two must be equal.
    pub judged: bool,
    pub reason: String,
}

thread_local! {
    /// The extension's table of runs as it was at the run's beginning.
    static RUN_LOG: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
}

/// Holds the extension, the very one that the run began with.
pub(super) fn hold() -> Result<(), UserError> {
    super::guard::for_good();
    let table = super::hold_extension()?;
    match RUN_LOG.get() {
        Some(first) if first != table => Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            "extension \"pgbench_ext\" was dropped during the run",
        )),
        _ => {
            RUN_LOG.set(Some(table));
            Ok(())
        }
    }
}

/// How long the recorder bears with a lock on the tables of results.
pub struct Patience {
    until: Instant,
}

impl Patience {
    /// Ten seconds from now: VACUUM FULL of a small table passes, a forgotten session does not.
    pub fn new() -> Self {
        Self { until: Instant::now() + Duration::from_secs(10) }
    }

    /// Whether to try again after this error. Not when the server wants the recorder gone.
    pub fn bears(&self, error: &UserError) -> bool {
        error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE
            && Instant::now() < self.until
            && !crate::worker::termination_requested()
    }
}

fn timestamp(at: i64) -> Option<TimestampWithTimeZone> {
    // SAFETY: every i64 is a TimestampTz.
    unsafe { TimestampWithTimeZone::from_datum(pg_sys::Datum::from(at), false) }
}

fn percentile_ms(histogram: &Histogram, p: f64) -> Option<f64> {
    histogram.percentile_ns(p).map(ms)
}

/// Writes the row of a run that is about to start; its id.
pub fn begin(spec: &RunSpec, segment: &Segment) -> Result<i64, UserError> {
    transaction(|| {
        hold()?;
        super::guard::check_all()?;
        let o = &spec.options;
        let (secs, transactions) = match o.extent {
            Extent::Secs(secs) => (Some(secs), None),
            Extent::Transactions(count) => (None, Some(count.cast_signed())),
        };
        let settings: serde_json::Map<_, _> =
            o.settings.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let run_id = Spi::get_one_with_args::<i64>(
            "INSERT INTO bench.run_log (workload, fixture, script, clients, secs, transactions, warmup, max_tries, seed, \
                 results, variables, settings, sample_interval, tags, status, role, segment, coordinator_pid, \
                 horizon_held, query_mode, rate, latency_limit, sweep_id, fixture_rows, system, fixture_options, nodes, part_of, extension_version) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'starting', $15, $16, \
                 pg_catalog.pg_backend_pid(), $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, extversion \
             FROM pg_catalog.pg_extension WHERE extname = 'pgbench_ext' RETURNING run_id",
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
                spec.role.as_str().into(),
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
            ],
        )
        .map_err(spi_error)?
        .ok_or_else(|| crate::error::internal("the run's row could not be written"))?;
        segment.claim_run(run_id);
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

/// The clients stand at the gate: the run starts at this moment.
pub fn running(run_id: i64, environment: &Environment) -> Result<(), UserError> {
    let environment = json_of(environment);
    transaction(|| {
        hold()?;
        run(
            "UPDATE bench.run_log SET status = 'running', started_at = pg_catalog.clock_timestamp(), \
             environment = $2 WHERE run_id = $1",
            &[run_id.into(), pgrx::JsonB(environment.clone()).into()],
        )
        .map(drop)
    })
}

/// Columns of a sample that come from [`Observed::columns`](crate::observe::Observed::columns).
const OBSERVED: &str = "wal_bytes, wal_records, wal_fpi, wal_buffers_full, checkpoints, buffers_checkpoint, buffers_clean, \
     buffers_backend, blks_hit, blks_read, temp_files, temp_bytes, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle, \
     memory_available_bytes, memory_dirty_bytes, disk_read_bytes, disk_written_bytes, throttled_secs, waits";

/// Writes a sample; with `replace` over the one whose interval ended at that time.
pub fn sample(run_id: i64, sample: &Sample, replace: Option<f64>) -> Result<(), UserError> {
    let table = if sample.in_warmup { "bench.warmup_samples" } else { "bench.samples" };
    transaction(|| {
        hold()?;
        if let Some(elapsed) = replace {
            let delete = format!("DELETE FROM {table} WHERE run_id = $1 AND elapsed = $2");
            run(&delete, &[run_id.into(), elapsed.into()])?;
        }
        let insert = format!(
            "INSERT INTO {table} (run_id, elapsed, secs, at, clients, transactions, tps, failed, retried, \
                 latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, \
                 skipped, late, lag_avg_ms, {OBSERVED}) \
             SELECT r.run_id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
                 CASE WHEN r.rate IS NOT NULL THEN $18 END, {OBSERVED} \
             FROM bench.run_log r, pg_catalog.jsonb_populate_record(NULL::{table}, $19) WHERE r.run_id = $1"
        );
        let t = &sample.totals;
        let m = &t.moments;
        let written = run(
            &insert,
            &[
                run_id.into(),
                sample.elapsed_secs.into(),
                sample.secs.into(),
                timestamp(sample.at).into(),
                sample.clients.cast_signed().into(),
                m.count.cast_signed().into(),
                sample.tps().into(),
                t.failed.cast_signed().into(),
                t.retried.cast_signed().into(),
                m.mean_ns().map(ms).into(),
                m.stddev_ns().map(ms).into(),
                percentile_ms(&t.histogram, 0.5).into(),
                percentile_ms(&t.histogram, 0.95).into(),
                percentile_ms(&t.histogram, 0.99).into(),
                t.latency_max_ms().into(),
                t.skipped.cast_signed().into(),
                t.late.cast_signed().into(),
                t.lag_avg_ms().into(),
                pgrx::JsonB(sample.observed.columns()).into(),
            ],
        )?;
        if written == 0 {
            return Err(UserError::new(
                sqlstate::UNDEFINED_OBJECT,
                format!("the row of run {run_id} is gone"),
            ));
        }
        Ok(())
    })
}

/// Everything that is known at a run's end.
pub struct Closing<'a> {
    pub status: Status,
    pub error: Option<&'a UserError>,
    pub horizon_held: bool,
    pub measured: &'a Totals,
    /// Under a rate: transactions due before the end and neither started nor skipped.
    pub backlog: u64,
    pub spec: &'a RunSpec,
    /// One for each script.
    pub scripts: &'a [Totals],
    pub statements: &'a [Statement],
    pub errors: &'a [ErrorLine],
    pub audit: &'a [AuditLine],
    /// Shares of the clients' measured time, by wait event.
    pub waits: &'a [(String, f64)],
    pub events: &'a [Event],
    /// Readings of `observe::relations`, before and after.
    pub relations: (&'a serde_json::Value, &'a serde_json::Value),
    /// What of the environment is known only now.
    pub environment: &'a Environment,
}

/// Writes the results and the final status, all in one transaction.
pub fn finish(run_id: i64, closing: &Closing) -> Result<(), UserError> {
    let patience = Patience::new();
    loop {
        match finish_once(run_id, closing) {
            Err(error) if patience.bears(&error) => {}
            result => return result,
        }
    }
}

fn finish_once(run_id: i64, closing: &Closing) -> Result<(), UserError> {
    let closing = std::panic::AssertUnwindSafe(closing);
    transaction(|| {
        hold()?;
        for (script, totals) in closing.scripts.iter().enumerate() {
            latencies(run_id, script, &totals.histogram)?;
            script_line(run_id, script, &closing.spec.scripts[script], totals, closing.spec)?;
        }
        for line in closing.statements {
            statement_line(run_id, line)?;
        }
        for line in closing.errors {
            error_line(run_id, line)?;
        }
        for line in closing.audit {
            audit_line(run_id, line)?;
        }
        for (key, share) in closing.waits {
            wait_line(run_id, key, *share)?;
        }
        for (place, event) in (1..).zip(closing.events) {
            event_line(run_id, place, event)?;
        }
        relation_lines(run_id, closing.relations)?;
        let whole = &closing.measured.histogram;
        let m = &closing.measured.moments;
        run(
            "UPDATE bench.run_log SET status = $2, finished_at = pg_catalog.clock_timestamp(), error = $3, \
                 horizon_held = $4, latency_avg_ms = $5, latency_stddev_ms = $6, latency_p50_ms = $7, \
                 latency_p95_ms = $8, latency_p99_ms = $9, latency_p999_ms = $10, latency_max_ms = $11, \
                 lag_avg_ms = CASE WHEN rate IS NOT NULL THEN $12 END, \
                 lag_max_ms = CASE WHEN rate IS NOT NULL THEN $13 END, \
                 backlog = CASE WHEN rate IS NOT NULL THEN $14 END, \
                 environment = environment || $15 \
             WHERE run_id = $1",
            &[
                run_id.into(),
                closing.status.as_str().into(),
                closing.error.map(|e| pgrx::JsonB(error_json(e))).into(),
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
            ],
        )
        .map(drop)
    })
}

fn json_of<T: serde::Serialize>(value: &T) -> serde_json::Value {
    // What is written here consists of texts, numbers and lists of them.
    serde_json::to_value(value).unwrap_or_default()
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

fn error_json(error: &UserError) -> serde_json::Value {
    serde_json::json!({
        "sqlstate": error.sqlstate, "message": error.message, "detail": error.detail, "hint": error.hint,
    })
}

fn latencies(run_id: i64, script: usize, histogram: &Histogram) -> Result<(), UserError> {
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
         SELECT $1, $2, * FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5))",
        &[run_id.into(), (script as i32).into(), lows.into(), highs.into(), counts.into()],
    )
    .map(drop)
}

fn script_line(
    run_id: i64,
    index: usize,
    script: &ScriptSpec,
    totals: &Totals,
    spec: &RunSpec,
) -> Result<(), UserError> {
    let fixture = script.fixture.and_then(|index| spec.fixtures.get(index));
    let m = &totals.moments;
    run(
        "INSERT INTO bench.script_log (run_id, script, workload, weight, fixture, transactions, failed, retried, skipped, \
             late, latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        &[
            run_id.into(),
            (index as i32).into(),
            script.name.as_str().into(),
            script.weight.cast_signed().into(),
            fixture.map(|fixture| fixture.name.as_str()).into(),
            m.count.cast_signed().into(),
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
        ],
    )
    .map(drop)
}

fn statement_line(run_id: i64, line: &Statement) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.statement_log (run_id, script, command, line, statement, count, failed, retried, \
             latency_avg_ms, latency_p95_ms, plan, generic_plans, custom_plans, plan_changes, workers_planned, \
             workers_launched) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
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
        ],
    )
    .map(drop)
}

fn error_line(run_id: i64, line: &ErrorLine) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.error_log (run_id, sqlstate, message, detail, count, retried, failed, first_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            run_id.into(),
            line.sqlstate.as_str().into(),
            line.message.as_str().into(),
            line.detail.as_deref().into(),
            line.count.cast_signed().into(),
            line.retried.cast_signed().into(),
            line.failed.cast_signed().into(),
            timestamp(line.first_at).into(),
        ],
    )
    .map(drop)
}

fn wait_line(run_id: i64, key: &str, share: f64) -> Result<(), UserError> {
    let (kind, event) = split(key);
    run(
        "INSERT INTO bench.wait_log (run_id, wait_event_type, wait_event, share) VALUES ($1, $2, $3, $4)",
        &[run_id.into(), kind.into(), event.into(), share.into()],
    )
    .map(drop)
}

fn event_line(run_id: i64, place: i32, event: &Event) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.event_log (run_id, event, kind, relation, detail, started, ended) \
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

/// Columns of a relation's reading that only ever grow.
const COUNTED: [&str; 11] = [
    "inserted",
    "updated",
    "hot_updated",
    "deleted",
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "vacuums",
    "autovacuums",
    "analyzes",
    "autoanalyzes",
];

/// The difference of two readings. One of the relations may have been dropped, or made, meanwhile.
fn relation_lines(
    run_id: i64,
    (before, after): (&serde_json::Value, &serde_json::Value),
) -> Result<(), UserError> {
    let of = |reading: &serde_json::Value| pgrx::JsonB(reading.clone());
    // A reset of the statistics leaves fewer than there were before: then nobody knows.
    let since = |name: &&str| format!("CASE WHEN a.{name} >= b.{name} THEN a.{name} - b.{name} END");
    let sql = format!(
        "INSERT INTO bench.relation_log (run_id, relation, kind, bytes_before, bytes_after, live_before, live, dead_before, dead, \
             mod_since_analyze, last_vacuum, last_autovacuum, last_analyze, last_autoanalyze, {}) \
         SELECT $1, coalesce(a.relation, b.relation), coalesce(a.kind, b.kind), b.bytes, a.bytes, b.live, a.live, b.dead, a.dead, \
             a.mod_since_analyze, a.last_vacuum, a.last_autovacuum, a.last_analyze, a.last_autoanalyze, {} \
         FROM pg_catalog.jsonb_populate_recordset(NULL::bench.relation_reading, $2) b \
         FULL JOIN pg_catalog.jsonb_populate_recordset(NULL::bench.relation_reading, $3) a USING (oid)",
        COUNTED.join(", "),
        COUNTED.iter().map(since).collect::<Vec<_>>().join(", "),
    );
    run(&sql, &[run_id.into(), of(before).into(), of(after).into()]).map(drop)
}

fn audit_line(run_id: i64, line: &AuditLine) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.audit_log (run_id, counter, harness, server, judged, reason) VALUES ($1, $2, $3, $4, $5, $6)",
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
