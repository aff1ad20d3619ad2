//! bench.capture_log: transactions of the server's log become a mix of workloads.

mod capture;
mod messages;
mod other_roles;
pub mod sampling;
mod save;
mod source;
mod table;
mod table_rows;
mod zones;

pub use capture::*;
pub use messages::Read;
pub use save::{CaptureLine, NO_REPLAY, StatementCounts, keep};
pub use source::{LogPosition, LogSource, obstacle_of_stderr};
