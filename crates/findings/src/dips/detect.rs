//! Where throughput falls for a while and comes back.
//!
//! Every interval is held against the run's median, or against the line through its middle values where it has a slow
//! trend, and the limit is set by the intervals' own spread, judged by medians, so that dips cannot hide themselves.
//! Median, line and spread are those of the intervals at work: more than half of a run may have stood still.

use std::ops::Range;

use bench_stats::robust;

use crate::intervals::Intervals;

/// The least depth below the line, as a share of it.
const LEAST_DEPTH: f64 = 0.2;
/// The least depth in fewer than [`MANY_INTERVALS`], where the spread itself is judged from a few values and may come
/// out too small: four of its standard deviations at a coefficient of variation of 10 %. With it `simulations` has a
/// false alarm in at most 3 of 10,000 runs, and finds one interval of 60 % in 99 of 100 at 5 %.
const LEAST_DEPTH_OF_FEW: f64 = 0.4;
/// The least depth in robust standard deviations of the intervals.
const LEAST_SIGMAS: f64 = 5.0;
/// From this depth on [`DEEP_SIGMAS`] are enough in many intervals: a normal deviation reaches four in 3 of 100,000.
/// Where five would be more than all throughput, nothing could ever be a dip.
const DEEP: f64 = 0.75;
const DEEP_SIGMAS: f64 = 4.0;
/// Or three, which a deviation reaches in 13 of 10,000, where one interval after another lies so deep.
const DEEP_SIGMAS_OF_TWO: f64 = 3.0;
/// What a dip has to fall short of its expected transactions by, in standard deviations of a Poisson count: a spread
/// judged from intervals of ten transactions tells little.
const LEAST_POISSON_SIGMAS: f64 = 5.0;
/// A stall: hardly anything is committed any more. It is told from fewer intervals, and out of a greater spread.
pub const STALL_DEPTH: f64 = 0.9;
const STALL_SIGMAS: f64 = 4.0;
/// Intervals from which on dips are looked for, and from which on shallow ones are.
pub const LEAST_INTERVALS: usize = 8;
pub const MANY_INTERVALS: usize = 30;
/// This many adjacent empty intervals are a standstill, whatever the spread of the others: hardly any run has them by chance.
const STANDSTILL_INTERVALS: usize = 3;
/// How many times as long as a client needs for a transaction, on average and with its pauses, nothing has to be committed
/// for an interval not to count as one at work: clients that began together commit together.
const LEAST_CYCLES: f64 = 2.0;
/// One that reaches to the end and takes more than this share of the run may be another level rather than a dip.
const LONGEST_AT_END: f64 = 0.25;
/// A line is taken for a trend only where it makes the spread less than this share of that around the median: a dip
/// that lasts to the end bends it too.
const TREND_SPREAD: f64 = 0.6;
/// The spread judged by neighbours' differences is too small where neighbours are alike, by half at an
/// autocorrelation of 0.75.
const NEIGHBOURS: f64 = 2.0;
/// The spread around a running median is too small where the median follows what is alike, by a fifth at an
/// autocorrelation of 0.5 and a window of eleven intervals. The window is this share of the run, which no dip of half
/// of it can bend, within these numbers of intervals.
const RUNNING: f64 = 1.25;
const RUNNING_SHARE: f64 = 0.2;
const RUNNING_WINDOW: (usize, usize) = (11, 121);

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
    /// Whether another finding tells of it, and none on dips shall.
    pub told: bool,
}

/// What throughput is otherwise, and where it was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detected {
    /// The median tps of the intervals at work.
    pub median: f64,
    /// What each interval was expected to have, tps.
    pub expected: Vec<f64>,
    /// In their order, disjoint.
    pub dips: Vec<Dip>,
    /// The intervals that the run began with on a lower level, by the rule for dips; empty if it did not.
    pub beginning: Range<usize>,
    /// The standard deviation of an interval's tps, as a share of what was expected.
    pub sigma: f64,
    /// Why dips were not looked for; `None` where they were.
    pub unjudged: Option<Unjudged>,
}

/// Why dips cannot be told from noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// There are fewer intervals than [`LEAST_INTERVALS`].
    FewIntervals,
    /// Intervals differ so much that no fall stands out but a standstill of several.
    Noise,
}

