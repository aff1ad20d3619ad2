//! The charts of a sweep: throughput, with the law fitted to it, and latency, along numbers of clients or variants, with a
//! curve for each variant.

use bench_base::number::{finite, tps};
use bench_base::sentence::counted;
use bench_stats::scalability::FitVerdict;

use crate::experiment::results::{Experiment, RangeOf, RungResult, VariantScalability, rungs, variants};
use crate::experiment::setup::label;
use crate::plot::axis::Axis;
use crate::plot::chart::{CURVES, Chart, Hover, Ink, Legend, Panel, Plot, Point, Shape};
use crate::section::latency;

/// What the curves are drawn along.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Along {
    Clients,
    Variants,
}

/// The x axis and what lies on it.
pub struct Layout<'a> {
    pub along: Along,
    pub x: Axis,
    pub curves: Vec<VariantCurve<'a>>,
    /// A sentence on the variants that are not drawn.
    pub omitted: String,
}

/// A figure of the results.
pub type RungFigure = fn(&RungResult) -> Option<f64>;

/// The results of a variant.
pub struct VariantCurve<'a> {
    pub ink: Ink,
    pub variant: &'a str,
    /// Ascending by the place on the x axis.
    pub results: Vec<(f64, &'a RungResult)>,
}

impl<'a> Layout<'a> {
    /// The layout for a sweep; `None` where there is nothing to compare.
    pub fn of(experiment: &'a Experiment) -> Option<Layout<'a>> {
        let mut rungs = rungs(&experiment.document);
        rungs.sort_unstable();
        let variants = variants(&experiment.document);
        let along = match (rungs.len(), variants.len()) {
            (2.., 1..) => Along::Clients,
            (1, 2..) => Along::Variants,
            _ => return None,
        };
        let drawn = variants.len().min(CURVES.len());
        let curves = variants.iter().zip(CURVES).enumerate().map(|(index, (variant, ink))| {
            let place = |result: &RungResult| match along {
                Along::Clients => f64::from(result.clients),
                Along::Variants => (index + 1) as f64,
            };
            let of_variant = experiment.results.iter().filter(|result| result.variant == *variant);
            let mut results: Vec<_> = of_variant.map(|result| (place(result), result)).collect();
            results.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            VariantCurve { ink, variant, results }
        });
        let omitted = match variants.len() - drawn {
            0 => String::new(),
            _ => format!(" The first {drawn} of {} variants.", variants.len()),
        };
        let x = match along {
            Along::Clients => Axis::of_clients(&rungs),
            Along::Variants => Axis::of_numbered(drawn),
        };
        Some(Layout { along, x, curves: curves.collect(), omitted })
    }

    /// What the colours are; nothing where there are no variants.
    pub fn legend(&self) -> Legend {
        let name = |(index, curve): (usize, &VariantCurve)| match self.along {
            Along::Clients => (curve.ink, label(curve.variant)),
            Along::Variants => (curve.ink, format!("{} {}", index + 1, label(curve.variant))),
        };
        if self.curves.iter().all(|curve| curve.variant.is_empty()) {
            return Vec::new();
        }
        self.curves.iter().enumerate().map(name).collect()
    }

    /// The known values of a figure, curve by curve.
    pub fn points(&self, figure: RungFigure) -> Vec<(Ink, Vec<Point>)> {
        self.curves.iter().map(|curve| (curve.ink, curve.points(figure))).collect()
    }

    /// The places of a figure with a text on each, under the variant and the number of clients that it is of.
    pub fn hover(
        &self,
        figure: impl Fn(&RungResult) -> Option<f64>,
        text: impl Fn(&RungResult, f64) -> String,
    ) -> Vec<Hover> {
        let mut hover = Vec::new();
        for curve in &self.curves {
            for (x, result) in &curve.results {
                let Some(value) = finite(figure(result)) else { continue };
                let clients = counted(result.clients as u64, "client");
                let of = match curve.variant {
                    "" => clients,
                    variant => format!("{}, {clients}", label(variant)),
                };
                hover.push(Hover::Around((*x, value), format!("{of}\n{}", text(result, value))));
            }
        }
        hover
    }

    /// The plot of a panel.
    pub fn plot(&self, panel: Panel, hover: Vec<Hover>) -> Plot {
        let is_upright = self.along == Along::Clients;
        Plot { x: self.x.clone(), is_upright, panels: vec![panel], hover }
    }

    /// One of two titles.
    pub fn title(&self, by_clients: &'static str, by_variant: &'static str) -> &'static str {
        match self.along {
            Along::Clients => by_clients,
            Along::Variants => by_variant,
        }
    }

