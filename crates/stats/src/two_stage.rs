//! How many values make a mean as sure as it is to be.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::of_logarithms;

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
    use rand::RngExt;
    use rand_pcg::Pcg64;

    use super::*;

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
