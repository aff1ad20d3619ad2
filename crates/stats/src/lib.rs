//! Statistics: summaries of a run's latencies, tests of its series, and comparisons of several runs. A crate of its own, so
//! that its simulations alone are optimised for tests.

#![forbid(unsafe_code)]

pub mod change_points;
pub mod coarse_histogram;
pub mod compare;
pub mod duel;
pub mod estimate;
pub mod histogram;
pub mod moments;
mod resample;
pub mod robust;
pub mod rotation;
pub mod scalability;
pub mod screen;
pub mod steady;
pub mod trend;
pub mod two_stage;
pub mod until_steady;
pub mod variation;

pub use estimate::Estimate;
pub use histogram::Histogram;
pub use moments::Moments;

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
