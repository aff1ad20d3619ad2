//! Runs the statements of a compiled script inside a backend.

pub mod analysis;
pub mod client_session;
pub mod plans;
pub mod raw;
pub mod results;
mod statement;
pub mod unsupported_settings;
pub mod watch;

pub use client_session::Session;
pub use plans::StatementStats;
pub use raw::Log;
pub use statement::{PreparedStatement, Traits, Unprepared};
