//! Where throughput falls for a while and comes back.
//!
//! Every interval is held against the run's median, or against the line through its middle values where it has a slow
//! trend, and the limit is set by the intervals' own spread, judged by medians, so that dips cannot hide themselves.

use std::ops::Range;

use crate::findings::intervals::Intervals;
use crate::stats::robust;

/// The least depth below the line, as a share of it.
const LEAST_DEPTH: f64 = 0.2;
/// The least depth in robust standard deviations of the intervals.
const LEAST_SIGMAS: f64 = 5.0;
/// What a dip has to fall short of its expected transactions by, in standard deviations of a Poisson count: a spread
/// judged from intervals of ten transactions tells little.
const LEAST_POISSON_SIGMAS: f64 = 5.0;
/// A stall: hardly anything is committed any more. It is told from fewer intervals, and out of a greater spread.
pub const STALL_DEPTH: f64 = 0.9;
const STALL_SIGMAS: f64 = 4.0;
/// Intervals from which on dips are looked for, and stalls.
const LEAST_INTERVALS: usize = 30;
const LEAST_INTERVALS_FOR_STALLS: usize = 8;
/// One that reaches to the end and takes more than this share of the run may be another level rather than a dip.
const LONGEST_AT_END: f64 = 0.25;
/// A line is taken for a trend only where it makes the spread less than this share of that around the median: a dip
/// that lasts to the end bends it too.
const TREND_SPREAD: f64 = 0.6;
/// The spread judged by neighbours' differences is too small where neighbours are alike, by half at an
/// autocorrelation of 0.75.
const NEIGHBOURS: f64 = 2.0;

/// Intervals whose throughput fell.
#[derive(Clone, Debug, PartialEq)]
pub struct Dip {
    /// Which intervals.
    pub intervals: Range<usize>,
    /// Its begin, in seconds since measuring began.
    pub start: f64,
    /// Its end, as its begin.
    pub end: f64,
    /// How far its deepest interval lies below the line, as a share of it.
    pub depth: f64,
    /// Seconds' worth of transactions that it cost.
    pub lost_secs: f64,
    /// Whether it lasted to the end for so long, without a stall, that it may be another level: it is one unless its
    /// cause is known.
    pub open: bool,
}

/// What throughput is otherwise, and where it was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detected {
    /// The median of the intervals' tps.
    pub median: f64,
    /// What each interval was expected to have, tps.
    pub expected: Vec<f64>,
    /// In their order, disjoint.
    pub dips: Vec<Dip>,
}

/// The dips of a run. Those that it begins with are left to the warm-up.
pub fn detect(intervals: &Intervals) -> Detected {
    let Some(median) = robust::median(&intervals.tps).filter(|median| *median > 0.0) else {
        return Detected::default();
    };
    let expected = expected(&intervals.tps, median);
    let shortfalls = shortfalls(&intervals.tps, &expected);
    let sigma = spread(&shortfalls);
    let limit = if intervals.len() >= LEAST_INTERVALS && sigma * LEAST_SIGMAS < STALL_DEPTH {
        (sigma * LEAST_SIGMAS).max(LEAST_DEPTH)
    } else if intervals.len() >= LEAST_INTERVALS_FOR_STALLS && sigma * STALL_SIGMAS < STALL_DEPTH {
        STALL_DEPTH
    } else {
        return Detected { median, expected, dips: Vec::new() };
    };
    let dips = stretches(&shortfalls, limit)
        .into_iter()
        .filter(|stretch| stretch.start > 0)
        .filter(|stretch| beyond_counting(intervals, &expected, stretch))
        .map(|stretch| dip(intervals, &shortfalls, stretch))
        .collect();
    Detected { median, expected, dips }
}

/// What each interval would have without dips: the median, or the line where there is a trend.
fn expected(tps: &[f64], median: f64) -> Vec<f64> {
    let level = vec![median; tps.len()];
    let Some(line) = robust::line(tps) else { return level };
    // A line must not expect a multiple of what there ever was, or nothing.
    let trend: Vec<f64> =
        (0..tps.len()).map(|index| line.at(index).clamp(median / 2.0, median * 2.0)).collect();
    let spread_around = |expected: &[f64]| robust::sigma(&shortfalls(tps, expected)).unwrap_or(0.0);
    if spread_around(&trend) < spread_around(&level) * TREND_SPREAD { trend } else { level }
}

/// By which share of what was expected each interval falls short.
fn shortfalls(tps: &[f64], expected: &[f64]) -> Vec<f64> {
    tps.iter().zip(expected).map(|(tps, expected)| 1.0 - tps / expected).collect()
}

/// The standard deviation without dips: the lesser of two judgements, around the median and between neighbours.
/// Long dips widen the former; the latter sees their edges only.
fn spread(shortfalls: &[f64]) -> f64 {
    let differences: Vec<f64> = shortfalls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let between = robust::sigma(&differences).map(|sigma| sigma / std::f64::consts::SQRT_2 * NEIGHBOURS);
    let around = robust::sigma(shortfalls).unwrap_or(f64::INFINITY);
    around.min(between.unwrap_or(f64::INFINITY))
}

/// Consecutive intervals that fall short by half of the limit, where one falls short by all of it: a dip has
/// shoulders. A single interval above does not divide one dip into two.
fn stretches(shortfalls: &[f64], limit: f64) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (index, &shortfall) in shortfalls.iter().enumerate() {
        if shortfall < limit / 2.0 {
            continue;
        }
        match stretches.last_mut() {
            Some(last) if index <= last.end + 1 => last.end = index + 1,
            _ => stretches.push(index..index + 1),
        }
    }
    stretches.retain(|stretch| shortfalls[stretch.clone()].iter().any(|&shortfall| shortfall >= limit));
    stretches
}

/// Whether a dip lacks more transactions than counting them by chance explains.
fn beyond_counting(intervals: &Intervals, expected: &[f64], stretch: &Range<usize>) -> bool {
    let due: f64 = stretch.clone().map(|index| expected[index] * intervals.secs[index]).sum();
    let done: f64 = intervals.transactions[stretch.clone()].iter().sum();
    due - done >= LEAST_POISSON_SIGMAS * due.sqrt()
}

fn dip(intervals: &Intervals, shortfalls: &[f64], stretch: Range<usize>) -> Dip {
    let losses = stretch.clone().map(|index| shortfalls[index].max(0.0) * intervals.secs[index]);
    let depth = shortfalls[stretch.clone()].iter().copied().fold(0.0, f64::max);
    let share = stretch.len() as f64 / intervals.len() as f64;
    Dip {
        start: intervals.starts[stretch.start],
        end: intervals.ends[stretch.end - 1],
        depth,
        lost_secs: losses.sum(),
        open: stretch.end == intervals.len() && share > LONGEST_AT_END && depth < STALL_DEPTH,
        intervals: stretch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_has_shoulders_and_bridges_one_interval() {
        let shortfalls = [0.0, 0.15, 0.3, 0.0, 0.12, 0.0, 0.0, 0.25, 0.0, 0.0, 0.15];
        assert_eq!(stretches(&shortfalls, 0.2), [1..5, 7..8]);
    }
}
