//! `pgbench_ext.max_clients_per_role`: how many clients, and workers of loads and sweeps, a role may have at a time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bench_base::error::{UserError, sqlstate};
use pgrx::GucSetting;

use crate::server::guc;
use crate::server::roles::{current_role_oid, superuser};
use crate::store;

static MAX: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Whether this session began with a value that the server refused when the library was loaded. A value in the connection's
/// options hides those of the server, the database and the role, so the limit is unknown then.
static IS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// Defines the parameter. Only superusers set it, for the whole server, a database or a role.
pub fn define() {
    let is_refused = guc::define_limit(
        c"pgbench_ext.max_clients_per_role",
        c"Sets the maximum number of clients of a role in all of its active runs.",
        c"Workers of its loads and sweeps count as well. Superusers have no limit. 0: no limit.",
        &MAX,
    );
    IS_HIDDEN.store(is_refused, Relaxed);
}

/// The limit of the current role; `None` where it has none.
///
/// # Errors
/// 42501 where this session's connection has tried to set it.
pub fn limit() -> Result<Option<u64>, UserError> {
    if superuser() {
        return Ok(None);
    }
    if IS_HIDDEN.load(Relaxed) {
        let message = "permission denied to set parameter \"pgbench_ext.max_clients_per_role\"";
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail("This session began with a value that the server refused, so the role's limit is unknown here.")
            .hint(
                "Connect without this parameter in PGOPTIONS and in the connection string. If it is not there, a superuser \
                 has set an invalid value for the server, the database or the role.",
            ));
    }
    Ok(u64::try_from(MAX.get()).ok().filter(|&limit| limit > 0))
}

/// # Errors
/// 53300 where so many more would be too many for the current role; those of [`limit`].
pub fn check(more: u64) -> Result<(), UserError> {
    limit()?.map_or(Ok(()), |limit| store::check_clients(current_role_oid(), more, limit))
}

/// How many more the current role may have; `None`: any number.
///
/// # Errors
/// Those of [`limit`].
pub fn room() -> Result<Option<u64>, UserError> {
    let left = |limit: u64| Ok(limit.saturating_sub(store::clients_of(current_role_oid())?));
    limit()?.map(left).transpose()
}
