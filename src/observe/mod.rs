//! Reading the server and the machine from the coordinator: what the clients wait for, what the server writes,
//! what the processors do, before, during and after a run.

pub mod audit;
pub mod counters;
pub mod environment;
pub mod events;
pub mod machine;
pub mod observer;
pub mod target;
pub mod waits;

pub use observer::{Observed, Observer};
