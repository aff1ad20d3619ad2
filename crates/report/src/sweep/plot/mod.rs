//! The plots of a sweep: throughput and latency over the number of clients, or, where there is but one number of
//! them, by variant.

mod capacity;
mod figures;
mod latency;
mod layout;
mod marks;
mod screen;
mod throughput;

pub use figures::figures;
