//! `pgbench_ext.max_clients_per_role`: how many clients, and workers of loads and sweeps, a role may have at a time.

use bench_base::error::UserError;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

use crate::server::roles::{current_role_oid, superuser};
use crate::store;

static MAX: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Defines the parameter. Only superusers set it, for the whole server, a database or a role.
pub fn define() {
    GucRegistry::define_int_guc(
        c"pgbench_ext.max_clients_per_role",
        c"Sets the maximum number of clients of a role in all of its active runs.",
        c"Workers of its loads and sweeps count as well. Superusers have no limit. 0: no limit.",
        &MAX,
        0,
        i32::MAX,
        GucContext::Suset,
        GucFlags::default(),
    );
}

/// The limit of the current role; `None` where it has none.
pub fn limit() -> Option<u64> {
    let limit = u64::try_from(MAX.get()).ok().filter(|&limit| limit > 0)?;
    (!superuser()).then_some(limit)
}

/// # Errors
/// 53300 where so many more would be too many for the current role.
pub fn check(more: u64) -> Result<(), UserError> {
    limit().map_or(Ok(()), |limit| store::check_clients(current_role_oid(), more, limit))
}

/// How many more the current role may have; `None`: any number.
pub fn room() -> Result<Option<u64>, UserError> {
    let left = |limit: u64| Ok(limit.saturating_sub(store::clients_of(current_role_oid())?));
    limit().map(left).transpose()
}
