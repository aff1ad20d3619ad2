//! The report of a run.

use bench_base::number;
use bench_base::number::count;
use bench_results::Document;

use crate::formats::{Format, write};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::schema::schema_of;
use crate::{content, plot, text};

/// Writes the report of a run.
pub fn render(document: &Document, format: Format) -> String {
    write(document, || report(document), format)
}

/// Returns the JSON schema of a run's document.
pub fn schema() -> String {
    schema_of::<Document>()
}

fn report(document: &Document) -> Report<'_> {
    let run = &document.run;
    let outcome = content::run_outcome(document);
    let closing = content::closing_lines(document);
    let unreplayed = document.unreplayed.as_ref().map(content::unreplayed);
    let status = outcome.as_ref().map(|outcome| format!("status: {outcome}"));
    let conclusion = content::conclusion(document);
    Report {
        subject: format!("Run {}", run.run_id),
        workload: run.workload.clone(),
        status: &run.status,
        subtitle: content::subtitle(document),
        outcome,
        conclusion: conclusion.map(|(verdict, sentence)| Conclusion {
            verdict,
            sentence,
            remarks: Vec::new(),
        }),
        opening: unreplayed.into_iter().chain(closing.clone()).chain(status).collect(),
        closing,
        headline: headline(document),
        sparkline: text::sparkline_of_tps(&document.samples).unwrap_or_default(),
        charts: Box::new(|| plot::charts(document)),
        charts_note: document
            .samples
            .is_empty()
            .then_some("No interval was measured: there is nothing to plot over time."),
        findings: Some(&document.findings),
        sections: content::sections(document),
        extension_version: &run.extension_version,
        schema_version: document.schema_version,
    }
}

/// The figures that one looks for first.
fn headline(document: &Document) -> Vec<HeadlineFigure> {
    let summary = &document.summary;
    let open_loop = content::OpenLoop::of(document);
    let achieved = if open_loop.is_some() { "achieved" } else { "throughput" };
    let mut figures = vec![HeadlineFigure::new(achieved, number::tps(summary.tps), "tps").in_large()];
    if let Some(open_loop) = &open_loop {
        figures.push(HeadlineFigure::new("offered", number::tps(Some(open_loop.rate)), "tps"));
    }
    let latencies = [summary.latency_avg_ms, summary.latency_p95_ms, summary.latency_p99_ms];
    let (latencies, unit) = number::in_one_unit(&latencies);
    let named = ["latency average", "p95", "p99"].into_iter().zip(latencies);
    figures.extend(named.map(|(name, value)| HeadlineFigure::new(name, value, unit)));
    figures.push(HeadlineFigure::new("transactions", count(summary.transactions), ""));
    let counted =
        |name, part: u64, unit: String| HeadlineFigure::new(name, count(part), unit).bad_if(part > 0);
    figures.push(counted("failed", summary.failed, String::new()));
    if let Some(open_loop) = &open_loop {
        let has_limit = document.run.latency_limit.is_some();
        if has_limit {
            figures.push(counted("skipped", open_loop.skipped, open_loop.share(open_loop.skipped)));
        }
        figures.extend(summary.backlog.map(|backlog| counted("backlog", backlog, open_loop.share(backlog))));
        if has_limit {
            figures.push(counted("late", summary.late, String::new()));
        }
    }
    figures
}
