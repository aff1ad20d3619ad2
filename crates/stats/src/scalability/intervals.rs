//! How well the parameters, and what follows from them, are known.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::least_squares::{Law, Solution, squares_with_peak};
use crate::Estimate;

/// Confidence of the intervals, as a fraction.
const CONFIDENCE: f64 = 0.95;
/// Steps of a search for a bound, which ends much sooner.
const MOST_STEPS: usize = 60;
/// A bound is found when the logarithm of clients is known to so much.
const TOLERANCE: f64 = 1e-7;

/// The errors of a solution's parameters, linearised at the solution, where a point's TPS is shaken in proportion to
/// its level: with X the curve at the points, J its Jacobian and C = (JᵀJ)⁻¹, the covariance of the parameters is
/// s² C Jᵀ X² J C (the sandwich of e.g. Seber & Wild 1989, "Nonlinear Regression", ch. 2). The usual s² C would hold
/// where every TPS is shaken alike; simulated as here, its intervals of the peak's TPS hold the truth in 80 to 92 %.
/// The sandwich's intervals hold it in 93 to 97 %, and in more where the shaking is alike after all, or where σ is at its bound.
pub struct Errors {
    /// (JᵀJ)⁻¹ of the solution.
    inverse: [[f64; 3]; 3],
    covariance: [[f64; 3]; 3],
    /// Student's t of the residuals' degrees of freedom.
    quantile: f64,
}

impl Errors {
    /// The errors of a solution for points (clients, TPS); `None` where too few points are left to judge by.
    pub fn of(solution: &Solution, points: &[(f64, f64)]) -> Option<Self> {
        let law = &solution.law;
        let unscaled = sandwich(solution, points);
        // Each residual is divided by the root of the curve. Divided by the curve itself, residuals of the first rungs
        // would count most, where least squares leave the curve loose; undivided, only residuals of the top would count.
        // A residual's expected square is its own error's, less the share of it and of others' that the curve follows.
        let (mut found, mut expected) = (0.0, 0.0);
        for (clients, tps) in points {
            let (level, gradient) = (law.tps(*clients), law.gradient(*clients));
            let leverage = product(&gradient, &apply(&solution.inverse, &gradient));
            found += (tps - level).powi(2) / level;
            expected +=
                level * (1.0 - 2.0 * leverage) + product(&gradient, &apply(&unscaled, &gradient)) / level;
        }
        let variance = found / expected;
        let quantile =
            StudentsT::new(0.0, 1.0, points.len() as f64 - 3.0).ok()?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
        (expected > 0.0 && variance.is_finite()).then(|| Self {
            inverse: solution.inverse,
            covariance: unscaled.map(|row| row.map(|entry| entry * variance)),
            quantile,
        })
    }

    /// A figure that is not negative, whose derivatives by λ, σ and κ are given, with its interval: the delta method.
    pub fn estimate(&self, value: f64, derivatives: [f64; 3]) -> Estimate {
        let variance = product(&derivatives, &apply(&self.covariance, &derivatives));
        let margin = self.quantile * variance.max(0.0).sqrt();
        Estimate { value, low: (value - margin).max(0.0), high: value + margin }
    }

    /// By how much, in TPS squared, the sum of squares may grow where a figure, whose derivatives are given, is held
    /// elsewhere, for that to lie in the figure's interval. Were every TPS shaken alike with variance s², it would be
    /// t² s²; here s² is the figure's variance by [`Self::estimate`] in units of that by (JᵀJ)⁻¹ (Kent 1982, "Robust
    /// properties of likelihood ratio tests", Biometrika 69).
    pub fn allowance(&self, derivatives: [f64; 3]) -> f64 {
        let variance = |covariance| product(&derivatives, &apply(covariance, &derivatives));
        self.quantile.powi(2) * (variance(&self.covariance) / variance(&self.inverse)).max(0.0)
    }
}

/// Clients at the peak, with the profile interval: all peaks that laws have which leave hardly more squares than the
/// law does (e.g. Bates & Watts 1988, "Nonlinear Regression Analysis and Its Applications", ch. 6). Since the peak
/// is far from linear in σ and κ, the interval is longer above than below. `None` where the law has no peak, or the
/// interval reaches beyond `farthest` clients, as it does where κ may be zero.
pub fn peak(law: &Law, errors: &Errors, points: &[(f64, f64)], farthest: f64) -> Option<Estimate> {
    let value = law.peak().filter(|peak| *peak < farthest)?;
    let derivatives = [0.0, -value / (2.0 * (1.0 - law.sigma)), -value / (2.0 * law.kappa)];
    let allowance = errors.allowance(derivatives);
    let least: f64 = points.iter().map(|(clients, tps)| (law.tps(*clients) - tps).powi(2)).sum();
    // Negative within the interval. Roots are close to linear in the logarithm of the peak.
    let beyond = |peak: f64| {
        let more = squares_with_peak(points, law, peak.exp())? - least;
        Some(more.max(0.0).sqrt() - allowance.sqrt())
    };
    let within = value.ln();
    let (low, high) = (beyond(0.0)?, beyond(farthest.ln())?);
    if high <= 0.0 || !allowance.is_finite() {
        return None;
    }
    let at_value = -allowance.sqrt();
    let high = root((within, at_value), (farthest.ln(), high), beyond)?.exp();
    let low = if low <= 0.0 { 1.0 } else { root((within, at_value), (0.0, low), beyond)?.exp() };
    Some(Estimate { value, low: low.min(value), high: high.max(value) })
}

/// Where a function is zero between two places at which its signs differ: by false position, where the end that stays
/// counts half (the Illinois method; Dowell & Jarratt 1971, BIT 11).
fn root(mut one: (f64, f64), mut other: (f64, f64), function: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    for _ in 0..MOST_STEPS {
        let between = (one.0 * other.1 - other.0 * one.1) / (other.1 - one.1);
        let value = function(between)?;
        if (between - other.0).abs() < TOLERANCE || value == 0.0 {
            return Some(between);
        }
        if (value > 0.0) == (other.1 > 0.0) {
            one.1 /= 2.0;
        } else {
            one = other;
        }
        other = (between, value);
    }
    Some(other.0)
}

/// C Jᵀ X² J C.
fn sandwich(solution: &Solution, points: &[(f64, f64)]) -> [[f64; 3]; 3] {
    let mut sum = [[0.0; 3]; 3];
    for (clients, _) in points {
        let moved = shaken(&solution.law, &solution.inverse, *clients);
        for (row, by) in sum.iter_mut().zip(moved) {
            row.iter_mut().zip(moved).for_each(|(entry, other)| *entry += by * other);
        }
    }
    sum
}

/// By how much the parameters move where a point is off by its whole TPS.
fn shaken(law: &Law, inverse: &[[f64; 3]; 3], clients: f64) -> [f64; 3] {
    apply(inverse, &law.gradient(clients)).map(|moved| moved * law.tps(clients))
}

fn apply(matrix: &[[f64; 3]; 3], vector: &[f64; 3]) -> [f64; 3] {
    matrix.map(|row| product(&row, vector))
}

fn product(one: &[f64; 3], other: &[f64; 3]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
