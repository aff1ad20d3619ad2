//! bench.capture_log: transactions of the server's log become a mix of workloads.

mod capture;
mod other_roles;
pub mod sampling;
mod save;
mod source;

pub use capture::*;
pub use save::{CaptureLine, NO_REPLAY, StatementCounts, keep};
pub use source::{LogPosition, LogSource, Read};
