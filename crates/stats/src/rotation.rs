//! What coincides with some stretches of a series more than chance explains.
//!
//! Neighbouring intervals are alike, so a test that takes them for independent finds coincidences everywhere. Here
//! the stretches are turned around the series as on a ring, by every possible shift: that keeps both series'
//! autocorrelation and breaks only what links them (a circular shift surrogate; Andrzejak et al. 2003, "Bivariate
//! surrogate techniques", Phys. Rev. E 68, 066202; Lancaster et al. 2018, "Surrogate data for hypothesis testing of
//! physical systems", Phys. Rep. 748; `CircShift` in https://juliadynamics.github.io/TimeseriesSurrogates.jl).
//! The shift by nothing is one of them, so that no p is 0 (Phipson & Smyth 2010, "Permutation p-values should never
//! be zero"). Each candidate is held against the *best* candidate of every shift, which corrects for the number that
//! is tried (the single-step maxT of Westfall & Young 1993, "Resampling-based multiple testing").

use std::ops::Range;

/// Shifts that are tried at most, evenly spread: the least p is then 0.001, far below what is asked for.
const MOST_SHIFTS: usize = 1000;

/// A series that may coincide, and by how much it has to, wherever the stretches are turned to: a wait of a
/// thousandth of the time explains nothing, however well it coincides.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// One value for each interval.
    pub values: Vec<f64>,
    /// The least difference between its means inside the stretches and outside.
    pub least_rise: f64,
    /// The least ratio of the two.
    pub least_ratio: f64,
}

/// How a candidate behaves in the stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coincidence {
    /// Its mean inside the stretches.
    pub inside: f64,
    /// Its mean outside.
    pub outside: f64,
    /// The point-biserial correlation with being inside, 0 to 1.
    pub correlation: f64,
    /// The share of shifts at which some candidate coincides at least as well.
    pub p: f64,
}

/// A series as a ring: its sums up to each index, twice around, so that a stretch may reach past the end.
pub struct Ring {
    /// How many values there are.
    pub count: usize,
    sums: Vec<f64>,
}

impl Ring {
    /// The ring of a series.
    pub fn new(values: &[f64]) -> Ring {
        let mut sums = Vec::with_capacity(values.len() * 2 + 1);
        let mut sum = 0.0;
        sums.push(sum);
        sums.extend(values.iter().chain(values).map(|value| {
            sum += value;
            sum
        }));
        Ring { count: values.len(), sums }
    }

    /// The sum of so many values, at most all, from a place on, which may lie past the end.
    pub fn sum(&self, from: usize, width: usize) -> f64 {
        let from = from % self.count;
        self.sums[from + width] - self.sums[from]
    }
}

/// A candidate's sums, and what its correlations are made of.
struct DoubledSums {
    ring: Ring,
    total: f64,
    deviation: f64,
}

impl DoubledSums {
    fn new(values: &[f64]) -> DoubledSums {
        let count = values.len() as f64;
        let total: f64 = values.iter().sum();
        let squares: f64 = values.iter().map(|value| (value - total / count).powi(2)).sum();
        DoubledSums { ring: Ring::new(values), total, deviation: (squares / count).sqrt() }
    }

    /// Inside, outside and correlation with the stretches turned by `shift`; the correlation is 0 where the
    /// candidate does not rise enough.
    fn turned(&self, stretches: &[Range<usize>], shift: usize, candidate: &Candidate) -> (f64, f64, f64) {
        let count = candidate.values.len();
        let within: usize = stretches.iter().map(Range::len).sum();
        let sum: f64 =
            stretches.iter().map(|stretch| self.ring.sum(stretch.start + shift, stretch.len())).sum();
        let (inside_count, outside_count) = (within as f64, (count - within) as f64);
        let inside = sum / inside_count;
        let outside = (self.total - sum) / outside_count;
        let rises = inside - outside >= candidate.least_rise && inside >= outside * candidate.least_ratio;
        let balance = (inside_count * outside_count).sqrt() / count as f64;
        let correlation = (inside - outside) / self.deviation * balance;
        let correlation = if rises && correlation.is_finite() { correlation.max(0.0) } else { 0.0 };
        (inside, outside, correlation)
    }
}

