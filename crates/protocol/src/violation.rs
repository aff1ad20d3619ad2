//! What is wrong with a server that does not keep to the protocol.

use bench_base::error::{UserError, sqlstate};

/// The error for a server that does not keep to the protocol.
pub fn violation(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::PROTOCOL_VIOLATION, message)
}

/// A byte of a message as it is shown to a user.
pub fn shown(tag: u8) -> String {
    if tag.is_ascii_graphic() { format!("\"{}\"", char::from(tag)) } else { format!("0x{tag:02x}") }
}
