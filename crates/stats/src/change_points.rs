//! Where a series of runs changed its level: E-divisive (Matteson & James 2014, "A Nonparametric Approach for
//! Multiple Change Point Analysis of Multivariate Data", JASA 109), as used on series of benchmarks by Daly et al.
//! (2020, "The Use of Change Point Detection to Identify Software Performance Regressions in a Continuous Integration
//! System", ICPE).
//!
//! Beside it: wild values count only by lying far out ([`noise::tamed`]); runs that are like the ones before them are
//! held against series that are so too ([`noise::reorder`]); and a change is told only where three runs of either side
//! show it, and it reaches a margin ([`levels`]).
//!
//! Simulated histories without a change (lognormal noise of 2 %, 1000 each) in which one is told at a margin of 0.02,
//! by the coefficient φ of a first-order autoregression; in brackets without the regard to it and without a margin:
//!
//! | φ | 30 runs | 100 runs |
//! |---|---|---|
//! | 0 | 2 % (6) | 1 % (6) |
//! | 0.3 | 8 % (25) | 6 % (40) |
//! | 0.5 | 15 % (53) | about 10 % (82) |
//! | 0.7 | 22 % (76) | not simulated (98) |
//!
//! It assumes levels: a drift is found as steps.

mod levels;
mod noise;

use super::mean;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::compare::Effect;
use super::estimate::Estimate;

/// Fixed, so that a series has the same answer each time.
const SEED: u64 = 2014;
/// Random orders that a change is compared with, as many as the authors' R package ecp takes.
const PERMUTATIONS: usize = 199;
/// The probability, per series without a change, that one is found; as in ecp.
const SIGNIFICANCE: f64 = 0.05;
/// Confidence of the intervals around a level, as a fraction.
const CONFIDENCE: f64 = 0.95;
/// Values that a segment has at least: two have a spread, the third keeps a single wild value from being a level.
const LEAST_SEGMENT: usize = 3;

/// A change of level.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub index: usize,
    /// Mean of the values since the change before, or the begin.
    pub before: f64,
    /// Mean of the values up to the next change, or the end.
    pub after: f64,
    /// after / before - 1 of the geometric means, with its interval by Welch's t on the logarithms; `None` where a
    /// value is not positive.
    pub change: Option<Estimate>,
    /// Probability of as great a difference where there is no change, from the permutation test: 0.005 at least.
    pub p: f64,
}

/// The point at which a segment falls apart most.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    /// Index of the first value after it.
    index: usize,
    /// mn / (m + n) times the energy distance of the m values before from the n after.
    statistic: f64,
}

/// The changes of a series, in its order, at least three values apart from each other and the ends, and each of at
/// least `margin`, a fraction of the former level. A series that has a value that is not finite tells none.
pub fn change_points(values: &[f64], margin: f64) -> Vec<ChangePoint> {
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    // First as if no run were like the one before: at worst that finds too many levels, within which runs are as like
    // their neighbours as ever.
    let apart = search(values, 0.0);
    let levels: Vec<&[f64]> = apart.windows(2).map(|ends| &values[ends[0].0..ends[1].0]).collect();
    let likeness = noise::likeness(&levels);
    let bounds = if likeness > 0.0 { search(values, likeness) } else { apart };
    levels::that_differ(values, bounds, margin)
        .windows(3)
        .map(|around| {
            let [(start, _), (index, p), (end, _)] = [around[0], around[1], around[2]];
            let (before, after) = (&values[start..index], &values[index..end]);
            ChangePoint { index, before: mean(before), after: mean(after), change: change(before, after), p }
        })
        .collect()
}

/// The bounds of the segments that a series falls into, both ends included, with the p of each that is a change.
fn search(values: &[f64], likeness: f64) -> Vec<(usize, f64)> {
    let mut random = Pcg64::seed_from_u64(SEED);
    let mut bounds = vec![(0, 0.0), (values.len(), 0.0)];
    loop {
        let segments: Vec<Vec<f64>> =
            bounds.windows(2).map(|ends| noise::tamed(&values[ends[0].0..ends[1].0])).collect();
        let splits =
            segments.iter().enumerate().filter_map(|(number, segment)| Some((number, split(segment)?)));
        let Some((number, found)) = splits.max_by(|one, other| one.1.statistic.total_cmp(&other.1.statistic))
        else {
            return bounds;
        };
        let Some(p) = significance(&segments, &found, likeness, &mut random) else { return bounds };
        bounds.insert(number + 1, (bounds[number].0 + found.index, p));
    }
}

