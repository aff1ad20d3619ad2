//! What lies along the x axis: numbers of clients or variants, with a curve for each variant.

use bench_base::number::finite;
use bench_base::sentence::counted;

use crate::plot::axis::Axis;
use crate::plot::palette::{CURVES, Ink};
use crate::sweep::content::label;
use crate::sweep::results::{Report, RungResult, rungs, variants};

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

/// The results of a variant.
pub struct VariantCurve<'a> {
    pub ink: Ink,
    pub variant: &'a str,
    /// Ascending by the place on the x axis.
    pub results: Vec<(f64, &'a RungResult)>,
}

impl<'a> Layout<'a> {
    /// The layout for a sweep; `None` where there is nothing to compare.
    pub fn of(report: &'a Report) -> Option<Layout<'a>> {
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
    pub fn legend(&self) -> Vec<(Ink, String)> {
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
    pub fn titled(&self, figure: &dyn Fn(&RungResult) -> Option<(f64, String)>) -> Vec<(f64, f64, String)> {
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
    pub fn along(&self) -> &'static str {
        match self.along {
            Along::Clients => "by number of clients",
            Along::Variants => "by variant",
        }
    }
}

impl VariantCurve<'_> {
    /// The places of a figure where it is known.
    pub fn points(&self, figure: impl Fn(&RungResult) -> Option<f64>) -> Vec<(f64, f64)> {
        let known = self.results.iter().filter_map(|(x, result)| Some((*x, finite(figure(result))?)));
        known.collect()
    }
}
