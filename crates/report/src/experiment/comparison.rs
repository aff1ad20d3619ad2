//! Two sides beside each other: the sections and charts of a comparison, and, where nothing but the driver differs, what it
//! costs to send a transaction over a connection.

use bench_base::number::{MISSING, finite, fixed, mean, ms, percent, tps, us};
use bench_base::sentence::counted;
use bench_questions::comparison::{ComparisonLine, Difference, scripts_differ};
use bench_results::Series;
use bench_results::experiment::{ExperimentDocument, ExperimentRun, Variant};

use crate::downsample::{Envelope, PLOT_COLUMNS, envelope, range};
use crate::experiment::results::{Experiment, RungResult, distinct, rungs};
use crate::experiment::sides::{
    BASELINE, CANDIDATE, ComparedSides, NAME, WaitDifference, change, metric, percentage,
};
use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, Chart, Ink, Panel, RED};
use crate::plot::forest;
use crate::plot::forest::ForestRow;
use crate::plot::latency::of_sides;
use crate::plot::times::{Curve, Times, axis_from_zero, legend, values};
use crate::report::HeadlineFigure;
use crate::run::headline::unreplayed;
use crate::sanitize::{cut, one_line};
use crate::section::{Body, Section, StatementPlans, Table, or_missing};
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
    let round_trip = round_trip_sentence(experiment);
    let slower = statements::slower(&sides.statements);
    other.into_iter().chain(statements).chain(slower).chain(round_trip).chain(sides.advice.clone()).collect()
}

/// The workloads of both sides.
pub fn workloads(document: &ExperimentDocument) -> String {
    let names = document.runs.iter().map(|run| cut(&one_line(&run.workload), NAME)).collect::<Vec<_>>();
    let mut names = distinct(names.iter().map(String::as_str));
    let more = if names.len() > WORKLOADS { ", …" } else { "" };
    names.truncate(WORKLOADS);
    names.join(", ") + more
}

/// How many differences say what a side is.
const TRAITS: usize = 4;

/// The sides by their runs and by what differs between them.
pub fn compared(document: &ExperimentDocument, sides: &ComparedSides) -> Vec<(String, String)> {
    let value = |of: &Option<String>| cut(&one_line(of.as_deref().unwrap_or("default")), NAME);
    let described = |side: &str| {
        let runs = document.runs.iter().filter(|run| run.variant == side);
        let ids: Vec<i64> = runs.filter_map(|run| run.run_id).collect();
        let runs = match ids.as_slice() {
            [only] => format!("run {only}"),
            [first, .., last] => format!("{} runs ({first} to {last})", ids.len()),
            [] => "no run".to_owned(),
        };
        let traits = sides.differences.iter().take(TRAITS).map(|of| {
            let text = if side == BASELINE { &of.baseline } else { &of.candidate };
            format!("{} {}", cut(&one_line(&of.what), NAME), value(text))
        });
        let described = std::iter::once(runs).chain(traits).collect::<Vec<_>>().join("; ");
        (side.to_owned(), described)
    };
    vec![described(BASELINE), described(CANDIDATE)]
}

