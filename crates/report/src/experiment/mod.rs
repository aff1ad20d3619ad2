//! Reports of experiments, which are sweeps and comparisons of runs: an [`Experiment`] as text, Markdown, JSON and HTML.
//!
//! As with the report of a run, what is said is put together once, here and in a module for each kind of question, and
//! written by the same writers; what is computed of the runs, in [`results`], is the same in all formats. Which of two sides
//! is faster, and how sure that is, comes from `bench_questions::comparison`.

mod capacity;
mod comparison;
mod ranking;
mod rehearsal;
pub mod results;
mod screen;
mod setup;
pub(crate) mod sides;
mod sweep_charts;
mod tables;
#[cfg(test)]
mod tests;

use bench_base::number::{MISSING, tps};
use bench_questions::index_worth::sentence as index_sentence;
use bench_questions::screen::sentence as screen_sentence;
use bench_results::experiment::ExperimentDocument;

use crate::experiment::results::{peak, rungs, variants};
use crate::experiment::sweep_charts::Layout;
use crate::formats::{Format, schema_of, write};
use crate::plot::chart::Chart;
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::run::machine::{environment, settings};
use crate::section::Section;
use crate::statements;

pub use crate::experiment::capacity::capacity_sentence as answer_sentence;
pub use crate::experiment::rehearsal::rehearsal_junit;
pub use crate::experiment::results::{Experiment, RungResult, VariantScalability, results, scalability};
pub use crate::experiment::sides::{Collected, ComparedSides, PlanDifference, WaitDifference};

/// Writes the report of an experiment.
pub fn render(experiment: &Experiment, format: Format) -> String {
    write(experiment, || report(experiment), format)
}

/// Returns the JSON schema of an experiment's document.
pub fn schema() -> String {
    schema_of::<Experiment>()
}

fn report(experiment: &Experiment) -> Report<'_> {
    let (document, sweep) = (&experiment.document, &experiment.document.sweep);
    let common = Report {
        subject: setup::subject(sweep),
        workload: sweep.setup.workload.clone(),
        status: &sweep.status,
        subtitle: setup::subtitle(document),
        compared: compared(document),
        outcome: setup::outcome(sweep),
        conclusion: conclusion(experiment),
        opening: setup::opening_lines(document),
        closing: Vec::new(),
        headline: Vec::new(),
        sparkline: Vec::new(),
        charts: Box::new(|| charts(experiment)),
        charts_note: None,
        findings: None,
        sections: sections(experiment),
        extension_version: &sweep.extension_version,
        schema_version: document.schema_version,
    };
    let Some(sides) = &experiment.comparison else {
        return Report { headline: headline(experiment), ..common };
    };
    let subtitle = comparison::subtitle(document, sides);
    Report {
        subject: "Comparison".to_owned(),
        workload: comparison::workloads(document),
        opening: vec![subtitle.clone()],
        subtitle,
        compared: comparison::compared(document, sides),
        conclusion: Some(Conclusion {
            verdict: sides.verdict.clone(),
            sentence: sides.conclusion.clone(),
            remarks: comparison::remarks(experiment, sides),
        }),
        headline: comparison::headline(sides),
        ..common
    }
}

/// What was compared: settings, indexes or variants.
fn compared(document: &ExperimentDocument) -> Vec<(String, String)> {
    if document.screen.is_empty() && document.indexes.is_empty() {
        setup::compared(document)
    } else {
        screen::compared(document)
    }
}

/// What was asked for, or which variant is the fastest.
fn conclusion(experiment: &Experiment) -> Option<Conclusion> {
    let document = &experiment.document;
    if !document.rehearsals.is_empty() {
        let mut answers = rehearsal::answers(document).into_iter();
        let verdict = rehearsal::verdict(document).to_owned();
        return Some(Conclusion { verdict, sentence: answers.next()?, remarks: answers.collect() });
    }
    let indexes = (!document.indexes.is_empty()).then(|| as_sentence(&index_sentence(&document.indexes)));
    let screen = screen_sentence(&document.screen).map(|text| as_sentence(&text));
    let answers = document.capacities.iter().map(capacity::capacity_sentence);
    let ranking = if is_of_variants(document) { ranking::sentence(experiment) } else { None };
    let mut sentences = answers.chain(screen).chain(indexes).chain(ranking);
    Some(Conclusion {
        verdict: if document.capacities.is_empty() { "" } else { "sustained" }.to_owned(),
        sentence: sentences.next()?,
        remarks: sentences.collect(),
    })
}

/// The words of a NOTICE as a sentence.
fn as_sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).chain(['.']).collect()
}

