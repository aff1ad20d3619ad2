//! The text of a run.

use bench_results::Document;

use super::lines::{hanging, joined, write_title};
use super::section::write_section;
use super::sparkline;
use crate::content;

/// Writes the report.
pub fn render(document: &Document) -> String {
    let mut lines = Vec::new();
    if let Some(of) = &document.unreplayed {
        lines.extend(hanging("", &content::unreplayed(of)));
    }
    for line in content::closing_lines(document) {
        lines.extend(hanging("", &line));
    }
    if let Some(outcome) = content::run_outcome(document) {
        lines.extend(hanging("status: ", &outcome));
    }
    if let Some((_, sentence)) = content::conclusion(document) {
        lines.extend(hanging("", &sentence));
    }
    if let Some(sparkline) = sparkline::of_tps(&document.samples) {
        lines.extend(sparkline);
    }
    write_findings(&mut lines, document);
    for section in &content::sections(document) {
        write_section(&mut lines, section);
    }
    joined(&lines)
}

/// Findings, each with its advice: the sentence has the figures in it.
fn write_findings(lines: &mut Vec<String>, document: &Document) {
    write_title(lines, "Findings");
    if document.findings.is_empty() {
        lines.push("  none".to_owned());
    }
    for finding in &document.findings {
        let severity = finding.severity.as_str();
        lines.extend(hanging(&format!("  {severity}: "), &finding.finding));
        if !finding.advice.is_empty() {
            lines.extend(hanging("    advice: ", &finding.advice));
        }
    }
}