    /// The title's end.
    pub fn along(&self) -> &'static str {
        self.title("by number of clients", "by variant")
    }
}

impl VariantCurve<'_> {
    /// The places of a figure where it is known.
    pub fn points(&self, figure: RungFigure) -> Vec<Point> {
        let known = self.results.iter().filter_map(|(x, result)| Some((*x, finite(figure(result))?)));
        known.collect()
    }
}

/// In how many steps the law is drawn.
const STEPS: u32 = 120;

/// Half the width of a bar, on an axis where they are 1 apart.
const HALF_BAR: f64 = 0.3;

/// The chart; `None` without any completed run.
pub fn throughput(experiment: &Experiment, layout: &Layout) -> Option<Chart> {
    let curves = &layout.curves;
    let laws: Vec<_> = curves.iter().map(|curve| law(experiment, curve)).collect();
    let tps_of = |figure: RungFigure| {
        let points = curves.iter().flat_map(move |curve| curve.points(figure));
        points.map(|(_, tps)| tps)
    };
    let means = || tps_of(|result| result.tps_avg);
    let by_law = laws.iter().flatten().map(|(_, tps)| *tps);
    let high = means().chain(tps_of(|result| result.figures.tps_max)).chain(by_law).reduce(f64::max)?;
    let best = means().reduce(f64::max)?;
    let least =
        tps_of(|result| result.figures.tps_min).chain(means()).filter(|tps| *tps > 0.0).reduce(f64::min);
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
    let range = match (finite(result.figures.tps_min), finite(result.figures.tps_max)) {
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
        let (least, most) = (
            result.figures.tps_min.filter(|tps| y.has(*tps))?,
            result.figures.tps_max.filter(|tps| y.has(*tps))?,
        );
        Some(curve.ink.line(vec![(*x, least), (*x, most)], 4))
    })
}

const AVERAGE: RungFigure = |result| result.figures.latency_avg_ms.filter(|ms| *ms > 0.0);
const P99: RungFigure = |result| result.figures.latency_p99_ms.filter(|ms| *ms > 0.0);

/// The chart; `None` where no latency is known.
pub fn latency_chart(layout: &Layout) -> Option<Chart> {
    let (averages, p99s) = (layout.points(AVERAGE), layout.points(P99));
    let known = || averages.iter().chain(&p99s).flat_map(|(_, points)| points.iter().map(|(_, ms)| *ms));
    let high = known().reduce(f64::max)?;
    let mut panel = Panel::new(Axis::of_latencies(known().reduce(f64::min)?, high));
    for ((ink, averages), (_, p99s)) in averages.into_iter().zip(p99s) {
        panel = panel
            .with(averages.iter().map(|at| ink.ring(*at, 7)).collect::<Vec<_>>())
            .with([ink.line(averages, 2)])
            .with(p99s.iter().map(|at| ink.dot(*at, 8)).collect::<Vec<_>>())
            .with([ink.line(p99s, 4)]);
    }
    let mut hover = layout.hover(AVERAGE, |_, ms| format!("average {}", latency(ms)));
    hover.extend(layout.hover(P99, |_, ms| format!("p99 {}", latency(ms))));
    Some(Chart {
        id: "plot-latency",
        title: layout.title("Latency by number of clients", "Latency by variant"),
        label: format!("Latency {}, at most {}", layout.along(), latency(high)),
        caption: format!(
            "Filled: 99th percentile; hollow: average; means over the runs, on a logarithmic axis.{}",
            layout.omitted
        ),
        legend: layout.legend(),
        plot: layout.plot(panel, hover),
    })
}
