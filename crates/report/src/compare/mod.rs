//! Reports of comparisons: two sides of runs as text, Markdown, JSON and HTML.
//!
//! Which side is faster, and how sure that is, comes from the room `comparison`; beside it stand what each side spent its
//! time with, its latencies, its throughput over time, and plans and circumstances that are not the same.

mod content;
mod html;
mod plans;
mod plot;
mod sides;

use bench_questions::comparison::{Comparison, ComparisonLine, Difference};
use bench_questions::statements::StatementLine;
use serde::Serialize;

pub use plans::PlanDifference;
pub use sides::{Collected, ComparedRun, RunSamples, Side, WaitDifference};

use super::sanitize::{self, clean, cut, defused, one_line, shortened};
use super::{Format, markdown, text};

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// How many characters of a plan are shown, and of how many statements: the JSON has them all.
const PLAN: usize = 10_000;
const STATEMENTS: usize = 20;

/// Two sides compared; written down as JSON, the schema of `bench.compare_report(…, format => 'json')`.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// That on TPS, with its interval, in one sentence.
    pub conclusion: String,
    /// faster, slower, same, inconclusive: that on TPS.
    pub verdict: &'static str,
    /// What to do about it, where there is something to do.
    pub advice: Option<String>,
    /// Ratios up to so much from 1 are the same, as a fraction.
    pub margin: f64,
    /// Whether the runs were compared in pairs.
    pub paired: bool,
    /// TPS first, then latencies.
    pub metrics: Vec<ComparisonLine>,
    pub differences: Vec<Difference>,
    pub baseline: Side,
    pub candidate: Side,
    /// Where clients spent their time, the greatest share of either side first.
    pub waits: Vec<WaitDifference>,
    /// The statements of both sides, those first that cost the candidate most.
    pub statements: Vec<StatementLine>,
    /// Statements of both sides that were not executed alike.
    pub plans: Vec<PlanDifference>,
}

impl ComparisonReport {
    /// The report of what was `compared`, with the details of both sides' runs, and their statements.
    pub fn new(
        compared: Comparison,
        margin: f64,
        paired: bool,
        baseline: Collected,
        candidate: Collected,
        statements: Vec<StatementLine>,
    ) -> ComparisonReport {
        let Comparison { lines, mut differences } = compared;
        // What was done differently, not what was set.
        let arm = content::arm(&differences);
        differences.extend(sides::hot_updates(&baseline, &candidate));
        let waits = sides::wait_differences(&baseline, &candidate);
        let plans = plans::plan_differences(&baseline.plans, &candidate.plans);
        let (baseline, candidate) = (baseline.side(), candidate.side());
        let runs = (baseline.runs.len(), candidate.runs.len());
        ComparisonReport {
            schema_version: SCHEMA_VERSION,
            conclusion: content::conclusion(lines.first(), margin, paired, runs, &arm),
            verdict: lines.first().map_or("inconclusive", |tps| tps.verdict),
            advice: lines.first().and_then(|tps| tps.advice.clone()),
            margin,
            paired,
            metrics: lines,
            differences,
            baseline,
            candidate,
            waits,
            statements,
            plans,
        }
    }
}

/// Writes the report of a comparison.
pub fn render(report: &ComparisonReport, format: Format) -> String {
    match format {
        Format::Text => in_text(report),
        Format::Markdown => in_markdown(report),
        // Keys are strings and numbers that are not finite become null: there is nothing left to fail.
        Format::Json => sanitize::json(&serde_json::to_string(report).unwrap_or_default()),
        Format::Html => html::render(report),
    }
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

#[cfg(test)]
mod tests;
