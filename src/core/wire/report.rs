//! ErrorResponse: what the server says of an error.

use std::io;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorFields, Message};

use super::violation;
use crate::error::{SqlError, UserError, pack, sqlstate};

/// An error of the server's.
pub(super) struct Report {
    pub error: SqlError,
    /// FATAL or PANIC: the server ends the session.
    pub is_fatal: bool,
}

impl Report {
    /// Reads an ErrorResponse message.
    ///
    /// # Errors
    /// 08P01 for one whose fields are not whole.
    pub fn new(message: &[u8]) -> Result<Self, UserError> {
        let wrong = |error: io::Error| {
            violation("invalid ErrorResponse message of the server").detail(format!("{error}."))
        };
        match Message::parse(&mut BytesMut::from(message)).map_err(wrong)? {
            Some(Message::ErrorResponse(body)) => Self::of_fields(body.fields()).map_err(wrong),
            _ => Err(violation("expected an ErrorResponse message of the server")),
        }
    }

    /// The fields of "Error and Notice Message Fields" in the manual.
    fn of_fields(mut fields: ErrorFields) -> io::Result<Self> {
        let mut error = SqlError { sqlstate: pack(sqlstate::INTERNAL_ERROR), ..SqlError::default() };
        let (mut severity, mut localized) = (None, None);
        while let Some(field) = fields.next()? {
            let bytes = field.value_bytes();
            let text = || String::from_utf8_lossy(bytes).into_owned();
            match field.type_() {
                b'V' => severity = Some(bytes.to_vec()),
                b'S' => localized = Some(bytes.to_vec()),
                b'C' if is_sqlstate(bytes) => error.sqlstate = pack(&text()),
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

fn is_sqlstate(bytes: &[u8]) -> bool {
    bytes.len() == 5 && bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}
