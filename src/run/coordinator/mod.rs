//! The coordinator: one background worker per run, to which the run belongs. It writes the run's
//! row, launches the clients, opens the gate, writes a sample for each interval, and closes.

pub mod close;
mod duel;
pub mod run_status;
mod run_under_way;
pub mod sampler;
mod stop;

pub use run_under_way::KIND;
