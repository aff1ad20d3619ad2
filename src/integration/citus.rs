//! Citus 11.1 or newer (<https://github.com/citusdata/citus>).

use bench_core::error::{UserError, sqlstate};

use crate::catalog::fetch;

/// Whether this database has Citus.
pub fn is_installed() -> Result<bool, UserError> {
    let created = "SELECT true FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'citus'::pg_catalog.name";
    Ok(fetch::<bool>(created, &[])?.is_some())
}

/// # Errors
/// 55000 where this database has no Citus.
pub fn check_installed(what: &str) -> Result<(), UserError> {
    if is_installed()? {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("{what} needs extension \"citus\", which this database does not have"),
    )
    .hint("Install Citus from its packages, put citus first in shared_preload_libraries, restart the server, and CREATE EXTENSION citus."))
}
