//! Feeders: their queries are looked at when they are defined, and read before a run.

mod check;
mod role_session;
mod rows;

pub use check::{check_new, check_select, schema_of};
pub use role_session::{read, read_as, read_lent};
pub use rows::{RowLimit, RunFeeders, Take, collect, not_text};
