//! The report as one page that needs nothing but itself: no script, no font, no picture from elsewhere. It is read
//! on a telephone and on a desk, by day and by night, and on paper.

use std::collections::BTreeSet;

use bench_base::number::MISSING;
use bench_base::sentence::counted;
use bench_results::{Finding, Severity};

use crate::plot::chart::Chart;
use crate::plot::{chart, svg};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::sanitize::{escaped, one_line, shortened};
use crate::section;
use crate::section::{Body, ColumnKind, Plan, Section, StatementPlans, Table};

/// The rules for everything but the colours of plots.
const STYLE: &str = include_str!("html/style.css");

/// How long a workload's name may be in the title: a mix is named by all of its scripts.
const NAME: usize = 120;

/// How long the description of what was compared may be.
const SIDE: usize = 300;

/// How long the reason of a failure may be.
const OUTCOME: usize = 2_000;

/// Writes the report.
pub fn render(report: &Report) -> String {
    let mut page = String::new();
    write_head(&mut page, report);
    let all_charts = (report.charts)();
    let mut charts = all_charts.iter();
    // The picture of the answer before what is said of it, so that a telephone's first screens have it; where there is room,
    // beside.
    let first = charts.next();
    page += if first.is_some() { "<div class=\"plots lead\">\n" } else { "<div>\n" };
    first.into_iter().for_each(|chart| write_chart(&mut page, chart));
    if let Some(findings) = report.findings {
        write_findings(&mut page, findings);
    }
    page += "</div>\n";
    write_contents(&mut page, report, &all_charts);
    if let Some(note) = report.charts_note {
        page += &format!("<p class=\"note\">{note}</p>\n");
    }
    if charts.len() > 0 {
        page += "<div class=\"plots\">\n";
        charts.for_each(|chart| write_chart(&mut page, chart));
        page += "</div>\n";
    }
    page += "<div class=\"sections\">\n";
    report.sections.iter().for_each(|section| write_section(&mut page, section));
    page += "</div>\n";
    let version = match report.extension_version {
        "" => String::new(),
        version => format!(" {}", escaped(version)),
    };
    page + &format!(
        "</main>\n<footer>pgbench_ext{version}, schema version {}</footer>\n</body>\n</html>\n",
        report.schema_version
    )
}

/// Everything up to the headline's figures.
fn write_head(page: &mut String, report: &Report) {
    let subject = &report.subject;
    let name = shortened(&one_line(&report.workload), NAME);
    let title = escaped(&format!("{subject}: {name}"));
    *page += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
              <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
              <meta name=\"color-scheme\" content=\"light dark\">\n";
    *page += &format!(
        "<title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        chart::style_sheet()
    );
    // One word of known ones; what is not one of these has no class of its own.
    let class = if report.status == "completed" && report.outcome.is_none() { "good" } else { "bad" };
    let status = match report.status {
        "" => String::new(),
        status => format!(" <span class=\"status {class}\">{}</span>", escaped(status)),
    };
    *page += &format!(
        "<header>\n<p class=\"run\">{subject}{status}</p>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n",
        escaped(&name),
        escaped(&shortened(&report.subtitle, OUTCOME))
    );
    if !report.compared.is_empty() {
        write_facts(page, "facts compared", &report.compared, SIDE);
    }
    if let Some(outcome) = &report.outcome {
        *page += &format!("<p class=\"outcome\">{}</p>\n", escaped(&shortened(outcome, OUTCOME)));
    }
    if let Some(Conclusion { verdict, sentence, remarks }) = &report.conclusion {
        *page += &format!("<p class=\"conclusion {}\">{}</p>\n", escaped(verdict), escaped(sentence));
        for remark in remarks {
            *page += &format!("<p class=\"remark\">{}</p>\n", escaped(&shortened(remark, OUTCOME)));
        }
    }
    *page += "<dl class=\"headline\">\n";
    report.headline.iter().for_each(|figure| write_figure(page, figure));
    *page += "</dl>\n";
    if !report.closing.is_empty() {
        // The very lines of pgbench, for those who look for them.
        let lines: Vec<_> = report.closing.iter().map(|line| escaped(&shortened(line, CELL))).collect();
        *page += &format!(
            "<details class=\"closing\"><summary>As pgbench prints it</summary><pre>{}</pre></details>\n",
            lines.join("\n")
        );
    }
    *page += "</header>\n";
}

/// A figure of the headline.
fn write_figure(page: &mut String, HeadlineFigure { name, value, unit, class }: &HeadlineFigure) {
    let (value, unit) =
        if value == MISSING { ("–".to_owned(), "") } else { (escaped(value), unit.as_str()) };
    *page += &format!(
        "<div class=\"figure {class}\"><dt>{name}</dt><dd>{value}<span class=\"unit\"> {unit}</span></dd></div>\n"
    );
}

