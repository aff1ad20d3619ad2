//! Latencies: percentiles over time, and the distribution of the whole.

use bench_base::number::{count, finite, in_one_unit, short_ms};
use bench_results::{Bucket, Document};
use plotters::prelude::*;

use super::Figure;
use super::axis::{Axis, percentile_position};
use super::frame::{Chart, Panel, svg};
use super::hover::{value, with_values};
use super::lines::draw_line;
use super::marks::Marks;
use super::palette::{BLUE, GREEN, Ink, ORANGE, PINK, RED};
use super::times::Times;
use crate::downsample::Envelope;

/// Percentiles of each interval on a logarithmic axis; `None` without any.
pub fn over_time(document: &Document) -> Option<Figure> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    let series = [
        (GREEN, "p50", &samples.latency_p50_ms),
        (BLUE, "p95", &samples.latency_p95_ms),
        (ORANGE, "p99", &samples.latency_p99_ms),
        (PINK, "max", &samples.latency_max_ms),
    ];
    let lines: Vec<(Ink, &str, Vec<Option<Envelope>>)> = series
        .into_iter()
        .map(|(ink, name, values)| {
            let thinned = logarithms(values, &times);
            (ink, name, if name == "max" { with_highest_as_line(thinned) } else { thinned })
        })
        .filter(|(_, _, thinned)| thinned.iter().any(Option::is_some))
        .collect();
    let columns = || lines.iter().flat_map(|(_, _, thinned)| thinned.iter().flatten());
    let low = columns().map(|envelope| envelope.low).reduce(f64::min)?;
    let high = columns().map(|envelope| envelope.high).reduce(f64::max)?;
    let marks = Marks::of(document, &times.axis);
    let y = Axis::of_latencies(10f64.powf(low), 10f64.powf(high));
    let draw = |chart: &mut Chart| {
        marks.draw(chart)?;
        // The greatest first: bands lie over each other, and the median is to be seen.
        lines.iter().rev().try_for_each(|(ink, _, thinned)| draw_line(chart, &times, *ink, thinned))?;
        marks.draw_numbers(chart)
    };
    let svg = svg(
        "Percentiles of the latency over time",
        &times.axis,
        false,
        &[Panel { title: None, y, draw: &draw }],
    )?;
    let shown = |logarithm: f64| {
        let (value, unit) = short_ms(Some(10f64.powf(logarithm)));
        format!("{value} {unit}")
    };
    let svg = with_values(&svg, &times, &|columns| {
        let named = lines.iter().rev();
        named.filter_map(|(_, name, thinned)| value(name, thinned, columns.clone(), shown)).collect()
    });
    let mut legend: Vec<_> = lines.iter().rev().map(|(ink, name, _)| (*ink, (*name).to_owned())).collect();
    legend.extend(marks.legend());
    let caption = format!(
        "Transactions that ended in each interval, on a logarithmic axis.{}",
        times.note("the range, as a band, and the mean, for max the highest, as a line,")
    );
    Some(Figure { id: "plot-latency", title: "Latency over time", caption, legend, svg })
}

/// The highest of each column in the place of the mean: a mean of maxima would hide the slowest transaction.
fn with_highest_as_line(thinned: Vec<Option<Envelope>>) -> Vec<Option<Envelope>> {
    let highest = |envelope: Envelope| Envelope { mean: envelope.high, ..envelope };
    thinned.into_iter().map(|envelope| envelope.map(highest)).collect()
}

/// The envelopes of a series' logarithms. What is not above 0 has none.
fn logarithms(series: &[Option<f64>], times: &Times) -> Vec<Option<Envelope>> {
    let positive: Vec<_> = series.iter().map(|value| value.filter(|value| *value > 0.0)).collect();
    let logarithm = |envelope: Envelope| Envelope {
        low: envelope.low.log10(),
        high: envelope.high.log10(),
        mean: envelope.mean.log10(),
    };
    times.thinned(&positive).into_iter().map(|envelope| envelope.map(logarithm)).collect()
}

/// Latencies by the share of transactions that are not slower, in the coordinates of [`Axis::of_percentiles`] and
/// [`Axis::of_latencies`].
pub struct PercentileCurve {
    /// Ascending; at least two.
    pub points: Vec<(f64, f64)>,
    /// Transactions.
    pub total: u64,
}

/// The curve of a histogram; `None` of an empty one.
pub fn percentile_curve(latencies: &[Bucket]) -> Option<PercentileCurve> {
    let buckets = || latencies.iter().filter(|bucket| bucket.count > 0 && bucket.high_ms > 0.0);
    let total = buckets().map(|bucket| bucket.count).fold(0, u64::saturating_add);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut before = 0u64;
    for bucket in buckets().filter(|bucket| bucket.high_ms.is_finite()) {
        before = before.saturating_add(bucket.count);
        // Ranks are divided by n + 1, not n: the slowest measured is not slower than all that may come.
        let position = percentile_position(before as f64 / (total as f64 + 1.0));
        points.push((position, bucket.high_ms.log10()));
    }
    points.insert(0, (0.0, points.first()?.1));
    Some(PercentileCurve { points, total })
}

/// All latencies, by the share of transactions that are not slower; `None` without any.
pub fn distribution(document: &Document) -> Option<Figure> {
    let PercentileCurve { points, total } = percentile_curve(&document.latencies)?;
    let (first, last) = (*points.first()?, *points.last()?);
    let x = Axis::of_percentiles(total);
    let y = Axis::of_latencies(10f64.powf(first.1), 10f64.powf(last.1));
    let summary = &document.summary;
    let marked = [
        ("p50", 0.5, summary.latency_p50_ms),
        ("p95", 0.95, summary.latency_p95_ms),
        ("p99", 0.99, summary.latency_p99_ms),
        ("p99.9", 0.999, summary.latency_p999_ms),
    ];
    let marked: Vec<(&str, f64, f64)> = marked
        .into_iter()
        .filter_map(|(name, p, value)| {
            Some((name, percentile_position(p), finite(value).filter(|ms| *ms > 0.0)?))
        })
        .collect();
    let draw = |chart: &mut Chart| {
        let mut area = points.clone();
        let floor = chart.y_range().start;
        area.extend([(last.0, floor), (0.0, floor)]);
        chart.draw_series([Polygon::new(area, BLUE.color().mix(0.12).filled())])?;
        chart.draw_series([PathElement::new(points.clone(), BLUE.color().stroke_width(5))])?;
        let dot = RED.color().filled();
        chart.draw_series(
            marked.iter().map(|(_, position, ms)| Circle::new((*position, ms.log10()), 8, dot)),
        )?;
        Ok(())
    };
    let label = format!("Distribution of {} latencies", count(total));
    let svg = svg(&label, &x, true, &[Panel { title: None, y, draw: &draw }])?;
    let (values, unit) = in_one_unit(&marked.iter().map(|(_, _, ms)| Some(*ms)).collect::<Vec<_>>());
    let values = marked.iter().zip(values).map(|((name, ..), value)| format!("{name} {value} {unit}"));
    let legend = values.map(|value| (RED, value)).collect();
    let caption = format!(
        "Latency by percentile of {} transactions: each step to the right is a tenth of the remaining ones.",
        count(total)
    );
    Some(Figure { id: "plot-distribution", title: "Latency distribution", caption, legend, svg })
}
