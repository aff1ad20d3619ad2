//! Reading the server from the coordinator.

pub mod counters;
