//! The random functions of expressions, with pgbench's numbers, limits and messages.
//!
//! All draw from `[min, max]`. pgbench leaves that range for some parameters – an exponential one so small
//! that `1 - exp(-parameter)` is mostly rounding, or one that is no number – and there the nearest number of
//! the range is given instead.

use std::hint::black_box;

use bench_base::error::UserError;

use super::prng::Prng;
use super::variables::format_fixed;

/// The integers from `min` to `max`, as many as a bigint can count.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntegerRange {
    min: i64,
    max: i64,
}

impl IntegerRange {
    /// # Errors
    /// 22023 if it is empty or has more than 2⁶³ - 1 numbers.
    pub(super) fn new(min: i64, max: i64) -> Result<IntegerRange, UserError> {
        if min > max {
            return Err(UserError::invalid("empty range given to random"));
        }
        if max.checked_sub(min).is_none_or(|difference| difference == i64::MAX) {
            return Err(UserError::invalid("random range is too large"));
        }
        Ok(IntegerRange { min, max })
    }

    /// How many numbers there are, at least one.
    fn count(self) -> i64 {
        self.max - self.min + 1
    }

    /// The number at `fraction`, of `[0, 1)`, of the way from the least to the greatest.
    fn at(self, fraction: f64) -> i64 {
        let offset = (self.count() as f64 * fraction) as i64;
        self.min + offset.clamp(0, self.count() - 1)
    }
}

/// Any number as likely as another (`getrand` in pgbench.c).
#[inline]
pub(super) fn uniform(random: &mut Prng, range: IntegerRange) -> i64 {
    random.int64_range(range.min, range.max)
}

/// Numbers become less likely from the least to the greatest, where the density has fallen to
/// exp(-`parameter`) of the first (`getExponentialRand` in pgbench.c).
///
/// # Errors
/// 22023 for a parameter that is not above 0.
pub(super) fn exponential(random: &mut Prng, range: IntegerRange, parameter: f64) -> Result<i64, UserError> {
    if parameter.is_nan() || parameter <= 0.0 {
        let parameter = format_fixed(parameter);
        return Err(UserError::invalid(format!(
            "exponential parameter must be greater than zero (not {parameter})"
        )));
    }
    let cut = (-parameter).exp();
    let uniform = 1.0 - random.unit_interval();
    Ok(range.at(-(cut + (1.0 - cut) * uniform).ln() / parameter))
}

/// A normal distribution around the middle of the range, whose ends are `parameter` standard deviations away
/// from it (`getGaussianRand` in pgbench.c).
///
/// # Errors
/// 22023 for a parameter below 2.
pub(super) fn gaussian(random: &mut Prng, range: IntegerRange, parameter: f64) -> Result<i64, UserError> {
    const MIN_PARAMETER: f64 = 2.0;
    if parameter.is_nan() || parameter < MIN_PARAMETER {
        let (least, parameter) = (format_fixed(MIN_PARAMETER), format_fixed(parameter));
        return Err(UserError::invalid(format!(
            "gaussian parameter must be at least {least} (not {parameter})"
        )));
    }
    // What lies outside of the range is drawn again: 5 in 100 for the least parameter.
    let deviation = loop {
        let deviation = random.normal();
        if deviation >= -parameter && deviation < parameter {
            break deviation;
        }
    };
    Ok(range.at((deviation + parameter) / (parameter * 2.0)))
}

/// The `k`th number of the range is `k` to the power of `parameter` times less likely than the first
/// (`getZipfianRand` in pgbench.c).
///
/// # Errors
/// 22023 for a parameter outside of 1.001 to 1000.
pub(super) fn zipfian(random: &mut Prng, range: IntegerRange, parameter: f64) -> Result<i64, UserError> {
    const MIN_PARAMETER: f64 = 1.001;
    const MAX_PARAMETER: f64 = 1000.0;
    if !(MIN_PARAMETER..=MAX_PARAMETER).contains(&parameter) {
        let parameter = format_fixed(parameter);
        return Err(UserError::invalid(format!(
            "zipfian parameter must be in range [{MIN_PARAMETER:.3}, {MAX_PARAMETER:.0}] (not {parameter})"
        )));
    }
    Ok(range.min + (zipfian_rank(random, range.count(), parameter) - 1))
}

/// A number of 1 … `count`, by rejection (`computeIterativeZipfian` in pgbench.c, after Devroye, Non-Uniform
/// Random Variate Generation, 1986, pages 550 and 551).
fn zipfian_rank(random: &mut Prng, count: i64, parameter: f64) -> i64 {
    if count <= 1 {
        return 1;
    }
    // Hidden from the compiler, which would otherwise call exp2 where pgbench calls pow.
    let b = black_box(2.0_f64).powf(parameter - 1.0);
    loop {
        let u = random.unit_interval();
        let v = random.unit_interval();
        let x = u.powf(-1.0 / (parameter - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
        if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
            // As a double a large count may have been rounded up.
            return (x as i64).min(count);
        }
    }
}

#[cfg(test)]
mod tests;
