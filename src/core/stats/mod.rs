//! What a run's latencies are summarised in.

pub mod histogram;
pub mod moments;

pub use histogram::Histogram;
pub use moments::Moments;
