//! A run's workers: its coordinator, and a client for each session of the workload.

mod arms;
pub mod client;
pub mod coordinator;
mod log;
mod preparer;
mod run_part;
pub mod run_status;
mod sampler;
mod statement_lines;
pub mod statements;
mod timed_wait;
pub mod variables;
mod xid_watch;
