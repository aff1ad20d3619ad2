//! Latencies over time as a heat map: how the transactions of each interval are spread over them. Percentiles do not show
//! whether there are two groups of transactions, nor how few the slow ones are.

use std::collections::BTreeMap;
use std::ops::Range;

use bench_base::number::{count, percent, short_ms};
use bench_results::{Document, Samples};
use bench_stats::coarse_histogram::log_bounds_ms;

use super::Chart;
use super::axis::Axis;
use super::marks::Marks;
use super::palette::{HEAT, Ink};
use super::times::Times;
use crate::downsample::columns;

/// How many columns the map has at most: each has a shape for each of its buckets.
const COLUMNS: usize = 240;

/// From which share of an interval's transactions on a cell has each of the colours.
const SHARES: [f64; HEAT.len()] = [0.0, 0.001, 0.01, 0.05, 0.1, 0.25];

/// How many buckets a title names.
const NAMED: usize = 14;

/// Transactions by bucket and column.
type Cells = BTreeMap<u32, Vec<f64>>;

/// The map; `None` of a run without histograms of its intervals.
pub fn chart(document: &Document) -> Option<Chart> {
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
