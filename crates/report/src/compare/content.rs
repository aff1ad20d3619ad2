//! What the report of a comparison says, apart from how it looks.

use bench_base::number;
use bench_base::number::{MISSING, count, finite, fixed, ms, percent, tps, us};
use bench_questions::comparison::{ComparisonLine, scripts_differ};

use super::conclusion::{NAME, metric, percentage};
use super::report::ComparisonReport;
use super::sides::{ComparedRun, Side, WaitDifference};
use crate::content::{Body, Section, StatementPlans, Table, or_missing, unreplayed};
use crate::round_trip::RoundTrip;
use crate::sanitize::{cut, one_line};
use crate::statements;

/// How many wait events are named; the others are in the JSON.
const WAITS: usize = 15;
/// What would be shown as 0.0 %.
const LEAST_SHARE: f64 = 0.0005;
/// How many runs of a side are listed.
const RUNS: usize = 50;
/// Of how many statements plans are shown: the JSON has them all.
const STATEMENTS: usize = 20;
/// How many workloads are named.
const WORKLOADS: usize = 3;

/// What to know about the verdict.
pub fn remarks(report: &ComparisonReport) -> Vec<String> {
    let other = scripts_differ(&report.differences)
        .then(|| "The runs did not all run the same script: see what differs.".to_owned());
    let statements = statements::sentence(&report.statements, report.margin);
    other.into_iter().chain(statements).chain(round_trip(report)).chain(report.advice.clone()).collect()
}

/// What it costs to send a transaction over a connection, where nothing but the driver differs.
fn round_trip(report: &ComparisonReport) -> Option<String> {
    let of = |what: &str| report.differences.iter().find(|difference| difference.what == what);
    let driver = of("driver")?;
    if of("target").is_some() || scripts_differ(&report.differences) {
        return None;
    }
    let is_candidate = match (driver.baseline.as_deref(), driver.candidate.as_deref()) {
        (Some("engine"), Some("wire")) => true,
        (Some("wire"), Some("engine")) => false,
        _ => return None,
    };
    let more = |name: &str| {
        let line = report.metrics.iter().find(|line| line.metric == name)?;
        let difference = finite(line.candidate)? - finite(line.baseline)?;
        Some(if is_candidate { difference } else { -difference })
    };
    let (engine, wire) = match is_candidate {
        true => (&report.baseline, &report.candidate),
        false => (&report.candidate, &report.baseline),
    };
    let round_trip = RoundTrip {
        latency_ms: more("latency_avg_ms")?,
        server_cpu_us: more("server_cpu_us"),
        driver_cpu_us: mean(wire, |run| run.driver_cpu_us),
    };
    Some(round_trip.sentence() + &switches(engine, wire))
}

/// What connections add to the context switches, as a sentence; empty where they are not known.
fn switches(engine: &Side, wire: &Side) -> String {
    let server = mean(wire, |run| run.server_context_switches);
    let Some(more) =
        server.zip(mean(engine, |run| run.server_context_switches)).map(|(wire, engine)| wire - engine)
    else {
        return String::new();
    };
    let word = if more < 0.0 { "fewer" } else { "more" };
    let driver = mean(wire, |run| run.driver_context_switches)
        .map_or(String::new(), |count| format!(" and {} in the driver", fixed(Some(count), 2)));
    format!(" It has {} context switches {word} in the server{driver}.", fixed(Some(more.abs()), 2))
}

/// A figure's mean over the runs of a side that have it.
fn mean(side: &Side, of: impl Fn(&ComparedRun) -> Option<f64>) -> Option<f64> {
    number::mean(&side.runs.iter().map(of).collect::<Vec<_>>())
}

