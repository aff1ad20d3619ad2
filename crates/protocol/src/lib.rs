//! One connection's side of PostgreSQL's protocol 3, without the connection: bytes in, events out, bytes to send.
//!
//! A [`WireSession`] has no socket, no clock and no thread. Its owner sends what [`WireSession::output`] holds, gives
//! [`WireSession::receive`] what comes in, cut in any way, and asks for the [`CommandOutcome`] of a command when all of it has been
//! answered. Commands are the messages that libpq sends for pgbench, byte for byte; messages and authentication are
//! those of the crate `postgres-protocol`. Rows are passed over as they come in: only what `\gset` and `\aset` need is
//! kept, and no memory is reserved for a length before its bytes are here.
//!
//! Nothing that a server sends is kept without a limit:
//!
//! | what | limit | beyond it |
//! |---|---|---|
//! | results that are kept of a command | [`MAX_CAPTURED`](bench_script::MAX_CAPTURED) bytes | 54000 |
//! | columns of such a result | [`MAX_COLUMNS`](bench_script::MAX_COLUMNS) | 54000 |
//! | results of a command | one for each statement | 08P01 |
//! | texts of an error | [`MAX_TEXT`](MAX_TEXT) bytes each | cut |
//! | settings that are kept | four, of 30,000 bytes | 08P01 |
//! | requests for authentication | 2,000 bytes, one for a password | 08P01 |
//! | notices, notifications, rows that nobody wants | none is kept | passed over |
#![forbid(unsafe_code)]

mod authentication;
pub mod foreign_server;
mod report;
mod session;
#[cfg(test)]
mod tests;
pub mod tls;

pub use crate::authentication::{
    Startup, cancel_request, encryption_accepted, encryption_request, is_startup_word,
};
pub use crate::session::{
    CommandOutcome, FLUSH_THRESHOLD, ResultWatcher, SessionEvent, TransactionStatus, WireSession,
};
