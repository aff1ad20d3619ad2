//! The lines of bench.samples and bench.warmup_samples.

use bench_base::error::UserError;
use bench_stats::histogram::coarse;
use pgrx::JsonB;
use serde_json::json;

use super::end;
use super::extension_hold::hold;
use super::lines;
use crate::server::jsonb::merged;
use crate::server::spi::{run, timestamp};
use crate::server::transaction::transaction;
use crate::store::totals::RunSample;

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
    let totals = &sample.totals;
    let interval = json!({
        "elapsed": sample.elapsed_secs,
        "secs": sample.secs,
        "at": timestamp(sample.at),
        "clients": sample.clients,
        "transactions": totals.moments.count,
        "tps": sample.tps(),
        "latency_histogram": coarse(&totals.histogram),
    });
    let row = merged([interval, totals.columns().into(), sample.observed.columns().into()]);
    let columns: Vec<&str> = row.keys().map(String::as_str).collect();
    let insert = format!(
        "INSERT INTO {table} (run_id, lag_avg_ms, {}) \
         SELECT r.run_id, CASE WHEN r.rate IS NOT NULL THEN $2 END, s.{} \
         FROM bench_internal.run_log r, jsonb_populate_record(NULL::{table}, $3) s WHERE r.run_id = $1",
        columns.join(", "),
        columns.join(", s.")
    );
    let written = run(&insert, &[run_id.into(), totals.lag_avg_ms().into(), JsonB(row.into()).into()])?;
    if written == 0 {
        return Err(end::gone(run_id));
    }
    if sample.in_warmup || sample.observed.standbys.is_empty() {
        return Ok(());
    }
    lines::standby_lines(run_id, sample.elapsed_secs, &sample.observed.standbys)
}
