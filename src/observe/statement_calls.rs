//! What pg_stat_statements has counted of a run's statements. Its function runs as the run's role, which sees the
//! identifiers of its own statements.

use std::ffi::CStr;

use bench_core::error::UserError;
use bench_core::spec::RunSpec;
use pgrx::pg_sys;

use crate::server::guc::current;
use crate::server::roles::as_run_role;
use crate::server::set_function::SetFunction;

/// The extension and its function.
const PG_STAT_STATEMENTS: &str = "pg_stat_statements";

/// Columns that are read, by their names: their places differ by version. Before 1.9 there is no toplevel.
const COLUMNS: [&CStr; 5] = [c"userid", c"dbid", c"toplevel", c"queryid", c"calls"];

/// Calls of the run's statements by its role, in all of its sessions and before the run as well; `None` where nobody counts.
///
/// # Errors
/// What pg_stat_statements says, as when its library is not loaded.
pub fn of_run(spec: &RunSpec, query_ids: &[i64]) -> Result<Option<i64>, UserError> {
    // The parameter is there where the library is loaded.
    if query_ids.is_empty() || current("pg_stat_statements.max").is_none() {
        return Ok(None);
    }
    let Some(function) = SetFunction::find(PG_STAT_STATEMENTS)? else { return Ok(None) };
    let mut sum = 0;
    let is_read = as_run_role(pg_sys::Oid::from(spec.role_oid), || {
        function.for_each_row(COLUMNS, |row| {
            // Another role's identifier is NULL.
            let [Some(user), Some(database), Some(toplevel), Some(id), Some(calls)] = row else { return };
            let is_of_run = user.value() as u32 == spec.role_oid
                && database.value() as u32 == spec.database_oid
                && toplevel.value() != 0;
            if is_of_run && query_ids.binary_search(&(id.value() as i64)).is_ok() {
                sum += calls.value() as i64;
            }
        })
    })?;
    Ok(is_read.then_some(sum))
}
