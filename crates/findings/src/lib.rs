//! From a run's series to sentences with figures.
//!
//! False alarms matter more than completeness, because a reader of three false alarms does not read the fourth. So
//! every finding has a threshold above noise; a finding that depends on size and not on chance also has a threshold of
//! relevance.

#![forbid(unsafe_code)]

mod all;
mod cache;
mod dips;
mod driver;
mod duel;
mod finding;
mod fixture;
mod intervals;
mod latency;
mod nodes;
mod outage;
mod outcome;
mod plans;
pub mod preflight;
mod processors;
mod replication;
mod server;
mod shape;
mod tables;
mod unjudged;
pub mod wait_events;
mod waits;
mod writes;

pub use all::findings;
pub use outcome::UNSENT;

#[cfg(test)]
mod tests;
