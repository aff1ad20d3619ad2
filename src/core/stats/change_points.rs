//! Where a series of runs changed its level: E-divisive (Matteson & James 2014, "A Nonparametric Approach for
//! Multiple Change Point Analysis of Multivariate Data", JASA 109), as used on series of benchmarks by Daly et al.
//! (2020, "The Use of Change Point Detection to Identify Software Performance Regressions in a Continuous Integration
//! System", ICPE).
//!
//! It assumes that runs do not depend on those before them, and levels: a drift is found as steps.

mod energy;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::compare::Effect;
use super::estimate::Estimate;
use energy::Split;

/// The same series always has the same answer.
const SEED: u64 = 2014;
/// Random orders that a change is compared with, as many as the authors' R package ecp takes.
const PERMUTATIONS: usize = 199;
/// The probability, per series without a change, that one is found; as in ecp.
const SIGNIFICANCE: f64 = 0.05;
/// Of the intervals.
const CONFIDENCE: f64 = 0.95;

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

/// The changes of a series, in its order, at least three values apart from each other and the ends. A series that has
/// a value that is not finite tells none.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut random = Pcg64::seed_from_u64(SEED);
    // The bounds of the segments, with the p of each that is a change.
    let mut bounds = vec![(0, 0.0), (values.len(), 0.0)];
    loop {
        let segments: Vec<&[f64]> = bounds.windows(2).map(|ends| &values[ends[0].0..ends[1].0]).collect();
        let splits = segments
            .iter()
            .enumerate()
            .filter_map(|(number, segment)| Some((number, energy::split(segment)?)));
        let Some((number, found)) = splits.max_by(|one, other| one.1.statistic.total_cmp(&other.1.statistic))
        else {
            break;
        };
        let Some(p) = significance(&segments, &found, &mut random) else { break };
        bounds.insert(number + 1, (bounds[number].0 + found.index, p));
    }
    bounds
        .windows(3)
        .map(|around| {
            let [(start, _), (index, p), (end, _)] = [around[0], around[1], around[2]];
            let (before, after) = (&values[start..index], &values[index..end]);
            ChangePoint { index, before: mean(before), after: mean(after), change: change(before, after), p }
        })
        .collect()
}

/// The share of random orders within the segments in which the best split of all is as good as the one found, that
/// itself counted; `None` as soon as it is known to be above the significance.
fn significance(segments: &[&[f64]], found: &Split, random: &mut Pcg64) -> Option<f64> {
    let orders = (PERMUTATIONS + 1) as f64;
    let mut shuffled: Vec<Vec<f64>> = segments.iter().map(|segment| segment.to_vec()).collect();
    let mut as_good = 1.0;
    for _ in 0..PERMUTATIONS {
        let best = shuffled.iter_mut().filter_map(|segment| {
            segment.shuffle(random);
            energy::split(segment)
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

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
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
