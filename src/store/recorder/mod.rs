//! What the coordinator writes: a run's row, its samples and its results.
//!
//! Each function is a transaction of its own, so that what was measured stays whatever comes
//! after. The extension is held by a lock meanwhile, see [`super::hold_extension`].

mod end;
mod finish;
mod lines;
mod relations;
mod transactions;

use std::cell::Cell;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Before, Driver, Extent, RunSpec, ScriptSpec};
use bench_results::Environment;
use bench_stats::coarse_histogram::coarse;
use bench_stats::histogram::Histogram;
use pgrx::{Spi, pg_sys};

pub use self::end::{Part, RunColumns, RunEnd};
pub use self::finish::{Closing, finish, status_only};
pub use self::transactions::{Logged, transactions};
pub use super::totals::ms;
pub use super::totals::{RunSample, Totals};

use crate::server::spi::{run, spi_error, timestamp};
use crate::server::transaction::transaction;
use crate::shm::{Segment, Work};

/// How a run, or a sweep of them, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Completed,
    /// Clients were lost on the way, or runs of a sweep; the rest is there.
    Incomplete,
    Canceled,
    /// Nothing was measured.
    Failed,
}

impl RunStatus {
    /// As the columns status have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        }
    }
}

impl RunSample {
    /// Makes the interval longer by the one after it.
    pub fn join(&mut self, next: &RunSample) {
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

thread_local! {
    /// The extension's table of runs as it was at the run's beginning.
    static RUN_LOG: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
}

/// Holds the extension, the very one that the run began with.
pub(super) fn hold() -> Result<(), UserError> {
    crate::guard::planner_hook::for_good();
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

fn percentile_ms(histogram: &Histogram, p: f64) -> Option<f64> {
    histogram.percentile_ns(p).map(ms)
}

/// Writes the row of a run that is about to start; its id.
pub fn begin(spec: &RunSpec, segment: &Segment) -> Result<i64, UserError> {
    transaction(|| {
        hold()?;
        crate::worker::drop_extension::hold()?;
        crate::guard::planner_hook::check_all()?;
        // The coordinator of a run on several nodes has no clients of its own.
        if !spec.is_of_several_nodes() {
            super::in_use::check_clients_alone(spec)?;
        }
        let o = &spec.options;
        let (secs, transactions) = match o.extent {
            Extent::Secs(secs) => (Some(secs), None),
            Extent::Transactions(count) => (None, Some(count.cast_signed())),
        };
        let settings: serde_json::Map<_, _> =
            o.settings.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let run_id = Spi::get_one_with_args::<i64>(
            "INSERT INTO bench_internal.run_log (workload, fixture, script, clients, secs, transactions, warmup, max_tries, seed, \
                 results, variables, settings, sample_interval, tags, status, role, segment, coordinator_pid, \
                 horizon_held, query_mode, rate, latency_limit, sweep_id, fixture_rows, system, fixture_options, nodes, part_of, before, log_rate, driver, target, jobs, \
                 reconnect, on_disconnect, feeders, owner_oid, run_as, duel, applied, rates, extension_version) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'starting', bench_internal.role_name($35, $15), $16, \
                 pg_catalog.pg_backend_pid(), $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, extversion \
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
        .map_err(spi_error)?
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
            "UPDATE bench_internal.run_log SET status = 'running', started_at = pg_catalog.clock_timestamp(), \
             environment = $2, counted_from = $3 WHERE run_id = $1",
            &[run_id.into(), pgrx::JsonB(environment.clone()).into(), timestamp(counted_from).into()],
        )
        .map(drop)
    })
}

/// Columns of a sample that come from [`Observed::columns`](crate::observe::Observed::columns).
const OBSERVED: &str = "wal_bytes, wal_records, wal_fpi, wal_buffers_full, wal_syncs, checkpoints, buffers_checkpoint, buffers_clean, \
     buffers_backend, blks_hit, blks_read, temp_files, temp_bytes, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle, \
     memory_available_bytes, memory_dirty_bytes, disk_read_bytes, disk_written_bytes, throttled_secs, replay_lag_ms, replay_lag_bytes, waits";

/// Writes samples, each over the one whose interval ended at the time beside it, if there is one; all of them or none.
pub fn samples(run_id: i64, samples: &[(&RunSample, Option<f64>)]) -> Result<(), UserError> {
    let samples = std::panic::AssertUnwindSafe(samples);
    transaction(|| {
        hold()?;
        samples.iter().try_for_each(|&(sample, replaces)| write_sample(run_id, sample, replaces))
    })
}

fn write_sample(run_id: i64, sample: &RunSample, replaces: Option<f64>) -> Result<(), UserError> {
    let table = if sample.in_warmup { "bench.warmup_samples" } else { "bench.samples" };
    if let Some(elapsed) = replaces {
        let delete = format!("DELETE FROM {table} WHERE run_id = $1 AND elapsed = $2");
        run(&delete, &[run_id.into(), elapsed.into()])?;
        if !sample.in_warmup {
            let sql = "DELETE FROM bench.standbys WHERE run_id = $1 AND elapsed = $2";
            run(sql, &[run_id.into(), elapsed.into()])?;
        }
    }
    let insert = format!(
        "INSERT INTO {table} (run_id, elapsed, secs, at, clients, transactions, tps, failed, retried, \
             latency_avg_ms, latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_max_ms, \
             skipped, late, lag_avg_ms, aborted, latency_histogram, {OBSERVED}) \
         SELECT r.run_id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
             CASE WHEN r.rate IS NOT NULL THEN $18 END, $19, $20, {OBSERVED} \
         FROM bench_internal.run_log r, pg_catalog.jsonb_populate_record(NULL::{table}, $21) WHERE r.run_id = $1"
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
            t.aborted.cast_signed().into(),
            pgrx::JsonB(json_of(&coarse(&t.histogram))).into(),
            pgrx::JsonB(sample.observed.columns()).into(),
        ],
    )?;
    if written == 0 {
        return Err(end::gone(run_id));
    }
    if sample.in_warmup || sample.observed.standbys.is_empty() {
        return Ok(());
    }
    lines::standby_lines(run_id, sample.elapsed_secs, &sample.observed.standbys)
}

fn json_of<T: serde::Serialize>(value: &T) -> serde_json::Value {
    // What is written here consists of texts, numbers and lists of them.
    serde_json::to_value(value).unwrap_or_default()
}