/// Whether the sweep compares variants or numbers of clients, and is no search, screen or judgement on indexes.
fn is_of_variants(document: &ExperimentDocument) -> bool {
    document.sweep.search.is_none()
        && document.screen.is_empty()
        && document.indexes.is_empty()
        && document.rehearsals.is_empty()
}

/// The answer of a search, or the fastest of all; and how far the sweep came.
fn headline(experiment: &Experiment) -> Vec<HeadlineFigure> {
    let document = &experiment.document;
    if !document.rehearsals.is_empty() {
        return rehearsal::headline(document);
    }
    let mut figures = if document.sweep.search.is_some() {
        let answer = document.capacities.first();
        let limited_by = answer.and_then(|answer| answer.limited_by).map_or(MISSING, |limit| limit.as_str());
        let operating = tps(answer.and_then(|answer| answer.operating_rate));
        vec![
            HeadlineFigure::new("sustained", tps(answer.and_then(|answer| answer.rate)), "tps").in_large(),
            HeadlineFigure::new("operating rate", operating, "tps").in_large(),
            HeadlineFigure::new("limited by", limited_by.to_owned(), ""),
        ]
    } else if !is_of_variants(document) {
        screen::headline(document)
    } else {
        let variants = variants(document);
        let peaks = variants.iter().filter_map(|variant| peak(&experiment.results, variant));
        let best = peaks.reduce(|best, next| if next.tps_avg > best.tps_avg { next } else { best });
        let clients = best.map_or(MISSING.to_owned(), |best| best.clients.to_string());
        let at_clients = if rungs(document).len() > 1 { "at clients" } else { "clients" };
        let highest = tps(best.and_then(|best| best.tps_avg));
        vec![
            HeadlineFigure::new("highest throughput", highest, "tps").in_large(),
            HeadlineFigure::new(at_clients, clients, ""),
        ]
    };
    let (completed, all) =
        (document.runs.iter().filter(|run| run.is_completed()).count(), document.runs.len());
    let runs = HeadlineFigure::new("runs completed", completed.to_string(), format!("of {all}"));
    figures.push(runs.bad_if(completed < all));
    figures
}

/// All sections that have something to say.
pub fn sections(experiment: &Experiment) -> Vec<Section> {
    let all = match &experiment.comparison {
        Some(sides) => vec![
            comparison::metrics(sides),
            statements::section(&sides.statements),
            comparison::waits(sides),
            comparison::differences(sides),
            tables::runs(experiment),
            comparison::plans(sides),
        ],
        None => of_sweep(experiment),
    };
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

fn of_sweep(experiment: &Experiment) -> Vec<Section> {
    let document = &experiment.document;
    // The trials of a search are at rates of their own, and all with the same clients.
    let mut all = if document.sweep.search.is_some() {
        vec![capacity::answers(experiment), capacity::trials(experiment)]
    } else if !document.screen.is_empty() {
        vec![screen::effects(document)]
    } else if !document.indexes.is_empty() {
        vec![screen::indexes(document)]
    } else if !document.rehearsals.is_empty() {
        vec![rehearsal::figures(document), rehearsal::queue(document), rehearsal::plans(document)]
    } else {
        vec![
            tables::throughput(experiment),
            tables::peaks(experiment),
            tables::latency(experiment),
            tables::scalability(experiment),
        ]
    };
    all.extend([
        tables::findings(document),
        tables::runs(experiment),
        tables::not_completed(document),
        setup::variant_changes(document),
        setup::database_changes(document),
        setup::conditions(&document.sweep),
        environment(&document.environment).with_note("On the first completed run."),
        settings(&document.environment),
    ]);
    all
}

/// The charts that there is something to draw in.
pub fn charts(experiment: &Experiment) -> Vec<Chart> {
    if let Some(sides) = &experiment.comparison {
        return comparison::charts(experiment, sides);
    }
    if experiment.document.sweep.search.is_some() {
        return capacity::capacity_chart(experiment).into_iter().collect();
    }
    if !experiment.document.screen.is_empty() {
        return screen::screen_chart(&experiment.document.screen).into_iter().collect();
    }
    if !experiment.document.rehearsals.is_empty() {
        return rehearsal::chart(&experiment.document).into_iter().collect();
    }
    if !experiment.document.indexes.is_empty() {
        return screen::index_chart(&experiment.document.indexes).into_iter().collect();
    }
    let charts = match Layout::of(experiment) {
        Some(layout) => {
            vec![sweep_charts::throughput(experiment, &layout), sweep_charts::latency_chart(&layout)]
        }
        None => vec![sweep_charts::by_variant(experiment)],
    };
    charts.into_iter().flatten().collect()
}
