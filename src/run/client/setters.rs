//! The settings of a run, with the roles with whose rights a client's session sets them.

use std::ffi::CString;

use bench_base::error::SqlError;
use bench_model::spec::RunSpec;
use pgrx::pg_sys;

use super::internal_error::text;
use crate::guard::parameters::setter;
use crate::server::roles::current_role_oid;
use crate::server::transaction::transaction;

/// Settings of a run, each with the role with whose rights it is set.
///
/// # Errors
/// 42501 for what no caller sets in other roles' sessions.
pub fn with_setters(
    spec: &RunSpec,
    settings: &[(String, String)],
) -> Result<Vec<(CString, CString, pg_sys::Oid)>, SqlError> {
    let own = current_role_oid();
    let found = |(name, value): &(String, String)| -> Result<_, SqlError> {
        let setter = match &spec.caller {
            Some(caller) => transaction(|| setter(name, Some(caller)))?,
            None => own,
        };
        Ok((text(name)?, text(value)?, setter))
    };
    settings.iter().map(found).collect()
}
