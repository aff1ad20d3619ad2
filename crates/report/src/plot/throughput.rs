//! Throughput over time: a point for each interval, as a soak is usually shown. Lines would join what is not joined.

use bench_base::number::{finite, tps};
use bench_results::Document;
use bench_stats::robust::median;

use super::Chart;
use super::marks::Marks;
use super::palette::{BLUE, GREEN};
use super::times::{Times, axis_from_zero, values};
use crate::downsample::range;

/// Few points can be larger.
const FEW: usize = 120;

/// The chart; `None` without any interval.
pub fn chart(document: &Document) -> Option<Chart> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let curve = times.curve(BLUE, "tps", &samples.tps, |value| tps(Some(value)));
    let (low, high) = range(&curve.columns)?;
    let median = median(&samples.tps.iter().copied().filter_map(finite).collect::<Vec<_>>())?;
    let radius = if curve.columns.len() <= FEW { 7 } else { 4 };
    let (mut ranges, mut means) = (Vec::new(), Vec::new());
    for (column, envelope) in curve.columns.iter().enumerate() {
        let (x, Some(envelope)) = (times.middle(column), envelope) else { continue };
        if times.per_column > 1 {
            ranges.push(BLUE.line(vec![(x, envelope.low), (x, envelope.high)], 2).faint(0.35));
        }
        means.push(BLUE.dot((x, envelope.mean), radius));
    }
    let marks = Marks::of(document, &times.axis);
    let panel = marks
        .panel(axis_from_zero([&curve], 6)?)
        .with([GREEN.line(times.level(median), 2)])
        .with(ranges)
        .with(means);
    let point = if times.per_column > 1 { "mean and range" } else { "interval" };
    Some(Chart {
        id: "plot-tps",
        title: "Throughput, tps",
        label: format!("Throughput over time, from {} to {} tps", tps(Some(low)), tps(Some(high))),
        caption: format!(
            "Transactions per second of each interval.{}",
            times.note("the range, as a line, and the mean, as a point,")
        ),
        legend: marks
            .legend(vec![(BLUE, point.to_owned()), (GREEN, format!("median {}", tps(Some(median))))]),
        plot: times.plot(vec![marks.numbered(panel, &times.axis)], |columns| values([&curve], &columns)),
    })
}
