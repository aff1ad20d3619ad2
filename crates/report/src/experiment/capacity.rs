//! What a search for a capacity has shown: its answers, its trials, and a chart of latency over the offered rate.

use std::collections::BTreeMap;

use bench_base::number::{MISSING, fixed, ms, percent, tps};
use bench_base::sentence::counted;
use bench_results::experiment::{
    CapacityAnswer, ExperimentDocument, ExperimentRun, Limit, Purpose, TrialOutcome,
};
use bench_stats::robust::median;

use crate::experiment::results::Experiment;
use crate::plot::axis::Axis;
use crate::plot::chart::{CURVES, Chart, Hover, Panel, Plot};
use crate::section::{Section, Table, latency};

/// A percentile by its usual name, as `p99` or `p99.9`.
fn percentile_name(percentile: f64) -> String {
    format!("p{}", (percentile * 1e5).round() / 1e3)
}

/// What was asked for, as `p99 within 10 ms`.
fn objective(answer: &CapacityAnswer) -> String {
    match answer.latency_limit_ms {
        Some(limit) => format!("{} within {limit} ms", percentile_name(answer.percentile)),
        None => "throughput".to_owned(),
    }
}

/// An answer in one sentence, without a period.
pub fn capacity_sentence(answer: &CapacityAnswer) -> String {
    let what = objective(answer);
    let Some(rate) = answer.rate else {
        let why = answer.limited_by.map_or(String::new(), |limit| format!(": {}", reason(limit)));
        let when = match answer.rounds {
            0 | 1 => String::new(),
            all => format!(" in {} of {all} rounds", answer.rounds_without),
        };
        return format!("{what}: no tried rate is sustained{when}{why}");
    };
    let shown = tps(Some(rate));
    let mut sentence = match answer.limited_by {
        Some(Limit::Clients) => format!("{what}: {shown} transactions per second and more are sustained"),
        _ => format!("{what}: {shown} transactions per second are sustained"),
    };
    if let (Some(low), Some(high)) = (answer.rate_low, answer.rate_high) {
        sentence += &if low < rate || high <= rate {
            format!(" ({} to {})", tps(Some(low)), tps(Some(high)))
        } else {
            format!(", {} are not", tps(Some(high)))
        };
    }
    if let Some(limit) = answer.limited_by {
        sentence += &format!("; {}", reason(limit));
    }
    let without = if answer.checkpoints == Some(0) { ", without a checkpoint" } else { "" };
    match answer.operating_rate {
        Some(rate) => sentence += &format!("; operating rate {}{without}", tps(Some(rate))),
        None => sentence += "; 70 % of it was not sustained over a longer run",
    }
    if answer.hysteresis == Some(true) {
        sentence += "; after an overload the rate is not sustained any more (hysteresis)";
    }
    sentence += &few_above(answer).map_or(String::new(), |few| format!("; {few}"));
    sentence
}

/// Transactions above a percentile that make it one: below that, a few of them decide.
const ENOUGH_ABOVE: u64 = 10;

/// That a percentile rests on few transactions, and how long trials would have enough of them; without a period.
fn few_above(answer: &CapacityAnswer) -> Option<String> {
    let above = answer.above.filter(|&above| above < ENOUGH_ABOVE)?;
    let rate = answer.rate.or(answer.rate_high).filter(|&rate| rate > 0.0)?;
    let secs = (ENOUGH_ABOVE as f64 / (1.0 - answer.percentile) / rate).ceil();
    let rests = match above {
        0 => "no transaction".to_owned(),
        above => counted(above, "transaction"),
    };
    let name = percentile_name(answer.percentile);
    Some(format!("{name} rests on {rests} above it: use secs => {secs} or more"))
}

/// What a limit means.
fn reason(limit: Limit) -> &'static str {
    match limit {
        Limit::Latency => "limited by latency",
        Limit::Throughput => "limited by throughput",
        Limit::Errors => "limited by errors",
        Limit::Clients => {
            "limited by the clients, so this is not the capacity: all clients were busy while the server was not, \
             so use more clients"
        }
    }
}

/// The answer to each objective.
pub fn answers(experiment: &Experiment) -> Section {
    let table = Table::of(&experiment.document.capacities)
        .text("objective", objective)
        .number("tps sustained", |answer| tps(answer.rate))
        .number("low", |answer| tps(answer.rate_low))
        .number("high", |answer| tps(answer.rate_high))
        .number("operating", |answer| tps(answer.operating_rate))
        .text("limited by", |answer| answer.limited_by.map_or(MISSING, Limit::as_str))
        .text("hysteresis", |answer| answer.hysteresis.map_or(MISSING, |it| if it { "yes" } else { "no" }))
        .table();
    let several = experiment.document.sweep.search.as_ref().is_some_and(|search| search.rounds > 1);
    let range = if several {
        "low and high are the bounds of the 95 % interval over the rounds."
    } else {
        "high is the lowest rate that failed."
    };
    let answers = &experiment.document.capacities;
    let mut note = format!(
        "{range} operating is 70 % of the rate, where a longer run sustained it. Limited by clients: all were busy while \
         the server was not, so that more of them could do more."
    );
    let without = |answer: &CapacityAnswer| answer.operating_rate.is_some() && answer.checkpoints == Some(0);
    let over = |answer: &CapacityAnswer| {
        answer.operating_rate.is_some() && answer.checkpoints.is_some_and(|all| all > 0)
    };
    if answers.iter().any(without) {
        note += " No checkpoint fell into that run.";
    } else if answers.iter().any(over) {
        note += " A checkpoint fell into that run.";
    }
    for answer in answers {
        if let Some(few) = few_above(answer) {
            note += &format!(" {}: {few}.", objective(answer));
        }
    }
    Section::of_table("capacity", "Capacity", table).with_note(note)
}

