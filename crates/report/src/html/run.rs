//! The page of a run.

use std::collections::BTreeSet;

use bench_base::number;
use bench_base::number::{MISSING, count};
use bench_base::sentence::counted;
use bench_results::{CommandSummary, Document, Finding, Severity};

use crate::content::{self, Body, ColumnKind, Section, Table};
use crate::escape::escaped;
use crate::plot::{self, Chart};
use crate::sanitize::shortened;

/// How much of a cell is shown.
const CELL: usize = 4_000;
/// How much of a plan is shown, and of all plans: the JSON has them whole.
const PLAN: usize = 20_000;
const PLANS: usize = 400_000;
/// Up to how many plans are open.
const OPEN_PLANS: usize = 5;

/// Writes the report.
pub fn render(document: &Document) -> String {
    let mut page = String::new();
    let run = &document.run;
    let conclusion = content::conclusion(document);
    let head = super::page::PageHead {
        subject: format!("Run {}", run.run_id),
        workload: &run.workload,
        status: &run.status,
        subtitle: content::subtitle(document),
        outcome: content::run_outcome(document),
        conclusion: conclusion.as_ref().map(|(verdict, sentence)| super::page::Conclusion {
            verdict,
            sentence,
            remarks: &[],
        }),
    };
    super::page::open(&mut page, &head);
    write_headline(&mut page, document);
    let (figures, sections) = (plot::charts(document), content::sections(document));
    let mut parts = vec![("findings", "Findings")];
    parts.extend(sections.iter().map(|section| (section.id, section.title)));
    super::page::write_contents(&mut page, &figures, &parts);
    // Throughput over time before what is said of it, so that a telephone's first screens have it; where there is room, beside.
    let (first, others) = figures.split_at(figures.len().min(1));
    page += if first.is_empty() { "<div>\n" } else { "<div class=\"plots lead\">\n" };
    first.iter().for_each(|figure| write_plot(&mut page, figure));
    write_findings(&mut page, document);
    page += "</div>\n";
    if document.samples.is_empty() {
        page += "<p class=\"note\">No interval was measured: there is nothing to plot over time.</p>\n";
    }
    write_plots(&mut page, others);
    page += "<div class=\"sections\">\n";
    let statements = document.merged_statements();
    for section in sections {
        let statements = if section.id == "statements" { &statements[..] } else { &[] };
        write_section(&mut page, &section, &mut PlanRows { statements, left: PLANS });
    }
    page += "</div>\n";
    super::page::close(&mut page, &run.extension_version, document.schema_version);
    page
}

/// The figures that one looks for first.
fn write_headline(page: &mut String, document: &Document) {
    let summary = &document.summary;
    let mut figure =
        |name: &str, value: &str, unit: &str, class: &str| write_figure(page, name, value, unit, class);
    let open_loop = content::OpenLoop::of(document);
    let achieved = if open_loop.is_some() { "achieved" } else { "throughput" };
    figure(achieved, &number::tps(summary.tps), "tps", "tps");
    if let Some(open_loop) = &open_loop {
        figure("offered", &number::tps(Some(open_loop.rate)), "tps", "");
    }
    let latencies = [summary.latency_avg_ms, summary.latency_p95_ms, summary.latency_p99_ms];
    let (latencies, unit) = number::in_one_unit(&latencies);
    for (name, value) in ["latency average", "p95", "p99"].into_iter().zip(latencies) {
        figure(name, &value, unit, "");
    }
    figure("transactions", &count(summary.transactions), "", "");
    let bad = |number: u64| if number > 0 { "bad" } else { "" };
    figure("failed", &count(summary.failed), "", bad(summary.failed));
    if let Some(open_loop) = &open_loop {
        let limit = document.run.latency_limit.is_some();
        for (name, part) in [("skipped", limit.then_some(open_loop.skipped)), ("backlog", summary.backlog)] {
            let Some(part) = part else { continue };
            figure(name, &count(part), &open_loop.share(part), bad(part));
        }
        if limit {
            figure("late", &count(summary.late), "", bad(summary.late));
        }
    }
    *page += "</dl>\n";
    // The very lines of pgbench, for those who look for them.
    let lines: Vec<_> =
        content::closing_lines(document).iter().map(|line| escaped(&shortened(line, CELL))).collect();
    *page += &format!(
        "<details class=\"closing\"><summary>As pgbench prints it</summary><pre>{}</pre></details>\n</header>\n",
        lines.join("\n")
    );
}