/// The workloads of both sides.
pub fn workloads(report: &ComparisonReport) -> String {
    let mut names: Vec<String> = Vec::new();
    for run in report.baseline.runs.iter().chain(&report.candidate.runs) {
        let name = cut(&one_line(&run.workload), NAME);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > WORKLOADS { ", …" } else { "" };
    names.truncate(WORKLOADS);
    names.join(", ") + more
}

/// The comparison in one line.
pub fn subtitle(report: &ComparisonReport) -> String {
    let runs = |side: &Side| match side.runs.as_slice() {
        [only] => format!("run {}", only.run_id),
        [first, .., last] => format!("{} runs ({} to {})", side.runs.len(), first.run_id, last.run_id),
        [] => "no run".to_owned(),
    };
    let paired = if report.paired { ", in pairs" } else { "" };
    let sides = [&report.baseline, &report.candidate];
    let most = sides.into_iter().filter_map(|side| side.unreplayed.as_ref());
    let most = most.max_by(|one, other| one.share.total_cmp(&other.share));
    let unreplayed = most.map_or(String::new(), |of| format!("{}; ", unreplayed(of)));
    let [baseline, candidate] = sides.map(runs);
    format!("{unreplayed}baseline: {baseline}; candidate: {candidate}{paired}")
}

/// All sections that have something to say.
pub fn sections(report: &ComparisonReport) -> Vec<Section> {
    let statements = statements::section(&report.statements);
    let all = [metrics(report), statements, waits(report), differences(report), runs(report), plans(report)];
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

/// The ratios with their intervals.
fn metrics(report: &ComparisonReport) -> Section {
    let name = |line: &ComparisonLine| match line.metric {
        "tps" => "TPS".to_owned(),
        "server_cpu_us" => "CPU per transaction, µs".to_owned(),
        _ => format!("latency {}, ms", metric(line)),
    };
    let value = |line: &ComparisonLine, value: Option<f64>| match line.metric {
        "tps" => tps(value),
        "server_cpu_us" => us(value),
        _ => ms(value),
    };
    let table = Table::of(&report.metrics)
        .text("metric", name)
        .number("baseline", |line| value(line, line.baseline))
        .number("candidate", |line| value(line, line.candidate))
        .number("ratio", |line| fixed(line.ratio, 3))
        .number("low", |line| fixed(line.ratio_low, 3))
        .number("high", |line| fixed(line.ratio_high, 3))
        .text("verdict", |line| line.verdict)
        .table();
    Section::of_table("metrics", "Metrics", table).with_note(
        "ratio: candidate / baseline, of geometric means; low and high: bounds of its interval, 95 % for TPS and CPU, \
         98.75 % for each latency, so that all four hold with 95 %; those of the scripts of a mix hold together. CPU: \
         the processor time of the clients' processes. Verdicts are the candidate's.",
    )
}

/// Shares of the clients' time.
fn waits(report: &ComparisonReport) -> Section {
    let points = |line: &WaitDifference| match finite(line.difference) {
        Some(difference) => percentage(1.0 + difference).replace(" %", ""),
        None => MISSING.to_owned(),
    };
    let is_seen = |line: &&WaitDifference| {
        [line.baseline, line.candidate].iter().flatten().any(|of| *of >= LEAST_SHARE)
    };
    let table = Table::of(report.waits.iter().filter(is_seen).take(WAITS))
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
fn differences(report: &ComparisonReport) -> Section {
    let table = Table::of(&report.differences)
        .text("differs", |of| &of.what)
        .text("baseline", |of| or_missing(&of.baseline))
        .text("candidate", |of| or_missing(&of.candidate))
        .table();
    Section::of_table("differences", "What differs", table).with_note(
        "Arguments, settings, versions and machines. A dash: not there, for a server setting at its default.",
    )
}

/// The runs of both sides.
fn runs(report: &ComparisonReport) -> Section {
    let sides = [("baseline", &report.baseline), ("candidate", &report.candidate)];
    let runs =
        sides.into_iter().flat_map(|(name, side)| side.runs.iter().take(RUNS).map(move |run| (name, run)));
    let runs: Vec<(&str, &ComparedRun)> = runs.collect();
    let started = |run: &ComparedRun| run.started_at.as_deref().map(number::to_the_second);
    let table = Table::of(&runs)
        .text("side", |(side, _)| side)
        .number("run", |(_, run)| run.run_id)
        .number("tps", |(_, run)| tps(run.tps))
        .number("avg ms", |(_, run)| ms(run.latency_avg_ms))
        .number("p95 ms", |(_, run)| ms(run.latency_p95_ms))
        .number("p99 ms", |(_, run)| ms(run.latency_p99_ms))
        .number("CPU µs", |(_, run)| us(run.server_cpu_us))
        .number("failed", |(_, run)| count(run.failed))
        .number("skipped", |(_, run)| count(run.skipped))
        .text("started", |(_, run)| or_missing(&started(run)).to_owned())
        .table();
    let most = report.baseline.runs.len().max(report.candidate.runs.len());
    let note = (most > RUNS).then(|| format!("The first {} runs of each side.", number::count(RUNS as u64)));
    Section::of_table("runs", "Runs", table.without_idle(&["CPU µs", "failed", "skipped"])).with_note_if(note)
}

/// Statements with the plans of both sides; nothing where all are alike.
fn plans(report: &ComparisonReport) -> Section {
    let plans = report.plans.iter().take(STATEMENTS).map(|of| StatementPlans {
        statement: of.statement.clone(),
        sides: [("baseline", of.baseline.clone()), ("candidate", of.candidate.clone())],
    });
    Section::of("plans", "Plans that differ", Body::Plans(plans.collect()))
}
