//! Statements of pg_stat_statements as workloads: which are kept, and why the others are not.

mod other_roles;
mod selection;

pub use selection::*;
