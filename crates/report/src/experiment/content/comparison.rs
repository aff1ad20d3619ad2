//! Two sides beside each other.

use bench_base::number::{MISSING, finite, fixed, ms, percent, tps, us};
use bench_questions::comparison::{ComparisonLine, scripts_differ};
use bench_results::experiment::ExperimentDocument;

use super::round_trip;
use crate::content::{Body, Section, StatementPlans, Table, or_missing, unreplayed};
use crate::experiment::conclusion::{NAME, change, metric, percentage};
use crate::experiment::results::{Experiment, distinct};
use crate::experiment::sides::{BASELINE, CANDIDATE, ComparedSides, WaitDifference};
use crate::report::HeadlineFigure;
use crate::sanitize::{cut, one_line};
use crate::statements;

/// How many wait events are named; the others are in the JSON.
const WAITS: usize = 15;
/// What would be shown as 0.0 %.
const LEAST_SHARE: f64 = 0.0005;
/// Of how many statements plans are shown: the JSON has them all.
const STATEMENTS: usize = 20;
/// How many workloads are named.
const WORKLOADS: usize = 3;

/// What to know about the verdict.
pub fn remarks(experiment: &Experiment, sides: &ComparedSides) -> Vec<String> {
    let other = scripts_differ(&sides.differences)
        .then(|| "The runs did not all run the same script: see what differs.".to_owned());
    let statements = statements::sentence(&sides.statements, sides.margin);
    let round_trip = round_trip::sentence(experiment);
    other.into_iter().chain(statements).chain(round_trip).chain(sides.advice.clone()).collect()
}

/// The workloads of both sides.
pub fn workloads(document: &ExperimentDocument) -> String {
    let names = document.runs.iter().map(|run| cut(&one_line(&run.workload), NAME)).collect::<Vec<_>>();
    let mut names = distinct(names.iter().map(String::as_str));
    let more = if names.len() > WORKLOADS { ", …" } else { "" };
    names.truncate(WORKLOADS);
    names.join(", ") + more
}

/// The comparison in one line.
pub fn subtitle(document: &ExperimentDocument, sides: &ComparedSides) -> String {
    let [baseline, candidate] = [BASELINE, CANDIDATE].map(|side| {
        let runs = document.runs.iter().filter(|run| run.variant == side);
        let ids: Vec<i64> = runs.filter_map(|run| run.run_id).collect();
        let runs = match ids.as_slice() {
            [only] => format!("run {only}"),
            [first, .., last] => format!("{} runs ({first} to {last})", ids.len()),
            [] => "no run".to_owned(),
        };
        format!("{side}: {runs}")
    });
    let paired = if sides.paired { ", in pairs" } else { "" };
    let left_out = document.unreplayed.as_ref().map_or(String::new(), |of| format!("{}; ", unreplayed(of)));
    format!("{left_out}{baseline}; {candidate}{paired}")
}

/// TPS of both sides, and how far they are apart.
pub fn headline(sides: &ComparedSides) -> Vec<HeadlineFigure> {
    let of = |figure: fn(&ComparisonLine) -> Option<f64>| sides.metrics.first().and_then(figure);
    let change = |ratio: Option<f64>| ratio.map_or(MISSING.to_owned(), change);
    vec![
        HeadlineFigure::new("change in throughput", change(of(|line| line.ratio)), "").in_large(),
        HeadlineFigure::new(BASELINE, tps(of(|line| line.baseline)), "tps"),
        HeadlineFigure::new(CANDIDATE, tps(of(|line| line.candidate)), "tps"),
        HeadlineFigure::new("95 % interval from", change(of(|line| line.ratio_low)), ""),
        HeadlineFigure::new("to", change(of(|line| line.ratio_high)), ""),
    ]
}

/// The ratios with their intervals.
pub fn metrics(sides: &ComparedSides) -> Section {
    let name = |line: &ComparisonLine| match line.metric.as_str() {
        "tps" => "TPS".to_owned(),
        "server_cpu_us" => "CPU per transaction, µs".to_owned(),
        _ => format!("latency {}, ms", metric(line)),
    };
    let value = |line: &ComparisonLine, value: Option<f64>| match line.metric.as_str() {
        "tps" => tps(value),
        "server_cpu_us" => us(value),
        _ => ms(value),
    };
    let table = Table::of(&sides.metrics)
        .text("metric", name)
        .number("baseline", |line| value(line, line.baseline))
        .number("candidate", |line| value(line, line.candidate))
        .number("ratio", |line| fixed(line.ratio, 3))
        .number("low", |line| fixed(line.ratio_low, 3))
        .number("high", |line| fixed(line.ratio_high, 3))
        .text("verdict", |line| &line.verdict)
        .table();
    Section::of_table("metrics", "Metrics", table).with_note(
        "ratio: candidate / baseline, of geometric means; low and high: bounds of its interval, 95 % for TPS and CPU, \
         98.75 % for each latency, so that all four hold with 95 %; those of the scripts of a mix hold together. CPU: \
         the processor time of the clients' processes. Verdicts are the candidate's.",
    )
}

/// Shares of the clients' time.
pub fn waits(sides: &ComparedSides) -> Section {
    let points = |line: &WaitDifference| match finite(line.difference) {
        Some(difference) => percentage(1.0 + difference).replace(" %", ""),
        None => MISSING.to_owned(),
    };
    let is_seen = |line: &&WaitDifference| {
        [line.baseline, line.candidate].iter().flatten().any(|of| *of >= LEAST_SHARE)
    };
    let table = Table::of(sides.waits.iter().filter(is_seen).take(WAITS))
        .text("clients' time in", |line| &line.wait)
        .number("baseline", |line| percent(line.baseline))
        .number("candidate", |line| percent(line.candidate))
        .number("difference", points)
        .table();
    Section::of_table("waits", "Waits", table).with_note(
        "Mean shares of the clients' time over the runs of a side; the difference in percentage points.",
    )
}

/// What is not the same beside what was measured.
pub fn differences(sides: &ComparedSides) -> Section {
    let table = Table::of(&sides.differences)
        .text("differs", |of| &of.what)
        .text("baseline", |of| or_missing(&of.baseline))
        .text("candidate", |of| or_missing(&of.candidate))
        .table();
    Section::of_table("differences", "What differs", table).with_note(
        "Arguments, settings, versions and machines. A dash: not there, for a server setting at its default.",
    )
}

/// Statements with the plans of both sides; nothing where all are alike.
pub fn plans(sides: &ComparedSides) -> Section {
    let plans = sides.plans.iter().take(STATEMENTS).map(|of| StatementPlans {
        statement: of.statement.clone(),
        sides: [(BASELINE, of.baseline.clone()), (CANDIDATE, of.candidate.clone())],
    });
    Section::of("plans", "Plans that differ", Body::Plans(plans.collect()))
}
