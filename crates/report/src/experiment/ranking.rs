//! Which variant, or which number of clients, is the fastest of a sweep, and against which others that is not decided.

use bench_base::number::{finite, percent, tps};
use bench_base::sentence::counted;
use bench_results::experiment::{ExperimentDocument, ExperimentRun};
use bench_stats::compare::{Better, Terms, Verdict, groups};

use crate::experiment::results::{Experiment, RungResult, peak, rungs, variants};
use crate::experiment::setup::label;
use crate::section::latency;

/// Differences up to this share count as none, as in `bench.ab`.
const MARGIN: f64 = 0.02;
/// The joint confidence of the comparisons with the best.
const CONFIDENCE: f64 = 0.95;
/// How many variants are named in each part of the sentence.
const NAMED: usize = 4;

/// Whether the runs are compared by latency: at a given rate throughput is the same.
pub fn is_by_latency(document: &ExperimentDocument) -> bool {
    document.sweep.setup.rate.is_some()
}

/// The figure of a result by which it is compared.
pub fn figure(document: &ExperimentDocument, result: &RungResult) -> Option<f64> {
    finite(if is_by_latency(document) { result.figures.latency_avg_ms } else { result.tps_avg })
}

/// What is compared: each variant at its peak, or each number of clients where there is one variant.
fn candidates(experiment: &Experiment) -> Vec<&RungResult> {
    let document = &experiment.document;
    let names = variants(document);
    let of_one = || experiment.results.iter().collect();
    let results: Vec<&RungResult> = match names.len() {
        0 | 1 => of_one(),
        _ => names.iter().filter_map(|name| peak(&experiment.results, name)).collect(),
    };
    results.into_iter().filter(|result| figure(document, result).is_some()).collect()
}

/// A result by what distinguishes it from the others.
fn name(document: &ExperimentDocument, result: &RungResult) -> String {
    let clients = || counted(u64::from(result.clients), "client");
    match (variants(document).len() > 1, rungs(document).len() > 1) {
        (true, true) => format!("{} with {}", label(&result.variant), clients()),
        (true, false) => label(&result.variant),
        _ => clients(),
    }
}

/// The fastest and what it is faster than, in a sentence; `None` where there is nothing to compare.
pub fn sentence(experiment: &Experiment) -> Option<String> {
    let document = &experiment.document;
    let by_latency = is_by_latency(document);
    let mut results = candidates(experiment);
    let value = |result: &RungResult| figure(document, result).unwrap_or_default();
    results.sort_by(|one, other| value(other).total_cmp(&value(one)));
    if by_latency {
        results.reverse();
    }
    let (best, others) = results.split_first().filter(|(_, others)| !others.is_empty())?;
    let better = if by_latency { Better::Lower } else { Better::Higher };
    let confidence = 1.0 - (1.0 - CONFIDENCE) / others.len() as f64;
    let terms = Terms { margin: MARGIN, confidence, better };
    let of_best = values(document, best);
    let (mut slower, mut same, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for other in others {
        let list = match groups(&values(document, other), &of_best, terms).verdict {
            Verdict::Faster => &mut slower,
            Verdict::Same => &mut same,
            _ => &mut open,
        };
        list.push(name(document, other));
    }
    let (metric, shown) = match by_latency {
        true => ("lowest mean latency", latency(value(best))),
        false => ("highest throughput", format!("{} tps", tps(Some(value(best))))),
    };
    let undecided = if open.is_empty() { "" } else { "Not decided which is the fastest. " };
    let parts = [
        (slower, "faster than ".to_owned()),
        (same, format!("the same within {} as ", percent(Some(MARGIN)))),
        (open, "not decided against ".to_owned()),
    ];
    let parts = parts.iter().filter(|(names, _)| !names.is_empty());
    let parts =
        parts.map(|(names, words)| format!("{words}{}", listed(names))).collect::<Vec<_>>().join("; ");
    let single = if document.sweep.setup.rounds < 2 && of_best.len() < 2 {
        ". One run of each is no evidence: use rounds => 5 or more"
    } else {
        ""
    };
    Some(format!("{undecided}{}: {metric}, {shown}; {parts}{single}.", name(document, best)))
}

/// The first of some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The values of a result's completed runs.
fn values(document: &ExperimentDocument, result: &RungResult) -> Vec<f64> {
    let by_latency = is_by_latency(document);
    let is_of = |run: &&ExperimentRun| {
        run.variant == result.variant && run.clients == result.clients && run.is_completed()
    };
    let value = |run: &ExperimentRun| if by_latency { run.figures.latency_avg_ms } else { run.tps };
    document.runs.iter().filter(is_of).filter_map(|run| finite(value(run))).collect()
}
