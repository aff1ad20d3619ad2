//! bench.capture_log: transactions of the server's log become a mix of workloads.

mod other_roles;
pub mod sampling;
mod save;
mod source;
mod table;

pub use save::{CaptureLine, NO_REPLAY, StatementCounts, keep, *};
pub use source::{LogPosition, LogSource, obstacle_of_stderr};
pub use table::Read;
