//! The report of a comparison in each format; HTML is a page of its own.

use super::plans::{PLAN, STATEMENTS};
use super::report::ComparisonReport;
use super::{content, html, plans};
use crate::sanitize::{self, clean, cut, defused, one_line, shortened};
use crate::schema::schema_of;
use crate::{Format, markdown, text};

/// Writes the report of a comparison.
pub fn render(report: &ComparisonReport, format: Format) -> String {
    match format {
        Format::Text => in_text(report),
        Format::Markdown => in_markdown(report),
        // Keys are strings and numbers that are not finite become null: there is nothing left to fail.
        Format::Json => sanitize::json(&serde_json::to_string(report).unwrap_or_default()),
        Format::Html => html::render(report),
        Format::Schema => schema(),
    }
}

/// Returns the JSON schema of a comparison's document.
pub fn schema() -> String {
    schema_of::<ComparisonReport>()
}

/// The report for a terminal.
fn in_text(report: &ComparisonReport) -> String {
    let mut lines = text::hanging("", &content::subtitle(report));
    lines.extend(text::hanging("", &report.conclusion));
    for remark in content::remarks(report) {
        lines.extend(text::hanging("", &remark));
    }
    for section in &content::sections(report) {
        text::write_section(&mut lines, section);
    }
    if !report.plans.is_empty() {
        text::write_title(&mut lines, plans::TITLE);
    }
    for plan in report.plans.iter().take(STATEMENTS) {
        lines.extend(text::hanging("  ", &plan.statement));
        for (side, plans) in plan.sides() {
            lines.push(format!("    {side}:"));
            let shown = plans.iter().flat_map(|plan| plan.lines().take(PLAN_LINES));
            lines.extend(shown.map(|line| {
                format!("      {}", cut(&defused(&clean(line)).replace('\t', " "), text::WIDTH - 6))
            }));
        }
    }
    text::joined(&lines)
}

/// How many lines of a plan the text shows.
const PLAN_LINES: usize = 60;

/// The report in GitHub's dialect of Markdown.
fn in_markdown(report: &ComparisonReport) -> String {
    let mut text =
        markdown::head(content::SUBJECT, &content::workloads(report), &content::subtitle(report), None);
    text += &format!("**{}**\n", markdown::escaped(&report.conclusion));
    for remark in content::remarks(report) {
        text += &format!("\n{}\n", markdown::escaped(&remark));
    }
    for section in &content::sections(report) {
        markdown::write_section(&mut text, section);
    }
    if !report.plans.is_empty() {
        text += &format!("\n## {}\n", plans::TITLE);
    }
    for plan in report.plans.iter().take(STATEMENTS) {
        text += &format!("\n{}\n", markdown::code(&shortened(&one_line(&plan.statement), PLAN)));
        for (side, plans) in plan.sides() {
            let plans = shortened(&clean(&plans.join("\n\n")), PLAN);
            text += &format!("\n{side}:\n\n{}", markdown::fenced(&plans));
        }
    }
    text
}
