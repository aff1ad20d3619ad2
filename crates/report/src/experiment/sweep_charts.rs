//! The charts of a sweep: throughput, with the law fitted to it, and latency, along numbers of clients, with a curve for each
//! variant; or a bar for each variant.

use bench_base::number::{finite, tps};
use bench_base::sentence::counted;
use bench_stats::scalability::FitVerdict;

use crate::experiment::ranking::{figure, is_by_latency};
use crate::experiment::results::{Experiment, RangeOf, RungResult, VariantScalability, rungs, variants};
use crate::experiment::setup::label;
use crate::plot::axis::Axis;
use crate::plot::chart::{CURVES, Chart, Hover, Ink, Legend, Panel, Plot, Point, Shape};
use crate::section::latency;

/// The x axis and what lies on it.
pub struct Layout<'a> {
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
        if rungs.len() < 2 {
            return None;
        }
        let drawn = variants.len().min(CURVES.len());
        let curves = variants.iter().zip(CURVES).map(|(variant, ink)| {
            let place = |result: &RungResult| f64::from(result.clients);
            let of_variant = experiment.results.iter().filter(|result| result.variant == *variant);
            let mut results: Vec<_> = of_variant.map(|result| (place(result), result)).collect();
            results.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            VariantCurve { ink, variant, results }
        });
        let omitted = match variants.len() - drawn {
            0 => String::new(),
            _ => format!(" The first {drawn} of {} variants.", variants.len()),
        };
        let x = Axis::of_clients(&rungs);
        Some(Layout { x, curves: curves.collect(), omitted })
    }

    /// What the colours are; nothing where there are no variants.
    pub fn legend(&self) -> Legend {
        if self.curves.iter().all(|curve| curve.variant.is_empty()) {
            return Vec::new();
        }
        self.curves.iter().map(|curve| (curve.ink, label(curve.variant))).collect()
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
        Plot { x: self.x.clone(), is_upright: true, panels: vec![panel], hover }
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

/// How many variants are drawn: the page has the others in its table.
const DRAWN: usize = 40;
/// Half the height of a bar, of a row, and how far its middle is below its name.
const HALF_BAR: f64 = 0.13;
const BAR: f64 = 0.2;

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
    let shapes: Vec<Shape> =
        curves.iter().zip(&laws).flat_map(|(curve, law)| shapes_of_curve(&y, curve, law)).collect();
    let hover = layout.hover(|result| result.tps_avg.filter(|tps| y.has(*tps)), hover_text);
    let range_of = range_caption(experiment);
    let law = if laws.iter().any(|law| !law.is_empty()) {
        " Dashed: the universal scalability law, where it fits."
    } else {
        ""
    };
    let axis = if logarithmic.is_some() { " The axis is logarithmic." } else { "" };
    Some(Chart {
        id: "plot-throughput",
        title: "Throughput by number of clients, tps",
        label: format!("Throughput by number of clients, at most {} tps", tps(Some(best))),
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
    means.iter().any(|(x, tps)| means.iter().any(|(other, most)| x == other && *most >= 10.0 * tps))
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

/// A bar for each variant with its name, the best first; `None` without two variants that have figures.
pub fn by_variant(experiment: &Experiment) -> Option<Chart> {
    let document = &experiment.document;
    let by_latency = is_by_latency(document);
    let known = experiment.results.iter().filter_map(|result| Some((figure(document, result)?, result)));
    let mut rows: Vec<(f64, &RungResult)> = known.collect();
    rows.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    if by_latency {
        rows.reverse();
    }
    let all = rows.len();
    rows.truncate(DRAWN);
    if rows.len() < 2 {
        return None;
    }
    // The last row is the lowest.
    rows.reverse();
    let shown = |value: f64| if by_latency { latency(value) } else { format!("{} tps", tps(Some(value))) };
    let range = |result: &RungResult| {
        if by_latency { None } else { result.figures.tps_min.zip(result.figures.tps_max) }
    };
    let ends = rows.iter().map(|(value, result)| range(result).map_or(*value, |(_, most)| most.max(*value)));
    let x = Axis::from_zero(ends.fold(0.0, f64::max) * 1.05, 6);
    let name =
        |(value, result): &(f64, &RungResult)| format!("{}: {}", label(&result.variant), shown(*value));
    let y = Axis::of_names(rows.iter().map(name));
    let [ink, ..] = CURVES;
    let bars = (1..).map(|place| f64::from(place) - BAR).zip(&rows).flat_map(|(at, (value, result))| {
        let bar = ink.rectangle((0.0, at + HALF_BAR), (*value, at - HALF_BAR)).faint(0.6);
        let stroke = range(result).map(|(least, most)| ink.line(vec![(least, at), (most, at)], 4));
        [Some(bar), stroke].into_iter().flatten().collect::<Vec<_>>()
    });
    let hover = (1..).map(|place| f64::from(place) - BAR).zip(&rows).map(|(at, (value, result))| {
        let text = if by_latency { shown(*value) } else { hover_text(result, *value) };
        Hover::Around((*value, at), format!("{}\n{text}", label(&result.variant)))
    });
    let (hover, panel) = (hover.collect(), Panel::new(y).with(bars.collect::<Vec<_>>()));
    let (title, what) = match by_latency {
        true => ("Mean latency by variant, ms", "Mean latency of the runs, the lowest first."),
        false => ("Throughput by variant, tps", range_caption(experiment)),
    };
    let omitted = if all > DRAWN { format!(" The first {DRAWN} of {all} variants.") } else { String::new() };
    Some(Chart {
        id: "plot-variants",
        title,
        label: format!("{} variants side by side", rows.len()),
        caption: format!("{what}{omitted}"),
        legend: Vec::new(),
        plot: Plot { x, is_upright: true, panels: vec![panel], hover },
    })
}

/// What means and ranges of throughput are.
fn range_caption(experiment: &Experiment) -> &'static str {
    match experiment.results.first().map(|result| result.range_of) {
        Some(RangeOf::Intervals) => "Tps of the runs, with a line from the lowest to the highest interval.",
        _ => "Mean tps of the runs, with a line from the lowest to the highest.",
    }
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
        title: "Latency by number of clients",
        label: format!("Latency by number of clients, at most {}", latency(high)),
        caption: format!(
            "Filled: 99th percentile; hollow: average; means over the runs, on a logarithmic axis.{}",
            layout.omitted
        ),
        legend: layout.legend(),
        plot: layout.plot(panel, hover),
    })
}
