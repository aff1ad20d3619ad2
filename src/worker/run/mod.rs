//! A run's workers: its coordinator, and a client for each session of the workload.

pub mod client;
pub mod coordinator;
mod log;
mod part;
mod pause;
mod preparer;
mod sampler;
mod statement_lines;
pub mod statements;
pub mod variables;
pub mod verdict;
mod xids;