/// Links to the parts of the page: charts, then tables, each with its id and its title.
fn write_contents(page: &mut String, report: &Report, charts: &[Chart]) {
    let plots: Vec<(&str, &str)> = charts.iter().map(|chart| (chart.id, chart.title)).collect();
    let findings = report.findings.map(|_| ("findings", "Findings"));
    let sections = report.sections.iter().map(|section| (section.id, section.title));
    let sections: Vec<(&str, &str)> = findings.into_iter().chain(sections).collect();
    if plots.is_empty() && sections.is_empty() {
        return;
    }
    *page += "<nav class=\"contents\" aria-label=\"Contents\">\n";
    for parts in [&plots[..], &sections] {
        if parts.is_empty() {
            continue;
        }
        *page += "<ul>";
        for (id, title) in parts {
            // The unit is at the plot.
            let name = title.split(',').next().unwrap_or(title);
            *page += &format!("<li><a href=\"#{id}\">{name}</a></li>");
        }
        *page += "</ul>\n";
    }
    *page += "</nav>\n";
}

/// How much of a cell is shown.
pub const CELL: usize = 4_000;
/// How much of a plan is shown, and of all plans: the JSON has them whole.
const PLAN: usize = 20_000;
const PLANS: usize = 400_000;
/// How much of a plan beside that of another side.
const SIDE_PLAN: usize = 10_000;
/// Up to how many plans are open.
const OPEN_PLANS: usize = 5;

/// What there is to say of the run. Notices, which decide nothing by themselves, are folded.
pub fn write_findings(page: &mut String, findings: &[Finding]) {
    *page += "<section id=\"findings\"><h2>Findings</h2>\n";
    let numbered: Vec<(usize, &Finding)> = (1..).zip(findings).collect();
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
        let figures: Vec<_> = section::figures(finding)
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

/// A chart with its words.
fn write_chart(page: &mut String, chart: &Chart) {
    *page += &format!("<figure id=\"{}\"><h2>{}</h2>\n", chart.id, chart.title);
    if !chart.legend.is_empty() {
        *page += "<ul class=\"legend\">";
        for (ink, name) in &chart.legend {
            *page += &format!("<li><i style=\"background:var(--{})\"></i>{}</li>", ink.name, escaped(name));
        }
        *page += "</ul>\n";
    }
    *page += &svg::svg(chart);
    *page += &format!("<figcaption>{}</figcaption></figure>\n", chart.caption);
}

/// Names with their values, each of at most so many characters.
fn write_facts(page: &mut String, class: &str, facts: &[(String, String)], longest: usize) {
    *page += &format!("<dl class=\"{class}\">\n");
    for (name, value) in facts {
        // No line ends between a number and its percent sign.
        let value = value.replace(" %", "\u{a0}%");
        *page += &format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(&shortened(&value, longest)));
    }
    *page += "</dl>\n";
}

/// A section of facts or of a table.
pub fn write_section(page: &mut String, section: &Section) {
    *page += &format!("<section id=\"{}\"><h2>{}</h2>\n", section.id, section.title);
    if let Some(note) = &section.note {
        *page += &format!("<p class=\"note\">{}</p>\n", escaped(&shortened(note, CELL)));
    }
    match &section.body {
        Body::Facts(facts) => {
            write_facts(page, "facts", facts, CELL);
        }
        Body::Plans(plans) => write_table(page, &table_of_sides(plans), &[]),
        Body::Table(table) | Body::Sentences { table, .. } | Body::Wide { whole: table, .. } => {
            write_table(page, table, &section.plans);
        }
    }
    *page += "</section>\n";
}

/// Statements with the plans of both sides beside each other.
fn table_of_sides(plans: &[StatementPlans]) -> Table {
    let side =
        |plans: &StatementPlans, place: usize| shortened(&plans.sides[place].1.join("\n\n"), SIDE_PLAN);
    Table::of(plans)
        .code("statement", |plans| &plans.statement)
        .code("baseline", |plans| side(plans, 0))
        .code("candidate", |plans| side(plans, 1))
        .table()
}

/// A table that scrolls where the page is too narrow for it, with the plans under its rows until there are too many.
fn write_table(page: &mut String, table: &Table, plans: &[Option<Plan>]) {
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
    let folded = plans.iter().flatten().count() > OPEN_PLANS;
    let mut left = PLANS;
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
        if let Some(Some(Plan { plan, .. })) = plans.get(index) {
            let plan = shortened(plan, PLAN.min(left));
            left = left.saturating_sub(plan.len());
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
