//! What was measured, read back: bench.percentile, and the report at the end of a run.

use bench_core::error::{UserError, sqlstate};
use bench_core::stats::histogram::percentile_of;
use pgrx::prelude::*;

use super::required;
use crate::catalog;
use crate::error::{OrRaise, warn};

/// A latency percentile of a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn percentile(run_id: Option<i64>, p: Option<f64>) -> Option<f64> {
    (|| {
        let run_id = required("run_id", run_id)?;
        let p = required("p", p)?;
        if !(0.0..=1.0).contains(&p) {
            let error = UserError::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                format!("percentile value {p} is not between 0 and 1"),
            );
            // To twelve digits: 99.9 / 100 is not quite 0.999.
            let as_share = (p * 1e10).round() / 1e12;
            return Err(if (0.0..=1.0).contains(&as_share) {
                error.hint(format!("Use {as_share} for the {p}th percentile."))
            } else {
                error
            });
        }
        catalog::run_handle(run_id)?;
        Ok(percentile_of(catalog::histogram(run_id)?.into_iter(), p))
    })()
    .or_raise()
}

/// A run's status, 'crashed' included.
pub fn status(run_id: i64) -> Result<String, UserError> {
    let handle = catalog::run_handle(run_id)?;
    let status = super::runs::status_of(Some(handle.status), Some(handle.segment.into()), Some(run_id));
    Ok(status.unwrap_or_default())
}

/// Says when a run is not what was asked for, or its samples are not what they should be.
pub fn warn_of_status(run_id: i64) -> Result<(), UserError> {
    let misplaced = catalog::as_owner(|| {
        catalog::fetch::<i64>(
            "SELECT harness FROM bench.audit_log WHERE run_id = $1 AND counter = 'misplaced' AND harness > 0",
            &[run_id.into()],
        )
    })?;
    if let Some(misplaced) = misplaced {
        warn(
            format!(
                "{misplaced} transactions of run {run_id} are in the sample of an earlier interval than their own"
            ),
            "The coordinator was held up. The figures of the whole are right; use a longer sample_interval for the samples.",
        );
    }
    let status = status(run_id)?;
    if status != "completed" {
        let why = catalog::as_owner(|| {
            catalog::fetch::<String>(
                "SELECT error ->> 'message' || coalesce(' (' || (error ->> 'detail') || ')', '') \
                 FROM bench.run_log WHERE run_id = $1",
                &[run_id.into()],
            )
        })?;
        warn(
            format!("run {run_id} is {status}: {}", why.unwrap_or_default()),
            format!("See SELECT * FROM bench.errors WHERE run_id = {run_id}."),
        );
    }
    Ok(())
}

/// What pgbench prints at its end, for a run.
pub fn closing_report(run_id: i64) -> Result<String, UserError> {
    let text = catalog::as_owner(|| {
        catalog::read(|client| {
            let table = client.select(
                "SELECT r.workload, r.clients, r.secs, r.transactions, s.transactions, s.failed, s.tps, \
                        s.tps_min, s.tps_max, s.tps_stddev, s.latency_avg_ms, s.latency_stddev_ms, \
                        s.latency_p95_ms, s.latency_p99_ms, s.latency_max_ms, r.seed, \
                        s.rate, s.lag_avg_ms, s.lag_max_ms, s.backlog, s.latency_limit, s.late, s.skipped \
                 FROM bench.run_log r JOIN bench.summary_of_all s USING (run_id) WHERE r.run_id = $1",
                Some(1),
                &[run_id.into()],
            )?;
            let row = table.first();
            let number = |column| row.get::<f64>(column);
            let ms = |column| number(column).map(|v| v.map_or("-".to_owned(), |v| format!("{v:.3}")));
            let tps = |column| number(column).map(|v| v.map_or("-".to_owned(), |v| format!("{v:.1}")));
            let done = row.get::<i64>(5)?.unwrap_or(0);
            let failed = row.get::<i64>(6)?.unwrap_or(0);
            let percent =
                |part: i64, whole: i64| if whole > 0 { 100.0 * part as f64 / whole as f64 } else { 0.0 };
            let mut schedule = String::new();
            if let Some(rate) = number(17)? {
                let backlog = row.get::<i64>(20)?.unwrap_or(0);
                schedule += &format!(
                    "\nrate limit: {rate} tps, schedule lag: avg {} ms, max {} ms",
                    ms(18)?,
                    ms(19)?
                );
                if backlog > 0 {
                    schedule +=
                        &format!("\nfell behind: {backlog} transactions were due and not started at the end");
                }
            }
            if let Some(limit) = number(21)? {
                let late = row.get::<i64>(22)?.unwrap_or(0);
                let skipped = row.get::<i64>(23)?.unwrap_or(0);
                schedule += &format!(
                    "\nnumber of transactions above the {limit} ms latency limit: {late}/{done} ({:.3}%), skipped: {skipped} ({:.3}%)",
                    percent(late, done),
                    percent(skipped, done + failed + skipped),
                );
            }
            Ok(format!(
                "run {run_id}: {} with {} clients, {}, seed {}\n\
                 number of transactions actually processed: {done}\n\
                 number of failed transactions: {failed} ({:.3}%)\n\
                 latency average = {} ms, stddev = {} ms\n\
                 latency p95 = {} ms, p99 = {} ms, max = {} ms\n\
                 tps = {} (samples: min {}, max {}, stddev {}){schedule}",
                row.get::<String>(1)?.unwrap_or_default(),
                row.get::<i32>(2)?.unwrap_or_default(),
                extent_text(number(3)?, row.get::<i64>(4)?),
                row.get::<i64>(16)?.unwrap_or_default(),
                percent(failed, done + failed),
                ms(11)?,
                ms(12)?,
                ms(13)?,
                ms(14)?,
                ms(15)?,
                tps(7)?,
                tps(8)?,
                tps(9)?,
                tps(10)?,
            ))
        })
    })?;
    Ok(text)
}

/// What a run's extent is, for its report.
fn extent_text(secs: Option<f64>, transactions: Option<i64>) -> String {
    match (secs, transactions) {
        (_, Some(count)) => format!("{count} transactions per client"),
        (Some(secs), None) => format!("{secs} s"),
        (None, None) => String::new(),
    }
}
