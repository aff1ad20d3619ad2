//! How much equal runs vary, whether they are independent of each other, and how many make a mean as sure as it is to be.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

use crate::{Estimate, of_logarithms};

/// The coefficient of variation, standard deviation / mean, with the interval that holds it with the confidence (0 to 1):
/// Vangel's modification of McKay's (Vangel 1996, "Confidence intervals for a normal coefficient of variation", The
/// American Statistician 50), which is good below 1/3; infinite where it has no upper limit. `None` for less than two values, or a mean that is not positive.
pub fn coefficient(values: &[f64], confidence: f64) -> Option<Estimate> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let freedom = count - 1.0;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom;
    let value = variance.sqrt() / mean;
    if !(value.is_finite() && mean > 0.0) {
        return None;
    }
    let chi_squared = ChiSquared::new(freedom).ok()?;
    let end = |p: f64| {
        let quantile = chi_squared.inverse_cdf(p);
        let squared = ((quantile + 2.0) / count - 1.0) * value * value + quantile / freedom;
        // Few values that vary by more than the method is good for have no upper limit.
        if squared > 0.0 { value / squared.sqrt() } else { f64::INFINITY }
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(Estimate { value, low: end(1.0 - tail), high: end(tail) })
}

/// Values up to which the probability of a drift is exact: the work grows with their fourth power.
const MOST_EXACT: usize = 100;

/// Kendall's τ of the values with their order: 1 where each is greater than all before it, -1 where each is smaller.
/// With it the probability, two-sided, of one so far from 0 where there is no drift (Mann 1945, "Nonparametric tests against
/// trend", Econometrica 13): exact without ties up to [`MOST_EXACT`] values, beyond by the normal approximation. `None` for
/// less than two values.
pub fn drift(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    if count < 2 {
        return None;
    }
    let pairs = count * (count - 1) / 2;
    let later = |index: usize| &values[index + 1..];
    let sum = |is: fn(f64, f64) -> bool| -> usize {
        (0..count).map(|index| later(index).iter().filter(|&&value| is(values[index], value)).count()).sum()
    };
    let (rising, falling) = (sum(|one, other| one < other), sum(|one, other| one > other));
    let tau = (rising as f64 - falling as f64) / pairs as f64;
    let concordance = rising.abs_diff(falling);
    if count > MOST_EXACT {
        let size = count as f64;
        let deviation = (size * (size - 1.0) * (2.0 * size + 5.0) / 18.0).sqrt();
        // Every other number is possible, so that half of the distance between them belongs to each.
        let distance = (concordance as f64 - 1.0).max(0.0) / deviation;
        return Some((tau, 2.0 * Normal::new(0.0, 1.0).ok()?.sf(distance)));
    }
    // Shares of all orders by their number of falling pairs, a value more in each step (Mahonian numbers).
    let mut shares = vec![1.0];
    for length in 2..=count {
        let mut next = vec![0.0; shares.len() + length - 1];
        for (inversions, share) in shares.iter().enumerate() {
            next[inversions..inversions + length].iter_mut().for_each(|sum| *sum += share / length as f64);
        }
        shares = next;
    }
    // Of ties, half count on either side.
    let fewer = (pairs - concordance) / 2;
    let tail: f64 = shares[..=fewer].iter().sum();
    Some((tau, (2.0 * tail).min(1.0)))
}

/// The correlation of each value with the one before it, with the limits beyond which it is, of independent values, in 5 %
/// of cases only (Anderson 1942, "Distribution of the serial correlation coefficient", Annals of Mathematical Statistics
/// 13). `None` for less than four values, and where all are equal.
pub fn serial_correlation(values: &[f64]) -> Option<Estimate> {
    let count = values.len() as f64;
    if values.len() < 4 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let two_sided = Normal::new(0.0, 1.0).ok()?.inverse_cdf(0.975);
    let limit = |sign: f64| (sign * two_sided * (count - 2.0).sqrt() - 1.0) / (count - 1.0);
    (squares > 0.0).then(|| Estimate { value: products / squares, low: limit(-1.0), high: limit(1.0) })
}

/// How sure a mean is to be where no number of values is given, as a share to either side: what bench.compare takes as the same.
pub const WITHIN: f64 = 0.02;

/// How sure the interval is.
const CONFIDENCE: f64 = 0.95;

