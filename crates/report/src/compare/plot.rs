//! The plots of a comparison: ratios with their intervals, and both sides' throughput and latencies over each other.

use bench_base::number::{count, finite, tps};
use bench_questions::comparison::ComparisonLine;
use bench_results::Series;
use plotters::prelude::*;

use super::conclusion::metric;
use super::report::ComparisonReport;
use super::sides::{ComparedRun, Side};
use crate::downsample::{Envelope, PLOT_COLUMNS, envelope};
use crate::plot;
use crate::plot::Figure;
use crate::plot::axis::Axis;
use crate::plot::forest::ForestRow;
use crate::plot::frame::{Chart, DrawResult, Panel, svg};
use crate::plot::hover::{value, with_spans};
use crate::plot::latency::percentile_curve;
use crate::plot::lines::{draw_band, means, unbroken};
use crate::plot::palette::{BLUE, Ink, RED};

/// The colours of the sides.
const BASELINE: Ink = BLUE;
const CANDIDATE: Ink = RED;

/// The plots that there is something to draw in.
pub fn figures(report: &ComparisonReport) -> Vec<Figure> {
    [forest(report), throughput(report), distribution(report)].into_iter().flatten().collect()
}

/// What the colours of the sides are.
fn legend() -> Vec<(Ink, String)> {
    vec![(BASELINE, "baseline".to_owned()), (CANDIDATE, "candidate".to_owned())]
}

/// The ratio of each metric with its interval, and the margin around 1; `None` without any ratio.
fn forest(report: &ComparisonReport) -> Option<Figure> {
    let row = |line: &ComparisonLine| ForestRow {
        name: metric(line),
        ratio: [line.ratio, line.ratio_low, line.ratio_high],
        verdict: line.verdict,
    };
    let rows: Vec<ForestRow> = report.metrics.iter().map(row).collect();
    let (svg, legend) = plot::forest::forest("Ratios with their intervals", &rows, report.margin)?;
    let caption =
        "TPS, latencies and processor time per transaction, candidate / baseline, with their intervals: 95 % \
                   for TPS and CPU, 98.75 % for each latency. More TPS, less latency and less CPU are faster. Shaded: \
                   the margin."
            .to_owned();
    Some(Figure { id: "plot-forest", title: "Ratios, candidate / baseline", caption, legend, svg })
}

/// When an interval of a run was, and its TPS.
fn intervals(run: &ComparedRun) -> impl Iterator<Item = (f64, f64)> {
    let ends = run.samples.elapsed.iter().map(|end| finite(*end).unwrap_or_default().max(0.0));
    let begins = std::iter::once(0.0).chain(ends.clone());
    begins
        .zip(ends)
        .zip(&run.samples.tps)
        .filter_map(|((begin, end), tps)| Some((begin / 2.0 + end / 2.0, finite(*tps)?)))
}

/// When the last interval of a run ended.
fn end(run: &ComparedRun) -> f64 {
    run.samples.elapsed.iter().filter_map(|end| finite(*end)).fold(0.0, f64::max)
}

/// The range and the mean of the runs' TPS in each of so many columns up to `last` seconds.
fn binned(side: &Side, columns: usize, last: f64) -> Vec<Option<Envelope>> {
    let mut bins: Vec<Series> = vec![Series::new(); columns];
    for (middle, tps) in side.runs.iter().flat_map(intervals) {
        bins[((middle / last * columns as f64) as usize).min(columns - 1)].push(Some(tps));
    }
    bins.iter().map(|bin| envelope(bin)).collect()
}

