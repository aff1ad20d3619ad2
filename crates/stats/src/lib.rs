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
mod values;
pub mod variation;

pub use estimate::Estimate;
pub use histogram::Histogram;
pub use moments::Moments;
pub use values::{mean, of_logarithms, parts};