/// The split of a segment with the greatest statistic; `None` for less than six values.
///
/// Q = mn / (m + n) × (2 E|X − Y| − E|X − X'| − E|Y − Y'|), the means being over all pairs (Matteson & James 2014,
/// with α = 1; Székely & Rizzo 2005), of the m values before the split and the n after it up to any end:
/// the best end, so that a level that returns does not hide among what follows. Quadratic in the length: from one end
/// to the next, a single value joins.
fn split(values: &[f64]) -> Option<Split> {
    let count = values.len();
    // Sums over the pairs from each index up to the end: that of index 0 is of both sides together.
    let mut right = vec![0.0; count];
    // Sums over the pairs up to each index.
    let mut left = vec![0.0; count + 1];
    // By the number of values, what turns a sum over their pairs into half its mean, times that number.
    let shares: Vec<f64> = (0..=count).map(|number| 1.0 / (number as f64 - 1.0)).collect();
    let mut best: Option<Split> = None;
    for (last, joins) in values.iter().enumerate() {
        let mut sum = 0.0;
        for (right, value) in right[..last].iter_mut().zip(&values[..last]).rev() {
            sum += (joins - value).abs();
            *right += sum;
        }
        let end = last + 1;
        let both = right[0];
        left[end] = both;
        // Q (m + n) / 2.
        let scale = end as f64 / 2.0;
        let mut most = best.map_or(f64::NEG_INFINITY, |best| best.statistic * scale);
        for index in LEAST_SEGMENT..=end.saturating_sub(LEAST_SEGMENT) {
            let (left, right) = (left[index], right[index]);
            let (m, n) = (index as f64, (end - index) as f64);
            let scaled = both - left - right - left * shares[index] * n - right * shares[end - index] * m;
            if scaled > most {
                most = scaled;
                best = Some(Split { index, statistic: scaled / scale });
            }
        }
    }
    best
}

/// The share of random series of the segments' values, as like their neighbours as `likeness` says, in which the best
/// split of all is as good as the one found, that itself counted; `None` as soon as it is known to be above the
/// significance.
fn significance(segments: &[Vec<f64>], found: &Split, likeness: f64, random: &mut Pcg64) -> Option<f64> {
    let orders = (PERMUTATIONS + 1) as f64;
    let mut as_good = 1.0;
    for _ in 0..PERMUTATIONS {
        let best = segments.iter().filter_map(|segment| {
            let mut segment = segment.clone();
            noise::reorder(&mut segment, likeness, random);
            split(&segment)
        });
        // Sums in another order may differ in their last digits.
        if best.map(|split| split.statistic).fold(0.0, f64::max) >= found.statistic * (1.0 - 1e-9) {
            as_good += 1.0;
        }
        if as_good / orders > SIGNIFICANCE {
            return None;
        }
    }
    Some(as_good / orders)
}

/// The ratio of the geometric means, less one.
fn change(before: &[f64], after: &[f64]) -> Option<Estimate> {
    if before.iter().chain(after).any(|value| *value <= 0.0) {
        return None;
    }
    let logs = |values: &[f64], sign: f64| values.iter().map(|value| sign * value.ln()).collect();
    // Never fewer than three values a side, so that Student's interval it is, as for the comparison of few runs.
    let effect = Effect::new(vec![logs(after, 1.0), logs(before, -1.0)])?;
    let (log, margin) = (effect.value(), effect.student_margin(CONFIDENCE));
    let ratio = |log: f64| log.exp_m1();
    Some(Estimate { value: ratio(log), low: ratio(log - margin), high: ratio(log + margin) })
}

#[cfg(test)]
mod tests;
