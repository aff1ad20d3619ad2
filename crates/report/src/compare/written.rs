//! The report of a comparison as it is written.

use bench_base::number::{MISSING, tps};
use bench_questions::comparison::ComparisonLine;

use super::report::ComparisonReport;
use super::{conclusion, content, plot};
use crate::formats::{Format, write};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::schema::schema_of;

/// Writes the report of a comparison.
pub fn render(report: &ComparisonReport, format: Format) -> String {
    write(report, || described(report), format)
}

/// Returns the JSON schema of a comparison's document.
pub fn schema() -> String {
    schema_of::<ComparisonReport>()
}

fn described(report: &ComparisonReport) -> Report<'_> {
    let subtitle = content::subtitle(report);
    Report {
        subject: "Comparison".to_owned(),
        workload: content::workloads(report),
        status: "",
        outcome: None,
        conclusion: Some(Conclusion {
            verdict: report.verdict.to_owned(),
            sentence: report.conclusion.clone(),
            remarks: content::remarks(report),
        }),
        opening: vec![subtitle.clone()],
        subtitle,
        closing: Vec::new(),
        headline: headline(report.metrics.first()),
        sparkline: Vec::new(),
        charts: Box::new(|| plot::charts(report)),
        charts_note: None,
        findings: None,
        sections: content::sections(report),
        extension_version: "",
        schema_version: report.schema_version,
    }
}

/// TPS of both sides, and how far they are apart.
fn headline(line: Option<&ComparisonLine>) -> Vec<HeadlineFigure> {
    let of = |figure: fn(&ComparisonLine) -> Option<f64>| line.and_then(figure);
    let change = |ratio: Option<f64>| ratio.map_or(MISSING.to_owned(), conclusion::change);
    vec![
        HeadlineFigure::new("change in throughput", change(of(|line| line.ratio)), "").in_large(),
        HeadlineFigure::new("baseline", tps(of(|line| line.baseline)), "tps"),
        HeadlineFigure::new("candidate", tps(of(|line| line.candidate)), "tps"),
        HeadlineFigure::new("95 % interval from", change(of(|line| line.ratio_low)), ""),
        HeadlineFigure::new("to", change(of(|line| line.ratio_high)), ""),
    ]
}