/// How many values there have to be in all, so that the 95 % interval of their geometric mean is at most a share of `within`
/// to either side, by a first part of them; at least as many as there are. `None` with less than three, and where one is
/// not above zero.
///
/// Stein's two stages (1945, "A two-sample test for a linear hypothesis whose power is independent of the variance", Ann.
/// Math. Statist. 16): the number comes from the first part's spread alone, with Student's quantile of its degrees of freedom.
/// So the interval holds the mean in 95 of 100 cases, whatever the spread is. To look after each value whether the interval
/// is narrow enough (Chow & Robbins 1965) takes fewer of them and holds the mean less often, because it stops where the spread
/// happens to look small. The spread of normal values says nothing about their mean, so that comparisons keep their error rates.
pub fn values_needed(first: &[f64], within: f64) -> Option<u32> {
    let needed = (margin_of_one(first)? / within.ln_1p()).powi(2);
    Some((needed.ceil() as u32).max(first.len() as u32))
}

/// How far to either side, as a share, the interval of [`values_needed`] reaches with so many values in all. `None` as there.
pub fn reached(first: &[f64], values: u32) -> Option<f64> {
    Some((margin_of_one(first)? / f64::from(values).sqrt()).exp_m1())
}

/// Half the width of the interval of a single value's logarithm, by the spread of a first part of them.
fn margin_of_one(first: &[f64]) -> Option<f64> {
    if first.len() < 3 || first.iter().any(|value| !(*value > 0.0 && value.is_finite())) {
        return None;
    }
    let (_, variance) = of_logarithms(first);
    let student = StudentsT::new(0.0, 1.0, first.len() as f64 - 1.0).ok()?;
    Some(student.inverse_cdf(0.5 + CONFIDENCE / 2.0) * variance.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    #[test]
    fn the_coefficient_of_variation_has_vangels_interval() {
        // Mean 100, standard deviation 5, n = 10: Vangel's formula with the quantiles of scipy.stats.chi2.
        let spread = 5.0 * (9.0_f64 / 10.0).sqrt();
        let values: Vec<f64> =
            (0..10).map(|index| if index % 2 == 0 { 100.0 + spread } else { 100.0 - spread }).collect();
        let found = coefficient(&values, 0.95).unwrap();
        assert!((found.value - 0.05).abs() < 1e-12);
        assert!(
            (found.low - 0.034_369_363).abs() < 1e-8 && (found.high - 0.091_482_713).abs() < 1e-8,
            "{found:?}"
        );
    }

    #[test]
    fn its_interval_holds_it_as_often_as_it_says() {
        let mut random = Pcg64::seed_from_u64(7);
        let normal = Normal::new(100.0, 4.0).unwrap();
        let mut draw = || normal.inverse_cdf(random.random_range(1e-9..1.0));
        let held = (0..4000)
            .filter(|_| {
                let values: Vec<f64> = (0..10).map(|_| draw()).collect();
                coefficient(&values, 0.95).is_some_and(|cv| cv.low <= 0.04 && 0.04 <= cv.high)
            })
            .count();
        assert!((3740..=3860).contains(&held), "{held} of 4000");
    }

    #[test]
    fn what_has_no_spread_or_no_mean_has_no_coefficient() {
        assert_eq!(coefficient(&[1.0], 0.95), None);
        assert_eq!(coefficient(&[-1.0, 1.0], 0.95), None);
        assert_eq!(coefficient(&[f64::NAN, 1.0], 0.95), None);
        let few = coefficient(&[1.0, 3.0, 5.0, 1.0], 0.95).unwrap();
        assert!(few.low < few.value && few.high == f64::INFINITY, "{few:?}");
        assert_eq!(coefficient(&[2.0, 2.0], 0.95), Some(Estimate { value: 0.0, low: 0.0, high: 0.0 }));
    }

    #[test]
    fn drift_has_kendalls_exact_probability() {
        // Of 120 orders of five values one rises throughout, and one falls.
        let (tau, p) = drift(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((tau - 1.0).abs() < 1e-12 && (p - 2.0 / 120.0).abs() < 1e-12);
        let (tau, p) = drift(&[5.0, 4.0, 3.0, 2.0, 1.0]).unwrap();
        assert!((tau + 1.0).abs() < 1e-12 && (p - 2.0 / 120.0).abs() < 1e-12);
        // scipy.stats.kendalltau(range(1, 9), …, method = "exact").
        let (tau, p) = drift(&[3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0]).unwrap();
        assert!((tau - 0.714_285_7).abs() < 1e-6 && (p - 0.014_136_90).abs() < 1e-6, "{tau} {p}");
        assert_eq!(drift(&[1.0, 1.0, 1.0]), Some((0.0, 1.0)));
        assert_eq!(drift(&[1.0]), None);
    }

    #[test]
    fn many_values_have_the_normal_approximation_of_the_exact_probability() {
        let series = |length: usize| -> Vec<f64> {
            (0..length).map(|index| ((index * 37) % 101) as f64 + index as f64 / 20.0).collect()
        };
        let (few, many) = (drift(&series(MOST_EXACT)).unwrap(), drift(&series(MOST_EXACT + 1)).unwrap());
        assert!(few.1 > 0.05 && (few.1 - many.1).abs() < 0.1, "{few:?} {many:?}");
        let rising: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert_eq!(drift(&rising), Some((1.0, 0.0)));
    }

    proptest! {
        #[test]
        fn a_probability_is_one(values in prop::collection::vec(-1e3..1e3, 2..60)) {
            let (tau, p) = drift(&values).unwrap();
            prop_assert!((-1.0..=1.0).contains(&tau) && (0.0..=1.0).contains(&p));
        }

        #[test]
        fn the_reversed_order_drifts_the_other_way(mut values in prop::collection::vec(-1e3..1e3, 2..40)) {
            let (tau, p) = drift(&values).unwrap();
            values.reverse();
            let (reversed, q) = drift(&values).unwrap();
            prop_assert!((tau + reversed).abs() < 1e-12 && (p - q).abs() < 1e-12);
        }
    }

    #[test]
    fn independent_values_are_seldom_called_dependent() {
        let mut random = Pcg64::seed_from_u64(11);
        let (mut correlated, mut drifting) = (0, 0);
        for _ in 0..4000 {
            let values: Vec<f64> = (0..10).map(|_| random.random::<f64>()).collect();
            let found = serial_correlation(&values).unwrap();
            correlated += usize::from(found.value < found.low || found.value > found.high);
            drifting += usize::from(drift(&values).unwrap().1 < 0.05);
        }
        assert!(correlated <= 240 && drifting <= 240, "{correlated} {drifting} of 4000");
    }

    #[test]
    fn dependent_values_are_called_so() {
        let wave: Vec<f64> = (0..20).map(|index| f64::from(index / 5 % 2)).collect();
        let found = serial_correlation(&wave).unwrap();
        assert!(found.value > found.high, "{found:?}");
        assert_eq!(serial_correlation(&[1.0; 9]), None);
        assert_eq!(serial_correlation(&[1.0, 2.0, 1.0]), None);
    }

    /// Box and Muller's.
    fn normal(random: &mut Pcg64) -> f64 {
        let (radius, angle): (f64, f64) = (random.random(), random.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    #[test]
    fn the_number_is_steins() {
        // Logarithms of 0 and ±0.02: their spread is 0.02, Student's quantile with two degrees of freedom 4.303.
        let first = [-0.02_f64, 0.0, 0.02].map(f64::exp);
        assert_eq!(
            values_needed(&first, 0.02),
            Some(((4.302_653 / 1.02_f64.ln()).powi(2) * 4e-4).ceil() as u32)
        );
        let needed = values_needed(&first, 0.02).expect("a number");
        assert!(reached(&first, needed).is_some_and(|share| share <= 0.02));
        assert!(reached(&first, needed - 1).is_some_and(|share| share > 0.02));
        assert_eq!(values_needed(&[100.0; 5], 0.02), Some(5));
        assert_eq!(values_needed(&[100.0; 2], 0.02), None);
        assert_eq!(values_needed(&[100.0, 0.0, 100.0], 0.02), None);
    }

    #[test]
    fn the_mean_is_within_in_95_of_100_cases() {
        let mut random = Pcg64::new(3, 4);
        for sigma in [0.005, 0.02, 0.05] {
            let (mut held, mut sum) = (0, 0);
            const CASES: u32 = 4000;
            for _ in 0..CASES {
                let mut value = || (sigma * normal(&mut random)).exp();
                let mut values: Vec<f64> = (0..5).map(|_| value()).collect();
                let needed = values_needed(&values, 0.02).expect("a number");
                values.extend((5..needed).map(|_| value()));
                let mean = values.iter().map(|value| value.ln()).sum::<f64>() / f64::from(needed);
                held += u32::from(mean.abs() <= 1.02_f64.ln());
                sum += needed;
            }
            // 95 % has a standard error of 0.35 % here.
            assert!(f64::from(held) / f64::from(CASES) > 0.94, "{sigma}: {held}");
            assert!(sigma > 0.01 || sum == 5 * CASES, "{sigma}: {sum}");
        }
    }
}
