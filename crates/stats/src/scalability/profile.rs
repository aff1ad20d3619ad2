//! Where the peak may lie.

use super::intervals::Errors;
use super::least_squares::{Law, squares_with_peak};
use crate::Estimate;

/// Steps of a search for a bound, which ends much sooner.
const MOST_STEPS: usize = 60;
/// A bound is found when the logarithm of clients is known to so much.
const TOLERANCE: f64 = 1e-7;

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
