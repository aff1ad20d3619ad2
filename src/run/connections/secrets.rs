//! What connections are let in with.

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
