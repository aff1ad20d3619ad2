//! Work on the extension's tables as its owner, and who may see what is in them.

use bench_base::error::UserError;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use serde::de::DeserializeOwned;

use super::version;
use crate::error::internal;
use crate::guard::client_role::check_is_no_client;
use crate::guard::extension::anchor;
use crate::guard::own_tables::on_own_tables;
use crate::guard::switch_role::as_role;
use crate::server::locks;
use crate::server::relations::owner_of;
use crate::server::roles::{self, acts_for};
use crate::server::rows::select_one;
use crate::server::spi::run;

/// Locks the anchor against DROP EXTENSION until the transaction ends.
///
/// # Errors
/// 42704 when the extension has gone. Without this a table that somebody made in its place, with
/// a trigger, would be written to as a superuser. 55000 when its SQL is another version's.
pub fn hold_extension() -> Result<pg_sys::Oid, UserError> {
    check_is_no_client()?;
    let table = anchor()?;
    locks::lock(table, pg_sys::AccessShareLock);
    if anchor()? != table {
        return Err(internal("the extension was replaced meanwhile"));
    }
    version::check()?;
    Ok(table)
}

/// Runs `body` as the extension's owner, with a search_path of pg_catalog, and goes back. An
/// error goes back as well: the end of the (sub)transaction restores role and settings.
///
/// # Errors
/// 42501 where something of the extension is not a superuser's; those of [`hold_extension`] and of `body`.
pub fn as_owner<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let table = hold_extension()?;
    let result = as_role(owner_of(table)?, || on_own_tables(body));
    // Not until the transaction ends: a caller that waits for its run must not stand in the
    // way of what waits for this table, and so of its own recorder. What was written keeps
    // the locks of its own tables.
    locks::unlock(table, pg_sys::AccessShareLock);
    result
}

/// Runs a statement as the extension's owner, for its effect.
///
/// # Errors
/// As [`as_owner`].
pub(super) fn write(sql: &str, arguments: &[DatumWithOid]) -> Result<(), UserError> {
    as_owner(|| run(sql, arguments).map(drop))
}

/// Reads the only column of the first row as the extension's owner; `None`: it is NULL, or there is no row.
///
/// # Errors
/// As [`as_owner`], and XX000 for a value that is not of this type.
pub(super) fn read<T: DeserializeOwned>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    let row = as_owner(|| select_one::<(Option<T>,)>(sql, arguments))?;
    Ok(row.and_then(|(value,)| value))
}

/// The extension's owner, for [`as_role`] when the extension may have gone.
pub fn extension_owner() -> Result<pg_sys::Oid, UserError> {
    owner_of(anchor()?)
}

/// The rule of who sees what belongs to a run, a load or a sweep of this role: who has its privileges or those of
/// pg_read_all_stats, and superusers. What a role has left that no longer exists is for the latter two.
pub fn may_see(role: pg_sys::Oid) -> bool {
    acts_for(role) || acts_for(roles::READ_ALL_STATS)
}
