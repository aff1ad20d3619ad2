//! Statistics: summaries of a run's latencies, tests of its series, and comparisons of several runs. A crate of its own, so
//! that its simulations alone are optimised for tests.

#![forbid(unsafe_code)]

pub mod change_points;
mod clients;
pub mod compare;
pub mod duel;
pub mod histogram;
pub mod robust;
pub mod rotation;
pub mod scalability;
pub mod screen;
pub mod trend;
pub mod until_steady;
pub mod variation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::clients::clients_for;
pub use crate::histogram::{Histogram, Moments};

/// A figure with the bounds of its confidence interval, in the figure's own unit; of 95 % unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower bound of its 95 % confidence interval.
    pub low: f64,
    /// Upper bound of its 95 % confidence interval.
    pub high: f64,
}

/// The values in so many consecutive parts, whose lengths differ by one at most.
pub fn parts<T>(values: &[T], count: usize) -> impl Iterator<Item = &[T]> {
    (0..count).map(move |part| &values[part * values.len() / count..(part + 1) * values.len() / count])
}

/// Mean and variance of the values' logarithms; the variance is not a number below two.
pub fn of_logarithms(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
    (mean, squares / (count - 1.0))
}

/// The mean of values, of which there is one at least.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
