//! The report for a terminal: what pgbench prints at its end, and more, in at most [`WIDTH`] columns.

mod sparkline;
mod table;

use bench_results::Document;

use super::content::{self, Body, Section};
use super::sanitize::{clean, defused, one_line, width, wrapped};

/// How wide a line is at most.
pub const WIDTH: usize = 100;

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

/// Lines as a text.
pub fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// A section under its title, after an empty line.
pub fn write_section(lines: &mut Vec<String>, section: &Section) {
    write_title(lines, section.title);
    match &section.body {
        Body::Facts(facts) => {
            for (name, value) in facts {
                lines.extend(hanging(&format!("  {}: ", defused(&one_line(name))), value));
            }
        }
        Body::Table(table) => lines.extend(table::lines(table)),
        Body::Wide { whole, .. } if table::fits(whole) => lines.extend(table::lines(whole)),
        Body::Wide { parts, .. } => {
            for (index, (name, part)) in parts.iter().enumerate() {
                if index > 0 {
                    lines.push(String::new());
                }
                lines.extend(hanging("  ", name));
                lines.extend(table::lines(part));
            }
        }
    }
    if let Some(note) = &section.note {
        lines.extend(
            wrapped(&defused(&one_line(note)), WIDTH - 2).into_iter().map(|line| format!("  {line}")),
        );
    }
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

/// A title with a rule under it.
pub fn write_title(lines: &mut Vec<String>, title: &str) {
    lines.push(String::new());
    lines.push(title.to_owned());
    lines.push("─".repeat(width(title)));
}

/// How many lines of one value are shown: a setting or a message may be as long as a file.
const LINES: usize = 12;

/// A value after its name, in as many lines as it needs, the further ones indented.
pub fn hanging(name: &str, value: &str) -> Vec<String> {
    let indent = name.len() - name.trim_start().len() + 2;
    let value = defused(&one_line(&clean(value)));
    // The first line has the name in it, which is wrapped with the value: its own blanks are put back.
    let blanks = indent - 2;
    let mut wrapped = wrapped(&format!("{}{value}", &name[blanks..]), WIDTH - indent);
    if wrapped.len() > LINES {
        wrapped.truncate(LINES - 1);
        wrapped.push("…".to_owned());
    }
    let further = |index: usize| " ".repeat(if index == 0 { blanks } else { indent });
    wrapped.into_iter().enumerate().map(|(index, line)| further(index) + &line).collect()
}