/// Throughput over time of both sides; `None` without any interval.
fn throughput(report: &ComparisonReport) -> Option<Figure> {
    let runs = || report.baseline.runs.iter().chain(&report.candidate.runs);
    let last = runs().map(end).reduce(f64::max).filter(|last| *last > 0.0)?;
    // As wide as the coarsest run's intervals are, so that no side has gaps.
    let widths = runs().filter_map(|run| match intervals(run).count() {
        0 => None,
        intervals => Some(end(run) / intervals as f64),
    });
    let width = widths.fold(last / PLOT_COLUMNS as f64, f64::max);
    let columns = ((last / width).round() as usize).clamp(1, PLOT_COLUMNS);
    let sides = [(BASELINE, &report.baseline), (CANDIDATE, &report.candidate)];
    let binned = sides.map(|(ink, side)| (ink, binned(side, columns, last)));
    let high =
        binned.iter().flat_map(|(_, side)| side.iter().flatten()).map(|of| of.high).reduce(f64::max)?;
    let y = Axis::from_zero(high * 1.08, 6);
    let middle = |column: usize| (column as f64 + 0.5) * (last / columns as f64);
    let draw =
        |chart: &mut Chart| binned.iter().try_for_each(|(ink, side)| draw_side(chart, *ink, side, &middle));
    let label = format!("Throughput of both sides over time, at most {} tps", tps(Some(high)));
    let x = Axis::of_time(last);
    let svg = svg(&label, &x, false, &[Panel { title: None, y, draw: &draw }])?;
    let edge = |column: usize| last * column as f64 / columns as f64;
    let spans: Vec<(f64, f64)> = (0..columns).map(|column| (edge(column), edge(column + 1))).collect();
    let svg = with_spans(&svg, &x, &spans, &|columns| {
        let named = ["baseline", "candidate"].into_iter().zip(&binned);
        let shown = |value: f64| format!("{} tps", tps(Some(value)));
        named.filter_map(|(name, (_, side))| value(name, side, columns.clone(), shown)).collect()
    });
    let caption =
        "Mean of the runs of each side as a line, from the lowest to the highest of them as a band."
            .to_owned();
    Some(Figure { id: "plot-tps", title: "Throughput, tps", caption, legend: legend(), svg })
}

/// A band with a line, broken where there is no value.
fn draw_side(
    chart: &mut Chart,
    ink: Ink,
    side: &[Option<Envelope>],
    middle: &dyn Fn(usize) -> f64,
) -> DrawResult {
    for columns in unbroken(side) {
        let points: Vec<_> =
            columns.into_iter().map(|(column, envelope)| (middle(column), envelope)).collect();
        let line = means(&points);
        if let [point] = line[..] {
            chart.draw_series([Circle::new(point, 6, ink.color().filled())])?;
            continue;
        }
        draw_band(chart, &points, ink.color().mix(0.2).filled())?;
        chart.draw_series([PathElement::new(line, ink.color().stroke_width(3))])?;
    }
    Ok(())
}

/// Latencies of both sides by percentile; `None` where neither has any.
fn distribution(report: &ComparisonReport) -> Option<Figure> {
    let curves: Vec<_> = [(BASELINE, &report.baseline), (CANDIDATE, &report.candidate)]
        .into_iter()
        .filter_map(|(ink, side)| Some((ink, percentile_curve(&side.latencies)?)))
        .collect();
    let total = curves.iter().map(|(_, curve)| curve.total).max()?;
    let heights = || curves.iter().flat_map(|(_, curve)| curve.points.iter().map(|(_, ms)| *ms));
    let (low, high) = (heights().reduce(f64::min)?, heights().reduce(f64::max)?);
    let y = Axis::of_latencies(10f64.powf(low), 10f64.powf(high));
    let draw = |chart: &mut Chart| {
        curves.iter().try_for_each(|(ink, curve)| {
            chart.draw_series([PathElement::new(curve.points.clone(), ink.color().stroke_width(4))])?;
            Ok(())
        })
    };
    let label = format!("Latency distributions of both sides, up to {} transactions", count(total));
    let x = Axis::of_percentiles(total);
    let svg = svg(&label, &x, true, &[Panel { title: None, y, draw: &draw }])?;
    let caption =
        "Latency by percentile of the transactions of all runs of a side: each step to the right is a tenth \
                   of the remaining ones."
            .to_owned();
    Some(Figure { id: "plot-distribution", title: "Latency distribution", caption, legend: legend(), svg })
}
