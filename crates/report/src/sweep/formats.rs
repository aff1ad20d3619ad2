//! The report of a sweep in each format; HTML is a page of its own.

use bench_results::sweep::SweepDocument;

use super::results::{Report, results, scalability};
use super::{content, html};
use crate::schema::schema_of;
use crate::{Format, markdown, sanitize, text};

/// Writes the report of a sweep.
pub fn render(document: &SweepDocument, format: Format) -> String {
    // The trials of a search are no rungs.
    let (results, scalability) = match document.sweep.search {
        Some(_) => (Vec::new(), Vec::new()),
        None => (results(document), scalability(document)),
    };
    let report = Report { document, results, scalability };
    match format {
        Format::Text => in_text(&report),
        Format::Markdown => in_markdown(&report),
        // Keys are strings and numbers that are not finite become null: there is nothing left to fail.
        Format::Json => sanitize::json(&serde_json::to_string(&report).unwrap_or_default()),
        Format::Html => html::render(&report),
        Format::Schema => schema(),
    }
}

/// Returns the JSON schema of a sweep's document.
pub fn schema() -> String {
    schema_of::<Report>()
}

/// The report for a terminal.
fn in_text(report: &Report) -> String {
    let mut lines = Vec::new();
    for line in content::opening_lines(report) {
        lines.extend(text::hanging("", &line));
    }
    for section in &content::sections(report) {
        if section.id == content::FINDINGS {
            text::write_title(&mut lines, section.title);
            let findings = content::finding_lines(report.document);
            lines.extend(findings.iter().flat_map(|line| text::hanging("  ", line)));
            continue;
        }
        text::write_section(&mut lines, section);
    }
    text::joined(&lines)
}

/// The report in GitHub's dialect of Markdown.
fn in_markdown(report: &Report) -> String {
    let sweep = &report.document.sweep;
    let (subject, outcome) = (content::subject(sweep), content::outcome(sweep));
    let mut text =
        markdown::head(&subject, &sweep.workload, &content::subtitle(report.document), outcome.as_deref());
    for section in &content::sections(report) {
        markdown::write_section(&mut text, section);
    }
    text
}