/// The trials at one rate.
type Trials<'a> = Vec<&'a ExperimentRun>;

/// What the trials have shown.
fn outcomes<'a>(runs: &Trials<'a>) -> impl Iterator<Item = &'a TrialOutcome> {
    runs.iter().filter_map(|run| run.outcome.as_ref())
}

fn median_of(runs: &Trials, figure: fn(&TrialOutcome) -> Option<f64>) -> Option<f64> {
    median(&outcomes(runs).filter_map(figure).collect::<Vec<_>>())
}

/// The trials by rate, ascending, of all rounds.
pub fn trials(experiment: &Experiment) -> Section {
    let percentile = experiment.document.sweep.search.as_ref().map_or(0.99, |search| search.percentile);
    let latency = format!("{} ms", percentile_name(percentile));
    let mut by_rate: BTreeMap<u64, Trials> = BTreeMap::new();
    for run in trials_of(&experiment.document) {
        // The order of floats above zero is that of their bits.
        by_rate.entry(run.rate.unwrap_or_default().to_bits()).or_default().push(run);
    }
    let failed = |runs: &Trials| outcomes(runs).map(|outcome| outcome.failed).fold(0, u64::saturating_add);
    let table = Table::of(by_rate.values())
        .number("rate", |runs| tps(runs[0].rate))
        .number("trials", |runs| runs.len())
        .number("tps", |runs| tps(median_of(runs, |outcome| Some(outcome.tps))))
        .number(&latency, |runs| ms(median_of(runs, |outcome| outcome.latency_ms)))
        .number("service ms", |runs| fixed(median_of(runs, |outcome| outcome.service_ms), 3))
        .number("clients busy", |runs| percent(median_of(runs, |outcome| outcome.busy)))
        .number("CPU idle", |runs| percent(median_of(runs, |outcome| outcome.cpu_idle)))
        .number("failed", failed)
        .table();
    Section::of_table("trials", "Trials", table.without_idle(&["failed"])).with_note(
        "Medians of the trials at each rate. Latency counts from when a transaction was due, service from its start.",
    )
}

/// The trials at a rate that have shown something.
fn trials_of(document: &ExperimentDocument) -> impl Iterator<Item = &ExperimentRun> {
    let is_trial =
        |run: &&ExperimentRun| run.purpose == Some(Purpose::Trial) && run.rate.is_some_and(|rate| rate > 0.0);
    document.runs.iter().filter(is_trial).filter(|run| run.outcome.is_some())
}

/// The places of the runs whose findings say what limited the search; `None` of another sweep.
pub fn telling(document: &ExperimentDocument) -> Option<Vec<u32>> {
    document.sweep.search.as_ref()?;
    Some(document.capacities.iter().flat_map(|answer| answer.failing.iter().copied()).collect())
}

/// The chart; `None` where no latency is known.
pub fn capacity_chart(experiment: &Experiment) -> Option<Chart> {
    let search = experiment.document.sweep.search.as_ref()?;
    let percentile = percentile_name(search.percentile);
    let mut trials: Vec<(f64, f64, &ExperimentRun)> = trials_of(&experiment.document)
        .filter_map(|run| Some((run.rate?, run.outcome.as_ref()?.latency_ms.filter(|ms| *ms > 0.0)?, run)))
        .collect();
    trials.sort_by(|one, other| one.0.total_cmp(&other.0));
    let limits = || search.latency_limits_ms.iter().copied().filter(|ms| *ms > 0.0);
    let known = || trials.iter().map(|(_, ms, _)| *ms).chain(limits());
    let y = Axis::of_latencies(known().reduce(f64::min)?, known().reduce(f64::max)?);
    let most = trials.last()?.0;
    let x = Axis::from_zero(most * 1.05, 6);
    let median_of = |trials: &[(f64, f64, &ExperimentRun)]| {
        let latencies: Vec<f64> = trials.iter().map(|(_, ms, _)| *ms).collect();
        Some((trials[0].0, median(&latencies)?))
    };
    let medians = trials.chunk_by(|one, other| one.0 == other.0).filter_map(median_of).collect();
    let [ink, ink_of_limits, ..] = CURVES;
    let panel = Panel::new(y)
        .with(limits().map(|limit| ink_of_limits.dashes(vec![(0.0, limit), (x.high, limit)])))
        .with([ink.line(medians, 3)])
        .with(trials.iter().map(|(rate, ms, _)| ink.dot((*rate, *ms), 6)));
    let hover = trials.iter().map(|(rate, ms, run)| {
        let done = tps(run.outcome.as_ref().map(|outcome| outcome.tps));
        let text = format!("{} tps offered, {done} done\n{percentile} {}", tps(Some(*rate)), latency(*ms));
        Hover::Around((*rate, *ms), text)
    });
    Some(Chart {
        id: "plot-capacity",
        title: "Latency by offered rate, tps",
        label: format!("Latency by offered rate: {percentile} of trials at up to {} tps", tps(Some(most))),
        caption: format!(
            "{percentile} of each trial from when transactions were due, with a line through the medians; dashed: the \
             limits. The axis of latency is logarithmic."
        ),
        legend: Vec::new(),
        plot: Plot { x, is_upright: true, hover: hover.collect(), panels: vec![panel] },
    })
}