/// How each candidate coincides with the stretches, which must be disjoint; `None` for one that does not rise enough
/// in them, and for all if the stretches cover nothing, everything, or more than the series.
pub fn coincidences(
    length: usize,
    stretches: &[Range<usize>],
    candidates: &[Candidate],
) -> Vec<Option<Coincidence>> {
    let within: usize = stretches.iter().map(Range::len).sum();
    let fit = stretches.iter().all(|stretch| stretch.end <= length)
        && candidates.iter().all(|candidate| candidate.values.len() == length);
    if !fit || within == 0 || within >= length {
        return vec![None; candidates.len()];
    }
    let rings: Vec<DoubledSums> =
        candidates.iter().map(|candidate| DoubledSums::new(&candidate.values)).collect();
    let shifts = length.min(MOST_SHIFTS);
    let best: Vec<f64> = (0..shifts)
        .map(|number| {
            let shift = number * length / shifts;
            let correlations =
                rings.iter().zip(candidates).map(|(ring, of)| ring.turned(stretches, shift, of).2);
            correlations.fold(0.0, f64::max)
        })
        .collect();
    rings
        .iter()
        .zip(candidates)
        .map(|(ring, candidate)| {
            let (inside, outside, correlation) = ring.turned(stretches, 0, candidate);
            // Sums of other intervals in another order may differ in their last digits.
            let as_good = best.iter().filter(|&&best| best >= correlation - 1e-9).count();
            let p = as_good as f64 / shifts as f64;
            (correlation > 0.0).then_some(Coincidence { inside, outside, correlation, p })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidate(values: Vec<f64>) -> Candidate {
        Candidate { values, least_rise: 0.1, least_ratio: 1.0 }
    }

    fn within(length: usize, stretch: Range<usize>, candidates: &[Candidate]) -> Vec<Option<Coincidence>> {
        coincidences(length, std::slice::from_ref(&stretch), candidates)
    }

    #[test]
    fn one_that_fills_the_stretches_is_the_best_of_all_shifts() {
        let mut values = vec![0.0; 60];
        values[20..25].fill(1.0);
        let found = within(60, 20..25, &[candidate(values)])[0].unwrap();
        assert_eq!((found.inside, found.outside), (1.0, 0.0));
        assert!((found.correlation - 1.0).abs() < 1e-12 && (found.p - 1.0 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn one_that_lies_beside_them_or_is_too_small_is_none() {
        let mut beside = vec![0.0; 60];
        beside[30..35].fill(1.0);
        let mut small = vec![0.0; 60];
        small[20..25].fill(0.05);
        assert_eq!(within(60, 20..25, &[candidate(beside), candidate(small)]), [None, None]);
    }

    #[test]
    fn one_that_rises_as_much_elsewhere_is_chance() {
        let values = (0..60).map(|index| if index % 6 < 3 { 1.0 } else { 0.0 }).collect();
        let found = within(60, 24..27, &[candidate(values)])[0].unwrap();
        assert!(found.p > 0.1, "{found:?}");
    }

    #[test]
    fn stretches_that_leave_nothing_to_compare_with_tell_nothing() {
        assert_eq!(within(3, 0..3, &[candidate(vec![1.0; 3])]), [None]);
        assert_eq!(coincidences(3, &[], &[candidate(vec![1.0; 3])]), [None]);
        assert_eq!(within(3, 2..5, &[candidate(vec![1.0; 3])]), [None]);
    }

    proptest! {
        /// Turning a series and the stretches alike changes nothing.
        #[test]
        fn where_it_begins_does_not_matter(
            values in prop::collection::vec(0.0..1.0f64, 20..60), start in 0..10usize, shift in 0..8usize,
        ) {
            let stretch = start..start + 3;
            let mut turned = values.clone();
            turned.rotate_right(shift);
            let here = within(values.len(), stretch, &[candidate(values.clone())]);
            let there = within(values.len(), start + shift..start + shift + 3, &[candidate(turned)]);
            match (here[0], there[0]) {
                (Some(here), Some(there)) => prop_assert!((here.p - there.p).abs() < 1e-9),
                (None, None) => {}
                // Only rounding at the very limit may tell them apart.
                (here, there) => prop_assert!(here.or(there).unwrap().inside - here.or(there).unwrap().outside < 0.1 + 1e-9),
            }
        }
    }
}
