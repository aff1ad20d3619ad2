//! Where a series of runs changed its level: E-divisive (Matteson & James 2014, "A Nonparametric Approach for
//! Multiple Change Point Analysis of Multivariate Data", JASA 109), as used on series of benchmarks by Daly et al.
//! (2020, "The Use of Change Point Detection to Identify Software Performance Regressions in a Continuous Integration
//! System", ICPE).
//!
//! Beside it: wild values count only by lying far out ([`tamed`]); runs that are like the ones before them are
//! held against series that are so too ([`reorder`]); and a change is told only where three runs of either side
//! show it, and it reaches a margin ([`that_differ`]).
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

#[cfg(test)]
mod tests;

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::compare::Effect;
use crate::{Estimate, mean, robust};

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
    let likeness = likeness(&levels);
    let bounds = if likeness > 0.0 { search(values, likeness) } else { apart };
    that_differ(values, bounds, margin)
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
            bounds.windows(2).map(|ends| tamed(&values[ends[0].0..ends[1].0])).collect();
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
            reorder(&mut segment, likeness, random);
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

/// Runs that a level shows itself in: two beside each other may be chance, or one disturbance.
const LEAST_RUNS: usize = 3;

/// The bounds of levels that differ: of those given, in order, the ends included, the changes go that
/// [`Change::tells`] does not keep, the smallest first, since what is left of one is joined to its neighbours.
pub fn that_differ<T>(values: &[f64], mut bounds: Vec<(usize, T)>, margin: f64) -> Vec<(usize, T)> {
    loop {
        let change = |number: usize| {
            let [start, index, end] = [number - 1, number, number + 1].map(|bound| bounds[bound].0);
            LevelChange::new(values, start..index, index..end)
        };
        let idle = (1..bounds.len().saturating_sub(1))
            .map(|number| (number, change(number)))
            .filter(|(_, change)| !change.tells(margin))
            .min_by(|(_, one), (_, other)| one.step().total_cmp(&other.step()));
        let Some((number, _)) = idle else { return bounds };
        bounds.remove(number);
    }
}

/// The runs before a change and after it, by their medians, which a few wild values do not move.
struct LevelChange<'a> {
    before: &'a [f64],
    after: &'a [f64],
    from: f64,
    to: f64,
}

impl<'a> LevelChange<'a> {
    fn new(values: &'a [f64], before: Range<usize>, after: Range<usize>) -> Self {
        let (before, after) = (&values[before], &values[after]);
        let middle = |values| robust::median(values).unwrap_or(f64::NAN);
        Self { before, after, from: middle(before), to: middle(after) }
    }

    /// How far the levels are apart.
    fn step(&self) -> f64 {
        (self.to - self.from).abs()
    }

    /// Whether the levels, by medians and by means, are at least the margin apart, a share of the former, and at
    /// least three runs of each lie nearer to their own level than to the other.
    fn tells(&self, margin: f64) -> bool {
        let halfway = (self.from + self.to) / 2.0;
        let near = |values: &[f64], level: f64| {
            values.iter().filter(|value| (**value - halfway) * (level - halfway) > 0.0).count()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let means = (mean(self.after) - mean(self.before)).abs();
        self.step() > 0.0
            && self.step() >= margin * self.from.abs()
            && means >= margin * mean(self.before).abs()
            && near(self.before, self.from) >= LEAST_RUNS
            && near(self.after, self.to) >= LEAST_RUNS
    }
}

/// Robust standard deviations from the median beyond which a value is taken for wild.
const WILD: f64 = 3.0;
/// A series that is more like its neighbours than this is one long wander, and has no levels.
const MOST_ALIKE: f64 = 0.9;

/// The values, with those beyond three robust standard deviations of the median put there (winsorised): a wild value
/// counts as one that lies far out, not by how far. Values more than half of which are equal are left as they are.
pub fn tamed(values: &[f64]) -> Vec<f64> {
    match (robust::median(values), robust::sigma(values)) {
        (Some(middle), Some(sigma)) if sigma > 0.0 => {
            values.iter().map(|value| value.clamp(middle - WILD * sigma, middle + WILD * sigma)).collect()
        }
        _ => values.to_vec(),
    }
}

/// How much a run's value is like the one before, the coefficient φ of a first-order autoregression about the levels;
/// 0 where it is not, or the values tell nothing.
///
/// From differences, which no level moves, and no estimate of it: values one apart differ by 2γ(1 − φ) on the mean
/// square, two apart by 2γ(1 − φ²), and the ratio is 1 + φ (Chakar, Lebarbier, Lévy-Leduc & Robin 2017, "A robust
/// approach for estimating change-points in the mean of an AR(1) process", Bernoulli 23, with mean squares of tamed
/// values in the place of medians, which are too rough for 30 runs).
pub fn likeness(levels: &[&[f64]]) -> f64 {
    // Without the wild ones: two beside each other are alike.
    let levels: Vec<Vec<Option<f64>>> = levels
        .iter()
        .map(|values| {
            tamed(values).iter().zip(*values).map(|(tame, value)| (tame == value).then_some(*value)).collect()
        })
        .collect();
    let apart = |distance: usize| {
        let squares = levels.iter().flat_map(|values| {
            values
                .iter()
                .zip(&values[distance.min(values.len())..])
                .filter_map(|(one, other)| Some(((*one)? - (*other)?).powi(2)))
        });
        let (sum, count) = squares.fold((0.0, 0.0), |(sum, count), square| (sum + square, count + 1.0));
        sum / count
    };
    let likeness = apart(2) / apart(1) - 1.0;
    if likeness.is_finite() { likeness.clamp(0.0, MOST_ALIKE) } else { 0.0 }
}

/// Puts values into another order, and makes each as like the one before as `likeness` says. Their mean and variance
/// stay; with a likeness of 0 so do the values.
pub fn reorder(values: &mut [f64], likeness: f64, random: &mut Pcg64) {
    values.shuffle(random);
    if likeness == 0.0 {
        return;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let share = (1.0 - likeness * likeness).sqrt();
    let mut before = None;
    for value in values {
        let own = *value - mean;
        let off = before.map_or(own, |before: f64| likeness * before + share * own);
        *value = mean + off;
        before = Some(off);
    }
}
