//! The report of a run: its conclusion, its headline and the order of its sections, which the modules below write.

pub mod duel;
pub mod headline;
pub mod machine;
pub mod transactions;

use bench_base::number;
use bench_base::number::{count, finite, percent};
use bench_questions::statements::statements_of_duel;
use bench_results::Document;

use crate::formats::{Format, schema_of, write};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::run::duel::duel_sentence;
use crate::run::machine::{environment, settings};
use crate::section::Section;
use crate::{plot, statements, text};

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
    let outcome = headline::run_outcome(document);
    let closing = headline::closing_lines(document);
    let unreplayed = document.unreplayed.as_ref().map(headline::unreplayed);
    let status = outcome.as_ref().map(|outcome| format!("status: {outcome}"));
    Report {
        subject: format!("Run {}", run.run_id),
        workload: run.workload.clone(),
        status: &run.status,
        subtitle: headline::subtitle(document),
        compared: duel::compared(document),
        outcome,
        conclusion: conclusion(document),
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
        sections: sections(document),
        extension_version: &run.extension_version,
        schema_version: document.schema_version,
    }
}

/// The figures that one looks for first.
fn headline(document: &Document) -> Vec<HeadlineFigure> {
    let summary = &document.summary;
    let open_loop = headline::OpenLoop::of(document);
    let counted =
        |name, part: u64, unit: String| HeadlineFigure::new(name, count(part), unit).bad_if(part > 0);
    if let Some(duel) = &document.duel {
        // Throughput and percentiles of a duel are those of both arms together.
        let mut figures = duel::headline(duel);
        figures.push(HeadlineFigure::new("transactions", count(summary.transactions), ""));
        figures.push(counted("failed", summary.failed, String::new()));
        return figures;
    }
    let achieved = if open_loop.is_some() { "achieved" } else { "throughput" };
    let mut figures = vec![HeadlineFigure::new(achieved, number::tps(summary.tps), "tps").in_large()];
    if let Some(open_loop) = &open_loop {
        figures.push(HeadlineFigure::new("offered", number::tps(Some(open_loop.rate)), "tps"));
        // Latency counts from when a transaction was due, so that lag is part of it.
        let (lag, unit) = number::short_ms(summary.lag_avg_ms);
        figures.push(HeadlineFigure::new("schedule lag", lag, unit));
    }
    let latencies = [summary.latency_avg_ms, summary.latency_p95_ms, summary.latency_p99_ms];
    let (latencies, unit) = number::in_one_unit(&latencies);
    let named = ["latency average", "p95", "p99"].into_iter().zip(latencies);
    figures.extend(named.map(|(name, value)| HeadlineFigure::new(name, value, unit)));
    figures.push(HeadlineFigure::new("transactions", count(summary.transactions), ""));
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

/// Returns the first sentence: which arm of a duel is faster, and how many statements are; or whether the run kept its limit.
fn conclusion(document: &Document) -> Option<Conclusion> {
    let Some(duel) = &document.duel else { return latency_limit(document) };
    let verdict = duel.metric("latency_avg_ms").map(|line| line.verdict.clone()).unwrap_or_default();
    let lines = statements_of_duel(duel);
    let counted = if lines.len() > 1 { statements::verdicts(&lines, duel.margin) } else { None };
    let named = if lines.len() > 1 { statements::slower(&lines) } else { None };
    Some(Conclusion {
        verdict,
        sentence: statements::other_answers(&lines) + &duel_sentence(duel)?,
        remarks: counted.into_iter().chain(named).collect(),
    })
}

/// All sections that have something to say.
pub fn sections(document: &Document) -> Vec<Section> {
    let all = [
        duel::metrics(document),
        duel::statements(document),
        transactions::latency(document),
        transactions::fidelity(document),
        transactions::orders(document),
        transactions::connections(document),
        transactions::processor_time(document),
        headline::open_loop(document),
        machine::nodes(document),
        // Of a duel they would be those of both arms together.
        if document.duel.is_some() { duel::waits(document) } else { transactions::waits(document) },
        machine::server(document),
        transactions::statements(document),
        transactions::plans(document),
        transactions::scripts(document),
        machine::sizes(document),
        machine::changes(document),
        machine::upkeep(document),
        machine::events(document),
        transactions::errors(document),
        transactions::audit(document),
        headline::run(document),
        environment(&document.environment).with_note_if(asked(document)),
        settings(&document.environment).with_note_if(asked(document)),
    ];
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

/// Whose environment it is, where there are others.
fn asked(document: &Document) -> Option<String> {
    (document.client_nodes() > 1).then(|| "On the node that started the run.".to_owned())
}

/// The share of transactions that may exceed the limit: p99 has to be within it, as `bench.capacity` asks for.
const MAY_EXCEED: f64 = 0.01;

/// Whether a run kept its `latency_limit`; `None` of a run without one, and where there was no transaction.
fn latency_limit(document: &Document) -> Option<Conclusion> {
    let (limit_ms, summary) = (finite(document.run.latency_limit)?, &document.summary);
    let not_done = summary.skipped.saturating_add(summary.failed);
    let (beyond, all) =
        (summary.late.saturating_add(not_done), summary.transactions.saturating_add(not_done));
    let verdict = if beyond as f64 <= MAY_EXCEED * all as f64 { "kept" } else { "missed" };
    let sentence = format!(
        "Latency limit of {limit_ms} ms {verdict}: {} of {} transactions ({}) were late, skipped or failed, {} may be.",
        count(beyond),
        count(all),
        percent(Some(beyond as f64 / all as f64)),
        percent(Some(MAY_EXCEED))
    );
    (all > 0).then(|| Conclusion { verdict: verdict.to_owned(), sentence, remarks: Vec::new() })
}
