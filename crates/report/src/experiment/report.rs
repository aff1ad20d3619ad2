//! The report of an experiment.

use bench_base::number::{MISSING, tps};
use bench_questions::index_worth::sentence as index_sentence;
use bench_questions::screen::sentence as screen_sentence;
use bench_results::experiment::ExperimentDocument;

use super::results::{Experiment, peak, rungs, variants};
use super::{content, plot};
use crate::formats::{Format, write};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::sanitize::cut;
use crate::schema::schema_of;

/// How many columns the headline has for a variant's name.
const NAME: usize = 24;

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
        subject: content::subject(sweep),
        workload: sweep.workload.clone(),
        status: &sweep.status,
        subtitle: content::subtitle(document),
        outcome: content::outcome(sweep),
        conclusion: conclusion(document),
        opening: content::opening_lines(document),
        closing: Vec::new(),
        headline: Vec::new(),
        sparkline: Vec::new(),
        charts: Box::new(|| plot::charts(experiment)),
        charts_note: None,
        findings: None,
        sections: content::sections(experiment),
        extension_version: &sweep.extension_version,
        schema_version: document.schema_version,
    };
    let Some(sides) = &experiment.comparison else {
        return Report { headline: headline(experiment), ..common };
    };
    let subtitle = content::subtitle_of_sides(document, sides);
    Report {
        subject: "Comparison".to_owned(),
        workload: content::workloads(document),
        opening: vec![subtitle.clone()],
        subtitle,
        conclusion: Some(Conclusion {
            verdict: sides.verdict.clone(),
            sentence: sides.conclusion.clone(),
            remarks: content::remarks(experiment, sides),
        }),
        headline: content::headline_of_sides(sides),
        ..common
    }
}

/// What was asked for, where the sweep is a search, a screen or a judgement on indexes.
fn conclusion(document: &ExperimentDocument) -> Option<Conclusion> {
    let indexes = (!document.indexes.is_empty()).then(|| index_sentence(&document.indexes));
    let answers = document.capacities.iter().map(content::sentence);
    let mut sentences = answers.chain(screen_sentence(&document.screen)).chain(indexes);
    Some(Conclusion {
        verdict: if document.capacities.is_empty() { "" } else { "sustained" }.to_owned(),
        sentence: sentences.next()?,
        remarks: sentences.collect(),
    })
}

/// The answer of a search, or the fastest of all; and how far the sweep came.
fn headline(experiment: &Experiment) -> Vec<HeadlineFigure> {
    let document = &experiment.document;
    let mut figures = if document.sweep.search.is_some() {
        let answer = document.capacities.first();
        let limited_by = answer.and_then(|answer| answer.limited_by).map_or(MISSING, |limit| limit.as_str());
        let operating = tps(answer.and_then(|answer| answer.operating_rate));
        vec![
            HeadlineFigure::new("sustained", tps(answer.and_then(|answer| answer.rate)), "tps").in_large(),
            HeadlineFigure::new("operating rate", operating, "tps").in_large(),
            HeadlineFigure::new("limited by", limited_by.to_owned(), ""),
        ]
    } else {
        let variants = variants(document);
        let peaks = variants.iter().filter_map(|variant| peak(&experiment.results, variant));
        let best = peaks.reduce(|best, next| if next.tps_avg > best.tps_avg { next } else { best });
        let clients = best.map_or(MISSING.to_owned(), |best| best.clients.to_string());
        let at_clients = if rungs(document).len() > 1 { "at clients" } else { "clients" };
        let variant = best.map_or(MISSING.to_owned(), |best| cut(&content::label(&best.variant), NAME));
        let highest = tps(best.and_then(|best| best.tps_avg));
        let mut figures = vec![
            HeadlineFigure::new("highest throughput", highest, "tps").in_large(),
            HeadlineFigure::new(at_clients, clients, ""),
        ];
        if variants.len() > 1 {
            figures.push(HeadlineFigure::new("variant", variant, ""));
        }
        figures
    };
    let (completed, all) =
        (document.runs.iter().filter(|run| run.is_completed()).count(), document.runs.len());
    let runs = HeadlineFigure::new("runs completed", completed.to_string(), format!("of {all}"));
    figures.push(runs.bad_if(completed < all));
    figures
}
