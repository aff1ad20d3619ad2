//! What was measured, read back: bench.percentile.

use bench_base::error::UserError;
use bench_stats::histogram::percentile_of;
use pgrx::prelude::*;

use super::required;
use crate::error::OrRaise;
use crate::store;

/// A latency percentile of a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn percentile(run_id: Option<i64>, percentile: Option<f64>) -> Option<f64> {
    (|| {
        let run_id = required("run_id", run_id)?;
        let p = required("percentile", percentile)?;
        if !(0.0..=1.0).contains(&p) {
            let error = UserError::invalid(format!("percentile value {p} is not between 0 and 1"));
            // To twelve digits: 99.9 / 100 is not quite 0.999.
            let as_share = (p * 1e10).round() / 1e12;
            return Err(if (0.0..=1.0).contains(&as_share) {
                error.hint(format!("Use {as_share} for the {p}th percentile."))
            } else {
                error
            });
        }
        store::check_visible(run_id)?;
        Ok(percentile_of(store::histogram(run_id)?.into_iter(), p))
    })()
    .or_raise()
}
