//! Running a compiled script inside a backend: plans, transactions, errors.

mod analysis;
mod bulk;
mod conditions;
mod lists;
pub mod parameters;
mod plans;
mod raw;
mod results;
mod scans;
mod session;
mod statement;
mod trap;
mod trial;
pub mod unserved;

pub use bulk::Rows;
pub use plans::Book;
pub use session::Session;
pub use statement::{Statement, Traits, Unprepared};
pub use trap::Log;
pub use trial::{Plans, Trial};
