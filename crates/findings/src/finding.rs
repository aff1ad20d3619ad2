//! How a finding is made of its parts.

use bench_results::{Finding, Severity, Topic};
use serde_json::{Map, Value};

/// A finding; `figures` is a JSON object.
pub fn finding(
    severity: Severity,
    topic: Topic,
    finding: String,
    figures: Value,
    advice: impl Into<String>,
) -> Finding {
    let figures = match figures {
        Value::Object(figures) => figures,
        _ => Map::new(),
    };
    Finding { severity, topic, finding, figures, advice: advice.into() }
}
