//! The coordinator: one background worker per run, to which the run belongs. It writes the run's
//! row, launches the clients, opens the gate, writes a sample for each interval, and closes.

mod close;
mod duel;
pub mod log;
pub mod run_part;
pub mod run_status;
mod run_under_way;
pub mod sampler;
pub mod statement_lines;
mod stop;
mod warmup;
pub mod xid_watch;

pub use run_under_way::KIND;
