//! Latency: the average and the 99th percentile, on a logarithmic axis.

use bench_base::number::short_ms;
use plotters::prelude::*;

use super::layout::{Along, Layout, VariantCurve};
use super::marks::{draw_dots, draw_line};
use crate::plot::Figure;
use crate::plot::axis::Axis;
use crate::plot::frame::{Chart, Panel, svg};
use crate::plot::hover::with_points;
use crate::sweep::results::RungResult;

/// A latency of the results.
type Latency = fn(&RungResult) -> Option<f64>;

/// What is drawn, by its name.
const FIGURES: [(&str, Latency); 2] =
    [("average", |result| result.latency_avg_ms), ("p99", |result| result.latency_p99_ms)];

/// The plot; `None` where no latency is known.
pub fn figure(layout: &Layout) -> Option<Figure> {
    let results = || layout.curves.iter().flat_map(|curve| &curve.results);
    let known = || {
        let figures = results().flat_map(|(_, result)| [result.latency_p99_ms, result.latency_avg_ms]);
        figures.flatten().filter(|ms| *ms > 0.0)
    };
    let (low, high) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
    let y = Axis::of_latencies(low, high);
    let draw = |chart: &mut Chart| {
        layout.curves.iter().try_for_each(|curve| {
            let average = logarithms(curve, |result| result.latency_avg_ms);
            let p99 = logarithms(curve, |result| result.latency_p99_ms);
            let color = curve.ink.color();
            draw_line(chart, &average, color.stroke_width(2))?;
            draw_dots(chart, &average, 7, color.stroke_width(2))?;
            draw_line(chart, &p99, color.stroke_width(4))?;
            draw_dots(chart, &p99, 8, color.filled())
        })
    };
    let (high, unit) = short_ms(Some(high));
    let name = format!("Latency {}, at most {high} {unit}", layout.along());
    let is_upright = layout.along == Along::Clients;
    let svg = svg(&name, &layout.x, is_upright, &[Panel { title: None, y: y.clone(), draw: &draw }])?;
    let mut titled = Vec::new();
    for (what, figure) in FIGURES {
        titled.extend(layout.titled(&|result| {
            let ms = figure(result).filter(|ms| *ms > 0.0)?;
            let (value, unit) = short_ms(Some(ms));
            Some((ms.log10(), format!("{what} {value} {unit}")))
        }));
    }
    let svg = with_points(&svg, &layout.x, &y, &titled);
    let title = match layout.along {
        Along::Clients => "Latency by number of clients",
        Along::Variants => "Latency by variant",
    };
    let caption = format!(
        "Filled: 99th percentile; hollow: average; means over the runs, on a logarithmic axis.{}",
        layout.omitted
    );
    Some(Figure { id: "plot-latency", title, caption, legend: layout.legend(), svg })
}

/// The points of a latency on a logarithmic axis.
fn logarithms(curve: &VariantCurve, figure: fn(&RungResult) -> Option<f64>) -> Vec<(f64, f64)> {
    curve.points(|result| figure(result).filter(|ms| *ms > 0.0).map(f64::log10))
}
