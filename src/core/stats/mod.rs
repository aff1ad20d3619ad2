//! What a run's latencies are summarised in, and what its series are judged by.

pub mod histogram;
pub mod moments;
pub mod robust;
pub mod rotation;
pub mod steady;
pub mod trend;

pub use histogram::Histogram;
pub use moments::Moments;
