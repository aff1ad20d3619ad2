//! Running a compiled script inside a backend: plans, transactions, errors.

mod analysis;
mod bulk;
mod conditions;
pub mod hidden_indexes;
mod lists;
pub mod parameters;
mod plans;
mod raw;
mod results;
mod scans;
mod session;
mod statement;
mod trap;
mod trial_statement;
pub mod unsupported_settings;

pub use bulk::BulkRows;
pub use plans::StatementStats;
pub use session::Session;
pub use statement::{PreparedStatement, Traits, Unprepared};
pub use trap::Log;
pub use trial_statement::{PlanKind, TrialStatement};
