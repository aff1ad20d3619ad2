//! From a run's series to sentences with figures.
//!
//! False alarms matter more than completeness, because a reader of three false alarms does not read the fourth. So
//! every finding has a threshold above noise; a finding that depends on size and not on chance also has a threshold of
//! relevance.
#![forbid(unsafe_code)]

mod dips;
mod intervals;
mod latency;
mod nodes;
mod outage;
mod outcome;
pub mod preflight;
mod processors;
mod server;
mod shape;
mod statements;
#[cfg(test)]
mod tests;
pub mod wait_events;
mod waits;

use bench_results::{Document, Finding, Severity, Topic};
use serde_json::Value;

use crate::dips::detect;
use crate::intervals::Intervals;

pub use crate::outcome::UNSENT;

/// What there is to say of a run, the gravest first; nothing of a clean one.
pub fn findings(document: &Document) -> Vec<Finding> {
    let intervals = Intervals::of(&document.samples).levelled(document.run.changing_rates().as_ref());
    let mut detected = detect::detect(&intervals);
    let mut findings = Vec::new();
    findings.extend(outcome::findings(document, &intervals));
    findings.extend(outcome::duel_findings(document));
    findings.extend(outage::findings(document, &intervals, &mut detected));
    findings.extend(statements::write_findings(document));
    findings.extend(statements::plan_findings(document, &intervals, &mut detected));
    findings.extend(waits::cache_findings(document, &intervals));
    findings.extend(dips::findings(document, &intervals, &mut detected));
    findings.extend(shape::unsteady(document));
    findings.extend(shape::findings(document, &intervals, &detected));
    findings.extend(latency::findings(document, &intervals, &detected));
    findings.extend(processors::findings(document, &intervals));
    findings.extend(processors::driver_findings(document));
    findings.extend(waits::findings(document, &intervals, &detected));
    findings.extend(server::replication_findings(document, &intervals));
    findings.extend(nodes::findings(document));
    findings.extend(statements::table_findings(document));
    findings.extend(server::fixture_findings(document));
    findings.extend(server::findings(document));
    findings.extend(dips::unjudged_findings(document, &intervals, &detected));
    let causes = findings.clone();
    findings.retain(|finding| !causes.iter().any(|cause| explains(cause, finding)));
    // Stable, so that within a severity causes, and symptoms, keep the order above.
    findings.sort_by_key(|finding| (finding.severity, is_symptom(finding)));
    findings
}

/// Whether one finding says all that the other does, and why: one cause is one finding.
fn explains(cause: &Finding, finding: &Finding) -> bool {
    let rises = finding.figures.get("change").and_then(Value::as_f64).is_some_and(|change| change > 0.0);
    match (cause.topic, finding.topic) {
        (Topic::Cache, Topic::Warmup) => !rises,
        (Topic::Cache, Topic::Drift) => rises,
        (Topic::Cache, Topic::Waits) => {
            finding.figures.get("limit").is_some_and(|limit| limit == waits::READS)
        }
        // Commits that the application does not make are no reason for a faster disk.
        (Topic::Fidelity, Topic::Waits) => {
            let is_of = |name: &str| finding.figures.get("limit").is_some_and(|limit| limit == name);
            cause.figures.get("commits_too_often") == Some(&Value::Bool(true)) && is_of(waits::FLUSHES)
        }
        // What was higher before the change is no warm-up.
        (Topic::Plan, Topic::Warmup) => cause.severity == Severity::Warning && rises,
        (Topic::Plan, Topic::Drift) => cause.severity == Severity::Warning && !rises,
        // It says the same of transactions that were never started.
        (Topic::Rate, Topic::Stall) => true,
        // Its advice names the variable, and its sentence the statements.
        (Topic::Writes, Topic::Scale) => finding.severity == Severity::Warning,
        (Topic::Plan, Topic::Scan) => {
            cause.severity == Severity::Warning && of_same_statement(cause, finding)
        }
        _ => false,
    }
}

/// Whether all scans are by the statement whose plan changed.
fn of_same_statement(plan: &Finding, scan: &Finding) -> bool {
    let Some(statement) = plan.figures.get("statements").map(|statements| &statements[0]) else {
        return false;
    };
    let of_it = |relation: &Value| {
        relation["script"] == statement["script"] && relation["command"] == statement["command"]
    };
    scan.figures
        .get("relations")
        .and_then(Value::as_array)
        .is_some_and(|relations| relations.iter().all(of_it))
}

/// Whether a finding tells what was noticed rather than why: it comes after the causes.
fn is_symptom(finding: &Finding) -> bool {
    match finding.topic {
        Topic::Stall | Topic::Warmup | Topic::Drift | Topic::Tail | Topic::Transactions | Topic::Samples => {
            true
        }
        Topic::Dip => finding.figures.get("coincide").and_then(Value::as_array).is_none_or(Vec::is_empty),
        _ => false,
    }
}