/// The comparison in one line.
pub fn subtitle(document: &ExperimentDocument, sides: &ComparedSides) -> String {
    let paired = if sides.paired { "runs in pairs" } else { "runs" };
    let left_out = document.unreplayed.as_ref().map_or(String::new(), |of| format!("{}; ", unreplayed(of)));
    format!("{left_out}{} {paired}", document.runs.len())
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

/// The colours of the sides.
const OF_BASELINE: Ink = BLUE;
const OF_CANDIDATE: Ink = RED;

/// The charts that there is something to draw in.
pub fn charts(experiment: &Experiment, sides: &ComparedSides) -> Vec<Chart> {
    let latencies = [(BASELINE, &*sides.baseline_latencies), (CANDIDATE, &*sides.candidate_latencies)];
    let charts = [
        forest_chart(sides),
        forest::of_statements(&sides.statements, sides.margin),
        throughput_chart(experiment),
        of_sides("plot-distribution", latencies),
    ];
    charts.into_iter().flatten().collect()
}

/// The ratio of each metric with its interval, and the margin around 1; `None` without any ratio.
fn forest_chart(sides: &ComparedSides) -> Option<Chart> {
    let row = |line: &ComparisonLine| ForestRow {
        name: metric(line),
        ratio: [line.ratio, line.ratio_low, line.ratio_high],
        verdict: line.verdict.clone(),
    };
    let rows: Vec<ForestRow> = sides.metrics.iter().map(row).collect();
    let (plot, legend) = forest::forest(&rows, sides.margin)?;
    Some(Chart {
        id: "plot-forest",
        title: "Ratios, candidate / baseline",
        label: "Ratios with their intervals".to_owned(),
        caption: "TPS, latencies and processor time per transaction, candidate / baseline, with their intervals: 95 % \
                  for TPS and CPU, 98.75 % for each latency. More TPS, less latency and less CPU are faster. Shaded: \
                  the margin."
            .to_owned(),
        legend,
        plot,
    })
}

/// When an interval of a run was, and its TPS.
fn intervals(run: &ExperimentRun) -> impl Iterator<Item = (f64, f64)> {
    let ends = run.samples.elapsed.iter().map(|end| finite(*end).unwrap_or_default().max(0.0));
    let begins = std::iter::once(0.0).chain(ends.clone());
    begins
        .zip(ends)
        .zip(&run.samples.tps)
        .filter_map(|((begin, end), tps)| Some((begin / 2.0 + end / 2.0, finite(*tps)?)))
}

/// When the last interval of a run ended.
fn end_of(run: &ExperimentRun) -> f64 {
    run.samples.elapsed.iter().filter_map(|end| finite(*end)).fold(0.0, f64::max)
}

/// The range and the mean of a side's runs' TPS in each of so many columns up to `last` seconds.
fn binned(runs: &[ExperimentRun], side: &str, columns: usize, last: f64) -> Vec<Option<Envelope>> {
    let mut bins: Vec<Series> = vec![Series::new(); columns];
    for (middle, tps) in runs.iter().filter(|run| run.variant == side).flat_map(intervals) {
        bins[((middle / last * columns as f64) as usize).min(columns - 1)].push(Some(tps));
    }
    bins.iter().map(|bin| envelope(bin)).collect()
}

/// The columns of a chart of both sides, as wide as the coarsest run's intervals are, so that no side has gaps; `None`
/// without any interval.
fn shared_times(runs: &[ExperimentRun]) -> Option<Times> {
    let last = runs.iter().map(end_of).reduce(f64::max).filter(|last| *last > 0.0)?;
    let widths = runs.iter().filter_map(|run| match intervals(run).count() {
        0 => None,
        intervals => Some(end_of(run) / intervals as f64),
    });
    let width = widths.fold(last / PLOT_COLUMNS as f64, f64::max);
    let columns = ((last / width).round() as usize).clamp(1, PLOT_COLUMNS);
    let edge = |column: usize| last * column as f64 / columns as f64;
    let spans = (0..columns).map(|column| (edge(column), edge(column + 1))).collect();
    // A column has the intervals of several runs.
    Some(Times { spans, per_column: 2, axis: Axis::of_time(last) })
}

/// Throughput over time of both sides; `None` without any interval.
fn throughput_chart(experiment: &Experiment) -> Option<Chart> {
    let runs = &experiment.document.runs;
    let times = shared_times(runs)?;
    let curves = [(OF_BASELINE, BASELINE), (OF_CANDIDATE, CANDIDATE)].map(|(ink, side)| Curve {
        ink,
        name: side.to_owned(),
        columns: binned(runs, side, times.spans.len(), times.axis.high),
        shown: |value| format!("{} tps", tps(Some(value))),
    });
    let high = curves.iter().filter_map(|curve| Some(range(&curve.columns)?.1)).reduce(f64::max);
    let panel =
        Panel::new(axis_from_zero(&curves, 6)?).with(curves.iter().flat_map(|curve| times.line(curve)));
    Some(Chart {
        id: "plot-tps",
        title: "Throughput, tps",
        label: format!("Throughput of both sides over time, at most {} tps", tps(high)),
        caption: "Mean of the runs of each side as a line, from the lowest to the highest of them as a band."
            .to_owned(),
        legend: legend(&curves),
        plot: times.plot(vec![panel], |columns| values(&curves, &columns)),
    })
}

/// A sentence on the fewest clients of a pair of variants of which both have figures, those without a queue in front of the
/// server: there the difference is nearest to a round trip.
pub fn round_trip_sentence(experiment: &Experiment) -> Option<String> {
    let [engine, wire] = match &experiment.comparison {
        Some(sides) => driver_sides(&sides.differences)?,
        None => driver_variants(&experiment.document.sweep.setup.variants)?,
    };
    let of = |variant: &str, clients: u32| {
        let is_it = |result: &&RungResult| result.variant == variant && result.clients == clients;
        experiment.results.iter().find(is_it).filter(|result| result.figures.latency_avg_ms.is_some())
    };
    let pairs =
        experiment.results.iter().filter_map(|r| Some((of(engine, r.clients)?, of(wire, r.clients)?)));
    let (engine, wire) = pairs.min_by_key(|(engine, _)| engine.clients)?;
    let which = match rungs(&experiment.document).len() {
        1 => String::new(),
        _ => format!("With {}: ", counted(engine.clients as u64, "client")),
    };
    Some(format!(
        "{which}{}{}",
        connection_costs(engine, wire)?,
        connection_switches(experiment, engine, wire)
    ))
}

/// The names of the variants that run inside the server and over connections to it, of two sides where nothing else differs.
fn driver_sides(differences: &[Difference]) -> Option<[&'static str; 2]> {
    let of = |what: &str| differences.iter().find(|difference| difference.what == what);
    let driver = of("driver")?;
    if of("target").is_some() || scripts_differ(differences) {
        return None;
    }
    match (driver.baseline.as_deref(), driver.candidate.as_deref()) {
        (Some("engine"), Some("wire")) => Some([BASELINE, CANDIDATE]),
        (Some("wire"), Some("engine")) => Some([CANDIDATE, BASELINE]),
        _ => None,
    }
}

/// The same, of the variants of a sweep.
fn driver_variants(variants: &[Variant]) -> Option<[&str; 2]> {
    variants.iter().find_map(|wire| {
        let engine = variants.iter().find(|engine| differ_in_driver(engine, wire))?;
        Some([engine.name.as_str(), wire.name.as_str()])
    })
}

/// Whether the first runs inside the server what the second sends over connections to the same one.
fn differ_in_driver(engine: &Variant, wire: &Variant) -> bool {
    let driver = |variant: &Variant| {
        variant.run.get("driver").and_then(|driver| driver.as_str()).unwrap_or("engine").to_owned()
    };
    let rest = |variant: &Variant| {
        let mut rest = Variant { name: String::new(), ..variant.clone() };
        rest.run.retain(|argument, _| argument != "driver" && argument != "jobs");
        rest
    };
    driver(engine) == "engine" && driver(wire) == "wire" && rest(engine) == rest(wire)
}

/// What a transaction takes more over a connection than inside the server, in a sentence; the driver has no counterpart there.
fn connection_costs(engine: &RungResult, wire: &RungResult) -> Option<String> {
    let more = |figure: fn(&RungResult) -> Option<f64>| Some(finite(figure(wire))? - finite(figure(engine))?);
    let compared = |difference: f64, unit: &str, more: &str, less: &str, shown: fn(Option<f64>) -> String| {
        let word = if difference < 0.0 { less } else { more };
        format!("{} {unit} {word}", shown(Some(difference.abs())))
    };
    let latency = compared(more(|result| result.figures.latency_avg_ms)?, "ms", "longer", "shorter", ms);
    let server = more(|result| result.figures.server_cpu_us)
        .map(|cpu| format!("{} of processor time in the server", compared(cpu, "µs", "more", "less", us)));
    let driver = finite(wire.figures.driver_cpu_us).map(|cpu| format!("{} µs in the driver", us(Some(cpu))));
    let costs: Vec<String> = server.into_iter().chain(driver).collect();
    let costs = if costs.is_empty() { String::new() } else { format!(", and takes {}", costs.join(" and ")) };
    Some(format!("Over a connection a transaction is {latency} on average{costs}."))
}

/// What connections add to the context switches, as a sentence; empty where they are not known.
fn connection_switches(experiment: &Experiment, engine: &RungResult, wire: &RungResult) -> String {
    let mean_of = |result: &RungResult, of: fn(&ExperimentRun) -> Option<f64>| {
        let runs = experiment.document.runs.iter().filter(|run| run.is_completed());
        let runs = runs.filter(|run| run.variant == result.variant && run.clients == result.clients);
        mean(&runs.map(of).collect::<Vec<_>>())
    };
    let server = [wire, engine].map(|result| mean_of(result, |run| run.server_context_switches));
    let [Some(of_wire), Some(of_engine)] = server else { return String::new() };
    let more = of_wire - of_engine;
    let word = if more < 0.0 { "fewer" } else { "more" };
    let driver = mean_of(wire, |run| run.driver_context_switches)
        .map_or(String::new(), |count| format!(" and {} in the driver", fixed(Some(count), 2)));
    format!(" It has {} context switches {word} in the server{driver}.", fixed(Some(more.abs()), 2))
}
