//! The lines of bench.samples and bench.warmup_samples.

use bench_base::error::UserError;
use bench_stats::histogram::coarse;

use super::end;
use super::extension_hold::hold;
use super::lines;
use crate::server::jsonb::json_of;
use crate::server::spi::{run, timestamp};
use crate::server::transaction::transaction;
use crate::store::totals::{RunSample, ms, percentile_ms};

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
         FROM bench_internal.run_log r, jsonb_populate_record(NULL::{table}, $21) WHERE r.run_id = $1"
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
