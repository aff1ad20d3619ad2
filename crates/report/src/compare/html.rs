//! The report of a comparison as one page, in the frame and the style of a run's.

use bench_base::number::{MISSING, tps};

use super::plans::{PLAN, STATEMENTS};
use super::report::ComparisonReport;
use super::{conclusion, content, plans, plot};
use crate::content::{Section, Table};
use crate::html::page;
use crate::html::page::PageHead;
use crate::html::{PlanRows, write_figure, write_plots, write_section};
use crate::sanitize::shortened;

/// Writes the report.
pub fn render(report: &ComparisonReport) -> String {
    let mut page = String::new();
    let workloads = content::workloads(report);
    let remarks = content::remarks(report);
    let head = PageHead {
        subject: content::SUBJECT.to_owned(),
        workload: &workloads,
        status: "",
        subtitle: content::subtitle(report),
        outcome: None,
        conclusion: Some(page::Conclusion {
            verdict: report.verdict,
            sentence: &report.conclusion,
            remarks: &remarks,
        }),
    };
    page::open(&mut page, &head);
    write_headline(&mut page, report);
    let figures = plot::charts(report);
    let sections: Vec<Section> = content::sections(report).into_iter().chain(plans(report)).collect();
    let parts: Vec<_> = sections.iter().map(|section| (section.id, section.title)).collect();
    page::write_contents(&mut page, &figures, &parts);
    write_plots(&mut page, &figures);
    page += "<div class=\"sections\">\n";
    for section in &sections {
        write_section(&mut page, section, &mut PlanRows::default());
    }
    page += "</div>\n";
    page::close(&mut page, "", report.schema_version);
    page
}

/// TPS of both sides, and how far they are apart.
fn write_headline(page: &mut String, report: &ComparisonReport) {
    let line = report.metrics.first();
    let change = |ratio: Option<f64>| ratio.map_or(MISSING.to_owned(), conclusion::change);
    let of = |figure: fn(&bench_questions::comparison::ComparisonLine) -> Option<f64>| line.and_then(figure);
    write_figure(page, "change in throughput", &change(of(|line| line.ratio)), "", "tps");
    write_figure(page, "baseline", &tps(of(|line| line.baseline)), "tps", "");
    write_figure(page, "candidate", &tps(of(|line| line.candidate)), "tps", "");
    write_figure(page, "95 % interval from", &change(of(|line| line.ratio_low)), "", "");
    write_figure(page, "to", &change(of(|line| line.ratio_high)), "", "");
    *page += "</dl>\n</header>\n";
}

/// Statements with the plans of both sides beside each other; nothing where all are alike.
fn plans(report: &ComparisonReport) -> Option<Section> {
    let side = |plans: &[String]| shortened(&plans.join("\n\n"), PLAN);
    let table = Table::of(report.plans.iter().take(STATEMENTS))
        .code("statement", |plan| &plan.statement)
        .code("baseline", |plan| side(&plan.baseline))
        .code("candidate", |plan| side(&plan.candidate))
        .table();
    (!table.rows.is_empty()).then(|| Section::of_table("plans", plans::TITLE, table))
}
