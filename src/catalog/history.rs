//! Runs of the same kind, in the order of time.

use bench_core::error::{UserError, sqlstate};
use pgrx::JsonB;
use pgrx::datum::TimestampWithTimeZone;
use serde_json::{Map, Value};

use crate::server::spi::fetch_all;

/// A run in a series.
pub struct Past {
    /// What makes runs comparable: the same for all of a series.
    pub group: String,
    pub run_id: i64,
    pub started_at: TimestampWithTimeZone,
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
        return Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            format!("unrecognized value for metric: \"{metric}\""),
        )
        .hint(format!("Available values: {listed}.")));
    };
    // As the caller, for the views show each their own.
    let sql = format!(
        "SELECT h.options::pg_catalog.text OPERATOR(pg_catalog.||) h.tags::pg_catalog.text, h.run_id, h.started_at, h.{metric} \
         FROM bench.history h \
         WHERE h.workload OPERATOR(pg_catalog.=) $1 AND h.tags OPERATOR(pg_catalog.@>) $2 AND h.{metric} IS NOT NULL \
           AND h.started_at IS NOT NULL ORDER BY 1, h.started_at, h.run_id"
    );
    let rows = fetch_all(&sql, &[workload.into(), JsonB(Value::Object(tags)).into()], |row| {
        let (run_id, started_at, value) =
            (row.get::<i64>(2)?, row.get::<TimestampWithTimeZone>(3)?, row.get::<f64>(4)?);
        let group = row.get::<String>(1)?.unwrap_or_default();
        Ok(started_at.map(|started_at| Past {
            group,
            run_id: run_id.unwrap_or_default(),
            started_at,
            value: value.unwrap_or_default(),
        }))
    })?;
    Ok(rows.into_iter().flatten().collect())
}
