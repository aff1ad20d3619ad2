//! Throughput over time: a point for each interval, as a soak is usually shown. Lines would join what is not joined.

use bench_base::number::{finite, tps};
use bench_results::Document;
use bench_stats::robust::median;
use plotters::prelude::*;

use super::Figure;
use super::axis::Axis;
use super::frame::{Chart, Panel, svg};
use super::hover::{value, with_values};
use super::marks::Marks;
use super::palette::{BLUE, GREEN};
use super::times::Times;

/// The plot; `None` without any interval.
pub fn figure(document: &Document) -> Option<Figure> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let thinned = times.thinned(&samples.tps);
    let low = thinned.iter().flatten().map(|envelope| envelope.low).reduce(f64::min)?;
    let high = thinned.iter().flatten().map(|envelope| envelope.high).reduce(f64::max)?;
    let marks = Marks::of(document, &times.axis);
    // The lane of vacuums is above all points.
    let y = Axis::from_zero(high * 1.08, 6);
    let columns =
        || thinned.iter().zip(0..times.spans.len()).filter_map(|(envelope, i)| Some(((*envelope)?, i)));
    // Few points can be larger.
    let radius = if thinned.len() <= 120 { 7 } else { 4 };
    let median = median(&samples.tps.iter().copied().filter_map(finite).collect::<Vec<_>>())?;
    let draw = |chart: &mut Chart| {
        marks.draw(chart)?;
        let line = vec![(times.axis.low, median), (times.axis.high, median)];
        chart.draw_series([PathElement::new(line, GREEN.color().stroke_width(2))])?;
        if times.per_column > 1 {
            let range = BLUE.color().mix(0.35).stroke_width(2);
            chart.draw_series(columns().map(|(envelope, column)| {
                let x = times.middle(column);
                PathElement::new(vec![(x, envelope.low), (x, envelope.high)], range)
            }))?;
        }
        let point = BLUE.color().filled();
        chart
            .draw_series(columns().map(|(envelope, column)| {
                Circle::new((times.middle(column), envelope.mean), radius, point)
            }))?;
        marks.draw_numbers(chart)
    };
    let label = format!("Throughput over time, from {} to {} tps", tps(Some(low)), tps(Some(high)));
    let svg = svg(&label, &times.axis, false, &[Panel { title: None, y, draw: &draw }])?;
    let svg = with_values(&svg, &times, &|columns| {
        value("tps", &thinned, columns, |value| tps(Some(value))).into_iter().collect()
    });
    let mut legend = vec![
        (BLUE, if times.per_column > 1 { "mean and range" } else { "interval" }.to_owned()),
        (GREEN, format!("median {}", tps(Some(median)))),
    ];
    legend.extend(marks.legend());
    let caption = format!(
        "Transactions per second of each interval.{}",
        times.note("the range, as a line, and the mean, as a point,")
    );
    Some(Figure { id: "plot-tps", title: "Throughput, tps", caption, legend, svg })
}
