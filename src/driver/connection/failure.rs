//! The errors of connections that cannot be made, or are lost.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Address, HostAddress};

use super::address::SOCKETS;

/// The error for a connection that cannot be made, or is lost, in libpq's words.
pub fn failed(to: &HostAddress, reason: impl ToString) -> UserError {
    failed_by(to, UserError::new(sqlstate::CONNECTION_FAILURE, without_number(&reason)))
}

/// A reason as the system says it, without the number that Rust adds.
pub(super) fn without_number(reason: &impl ToString) -> String {
    reason.to_string().split(" (os error ").next().unwrap_or_default().to_owned()
}

/// An error of a connection that cannot be made, with the server's place before it.
pub fn failed_by(to: &HostAddress, error: UserError) -> UserError {
    let address = match &to.address {
        Address::Tcp(address) => Some(address.ip()),
        Address::Unix(_) => None,
    };
    to.host.failed(address, SOCKETS, error)
}
