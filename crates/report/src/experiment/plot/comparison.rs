//! The charts of a comparison: ratios with their intervals, and both sides' throughput and latencies over each other.

use bench_base::number::{finite, tps};
use bench_questions::comparison::ComparisonLine;
use bench_results::Series;
use bench_results::experiment::ExperimentRun;

use crate::downsample::{Envelope, PLOT_COLUMNS, envelope, range};
use crate::experiment::conclusion::metric;
use crate::experiment::results::Experiment;
use crate::experiment::sides::{BASELINE, CANDIDATE, ComparedSides};
use crate::plot;
use crate::plot::Chart;
use crate::plot::axis::Axis;
use crate::plot::chart::Panel;
use crate::plot::forest::ForestRow;
use crate::plot::latency::of_sides;
use crate::plot::palette::{BLUE, Ink, RED};
use crate::plot::times::{Curve, Times, axis_from_zero, legend, values};

/// The colours of the sides.
const OF_BASELINE: Ink = BLUE;
const OF_CANDIDATE: Ink = RED;

/// The charts that there is something to draw in.
pub fn charts(experiment: &Experiment, sides: &ComparedSides) -> Vec<Chart> {
    let latencies = [(BASELINE, &*sides.baseline_latencies), (CANDIDATE, &*sides.candidate_latencies)];
    let charts = [forest(sides), throughput(experiment), of_sides("plot-distribution", latencies)];
    charts.into_iter().flatten().collect()
}

/// The ratio of each metric with its interval, and the margin around 1; `None` without any ratio.
fn forest<'a>(sides: &'a ComparedSides) -> Option<Chart> {
    let row = |line: &'a ComparisonLine| ForestRow {
        name: metric(line),
        ratio: [line.ratio, line.ratio_low, line.ratio_high],
        verdict: &line.verdict,
    };
    let rows: Vec<ForestRow> = sides.metrics.iter().map(row).collect();
    let (plot, legend) = plot::forest::forest(&rows, sides.margin)?;
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
fn end(run: &ExperimentRun) -> f64 {
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
fn times(runs: &[ExperimentRun]) -> Option<Times> {
    let last = runs.iter().map(end).reduce(f64::max).filter(|last| *last > 0.0)?;
    let widths = runs.iter().filter_map(|run| match intervals(run).count() {
        0 => None,
        intervals => Some(end(run) / intervals as f64),
    });
    let width = widths.fold(last / PLOT_COLUMNS as f64, f64::max);
    let columns = ((last / width).round() as usize).clamp(1, PLOT_COLUMNS);
    let edge = |column: usize| last * column as f64 / columns as f64;
    let spans = (0..columns).map(|column| (edge(column), edge(column + 1))).collect();
    // A column has the intervals of several runs.
    Some(Times { spans, per_column: 2, axis: Axis::of_time(last) })
}

/// Throughput over time of both sides; `None` without any interval.
fn throughput(experiment: &Experiment) -> Option<Chart> {
    let runs = &experiment.document.runs;
    let times = times(runs)?;
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
