//! Runs of the same kind, in the order of time, and what was found to be their spread.

use bench_base::error::UserError;
use pgrx::{JsonB, pg_sys};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{as_owner, may_see};
use crate::server::rows::select;
use crate::server::spi::fetch;

/// A run in a series.
#[derive(Deserialize)]
pub struct Past {
    /// What makes runs comparable: the same for all of a series.
    pub group: String,
    pub run_id: i64,
    /// As the server writes it.
    pub started_at: String,
    pub value: f64,
}

/// Metrics of bench.history of which series can be made.
const METRICS: [&str; 6] =
    ["tps", "latency_avg_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "server_cpu_us"];

/// Completed runs of a workload that the caller may see and whose tags include these, series by series.
///
/// # Errors
/// 22023 for an unknown metric.
pub fn history(workload: &str, metric: &str, tags: Map<String, Value>) -> Result<Vec<Past>, UserError> {
    let Some(metric) = METRICS.into_iter().find(|known| *known == metric) else {
        let listed = METRICS.map(|known| format!("'{known}'")).join(", ");
        return Err(UserError::invalid(format!("unrecognized value for metric: \"{metric}\""))
            .hint(format!("Available values: {listed}.")));
    };
    // As the caller, for the views show each their own.
    let sql = format!(
        "SELECT h.options::text || h.tags::text AS \"group\", h.run_id, h.started_at, h.{metric} AS value \
         FROM bench.history h \
         WHERE h.workload = $1 AND h.tags @> $2 AND h.{metric} IS NOT NULL \
           AND h.started_at IS NOT NULL ORDER BY 1, h.started_at, h.run_id"
    );
    select(&sql, &[workload.into(), JsonB(Value::Object(tags)).into()])
}

/// Sweeps of bench.calibrate that are looked through, the latest.
const MOST_CALIBRATIONS: i64 = 50;

/// The latest sweep of bench.calibrate that the caller may see and whose runs, at least so many, are of the same kind as all
/// of these: of one workload with the same options, and with no tag that these do not have. Its id and those of its
/// completed runs.
pub fn calibration_of(run_ids: &[i64], least: usize) -> Result<Option<(i64, Vec<i64>)>, UserError> {
    let made = as_owner(|| {
        select::<(i64, pg_sys::Oid, Vec<i64>)>(
            "SELECT s.sweep_id, s.owner_oid, array_agg(l.run_id ORDER BY l.place) \
             FROM bench_internal.sweep_log s JOIN bench_internal.sweep_run_log l USING (sweep_id) JOIN bench_internal.run_log r USING (run_id) \
             WHERE s.options ->> 'calibrates' = 'true' AND l.error IS NULL AND r.status = 'completed' \
             GROUP BY s.sweep_id, s.owner_oid HAVING count(*) >= $1 ORDER BY s.sweep_id DESC LIMIT $2",
            &[(least as i64).into(), MOST_CALIBRATIONS.into()],
        )
    })?;
    for (sweep_id, role, runs) in made {
        pgrx::check_for_interrupts!();
        let Some(&first) = runs.first() else { continue };
        if may_see(role) && are_of_kind(run_ids, first)? {
            return Ok(Some((sweep_id, runs)));
        }
    }
    Ok(None)
}

/// Whether all of these runs are of the kind of another.
fn are_of_kind(run_ids: &[i64], other: i64) -> Result<bool, UserError> {
    let found = as_owner(|| {
        fetch::<bool>(
            "SELECT bool_and(h.workload = o.workload AND h.options = o.options AND h.tags @> o.tags) \
                    AND count(*) = cardinality($1) \
             FROM bench.history h CROSS JOIN (SELECT workload, options, tags FROM bench.history WHERE run_id = $2) AS o \
             WHERE h.run_id = ANY ($1)",
            &[run_ids.to_vec().into(), other.into()],
        )
    })?;
    Ok(found == Some(true))
}