/// A figure of the headline.
pub fn write_figure(page: &mut String, name: &str, value: &str, unit: &str, class: &str) {
    let (value, unit) = if value == MISSING { ("–".to_owned(), "") } else { (escaped(value), unit) };
    *page += &format!(
        "<div class=\"figure {class}\"><dt>{name}</dt><dd>{value}<span class=\"unit\"> {unit}</span></dd></div>\n"
    );
}

/// What there is to say of the run. Notices, which decide nothing by themselves, are folded.
fn write_findings(page: &mut String, document: &Document) {
    *page += "<section id=\"findings\"><h2>Findings</h2>\n";
    let numbered: Vec<(usize, &Finding)> = (1..).zip(&document.findings).collect();
    let (graver, notices) = numbered.split_at(
        numbered.iter().position(|(_, of)| of.severity == Severity::Notice).unwrap_or(numbered.len()),
    );
    match (graver, notices) {
        ([], []) => *page += "<p class=\"note\">None.</p>\n",
        ([], _) => *page += "<p class=\"note\">Nothing that makes the figures doubtful.</p>\n",
        _ => write_list(page, graver),
    }
    if !notices.is_empty() {
        let topics: BTreeSet<&str> = notices.iter().map(|(_, of)| of.topic.as_str()).collect();
        *page += &format!(
            "<details><summary>{}: {}</summary>\n",
            counted(notices.len() as u64, "notice"),
            topics.into_iter().collect::<Vec<_>>().join(", ")
        );
        write_list(page, notices);
        *page += "</details>\n";
    }
    *page += "</section>\n";
}

/// Findings, each with its number among all.
fn write_list(page: &mut String, findings: &[(usize, &Finding)]) {
    *page += "<ol class=\"findings\">\n";
    for (number, finding) in findings {
        let severity = finding.severity.as_str();
        *page += &format!(
            "<li class=\"{severity}\" id=\"finding-{number}\"><p>{number} <span class=\"badge\">{severity}</span> {}</p>",
            escaped(&shortened(&finding.finding, CELL))
        );
        if !finding.advice.is_empty() {
            *page += &format!("<p class=\"advice\">{}</p>", escaped(&shortened(&finding.advice, CELL)));
        }
        let figures: Vec<_> = content::figures(finding)
            .map(|(name, value)| {
                format!("<span>{} <b>{}</b></span>", escaped(name), escaped(&shortened(&value, CELL)))
            })
            .collect();
        if !figures.is_empty() {
            *page += &format!("<p class=\"figures\">{}</p>", figures.join(" "));
        }
        *page += "</li>\n";
    }
    *page += "</ol>\n";
}

/// The plots.
pub fn write_plots(page: &mut String, figures: &[Chart]) {
    if figures.is_empty() {
        return;
    }
    *page += "<div class=\"plots\">\n";
    figures.iter().for_each(|figure| write_plot(page, figure));
    *page += "</div>\n";
}

fn write_plot(page: &mut String, figure: &Chart) {
    *page += &format!("<figure id=\"{}\"><h2>{}</h2>\n", figure.id, figure.title);
    if !figure.legend.is_empty() {
        *page += "<ul class=\"legend\">";
        for (ink, name) in &figure.legend {
            *page += &format!("<li><i style=\"background:var(--{})\"></i>{}</li>", ink.name, escaped(name));
        }
        *page += "</ul>\n";
    }
    *page += &plot::svg(figure);
    *page += &format!("<figcaption>{}</figcaption></figure>\n", figure.caption);
}

