//! What could not be judged, so that a run without other findings is not taken for a clean one.

use bench_base::sentence::{counted, percent};
use bench_results::{Document, Finding, Severity, Topic};
use serde_json::json;

use super::dips::{Detected, LEAST_INTERVALS, Unjudged};
use super::finding::finding;
use super::intervals::Intervals;

/// The shortest sample that a run may have, in seconds.
const SHORTEST_SAMPLE: f64 = 0.1;

/// The finding on dips that were not looked for.
pub fn findings(document: &Document, intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    // Of a run that did nothing there is worse to say.
    if document.summary.transactions == 0 {
        return None;
    }
    let (why, advice) = match detected.unjudged? {
        Unjudged::FewIntervals => (
            format!(
                "the run has {}, and {LEAST_INTERVALS} are needed",
                counted(intervals.len() as u64, "sample")
            ),
            longer(intervals.measured_secs()),
        ),
        Unjudged::Noise => (
            format!(
                "throughput varies by {} from sample to sample, so not even a stall would stand out",
                percent(detected.sigma)
            ),
            "Use a longer sample_interval, or more clients, to even out the samples, and see whether other processes \
             disturb the machine."
                .to_owned(),
        ),
    };
    Some(finding(
        Severity::Notice,
        Topic::Samples,
        format!("Dips could not be detected: {why}."),
        json!({ "samples": intervals.len(), "needed": LEAST_INTERVALS, "variation": detected.sigma }),
        advice,
    ))
}

/// How to get enough samples.
fn longer(secs: f64) -> String {
    let interval = (secs / LEAST_INTERVALS as f64 * 100.0).floor() / 100.0;
    if interval >= SHORTEST_SAMPLE {
        format!("Measure longer, or use sample_interval => {interval}.")
    } else {
        "Measure longer.".to_owned()
    }
}
