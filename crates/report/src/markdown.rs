//! The report in GitHub's dialect of Markdown, for an issue or a mail.

use bench_results::Finding;

use crate::report::{Conclusion, Report};
use crate::sanitize::{clean, defused, one_line, shortened};
use crate::section;
use crate::section::{Body, ColumnKind, Plan, Section, StatementPlans, Table};

/// How much of one plan is shown, and of all plans: the JSON has them whole.
const PLAN: usize = 20_000;
const PLANS: usize = 200_000;
/// How much of a plan beside that of another side.
const SIDE_PLAN: usize = 10_000;
/// How much of one cell is shown.
const CELL: usize = 2_000;

/// Writes the report.
pub fn render(report: &Report) -> String {
    let shown = |text: &str| escaped(&shortened(text, CELL));
    let Report { subject, workload, subtitle, .. } = report;
    let mut text = format!("# {subject}: {}\n\n{}\n\n", shown(workload), shown(subtitle));
    for (side, description) in &report.compared {
        text += &format!("- **{}** {}\n", shown(side), shown(description));
    }
    if !report.compared.is_empty() {
        text += "\n";
    }
    if let Some(outcome) = &report.outcome {
        text += &format!("**Status** {}\n\n", shown(outcome));
    }
    if let Some(Conclusion { sentence, remarks, .. }) = &report.conclusion {
        text += &format!("**{}**\n\n", escaped(sentence));
        remarks.iter().for_each(|remark| text += &format!("{}\n\n", escaped(remark)));
    }
    if !report.closing.is_empty() {
        // As pgbench prints them, so that they can be searched for.
        let lines: Vec<_> = report.closing.iter().map(|line| one_line(&shortened(line, CELL))).collect();
        text += &fenced(&lines.join("\n"));
    }
    if let Some(findings) = report.findings {
        write_findings(&mut text, findings);
    }
    report.sections.iter().for_each(|section| write_section(&mut text, section));
    text
}

/// Findings as a list.
fn write_findings(text: &mut String, findings: &[Finding]) {
    *text += "\n## Findings\n\n";
    if findings.is_empty() {
        *text += "None.\n";
    }
    for finding in findings {
        let severity = finding.severity.as_str();
        *text += &format!("- **{severity}** {}", escaped(&shortened(&finding.finding, CELL)));
        if !finding.advice.is_empty() {
            *text += &format!(" *{}*", escaped(&shortened(&finding.advice, CELL)));
        }
        let figures: Vec<_> = section::figures(finding)
            .map(|(name, value)| escaped(&shortened(&format!("{name} {value}"), CELL)))
            .collect();
        if !figures.is_empty() {
            *text += &format!(" ({})", figures.join(", "));
        }
        *text += "\n";
    }
}

/// A section under its title.
fn write_section(text: &mut String, section: &Section) {
    *text += &format!("\n## {}\n\n", section.title);
    match &section.body {
        Body::Facts(facts) => {
            *text += "| | |\n| --- | --- |\n";
            for (name, value) in facts {
                let [name, value] = [name, value].map(|text| escaped(&shortened(text, CELL)));
                *text += &format!("| {name} | {value} |\n");
            }
        }
        Body::Plans(plans) => {
            *text += &plans.iter().map(plans_of_sides).collect::<Vec<_>>().join("\n");
        }
        Body::Table(table) | Body::Sentences { table, .. } | Body::Wide { whole: table, .. } => {
            write_table(text, table);
        }
    }
    if let Some(note) = &section.note {
        *text += &format!("\n{}\n", escaped(&shortened(note, CELL)));
    }
    write_plans(text, section.plans.iter().flatten());
}

/// A table; its columns are aligned as they are in the text.
fn write_table(text: &mut String, table: &Table) {
    let names = table.columns.iter().map(|(name, _)| format!(" {} |", escaped(&shortened(name, CELL))));
    let rules = table.columns.iter().map(|(_, kind)| {
        if matches!(kind, ColumnKind::Number | ColumnKind::Run) { " ---: |" } else { " --- |" }
    });
    *text += &format!("|{}\n|{}\n", names.collect::<String>(), rules.collect::<String>());
    for row in &table.rows {
        let cells = row.iter().zip(&table.columns).map(|(cell, (_, kind))| {
            let cell = shortened(cell, CELL);
            format!(" {} |", if *kind == ColumnKind::Code { code(&cell) } else { escaped(&cell) })
        });
        *text += &format!("|{}\n", cells.collect::<String>());
    }
}

/// The statements' plans.
fn write_plans<'a>(text: &mut String, plans: impl Iterator<Item = &'a Plan>) {
    let mut left = PLANS;
    for Plan { title, plan } in plans {
        let plan = shortened(&clean(plan), PLAN.min(left));
        left = left.saturating_sub(plan.len());
        *text += &format!("\n<details><summary>{title}</summary>\n\n{}\n</details>\n", fenced(&plan));
    }
}

/// A statement and the plans of each side.
fn plans_of_sides(plans: &StatementPlans) -> String {
    let mut text = format!("{}\n", code(&shortened(&one_line(&plans.statement), SIDE_PLAN)));
    for (side, plans) in &plans.sides {
        let plans = shortened(&clean(&plans.join("\n\n")), SIDE_PLAN);
        text += &format!("\n{side}:\n\n{}", fenced(&plans));
    }
    text
}

/// A text on one line, with what Markdown or HTML would take for its own made harmless.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in one_line(text).chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A text as code on one line. In a table even code cannot hold a bar as it is.
fn code(text: &str) -> String {
    let text = defused(&one_line(text)).replace('|', "\\|");
    if text.is_empty() {
        return text;
    }
    let fence = "`".repeat(longest_fence(&text) + 1);
    // Blanks around are taken away again by the reader's program, and keep backquotes apart from the fence.
    format!("{fence} {text} {fence}")
}

/// A text as a block of code.
fn fenced(text: &str) -> String {
    let text = defused(text);
    let fence = "`".repeat((longest_fence(&text) + 1).max(3));
    format!("{fence}\n{text}\n{fence}\n")
}

/// The longest run of backquotes.
fn longest_fence(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_would_take_is_escaped() {
        assert_eq!(escaped("a|b\n*c* <script> & `d`"), "a\\|b \\*c\\* &lt;script&gt; &amp; \\`d\\`");
        assert_eq!(code("SELECT 'a' || 'b'\n;"), "` SELECT 'a' \\|\\| 'b' ; `");
        assert_eq!(code("a``b"), "``` a``b ```");
        assert_eq!(fenced("```"), "````\n```\n````\n");
        assert_eq!(code("</td>"), "` < /td> `");
        assert_eq!(fenced("a\n<b>"), "```\na\n< b>\n```\n");
    }
}
