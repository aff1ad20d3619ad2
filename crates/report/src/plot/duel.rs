//! The two arms of a duel: their latencies over time, and the distributions of both.

use bench_base::number::{count, short_ms};
use bench_results::{Document, Samples, Series};
use plotters::prelude::*;

use super::Figure;
use super::axis::Axis;
use super::frame::{Chart, Panel, svg};
use super::hover::{value, with_values};
use super::latency::percentile_curve;
use super::lines::draw_line;
use super::marks::Marks;
use super::palette::{BLUE, Ink, RED};
use super::times::Times;

const ARMS: [(Ink, &str); 2] = [(BLUE, "a"), (RED, "b")];

/// Mean latencies of both, batch by batch; `None` of another run.
pub fn over_time(document: &Document) -> Option<Figure> {
    let duel = document.duel.as_ref()?;
    let ends: Vec<f64> = duel.batches.iter().map(|batch| batch.elapsed).collect();
    let begins = [0.0].into_iter().chain(ends.iter().copied());
    let batches = Samples {
        elapsed: ends.iter().copied().map(Some).collect(),
        secs: ends.iter().zip(begins).map(|(end, begin)| Some(end - begin)).collect(),
        ..Samples::default()
    };
    let times = Times::of(&batches)?;
    let a: Series = duel.batches.iter().map(|batch| batch.a_latency_avg_ms).collect();
    let b: Series = duel.batches.iter().map(|batch| batch.b_latency_avg_ms).collect();
    let lines = [times.thinned(&a), times.thinned(&b)];
    let high = lines.iter().flatten().flatten().map(|envelope| envelope.high).reduce(f64::max)?;
    let marks = Marks::of(document, &times.axis);
    let draw = |chart: &mut Chart| {
        marks.draw(chart)?;
        ARMS.iter().zip(&lines).try_for_each(|((ink, _), line)| draw_line(chart, &times, *ink, line))
    };
    let y = Axis::from_zero(high * 1.08, 4);
    let svg = svg(
        "Mean latency of both arms over time",
        &times.axis,
        false,
        &[Panel { title: Some("ms"), y, draw: &draw }],
    )?;
    let svg = with_values(&svg, &times, &|columns| {
        let shown = |ms: f64| {
            let (value, unit) = short_ms(Some(ms));
            format!("{value} {unit}")
        };
        let named = ARMS.iter().zip(&lines);
        named.filter_map(|((_, name), line)| value(name, line, columns.clone(), shown)).collect()
    });
    let mut legend: Vec<_> = ARMS.iter().map(|(ink, name)| (*ink, (*name).to_owned())).collect();
    legend.extend(marks.legend());
    let caption = "Mean latency in each batch: what the machine did meanwhile affects both arms.".to_owned();
    Some(Figure { id: "plot-arms", title: "Arms over time", caption, legend, svg })
}

/// All latencies of both arms, by the share of transactions that are not slower; `None` of another run.
pub fn distributions(document: &Document) -> Option<Figure> {
    let duel = document.duel.as_ref()?;
    let [a, b] = &duel.latencies;
    let curves = [percentile_curve(a)?, percentile_curve(b)?];
    let ends = || curves.iter().flat_map(|curve| [curve.points.first(), curve.points.last()]).flatten();
    let low = ends().map(|(_, y)| *y).reduce(f64::min)?;
    let high = ends().map(|(_, y)| *y).reduce(f64::max)?;
    let x = Axis::of_percentiles(curves[0].total.max(curves[1].total));
    let y = Axis::of_latencies(10f64.powf(low), 10f64.powf(high));
    let draw = |chart: &mut Chart| {
        for ((ink, _), curve) in ARMS.iter().zip(&curves) {
            let line = ink.color().stroke_width(4);
            chart.draw_series([PathElement::new(curve.points.clone(), line)])?;
        }
        Ok(())
    };
    let svg = svg("Latency distributions of both arms", &x, true, &[Panel { title: None, y, draw: &draw }])?;
    let legend = ARMS
        .iter()
        .zip(&curves)
        .map(|((ink, name), curve)| (*ink, format!("{name}: {} transactions", count(curve.total))));
    let caption =
        "Latency by percentile: each step to the right is a tenth of the remaining transactions.".to_owned();
    let legend = legend.collect();
    Some(Figure {
        id: "plot-arm-distributions",
        title: "Latency distributions of both arms",
        caption,
        legend,
        svg,
    })
}
