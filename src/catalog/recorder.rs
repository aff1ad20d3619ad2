//! What the coordinator writes: a run's row, its samples and its results.
//!
//! Each function is a transaction of its own, so that what was measured stays whatever comes
//! after. The extension is held by a lock meanwhile, see [`super::hold_extension`].

use std::cell::Cell;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{Extent, RunSpec};
use bench_core::stats::histogram::{Histogram, bucket_bounds_ns};
use bench_core::stats::moments::Moments;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{FromDatum, Spi, pg_sys};

use super::{run, spi_error, transaction};

/// How a run ended, or stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Completed,
    /// Clients were lost on the way; the rest is there.
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

/// An interval's worth of all clients.
#[derive(Clone)]
pub struct Sample {
    pub in_warmup: bool,
    /// The interval's end, since the warm-up or the measuring began.
    pub elapsed_secs: f64,
    pub secs: f64,
    /// The interval's end, a TimestampTz.
    pub at: i64,
    pub clients: u32,
    pub failed: u64,
    pub retried: u64,
    pub moments: Moments,
    pub histogram: Histogram,
}

impl Sample {
    /// The same interval made longer by the one after it.
    pub fn join(&mut self, next: &Sample) {
        self.elapsed_secs = next.elapsed_secs;
        self.secs += next.secs;
        self.at = next.at;
        self.clients = self.clients.max(next.clients);
        self.failed += next.failed;
        self.retried += next.retried;
        self.moments.merge(&next.moments);
        self.histogram.merge(&next.histogram);
    }

    /// Transactions per second.
    pub fn tps(&self) -> f64 {
        self.moments.count as f64 / self.secs
    }
}

/// A line of bench.errors.
pub struct ErrorLine {
    pub sqlstate: String,
    pub message: String,
    pub count: u64,
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
fn hold() -> Result<(), UserError> {
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

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

fn percentile_ms(histogram: &Histogram, p: f64) -> Option<f64> {
    histogram.percentile_ns(p).map(ms)
}

/// Writes the row of a run that is about to start; its id.
pub fn begin(spec: &RunSpec, segment: u32) -> Result<i64, UserError> {
    transaction(|| {
        hold()?;
        let o = &spec.options;
        let (secs, transactions) = match o.extent {
            Extent::Secs(secs) => (Some(secs), None),
            Extent::Transactions(count) => (None, Some(count.cast_signed())),
        };
        let scripts: Vec<&str> = spec.scripts.iter().map(|s| s.source.as_str()).collect();
        let settings: serde_json::Map<_, _> =
            o.settings.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        Spi::get_one_with_args::<i64>(
            "INSERT INTO bench.run_log (workload, fixture, script, clients, secs, transactions, warmup, max_tries, seed, \
                 results, variables, settings, sample_interval, tags, status, role, segment, coordinator_pid, \
                 horizon_held, extension_version) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'starting', $15, $16, \
                 pg_catalog.pg_backend_pid(), $17, extversion \
             FROM pg_catalog.pg_extension WHERE extname = 'pgbench_ext' RETURNING run_id",
            &[
                o.workload.as_str().into(),
                spec.fixture.as_ref().map(|f| f.name.as_str()).into(),
                scripts.join("\n").into(),
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
                i64::from(segment).into(),
                spec.horizon_held.into(),
            ],
        )
        .map_err(spi_error)?
        .ok_or_else(|| crate::error::internal("the run's row could not be written"))
    })
}

/// The clients stand at the gate: the run starts at this moment.
pub fn running(run_id: i64, unserved: &[&str]) -> Result<(), UserError> {
    let environment = serde_json::json!({ "unserved_defaults": unserved });
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
                 latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms) \
             SELECT run_id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 \
             FROM bench.run_log WHERE run_id = $1"
        );
        let m = &sample.moments;
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
                sample.failed.cast_signed().into(),
                sample.retried.cast_signed().into(),
                m.mean_ns().map(ms).into(),
                m.stddev_ns().map(ms).into(),
                percentile_ms(&sample.histogram, 0.5).into(),
                percentile_ms(&sample.histogram, 0.95).into(),
                percentile_ms(&sample.histogram, 0.99).into(),
                (m.count > 0).then(|| ms(m.max_ns as f64)).into(),
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
    pub moments: Moments,
    /// One for each script.
    pub histograms: &'a [Histogram],
    pub errors: &'a [ErrorLine],
    pub audit: &'a [AuditLine],
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
        let mut whole = Histogram::new();
        for (script, histogram) in closing.histograms.iter().enumerate() {
            latencies(run_id, script, histogram)?;
            whole.merge(histogram);
        }
        for line in closing.errors {
            error_line(run_id, line)?;
        }
        for line in closing.audit {
            audit_line(run_id, line)?;
        }
        let m = &closing.moments;
        run(
            "UPDATE bench.run_log SET status = $2, finished_at = pg_catalog.clock_timestamp(), error = $3, \
                 horizon_held = $4, latency_avg_ms = $5, latency_stddev_ms = $6, latency_p50_ms = $7, \
                 latency_p95_ms = $8, latency_p99_ms = $9, latency_p999_ms = $10, latency_max_ms = $11 \
             WHERE run_id = $1",
            &[
                run_id.into(),
                closing.status.as_str().into(),
                closing.error.map(|e| pgrx::JsonB(error_json(e))).into(),
                closing.horizon_held.into(),
                m.mean_ns().map(ms).into(),
                m.stddev_ns().map(ms).into(),
                percentile_ms(&whole, 0.5).into(),
                percentile_ms(&whole, 0.95).into(),
                percentile_ms(&whole, 0.99).into(),
                percentile_ms(&whole, 0.999).into(),
                (m.count > 0).then(|| ms(m.max_ns as f64)).into(),
            ],
        )
        .map(drop)
    })
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

fn error_line(run_id: i64, line: &ErrorLine) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.error_log (run_id, sqlstate, message, count, first_at) VALUES ($1, $2, $3, $4, $5)",
        &[
            run_id.into(),
            line.sqlstate.as_str().into(),
            line.message.as_str().into(),
            line.count.cast_signed().into(),
            timestamp(line.first_at).into(),
        ],
    )
    .map(drop)
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
