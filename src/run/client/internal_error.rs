//! What this project assumes of itself, and the error where it is wrong.

use std::ffi::CString;

use bench_base::error::{SqlError, sqlstate};

/// A text for the server.
pub fn text(string: &str) -> Result<CString, SqlError> {
    CString::new(string).map_err(internal)
}

/// An error in what this project assumes of itself.
pub fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(sqlstate::INTERNAL_ERROR, error.to_string())
}
