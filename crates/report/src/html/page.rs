//! A report as a page, with its head, style sheet, title and foot.

use bench_base::number::MISSING;

use super::parts::{CELL, write_chart, write_findings, write_section};
use crate::escape::escaped;
use crate::plot::{Chart, palette};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::sanitize::{one_line, shortened};

/// The rules for everything but the colours of plots.
const STYLE: &str = include_str!("style.css");

/// How long a workload's name may be in the title: a mix is named by all of its scripts.
const NAME: usize = 120;

/// How long the reason of a failure may be.
const OUTCOME: usize = 2_000;

/// Writes the report.
pub fn render(report: &Report) -> String {
    let mut page = String::new();
    write_head(&mut page, report);
    let charts = (report.charts)();
    write_contents(&mut page, report, &charts);
    let mut charts = charts.iter();
    if let Some(findings) = report.findings {
        // Throughput over time before what is said of it, so that a telephone's first screens have it; where there is room,
        // beside.
        let first = charts.next();
        page += if first.is_some() { "<div class=\"plots lead\">\n" } else { "<div>\n" };
        first.into_iter().for_each(|chart| write_chart(&mut page, chart));
        write_findings(&mut page, findings);
        page += "</div>\n";
    }
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
        palette::style_sheet()
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
