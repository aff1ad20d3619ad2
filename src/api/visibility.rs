//! Whose is what: bench_internal.is_visible, by which views and policies go, the names of roles that they show, and
//! bench.reassign_owned.

use bench_base::error::{UserError, sqlstate};
use pgrx::prelude::*;

use super::required;
use crate::error::OrRaise;
use crate::server::roles;
use crate::store;

/// Whether the current role may see what belongs to a run of another. See the COMMENT ON.
#[pg_extern(sql = false)]
fn is_owner_visible(role: Option<pg_sys::Oid>) -> bool {
    store::may_see(role.unwrap_or(pg_sys::InvalidOid))
}

/// A role's present name. See the COMMENT ON.
#[pg_extern(sql = false)]
fn role_name(role: Option<pg_sys::Oid>, kept: Option<String>) -> Option<String> {
    role.and_then(roles::name_of).or(kept)
}

/// Gives a role what another has left. See the COMMENT ON.
#[pg_extern(sql = false)]
fn reassign_owned(old_role: Option<String>, new_role: Option<String>) -> i64 {
    (|| {
        let (old, new) = (required("old_role", old_role)?, required("new_role", new_role)?);
        if !roles::superuser() {
            let message = "bench.reassign_owned is for superusers";
            return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
        }
        let missing = || UserError::new(sqlstate::UNDEFINED_OBJECT, format!("role \"{new}\" does not exist"));
        store::reassign_owned(&old, roles::oid_of(&new)?.ok_or_else(missing)?)
    })()
    .or_raise()
}
