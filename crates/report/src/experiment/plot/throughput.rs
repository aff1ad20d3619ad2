//! Throughput: means with their range, and the law fitted to them.

use bench_base::number::{finite, tps};
use bench_stats::scalability::FitVerdict;

use super::layout::{Along, Layout, RungFigure, VariantCurve};
use crate::experiment::results::{Experiment, RangeOf, RungResult, VariantScalability};
use crate::plot::Chart;
use crate::plot::axis::Axis;
use crate::plot::chart::{Panel, Point, Shape};

/// In how many steps the law is drawn.
const STEPS: u32 = 120;

/// Half the width of a bar, on an axis where they are 1 apart.
const HALF_BAR: f64 = 0.3;

/// The chart; `None` without any completed run.
pub fn chart(experiment: &Experiment, layout: &Layout) -> Option<Chart> {
    let curves = &layout.curves;
    let laws: Vec<_> = curves.iter().map(|curve| law(experiment, curve)).collect();
    let tps_of = |figure: RungFigure| {
        let points = curves.iter().flat_map(move |curve| curve.points(figure));
        points.map(|(_, tps)| tps)
    };
    let means = || tps_of(|result| result.tps_avg);
    let by_law = laws.iter().flatten().map(|(_, tps)| *tps);
    let high = means().chain(tps_of(|result| result.tps_max)).chain(by_law).reduce(f64::max)?;
    let best = means().reduce(f64::max)?;
    let least = tps_of(|result| result.tps_min).chain(means()).filter(|tps| *tps > 0.0).reduce(f64::min);
    let logarithmic = least.filter(|_| differ_tenfold(layout)).map(|least| Axis::of_rates(least, high));
    let y = logarithmic.clone().unwrap_or_else(|| Axis::from_zero(high * 1.05, 6));
    let shapes: Vec<Shape> = curves
        .iter()
        .zip(&laws)
        .flat_map(|(curve, law)| match layout.along {
            Along::Clients => shapes_of_curve(&y, curve, law),
            Along::Variants => shapes_of_bar(&y, curve),
        })
        .collect();
    let hover = layout.hover(|result| result.tps_avg.filter(|tps| y.has(*tps)), hover_text);
    let range_of = match experiment.results.first()?.range_of {
        RangeOf::Runs => "Mean tps of the runs, with a line from the lowest to the highest.",
        RangeOf::Intervals => "Tps of the runs, with a line from the lowest to the highest interval.",
    };
    let law = if laws.iter().any(|law| !law.is_empty()) {
        " Dashed: the universal scalability law, where it fits."
    } else {
        ""
    };
    let axis = if logarithmic.is_some() { " The axis is logarithmic." } else { "" };
    Some(Chart {
        id: "plot-throughput",
        title: layout.title("Throughput by number of clients, tps", "Throughput by variant, tps"),
        label: format!("Throughput {}, at most {} tps", layout.along(), tps(Some(best))),
        caption: format!("{range_of}{law}{axis}{}", layout.omitted),
        legend: layout.legend(),
        plot: layout.plot(Panel::new(y).with(shapes), hover),
    })
}

/// The mean with its range.
fn hover_text(result: &RungResult, mean: f64) -> String {
    let range = match (finite(result.tps_min), finite(result.tps_max)) {
        (Some(least), Some(most)) => format!(" ({} to {})", tps(Some(least)), tps(Some(most))),
        _ => String::new(),
    };
    format!("{} tps{range}", tps(Some(mean)))
}

/// Whether two variants are so far apart somewhere that one of them would lie on a linear axis's zero.
fn differ_tenfold(layout: &Layout) -> bool {
    let points = layout.curves.iter().flat_map(|curve| curve.points(|result| result.tps_avg));
    let means: Vec<Point> = points.filter(|(_, tps)| *tps > 0.0).collect();
    let beside = |one: f64, other: f64| layout.along == Along::Variants || one == other;
    means.iter().any(|(x, tps)| means.iter().any(|(other, most)| beside(*x, *other) && *most >= 10.0 * tps))
}

/// The law's curve within the rungs, where it describes them.
fn law(experiment: &Experiment, curve: &VariantCurve) -> Vec<Point> {
    let describes = |fitted: &&VariantScalability| {
        fitted.variant == curve.variant
            && [FitVerdict::Fits, FitVerdict::NoPeak].contains(&fitted.law.verdict)
    };
    let Some(fitted) = experiment.scalability.iter().find(describes) else { return Vec::new() };
    let (Some((first, _)), Some((last, _))) = (curve.results.first(), curve.results.last()) else {
        return Vec::new();
    };
    let place = |step| first + (last - first) * f64::from(step) / f64::from(STEPS);
    let points = (0..=STEPS).filter_map(|step| Some((place(step), fitted.law.tps(place(step))?)));
    points.collect()
}

/// Strokes for the ranges, a line through the means with a dot at each, and the law.
fn shapes_of_curve(y: &Axis, curve: &VariantCurve, law: &[Point]) -> Vec<Shape> {
    let placed = |points: &[Point]| points.iter().copied().filter(|(_, tps)| y.has(*tps)).collect::<Vec<_>>();
    let means = placed(&curve.points(|result| result.tps_avg));
    let dots: Vec<Shape> = means.iter().map(|mean| curve.ink.dot(*mean, 8)).collect();
    let mut shapes: Vec<Shape> = ranges(y, curve).map(|range| range.faint(0.45)).collect();
    shapes.extend([curve.ink.dashes(placed(law)), curve.ink.line(means, 4)]);
    shapes.extend(dots);
    shapes
}

/// A bar from the axis to the mean, with a stroke for the range.
fn shapes_of_bar(y: &Axis, curve: &VariantCurve) -> Vec<Shape> {
    let means = curve.points(|result| result.tps_avg).into_iter().filter(|(_, tps)| y.has(*tps));
    let floor = y.value_at(0.0);
    let bars =
        means.map(|(x, tps)| curve.ink.rectangle((x - HALF_BAR, tps), (x + HALF_BAR, floor)).faint(0.6));
    bars.chain(ranges(y, curve)).collect()
}

/// From the least to the greatest at each place.
fn ranges(y: &Axis, curve: &VariantCurve) -> impl Iterator<Item = Shape> {
    curve.results.iter().filter_map(|(x, result)| {
        let (least, most) =
            (result.tps_min.filter(|tps| y.has(*tps))?, result.tps_max.filter(|tps| y.has(*tps))?);
        Some(curve.ink.line(vec![(*x, least), (*x, most)], 4))
    })
}
