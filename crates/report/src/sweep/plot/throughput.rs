//! Throughput: means with their range, and the law fitted to them.

use bench_base::number::{finite, tps};
use bench_stats::scalability::FitVerdict;
use plotters::prelude::*;

use super::layout::{Along, Layout, VariantCurve};
use super::marks::{draw_dots, draw_line};
use crate::plot::Figure;
use crate::plot::axis::Axis;
use crate::plot::frame::{Chart, DrawResult, Panel, svg};
use crate::plot::hover::with_points;
use crate::sweep::results::{RangeOf, Report, VariantScalability};

/// In how many steps the law is drawn.
const STEPS: u32 = 120;

/// Half the width of a bar, on an axis where they are 1 apart.
const HALF_BAR: f64 = 0.3;

/// The plot; `None` without any completed run.
pub fn figure(report: &Report, layout: &Layout) -> Option<Figure> {
    let curves = &layout.curves;
    let laws: Vec<_> = curves.iter().map(|curve| law(report, curve)).collect();
    let means = || curves.iter().flat_map(|curve| curve.points(|result| result.tps_avg));
    let highest = curves.iter().flat_map(|curve| curve.points(|result| result.tps_max));
    let values = means().chain(highest).chain(laws.iter().flatten().copied());
    let high = values.map(|(_, tps)| tps).reduce(f64::max)?;
    let best = means().map(|(_, tps)| tps).reduce(f64::max)?;
    let scale = if differ_tenfold(layout) { Scale::Logarithmic } else { Scale::FromZero };
    let least = curves.iter().flat_map(|curve| curve.points(|result| result.tps_min)).chain(means());
    let least = least.map(|(_, tps)| tps).filter(|tps| *tps > 0.0).reduce(f64::min);
    let y = match (scale, least) {
        (Scale::Logarithmic, Some(least)) => Axis::of_rates(least, high),
        _ => Axis::from_zero(high * 1.05, 6),
    };
    let draw = |chart: &mut Chart| {
        curves.iter().zip(&laws).try_for_each(|(curve, law)| match layout.along {
            Along::Clients => draw_curve(chart, scale, curve, law),
            Along::Variants => draw_bar(chart, scale, curve),
        })
    };
    let name = format!("Throughput {}, at most {} tps", layout.along(), tps(Some(best)));
    let is_upright = layout.along == Along::Clients;
    let svg = svg(&name, &layout.x, is_upright, &[Panel { title: None, y: y.clone(), draw: &draw }])?;
    let titled = layout.titled(&|result| {
        let value = scale.placed(&[(0.0, finite(result.tps_avg)?)]).first()?.1;
        let range = match (finite(result.tps_min), finite(result.tps_max)) {
            (Some(least), Some(most)) => format!(" ({} to {})", tps(Some(least)), tps(Some(most))),
            _ => String::new(),
        };
        Some((value, format!("{} tps{range}", tps(result.tps_avg))))
    });
    let svg = with_points(&svg, &layout.x, &y, &titled);
    let range_of = match report.results.first()?.range_of {
        RangeOf::Runs => "Mean tps of the runs, with a line from the lowest to the highest.",
        RangeOf::Intervals => "Tps of the runs, with a line from the lowest to the highest interval.",
    };
    let law = if laws.iter().any(|law| !law.is_empty()) {
        " Dashed: the universal scalability law, where it fits."
    } else {
        ""
    };
    let title = match layout.along {
        Along::Clients => "Throughput by number of clients, tps",
        Along::Variants => "Throughput by variant, tps",
    };
    let axis = if scale == Scale::Logarithmic { " The axis is logarithmic." } else { "" };
    let caption = format!("{range_of}{law}{axis}{}", layout.omitted);
    Some(Figure { id: "plot-throughput", title, caption, legend: layout.legend(), svg })
}

/// How tps lie on their axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    FromZero,
    Logarithmic,
}

impl Scale {
    /// The points in the axis's coordinates, without those that have none.
    fn placed(self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        match self {
            Scale::FromZero => points.to_vec(),
            Scale::Logarithmic => {
                points.iter().filter(|(_, tps)| *tps > 0.0).map(|(x, tps)| (*x, tps.log10())).collect()
            }
        }
    }
}

/// Whether two variants are so far apart somewhere that one of them would lie on a linear axis's zero.
fn differ_tenfold(layout: &Layout) -> bool {
    let points = layout.curves.iter().flat_map(|curve| curve.points(|result| result.tps_avg));
    let means: Vec<(f64, f64)> = points.filter(|(_, tps)| *tps > 0.0).collect();
    let beside = |one: f64, other: f64| layout.along == Along::Variants || one == other;
    means.iter().any(|(x, tps)| means.iter().any(|(other, most)| beside(*x, *other) && *most >= 10.0 * tps))
}

/// The law's curve within the rungs, where it describes them.
fn law(report: &Report, curve: &VariantCurve) -> Vec<(f64, f64)> {
    let describes = |fitted: &&VariantScalability| {
        fitted.variant == curve.variant
            && [FitVerdict::Fits, FitVerdict::NoPeak].contains(&fitted.law.verdict)
    };
    let Some(fitted) = report.scalability.iter().find(describes) else { return Vec::new() };
    let (Some((first, _)), Some((last, _))) = (curve.results.first(), curve.results.last()) else {
        return Vec::new();
    };
    let place = |step| first + (last - first) * f64::from(step) / f64::from(STEPS);
    let points = (0..=STEPS).filter_map(|step| Some((place(step), fitted.law.tps(place(step))?)));
    points.collect()
}

/// Strokes for the ranges, a line through the means with a dot at each, and the law.
fn draw_curve(chart: &mut Chart, scale: Scale, curve: &VariantCurve, law: &[(f64, f64)]) -> DrawResult {
    draw_ranges(chart, scale, curve, curve.ink.color().mix(0.45).stroke_width(4))?;
    let dashes = DashedLineSeries::new(scale.placed(law), 10, 8, curve.ink.color().stroke_width(2));
    chart.draw_series(dashes)?;
    let means = scale.placed(&curve.points(|result| result.tps_avg));
    draw_line(chart, &means, curve.ink.color().stroke_width(4))?;
    draw_dots(chart, &means, 8, curve.ink.color().filled())
}

/// A bar from the axis to the mean, with a stroke for the range.
fn draw_bar(chart: &mut Chart, scale: Scale, curve: &VariantCurve) -> DrawResult {
    let floor = chart.y_range().start;
    let bars = scale.placed(&curve.points(|result| result.tps_avg)).into_iter().map(|(x, tps)| {
        Rectangle::new([(x - HALF_BAR, tps), (x + HALF_BAR, floor)], curve.ink.color().mix(0.6).filled())
    });
    chart.draw_series(bars)?;
    draw_ranges(chart, scale, curve, curve.ink.color().stroke_width(4))
}

/// From the least to the greatest at each place.
fn draw_ranges(chart: &mut Chart, scale: Scale, curve: &VariantCurve, style: ShapeStyle) -> DrawResult {
    let strokes = curve
        .results
        .iter()
        .filter_map(|(x, result)| Some(scale.placed(&[(*x, result.tps_min?), (*x, result.tps_max?)])));
    let strokes = strokes.filter(|stroke| stroke.len() == 2);
    chart.draw_series(strokes.map(|stroke| PathElement::new(stroke, style)))?;
    Ok(())
}
