//! What was measured, read back: bench.percentile, and what is said at the end of a run.

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
        catalog::check_visible(run_id)?;
        Ok(percentile_of(catalog::histogram(run_id)?.into_iter(), p))
    })()
    .or_raise()
}

/// A run's status, 'crashed' included.
pub fn status(run_id: i64) -> Result<String, UserError> {
    let handle = catalog::run_handle(run_id)?;
    super::runs::current_status(handle.status, handle.segment, run_id)
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
            format!("run {run_id} counted {misplaced} transactions in the sample of an earlier interval"),
            "The coordinator was delayed. The results of the whole run are correct; a longer sample_interval makes the samples correct, too.",
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
        let errors = catalog::as_owner(|| {
            catalog::fetch::<bool>(
                "SELECT true FROM bench.error_log WHERE run_id = $1 LIMIT 1",
                &[run_id.into()],
            )
        })?;
        let (columns, view) = if errors.is_some() { ("*", "errors") } else { ("error", "runs") };
        warn(
            format!("run {run_id} is {status}: {}", why.unwrap_or_default()),
            format!("See SELECT {columns} FROM bench.{view} WHERE run_id = {run_id}."),
        );
    }
    Ok(())
}

/// What pgbench prints at its end, for a run.
pub fn closing_report(run_id: i64) -> Result<String, UserError> {
    Ok(bench_core::report::closing(&catalog::headline(run_id)?))
}
