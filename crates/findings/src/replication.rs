//! Whether a standby kept up: a lag that grows from the beginning of a run to its end depends on how long the run was.

use bench_base::sentence::{figure, milliseconds};
use bench_results::{Document, Finding, Severity, Topic};
use bench_stats::parts;
use bench_stats::robust::median;
use serde_json::json;

use super::finding::finding;
use super::intervals::Intervals;

/// Intervals that a run has to have, six in each of its quarters: by chance the last six of 18 are the greatest once in 18,564
/// times. Of 12 intervals without a trend, one run in some hundreds would pass.
const LEAST_INTERVALS: usize = 24;
/// WAL in bytes by which the lag has to grow: a segment's usual size, which a standby replays in less than a second.
const LEAST_BYTES: f64 = 16.0 * MB;
/// Milliseconds by which the lag has to grow, and the bytes with it.
const LEAST_MS: f64 = 1000.0;
const MB: f64 = 1_048_576.0;

/// A figure in the quarters of a run.
struct StandbyGrowth {
    /// Medians of the first and of the last quarter.
    from: f64,
    to: f64,
}

/// The finding on a lag of replication that grew through the run.
pub fn findings(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let bytes = grown(&intervals.column(|samples| &samples.replay_lag_bytes)?)?;
    let ms = intervals.column(|samples| &samples.replay_lag_ms).and_then(|ms| grown(&ms));
    let late = ms.as_ref().is_some_and(|ms| ms.to - ms.from >= LEAST_MS);
    if bytes.to - bytes.from < LEAST_BYTES && !late {
        return None;
    }
    let time = ms.as_ref().map_or(String::new(), |ms| {
        format!(" and from {} to {}", milliseconds(ms.from), milliseconds(ms.to))
    });
    let whose = if document.run.target.is_some() { "The replay lag of the target" } else { "The replay lag" };
    Some(finding(
        Severity::Warning,
        Topic::Replication,
        format!(
            "{whose} grew through the run, from {} to {} MB of WAL{time}: replay cannot keep up, and the lag is not steady.",
            figure(bytes.from / MB),
            figure(bytes.to / MB)
        ),
        json!({
            "replay_lag_bytes_before": bytes.from,
            "replay_lag_bytes_after": bytes.to,
            "replay_lag_ms_before": ms.as_ref().map(|ms| ms.from),
            "replay_lag_ms_after": ms.as_ref().map(|ms| ms.to),
        }),
        "A longer run would show a greater lag. One process replays all WAL: look at its processor and its reads on the \
         standby, at queries there that replay waits for (max_standby_streaming_delay) and at recovery_min_apply_delay; or \
         find the rate that the standby can follow.",
    ))
}

/// A figure that grew from quarter to quarter: no value of a quarter is below the median of the quarter before, and none of
/// the last below any of the first half. What goes up and down does not pass.
fn grown(values: &[f64]) -> Option<StandbyGrowth> {
    if values.len() < LEAST_INTERVALS {
        return None;
    }
    let quarters: Vec<&[f64]> = parts(values, 4).collect();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let medians: Vec<f64> = quarters.iter().filter_map(|quarter| median(quarter)).collect();
    let rises = medians.windows(2).all(|pair| pair[0] < pair[1])
        && quarters.windows(2).zip(&medians).all(|(pair, median)| least(pair[1]) >= *median)
        && least(quarters[3]) > most(&values[..values.len() / 2]);
    rises.then(|| StandbyGrowth { from: medians[0], to: medians[3] })
}
