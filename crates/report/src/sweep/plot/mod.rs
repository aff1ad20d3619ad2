//! The plots of a sweep: throughput and latency over the number of clients, or, where there is but one number of
//! them, by variant.

mod capacity;
mod latency;
mod screen;
mod throughput;

use bench_base::number::finite;
use plotters::prelude::*;

use super::Report;
use super::content::{counted, label};
use super::results::{RungResult, rungs, variants};
use crate::plot::Figure;
use crate::plot::axis::Axis;
use crate::plot::frame::{Chart, DrawResult};
use crate::plot::palette::{CURVES, Ink};

/// The plots that there is something to draw in.
pub fn figures(report: &Report) -> Vec<Figure> {
    if report.document.sweep.search.is_some() {
        return capacity::figure(report).into_iter().collect();
    }
    if !report.document.screen.is_empty() {
        return screen::figure(&report.document.screen).into_iter().collect();
    }
    let Some(layout) = Layout::of(report) else { return Vec::new() };
    [throughput::figure(report, &layout), latency::figure(&layout)].into_iter().flatten().collect()
}

/// What the curves are drawn along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Clients,
    Variants,
}

/// The x axis and what lies on it.
struct Layout<'a> {
    along: Along,
    x: Axis,
    curves: Vec<VariantCurve<'a>>,
    /// A sentence on the variants that are not drawn.
    omitted: String,
}

/// The results of a variant.
struct VariantCurve<'a> {
    ink: Ink,
    variant: &'a str,
    /// Ascending by the place on the x axis.
    results: Vec<(f64, &'a RungResult)>,
}

impl<'a> Layout<'a> {
    /// The layout for a sweep; `None` where there is nothing to compare.
    fn of(report: &'a Report) -> Option<Layout<'a>> {
        let mut rungs = rungs(report.document);
        rungs.sort_unstable();
        let variants = variants(report.document);
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
            let of_variant = report.results.iter().filter(|result| result.variant == *variant);
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
    fn legend(&self) -> Vec<(Ink, String)> {
        let name = |(index, curve): (usize, &VariantCurve)| match self.along {
            Along::Clients => (curve.ink, label(curve.variant)),
            Along::Variants => (curve.ink, format!("{} {}", index + 1, label(curve.variant))),
        };
        if self.curves.iter().all(|curve| curve.variant.is_empty()) {
            return Vec::new();
        }
        self.curves.iter().enumerate().map(name).collect()
    }

    /// The places of a figure with its text, under the variant and the number of clients that it is of.
    fn titled(&self, figure: &dyn Fn(&RungResult) -> Option<(f64, String)>) -> Vec<(f64, f64, String)> {
        let mut titled = Vec::new();
        for curve in &self.curves {
            for (x, result) in &curve.results {
                let Some((y, text)) = figure(result).filter(|(y, _)| y.is_finite()) else { continue };
                let clients = counted(result.clients as u64, "client");
                let of = match curve.variant {
                    "" => clients,
                    variant => format!("{}, {clients}", label(variant)),
                };
                titled.push((*x, y, format!("{of}\n{text}")));
            }
        }
        titled
    }

    /// The title's end.
    fn along(&self) -> &'static str {
        match self.along {
            Along::Clients => "by number of clients",
            Along::Variants => "by variant",
        }
    }
}

impl VariantCurve<'_> {
    /// The places of a figure where it is known.
    fn points(&self, figure: impl Fn(&RungResult) -> Option<f64>) -> Vec<(f64, f64)> {
        let known = self.results.iter().filter_map(|(x, result)| Some((*x, finite(figure(result))?)));
        known.collect()
    }
}

/// A line from point to point, which a single one has not.
fn draw_line(chart: &mut Chart, points: &[(f64, f64)], style: ShapeStyle) -> DrawResult {
    if points.len() > 1 {
        chart.draw_series([PathElement::new(points.to_vec(), style)])?;
    }
    Ok(())
}

/// A dot at each point.
fn draw_dots(chart: &mut Chart, points: &[(f64, f64)], radius: i32, style: ShapeStyle) -> DrawResult {
    chart.draw_series(points.iter().map(|point| Circle::new(*point, radius, style)))?;
    Ok(())
}