/// The dips of a run. Those that it begins with are left to the warm-up.
pub fn detect(intervals: &Intervals) -> Detected {
    let standstills = standstills(intervals);
    let is_at_work = |index: &usize| !standstills.iter().any(|stretch| stretch.contains(index));
    let at_work: Vec<usize> = (0..intervals.len()).filter(is_at_work).collect();
    let tps: Vec<f64> = at_work.iter().map(|&index| intervals.tps[index]).collect();
    let Some(median) = robust::median(&tps).filter(|median| *median > 0.0) else {
        return Detected::default();
    };
    let expected_at_work = expected(&tps, median);
    let sigma = spread(&tps, &self::shortfalls(&tps, &expected_at_work), median);
    // While nothing moved, what was expected last.
    let expected: Vec<f64> = (0..intervals.len())
        .map(|index| expected_at_work[at_work.partition_point(|&other| other < index).min(tps.len() - 1)])
        .collect();
    let shortfalls = shortfalls(&intervals.tps, &expected);
    let undetected = Detected { median, expected, sigma, ..Detected::default() };
    if intervals.len() < LEAST_INTERVALS {
        return Detected { unjudged: Some(Unjudged::FewIntervals), ..undetected };
    }
    let limit = limit(sigma, intervals.len());
    let limit_of_two = (sigma * DEEP_SIGMAS_OF_TWO).max(DEEP);
    let is_noise = limit.is_infinite() && limit_of_two > STALL_DEPTH;
    let low = if is_noise {
        standstills.into_iter().filter(|stretch| stretch.len() >= STANDSTILL_INTERVALS).collect()
    } else {
        stretches(&shortfalls, limit, limit_of_two)
    };
    let (first, later): (Vec<Range<usize>>, Vec<Range<usize>>) = low
        .into_iter()
        .filter(|stretch| beyond_counting(intervals, &undetected.expected, stretch))
        .partition(|stretch| stretch.start == 0);
    Detected {
        unjudged: is_noise.then_some(Unjudged::Noise),
        dips: later.into_iter().map(|stretch| dip(intervals, &shortfalls, stretch)).collect(),
        beginning: first.into_iter().next().unwrap_or_default(),
        ..undetected
    }
}

/// Stretches of empty intervals that are longer than clients can take for a transaction.
fn standstills(intervals: &Intervals) -> Vec<Range<usize>> {
    let clients = intervals.column(|samples| &samples.clients).and_then(|clients| robust::median(&clients));
    let transactions: f64 = intervals.transactions.iter().sum();
    // By Little's law. With a rate it is more, as clients also wait for transactions to be due.
    let cycle_secs = clients.map_or(0.0, |clients| clients * intervals.measured_secs() / transactions);
    let mut standstills = intervals.standstills();
    standstills.retain(|stretch| intervals.length_secs(stretch) >= LEAST_CYCLES * cycle_secs);
    standstills
}

/// The least depth of one interval of a dip; infinite where the intervals differ so much that not even a stall of one
/// stands out.
fn limit(sigma: f64, count: usize) -> f64 {
    if sigma * STALL_SIGMAS >= STALL_DEPTH {
        return f64::INFINITY;
    }
    let limit = if count >= MANY_INTERVALS {
        (sigma * LEAST_SIGMAS).max(LEAST_DEPTH).min((sigma * DEEP_SIGMAS).max(DEEP))
    } else {
        (sigma * LEAST_SIGMAS).max(LEAST_DEPTH_OF_FEW)
    };
    limit.min(STALL_DEPTH)
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

/// The standard deviation without dips: the least of three judgements, around what is expected, around a running
/// median and between neighbours. Long dips widen the first, as does a level that wanders; the second follows the
/// level, the last sees the dips' edges only.
fn spread(tps: &[f64], shortfalls: &[f64], median: f64) -> f64 {
    let around = robust::sigma(shortfalls).unwrap_or(f64::INFINITY);
    let running =
        robust::sigma(&self::shortfalls(tps, &running_median(tps, median))).map(|sigma| sigma * RUNNING);
    let differences: Vec<f64> = shortfalls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let between = robust::sigma(&differences).map(|sigma| sigma / std::f64::consts::SQRT_2 * NEIGHBOURS);
    around.min(running.unwrap_or(f64::INFINITY)).min(between.unwrap_or(f64::INFINITY))
}

/// The median of the values around each one, not far from that of all.
fn running_median(tps: &[f64], median: f64) -> Vec<f64> {
    let window = (tps.len() as f64 * RUNNING_SHARE) as usize;
    let half = window.clamp(RUNNING_WINDOW.0, RUNNING_WINDOW.1) / 2;
    let around = |index: usize| &tps[index.saturating_sub(half)..(index + half + 1).min(tps.len())];
    let of = |index: usize| robust::median(around(index)).unwrap_or(median);
    (0..tps.len()).map(|index| of(index).clamp(median / 2.0, median * 2.0)).collect()
}

/// Consecutive intervals that fall short by half of the limit (of two, where there is none for one), where one falls short by all of it, or two side by side
/// by the other limit: a dip has shoulders. A single interval above does not divide one dip into two.
fn stretches(shortfalls: &[f64], limit: f64, limit_of_two: f64) -> Vec<Range<usize>> {
    let shoulder = if limit.is_finite() { limit } else { limit_of_two } / 2.0;
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for (index, &shortfall) in shortfalls.iter().enumerate() {
        if shortfall < shoulder {
            continue;
        }
        match stretches.last_mut() {
            Some(last) if index <= last.end + 1 => last.end = index + 1,
            _ => stretches.push(index..index + 1),
        }
    }
    stretches.retain(|stretch| {
        let within = &shortfalls[stretch.clone()];
        within.iter().any(|&shortfall| shortfall >= limit)
            || within.windows(2).any(|two| two.iter().all(|&shortfall| shortfall >= limit_of_two))
    });
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
        told: false,
        intervals: stretch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_has_shoulders_and_bridges_one_interval() {
        let shortfalls = [0.0, 0.15, 0.3, 0.0, 0.12, 0.0, 0.0, 0.25, 0.0, 0.0, 0.15];
        assert_eq!(stretches(&shortfalls, 0.2, 0.75), [1..5, 7..8]);
        assert_eq!(stretches(&[0.0, 0.8, 0.8, 0.0, 0.0, 0.8, 0.8], 0.9, 0.75), [1..3, 5..7]);
    }
}
