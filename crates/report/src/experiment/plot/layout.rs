//! What lies along the x axis: numbers of clients or variants, with a curve for each variant.

use bench_base::number::finite;
use bench_base::sentence::counted;

use crate::experiment::content::label;
use crate::experiment::results::{Experiment, RungResult, rungs, variants};
use crate::plot::axis::Axis;
use crate::plot::chart::{Hover, Legend, Panel, Plot, Point};
use crate::plot::palette::{CURVES, Ink};

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
