//! The charts of a sweep: throughput and latency over the number of clients, or, where there is but one number of
//! them, by variant; of a search latency over the rate, and of a screen the effects.

mod capacity;
mod charts;
mod latency;
mod layout;
mod screen;
mod throughput;

pub use charts::charts;
