//! The wire driver: the clients of a run are connections, which jobs share. A job is a worker without a connection to a
//! database of its own; it waits for all of its connections at once, as a thread of pgbench does.

mod arms;
mod cancels;
mod closing_links;
mod connection;
mod disconnects;
pub mod job;
mod open_files;
pub mod script_check;
mod shared;

use bench_base::error::UserError;
use bench_protocol::foreign_server::Secrets;

use crate::error::internal;
use crate::shm::Header;

/// What the run's connections let themselves in with, as long as it is there; those of arm b in a duel of two targets with
/// the second.
///
/// # Errors
/// None that is expected.
pub fn secrets(header: &Header) -> Result<[Secrets; 2], UserError> {
    let secrets = header.secret.get().map_or(Ok(Default::default()), |json| serde_json::from_str(&json));
    secrets.map_err(|error| internal(error.to_string()))
}
