//! The charts of a sweep: throughput and latency over the number of clients, or, where there is but one number of
//! them, by variant; of a search latency over the rate, of a screen the effects,
//! and of two sides their ratios, their throughput over time and their latencies.

mod capacity;
mod charts;
mod comparison;
mod latency;
mod layout;
mod screen;
mod throughput;

pub use charts::charts;
