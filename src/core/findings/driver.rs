//! What of a run over connections is the driver's and not the server's.

use serde_json::json;

use super::finding;
use super::text::{counted, percent};
use crate::document::{Document, Finding, Severity};

/// A job that uses a processor for so much of its time has no time left in which to be there when an answer comes.
const SATURATED: f64 = 0.9;

/// The findings on the wire driver.
pub fn findings(document: &Document) -> Vec<Finding> {
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
        "driver",
        format!("The driver was the limit: {whose} used a processor for {} of the time.", percent(busy)),
        json!({ "busy": busy, "jobs": jobs }),
        "Answers waited for it, and latencies contain that. Use more jobs, or fewer clients.",
    )]
}
