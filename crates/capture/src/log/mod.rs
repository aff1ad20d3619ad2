//! Transactions of an application, taken from the server's log: sessions and transactions as they were, and scripts by the
//! shape of the transactions.
//!
//! [`LogCapture::take`] gets the messages; those of one session in their order, sessions in any. [`LogCapture::finish`] has the
//! scripts with how often each shape occurred, and what cannot be replayed with the reasons. It is a workload like the
//! logged one, not an exact replay: transactions are drawn at random, whatever session they were in.

mod arguments;
mod casts;
mod class;
mod entry;
mod event;
mod in_block;
mod names;
pub(crate) mod normalise;
mod prefixed;
mod returned;
mod returning;
mod script;
mod session;
mod shapes;
pub(crate) mod tokens;
mod transaction;
mod transactions;
mod zones;

pub use arguments::LogOptions;
pub use casts::{shared, with_casts};
pub use class::{begins_transaction, is_utility};
pub use entry::{CSV_COLUMNS, CsvLog, LogEntry, LogFormat, from_json};
pub use prefixed::{MARK_BYTES, PrefixedLog, line_prefix};
pub use script::{FeederColumn, ThinkTimes};
pub use shapes::{ShapeRow, Skipped};
pub use transactions::*;
pub use zones::OffsetOf;

#[cfg(test)]
mod tests;
