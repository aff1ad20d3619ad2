//! One connection's side of PostgreSQL's protocol 3, without the connection: bytes in, events out, bytes to send.
//!
//! A [`Session`] has no socket, no clock and no thread. Its owner sends what [`Session::output`] holds, gives
//! [`Session::receive`] what comes in, cut in any way, and asks for the [`Outcome`] of a command when all of it has been
//! answered. Commands are the messages that libpq sends for pgbench, byte for byte; messages and authentication are
//! those of the crate `postgres-protocol`. Rows are passed over as they come in: only what `\gset` and `\aset` need is
//! kept, and no memory is reserved for a length before its bytes are here.

mod authentication;
mod report;
mod session;
mod startup;
pub mod tls;

pub use session::{Event, FLUSH_THRESHOLD, Outcome, Session, Status};
pub use startup::{Startup, cancel_request, encryption_accepted, encryption_request};

use crate::error::{UserError, sqlstate};

/// The error for a server that does not keep to the protocol.
fn violation(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::PROTOCOL_VIOLATION, message)
}

/// A byte of a message as it is shown to a user.
fn shown(tag: u8) -> String {
    if tag.is_ascii_graphic() { format!("\"{}\"", char::from(tag)) } else { format!("0x{tag:02x}") }
}

#[cfg(test)]
mod tests;
