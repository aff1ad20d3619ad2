//! Reading the server and the machine from the coordinator: what the clients wait for, what the server writes,
//! what the processors do, before, during and after a run.

pub mod audit;
pub mod context_switches;
pub mod counters;
pub mod environment;
pub mod events;
pub mod machine;
pub mod node;
pub mod observer;
pub mod probes;
pub mod relations;
pub mod server;
pub mod situation;
pub mod statement_calls;
pub mod target;
pub mod target_statements;
pub mod waits;

pub use observer::{Observed, Observer};
