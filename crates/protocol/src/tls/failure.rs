//! Why a connection does not come about.

use bench_base::error::{UserError, sqlstate};
use openssl::error::ErrorStack;

/// The reason that OpenSSL gives, as libpq shows it (SSLerrmessage in fe-secure-openssl.c).
pub fn reason(error: &ErrorStack) -> &str {
    error.errors().first().and_then(|error| error.reason()).unwrap_or("no SSL error reported")
}

/// The error for a connection that does not come about.
pub fn failed(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::UNABLE_TO_CONNECT, message)
}
