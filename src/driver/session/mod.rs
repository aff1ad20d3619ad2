//! Running a compiled script inside a backend: plans, transactions, errors.

pub mod analysis;
pub mod client_session;
mod conditions;
pub mod hidden_indexes;
pub mod nested_plans;
pub mod plans;
pub mod raw;
pub mod results;
mod scans;
mod statement;
mod statement_timeout;
pub mod trap;
pub mod unsupported_settings;

pub use client_session::Session;
pub use plans::StatementStats;
pub use statement::{PreparedStatement, Traits, Unprepared};
pub use trap::Log;
