//! From a run's series to sentences with figures.
//!
//! False alarms matter more than completeness: whoever reads three of them reads no fourth. So every finding has
//! a limit that noise does not reach, and one that is due to its size rather than to chance a limit below which it
//! does not matter.

mod dips;
mod intervals;
mod latency;
mod nodes;
mod outcome;
mod processors;
mod server;
mod shape;
mod tables;
mod text;
mod unjudged;
mod writes;

use serde_json::{Map, Value};

use crate::document::{Document, Finding, Severity};
use intervals::Intervals;

/// The reason in `bench.audit` why a greater number of the server's is not judged.
pub const UNSENT: &str = "other sessions were at work in this database just before the run: the server may have counted their work late";

/// What there is to say of a run, the gravest first; nothing of a clean one.
pub fn findings(document: &Document) -> Vec<Finding> {
    let intervals = Intervals::of(&document.samples);
    let mut detected = dips::detect(&intervals);
    let mut findings = Vec::new();
    findings.extend(outcome::findings(document, &intervals));
    findings.extend(writes::findings(document));
    findings.extend(dips::findings(document, &intervals, &mut detected));
    findings.extend(shape::findings(document, &intervals, &detected));
    findings.extend(latency::findings(document, &intervals, &detected));
    findings.extend(processors::findings(document, &intervals));
    findings.extend(nodes::findings(document));
    findings.extend(tables::findings(document));
    findings.extend(server::findings(document));
    findings.extend(unjudged::findings(document, &intervals, &detected));
    // Stable, so that within a severity they keep the order above.
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// A finding; `figures` is a JSON object.
fn finding(
    severity: Severity,
    topic: &str,
    finding: String,
    figures: Value,
    advice: impl Into<String>,
) -> Finding {
    let figures = match figures {
        Value::Object(figures) => figures,
        _ => Map::new(),
    };
    Finding { severity, topic: topic.to_owned(), finding, figures, advice: advice.into() }
}

#[cfg(test)]
mod tests;
