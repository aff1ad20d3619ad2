//! Feeders: their queries are looked at when they are defined, and read before a run.

mod check;
mod other_roles;
mod rows;

pub use check::{check_new, check_select};
pub use other_roles::{read, read_as};
pub use rows::{RowLimit, RunFeeders, Take, collect, not_text};
