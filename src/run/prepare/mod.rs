//! From the arguments of a call to a leader that has been started: what they mean here, what can be found wrong before any
//! worker is started, the segment, and the wait of the session that asked.

pub mod default_clients;
mod duel;
mod mixes;
pub mod preflight;
pub mod run;
pub mod run_part;
pub mod run_progress;
pub mod sessions;
pub mod settings;
pub mod under_way;
pub mod workload;