/// A section of facts or of a table.
pub fn write_section(page: &mut String, section: &Section, plans: &mut PlanRows) {
    *page += &format!("<section id=\"{}\"><h2>{}</h2>\n", section.id, section.title);
    if let Some(note) = &section.note {
        *page += &format!("<p class=\"note\">{}</p>\n", escaped(&shortened(note, CELL)));
    }
    match &section.body {
        Body::Facts(facts) => {
            *page += "<dl class=\"facts\">\n";
            for (name, value) in facts {
                // No line ends between a number and its percent sign.
                let value = value.replace(" %", "\u{a0}%");
                *page +=
                    &format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(&shortened(&value, CELL)));
            }
            *page += "</dl>\n";
        }
        Body::Table(table) | Body::Wide { whole: table, .. } => write_table(page, table, plans),
    }
    *page += "</section>\n";
}

/// The plans under the rows of statements, until there are too many.
#[derive(Default)]
pub struct PlanRows<'a> {
    statements: &'a [CommandSummary],
    /// How many characters may still be shown.
    left: usize,
}

impl PlanRows<'_> {
    /// The plan of a row.
    fn of(&mut self, row: usize) -> Option<String> {
        let plan = self.statements.get(row)?.plan.as_ref()?;
        let plan = shortened(plan, PLAN.min(self.left));
        self.left = self.left.saturating_sub(plan.len());
        Some(plan)
    }
}

/// A table that scrolls where the page is too narrow for it.
fn write_table(page: &mut String, table: &Table, plans: &mut PlanRows) {
    // What is read comes first: a telephone shows no more of a table.
    let (mut order, numbers): (Vec<usize>, Vec<usize>) =
        (0..table.columns.len()).partition(|column| table.columns[*column].1 == ColumnKind::Code);
    order.extend(numbers);
    let class = |kind: ColumnKind| {
        if matches!(kind, ColumnKind::Number | ColumnKind::Run) { " class=\"number\"" } else { "" }
    };
    *page += "<div class=\"scroll\"><table><thead><tr>";
    for (name, kind) in order.iter().map(|column| &table.columns[*column]) {
        *page += &format!("<th{}>{}</th>", class(*kind), escaped(&shortened(name, CELL)));
    }
    *page += "</tr></thead><tbody>\n";
    // Those of a script are read, those of a capture's fifty statements looked up.
    let folded = plans.statements.iter().filter(|of| of.plan.is_some()).count() > OPEN_PLANS;
    for (index, row) in table.rows.iter().enumerate() {
        *page += "<tr>";
        for (cell, kind) in order.iter().map(|column| (&row[*column], table.columns[*column].1)) {
            let text = if cell == MISSING { "–".to_owned() } else { escaped(&shortened(cell, CELL)) };
            *page += &match kind {
                ColumnKind::Code => format!("<td><code>{text}</code></td>"),
                ColumnKind::Runs => format!("<td>{}</td>", links(cell)),
                ColumnKind::Run if is_id(cell) => {
                    format!("<td class=\"number\" id=\"run-{cell}\">{cell}</td>")
                }
                _ => format!("<td{}>{text}</td>", class(kind)),
            };
        }
        *page += "</tr>\n";
        if let Some(plan) = plans.of(index) {
            *page += &format!(
                "<tr class=\"plan\"><td colspan=\"{}\"><details{}><summary>Plan</summary><pre>{}</pre></details></td></tr>\n",
                table.columns.len(),
                if folded { "" } else { " open" },
                escaped(&plan)
            );
        }
    }
    *page += "</tbody></table></div>\n";
}

/// Whether a text is the id of a run.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Ids of runs, each leading to its row.
fn links(runs: &str) -> String {
    let link = |run: &str| {
        if is_id(run) { format!("<a href=\"#run-{run}\">{run}</a>") } else { escaped(run) }
    };
    runs.split(", ").map(link).collect::<Vec<_>>().join(", ")
}
