//! Latencies: percentiles over time, and the distribution of the whole.

use bench_base::number::{count, finite, in_one_unit};
use bench_results::{Bucket, Document};

use super::Chart;
use super::axis::Axis;
use super::chart::{Panel, Plot, Point};
use super::marks::Marks;
use super::palette::{BLUE, GREEN, Ink, ORANGE, PINK, RED};
use super::times::{Curve, Times, legend, values};
use crate::content::latency;
use crate::downsample::range;

/// Percentiles of each interval on a logarithmic axis; `None` without any.
pub fn over_time(document: &Document) -> Option<Chart> {
    let samples = &document.samples;
    let times = Times::of(samples)?;
    // What is not above 0 has no logarithm.
    let curve = |ink, name, series: &[Option<f64>]| {
        let positive: Vec<_> = series.iter().map(|value| value.filter(|value| *value > 0.0)).collect();
        times.curve(ink, name, &positive, latency)
    };
    // The greatest first: bands lie over each other, and the median is to be seen.
    let mut curves = vec![
        curve(PINK, "max", &samples.latency_max_ms),
        curve(ORANGE, "p99", &samples.latency_p99_ms),
        curve(BLUE, "p95", &samples.latency_p95_ms),
        curve(GREEN, "p50", &samples.latency_p50_ms),
    ];
    // A mean of maxima would hide the slowest transaction.
    for column in curves[0].columns.iter_mut().flatten() {
        column.mean = column.high;
    }
    curves.retain(|curve: &Curve| range(&curve.columns).is_some());
    let ranges = || curves.iter().filter_map(|curve| range(&curve.columns));
    let low = ranges().map(|(low, _)| low).reduce(f64::min)?;
    let high = ranges().map(|(_, high)| high).reduce(f64::max)?;
    let marks = Marks::of(document, &times.axis);
    let panel =
        marks.panel(Axis::of_latencies(low, high)).with(curves.iter().flat_map(|curve| times.line(curve)));
    Some(Chart {
        id: "plot-latency",
        title: "Latency over time",
        label: "Percentiles of the latency over time".to_owned(),
        caption: format!(
            "Transactions that ended in each interval, on a logarithmic axis.{}",
            times.note("the range, as a band, and the mean, for max the highest, as a line,")
        ),
        legend: marks.legend(legend(&curves)),
        plot: times.plot(vec![marks.numbered(panel, &times.axis)], |columns| values(&curves, &columns)),
    })
}

/// Latencies by the share of transactions that are not slower, ascending, and how many transactions there are; `None` of an
/// empty histogram.
fn percentiles(latencies: &[Bucket]) -> Option<(Vec<Point>, u64)> {
    let buckets = || latencies.iter().filter(|bucket| bucket.count > 0 && bucket.high_ms > 0.0);
    let total = buckets().map(|bucket| bucket.count).fold(0, u64::saturating_add);
    let mut points: Vec<Point> = Vec::new();
    let mut before = 0u64;
    for bucket in buckets().filter(|bucket| bucket.high_ms.is_finite()) {
        before = before.saturating_add(bucket.count);
        // Ranks are divided by n + 1, not n: the slowest measured is not slower than all that may come.
        points.push((before as f64 / (total as f64 + 1.0), bucket.high_ms));
    }
    points.insert(0, (0.0, points.first()?.1));
    Some((points, total))
}

/// The latencies of two sides, by the share of transactions that are not slower; `None` where neither has any.
pub fn of_sides(id: &'static str, sides: [(&str, &[Bucket]); 2]) -> Option<Chart> {
    let known = sides.into_iter().zip([BLUE, RED]).filter_map(|((name, latencies), ink)| {
        let (points, total) = percentiles(latencies)?;
        Some(((ink, format!("{name}: {} transactions", count(total))), points, total))
    });
    let curves: Vec<((Ink, String), Vec<Point>, u64)> = known.collect();
    let latencies = || curves.iter().flat_map(|(_, points, _)| points.iter().map(|(_, ms)| *ms));
    let y = Axis::of_latencies(latencies().reduce(f64::min)?, latencies().reduce(f64::max)?);
    let most = curves.iter().map(|(.., total)| *total).max()?;
    let legend = curves.iter().map(|(of, ..)| of.clone()).collect();
    let panel = Panel::new(y).with(curves.into_iter().map(|((ink, _), points, _)| ink.line(points, 4)));
    Some(Chart {
        id,
        title: "Latency distributions",
        label: format!("Latency distributions of both sides, up to {} transactions", count(most)),
        caption: "Latency by percentile: each step to the right is a tenth of the remaining transactions."
            .to_owned(),
        legend,
        plot: Plot {
            x: Axis::of_percentiles(most),
            is_upright: true,
            panels: vec![panel],
            hover: Vec::new(),
        },
    })
}

/// All latencies, by the share of transactions that are not slower; `None` without any.
pub fn distribution(document: &Document) -> Option<Chart> {
    let (points, total) = percentiles(&document.latencies)?;
    let (first, last) = (*points.first()?, *points.last()?);
    let summary = &document.summary;
    let marked: Vec<(&str, f64, f64)> = [
        ("p50", 0.5, summary.latency_p50_ms),
        ("p95", 0.95, summary.latency_p95_ms),
        ("p99", 0.99, summary.latency_p99_ms),
        ("p99.9", 0.999, summary.latency_p999_ms),
    ]
    .into_iter()
    .filter_map(|(name, p, value)| Some((name, p, finite(value).filter(|ms| *ms > 0.0)?)))
    .collect();
    let y = Axis::of_latencies(first.1, last.1);
    let floor = y.value_at(0.0);
    let outline = points.iter().copied().chain([(last.0, floor), (0.0, floor)]).collect();
    let panel = Panel::new(y)
        .with([BLUE.area(outline).faint(0.12), BLUE.line(points, 5)])
        .with(marked.iter().map(|(_, p, ms)| RED.dot((*p, *ms), 8)));
    let (values, unit) = in_one_unit(&marked.iter().map(|(_, _, ms)| Some(*ms)).collect::<Vec<_>>());
    let values = marked.iter().zip(values).map(|((name, ..), value)| (RED, format!("{name} {value} {unit}")));
    Some(Chart {
        id: "plot-distribution",
        title: "Latency distribution",
        label: format!("Distribution of {} latencies", count(total)),
        caption: format!(
            "Latency by percentile of {} transactions: each step to the right is a tenth of the remaining ones.",
            count(total)
        ),
        legend: values.collect(),
        plot: Plot {
            x: Axis::of_percentiles(total),
            is_upright: true,
            panels: vec![panel],
            hover: Vec::new(),
        },
    })
}
