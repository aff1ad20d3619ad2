//! What of a run over connections is the driver's and not the server's.

use bench_base::sentence::{counted, milliseconds, percent};
use bench_results::{Document, Finding, Severity, Topic};
use serde_json::json;

use super::finding::finding;

/// A job that uses a processor for so much of its time has no time left in which to be there when an answer comes.
const SATURATED: f64 = 0.9;

/// Connections that were ready waited for their job for so much of a transaction's latency.
const LATE: f64 = 0.25;

/// The findings on the wire driver.
pub fn findings(document: &Document) -> Vec<Finding> {
    let saturated = saturated(document);
    if saturated.is_empty() { late(document) } else { saturated }
}

fn saturated(document: &Document) -> Vec<Finding> {
    let busy = document.environment.driver_busy.filter(|busy| *busy >= SATURATED);
    let Some(busy) = busy else { return Vec::new() };
    let jobs = document.run.jobs;
    let whose = match jobs {
        Some(1) => "its job".to_owned(),
        Some(jobs) => format!("the busiest of its {}", counted(jobs.into(), "job")),
        None => "one of its jobs".to_owned(),
    };
    vec![finding(
        Severity::Warning,
        Topic::Driver,
        format!("The driver was the limit: {whose} used a processor for {} of the time.", percent(busy)),
        json!({ "busy": busy, "jobs": jobs }),
        "Answers waited for it, and latencies contain that. Use more jobs, or fewer clients.",
    )]
}

/// Of a script with several statements this is less than what its transactions waited.
fn late(document: &Document) -> Vec<Finding> {
    let environment = &document.environment;
    let known = environment.driver_wait_avg_us.zip(document.summary.latency_avg_ms);
    let Some((wait_us, latency_ms)) = known.filter(|(wait_us, ms)| *wait_us >= LATE * ms * 1e3) else {
        return Vec::new();
    };
    let wait_ms = wait_us / 1e3;
    let longest =
        environment.driver_wait_max_ms.map_or(String::new(), |ms| format!(", {} at most", milliseconds(ms)));
    vec![finding(
        Severity::Warning,
        Topic::Driver,
        format!(
            "The driver was late: answers waited {} for their job on average{longest}, of a latency of {}.",
            milliseconds(wait_ms),
            milliseconds(latency_ms)
        ),
        json!({
            "wait_avg_us": wait_us, "wait_max_ms": environment.driver_wait_max_ms,
            "round_max_ms": environment.driver_round_max_ms, "latency_avg_ms": latency_ms, "jobs": document.run.jobs,
        }),
        "Each job serves its connections in turn, and latencies contain the wait. Use more jobs, or fewer clients.",
    )]
}
