//! What is wrong: by the server's ErrorResponse, or with a server that does not keep to the protocol.

use bench_base::error::{SqlError, UserError, pack, sqlstate};
use bench_base::untrusted;

/// As much of an ErrorResponse message is taken up, in bytes: four texts of [`untrusted::MAX_TEXT`] and the short fields.
/// The rest is passed over.
pub(crate) const MAX_ERROR: usize = 32_768;

/// An error of the server's.
pub(crate) struct ErrorReport {
    pub error: SqlError,
    /// FATAL or PANIC: the server ends the session.
    pub is_fatal: bool,
}

impl ErrorReport {
    /// Reads the body of an ErrorResponse message, or its beginning, where `left_out` bytes were not taken up: the fields of
    /// "Error and Notice Message Fields" in the manual.
    ///
    /// # Errors
    /// 08P01 for one whose fields are not whole.
    pub fn new(body: &[u8], left_out: usize) -> Result<Self, UserError> {
        let mut error = SqlError { sqlstate: pack(sqlstate::INTERNAL_ERROR), ..SqlError::default() };
        let (mut severity, mut localized) = (None, None);
        let mut rest = body;
        loop {
            let (kind, value, left_out) = match rest.split_first() {
                Some((0, _)) => break,
                Some((kind, value)) => match value.iter().position(|&byte| byte == 0) {
                    Some(end) => {
                        rest = &value[end + 1..];
                        (*kind, &value[..end], 0)
                    }
                    None if left_out > 0 => {
                        rest = &[0];
                        (*kind, value, left_out)
                    }
                    None => return Err(unended()),
                },
                None if left_out > 0 => break,
                None => return Err(unended()),
            };
            let text = || untrusted::text(value, left_out);
            match kind {
                b'V' => severity = Some(value),
                b'S' => localized = Some(value),
                b'C' if is_sqlstate(value) => error.sqlstate = pack(&text()),
                b'M' => error.message = text(),
                b'D' => error.detail = Some(text()),
                b'H' => error.hint = Some(text()),
                b'P' => error.position = text().parse().unwrap_or(0),
                b'W' => error.context = Some(text()),
                _ => {}
            }
        }
        // Poolers send the severity in one of its forms only.
        let severity = severity.or(localized).unwrap_or_default();
        Ok(Self { error, is_fatal: severity == b"FATAL" || severity == b"PANIC" })
    }
}

fn unended() -> UserError {
    violation("invalid ErrorResponse message of the server").detail("It has no end.")
}

fn is_sqlstate(bytes: &[u8]) -> bool {
    bytes.len() == 5 && bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// The error for a server that does not keep to the protocol.
pub fn violation(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::PROTOCOL_VIOLATION, message)
}

/// A byte of a message as it is shown to a user.
pub fn shown(tag: u8) -> String {
    if tag.is_ascii_graphic() { format!("\"{}\"", char::from(tag)) } else { format!("0x{tag:02x}") }
}
