//! Latencies: percentiles over time, the distribution of the whole, and a heat map of the intervals. Percentiles do not show
//! whether there are two groups of transactions, nor how few the slow ones are; the heat map does.

use std::collections::BTreeMap;
use std::ops::Range;

use bench_base::number::{count, finite, in_one_unit, percent, short_ms};
use bench_results::{Bucket, Document, Samples};
use bench_stats::histogram::log_bounds_ms;

use crate::downsample::{columns, range};
use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, Chart, GREEN, HEAT, Ink, ORANGE, PINK, Panel, Plot, Point, RED};
use crate::plot::marks::Marks;
use crate::plot::times::{Curve, Times, legend, values};
use crate::section::latency;

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

/// How many columns the map has at most: each has a shape for each of its buckets.
const COLUMNS: usize = 240;

/// From which share of an interval's transactions on a cell has each of the colours.
const SHARES: [f64; HEAT.len()] = [0.0, 0.001, 0.01, 0.05, 0.1, 0.25];

/// How many buckets a title names.
const NAMED: usize = 14;

/// Transactions by bucket and column.
type Cells = BTreeMap<u32, Vec<f64>>;

/// The map; `None` of a run without histograms of its intervals.
pub fn heat_map(document: &Document) -> Option<Chart> {
    let samples = &document.samples;
    let times = Times::in_columns(samples, COLUMNS)?;
    let cells = cells(samples, &times);
    let (low, _) = bounds_ms(*cells.keys().next()?);
    let (_, high) = bounds_ms(*cells.keys().next_back()?);
    let totals: Vec<f64> =
        (0..times.spans.len()).map(|column| cells.values().map(|row| row[column]).sum()).collect();
    let of_bucket = |(bucket, row): (&u32, &Vec<f64>)| {
        let (low, high) = bounds_ms(*bucket);
        let shape = |(ink, columns): (Ink, Range<usize>)| {
            ink.rectangle((times.spans[columns.start].0, high), (times.spans[columns.end - 1].1, low))
        };
        areas(row, &totals).into_iter().map(shape).collect::<Vec<_>>()
    };
    let marks = Marks::of(document, &times.axis);
    let panel = marks.panel(Axis::of_latencies(low, high)).with(cells.iter().flat_map(of_bucket));
    Some(Chart {
        id: "plot-heat",
        title: "Latency heat map, share of transactions",
        label: "Latencies over time, by share".to_owned(),
        caption: format!(
            "Share of each interval's transactions by latency, ten steps to a power of ten, on a logarithmic axis.{}",
            times.note("the transactions")
        ),
        legend: marks.legend(HEAT.into_iter().zip(names()).collect()),
        plot: times.plot(vec![marks.numbered(panel, &times.axis)], |columns| named(&cells, columns)),
    })
}

/// The latencies that a bucket is of.
fn bounds_ms(bucket: u32) -> (f64, f64) {
    let (low, high) = log_bounds_ms(bucket);
    (10f64.powf(low), 10f64.powf(high))
}

/// The counts of the plot's columns, without buckets that hold nothing.
fn cells(samples: &Samples, times: &Times) -> Cells {
    let intervals = samples.len();
    let mut cells = Cells::new();
    for (bucket, counts) in &samples.latency_histogram {
        let known = |interval: usize| {
            counts.get(interval).copied().filter(|count| count.is_finite() && *count > 0.0).unwrap_or(0.0)
        };
        let row: Vec<f64> =
            columns(intervals, times.per_column).map(|range| range.map(known).sum()).collect();
        if row.iter().any(|count| *count > 0.0) {
            cells.insert(*bucket, row);
        }
    }
    cells
}

/// The colour of a count.
fn ink(count: f64, total: f64) -> Option<Ink> {
    let share = count / total;
    let place = SHARES.iter().rposition(|least| share >= *least)?;
    (count > 0.0).then(|| HEAT[place])
}

/// Columns of a bucket with the colour that they have, those side by side together.
fn areas(row: &[f64], totals: &[f64]) -> Vec<(Ink, Range<usize>)> {
    let inks: Vec<Option<Ink>> = row.iter().zip(totals).map(|(count, total)| ink(*count, *total)).collect();
    let mut areas = Vec::new();
    let mut first = 0;
    for run in inks.chunk_by(|one, next| one == next) {
        areas.extend(run[0].map(|ink| (ink, first..first + run.len())));
        first += run.len();
    }
    areas
}

/// What the colours stand for.
fn names() -> impl Iterator<Item = String> {
    let share = |share: f64| format!("{} %", share * 100.0);
    SHARES.iter().enumerate().map(move |(place, from)| match place {
        0 => format!("below {}", share(SHARES[1])),
        _ => format!("from {}", share(*from)),
    })
}

/// The buckets of some columns, the slowest first.
fn named(cells: &Cells, columns: Range<usize>) -> Vec<String> {
    let counts: Vec<(u32, f64)> =
        cells.iter().map(|(bucket, row)| (*bucket, row[columns.clone()].iter().sum())).collect();
    let total: f64 = counts.iter().map(|(_, count)| count).sum();
    let known = || counts.iter().rev().filter(|(_, count)| *count > 0.0);
    let line = |(bucket, transactions): &(u32, f64)| {
        let (low, high) = bounds_ms(*bucket);
        let ((low, low_unit), (high, high_unit)) = (short_ms(Some(low)), short_ms(Some(high)));
        let bounds = if low_unit == high_unit {
            format!("{low} to {high} {high_unit}")
        } else {
            format!("{low} {low_unit} to {high} {high_unit}")
        };
        format!("{bounds}: {} ({})", count(*transactions as u64), percent(Some(transactions / total)))
    };
    let mut lines: Vec<String> = known().take(NAMED).map(line).collect();
    let others = known().skip(NAMED).map(|(_, count)| count).sum::<f64>();
    if others > 0.0 {
        lines.push(format!("faster: {} ({})", count(others as u64), percent(Some(others / total))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_share_are_one_shape() {
        let row = [0.0, 30.0, 60.0, 2.0, 0.0, 1.0];
        let totals = [100.0, 100.0, 100.0, 100.0, 0.0, 10_000.0];
        assert_eq!(areas(&row, &totals), [(HEAT[5], 1..3), (HEAT[2], 3..4), (HEAT[0], 5..6)]);
    }

    #[test]
    fn columns_have_the_counts_of_their_intervals() {
        let samples = Samples {
            elapsed: (1..=480).map(|end| Some(f64::from(end))).collect(),
            latency_histogram: [(30, vec![1.0; 480]), (40, vec![0.0; 480]), (50, vec![f64::NAN, 3.0])].into(),
            ..Samples::default()
        };
        let times = Times::in_columns(&samples, COLUMNS).unwrap();
        let cells = cells(&samples, &times);
        assert_eq!(cells.keys().collect::<Vec<_>>(), [&30, &50]);
        assert_eq!(cells[&30], [2.0; 240]);
        assert_eq!(cells[&50][..2], [3.0, 0.0]);
        assert_eq!(named(&cells, 0..1), ["100 to 126 ms: 3 (60.0 %)", "1.00 to 1.26 ms: 2 (40.0 %)"]);
    }

    #[test]
    fn shares_are_named() {
        let names: Vec<String> = names().collect();
        assert_eq!(names, ["below 0.1 %", "from 0.1 %", "from 1 %", "from 5 %", "from 10 %", "from 25 %"]);
    }
}
