//! A report as text.

use bench_results::Finding;

use super::lines::{hanging, write_title};
use super::section::write_section;
use crate::report::Report;

/// Writes the report.
pub fn render(report: &Report) -> String {
    let mut lines: Vec<String> = report.opening.iter().flat_map(|line| hanging("", line)).collect();
    if let Some(conclusion) = &report.conclusion {
        lines.extend(hanging("", &conclusion.sentence));
        lines.extend(conclusion.remarks.iter().flat_map(|remark| hanging("", remark)));
    }
    lines.extend(report.sparkline.iter().cloned());
    if let Some(findings) = report.findings {
        write_findings(&mut lines, findings);
    }
    report.sections.iter().for_each(|section| write_section(&mut lines, section));
    lines.join("\n") + "\n"
}

/// Findings, each with its advice: the sentence has the figures in it.
fn write_findings(lines: &mut Vec<String>, findings: &[Finding]) {
    write_title(lines, "Findings");
    if findings.is_empty() {
        lines.push("  none".to_owned());
    }
    for finding in findings {
        let severity = finding.severity.as_str();
        lines.extend(hanging(&format!("  {severity}: "), &finding.finding));
        if !finding.advice.is_empty() {
            lines.extend(hanging("    advice: ", &finding.advice));
        }
    }
}
