//! Switches to another role for a part of a session's work, within the server's own restrictions.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::planner_hook::Guard;
use crate::server::guc::{in_nest_level, restrict};

/// Runs `body` as another role, with a search_path of pg_catalog, and goes back. An error goes back as well: the end of the
/// (sub)transaction restores role and settings.
pub fn as_role<T>(owner: pg_sys::Oid, body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let _guard = Guard::new();
    in_nest_level(|| {
        restrict();
        with_user_id(owner, pg_sys::SECURITY_LOCAL_USERID_CHANGE, body)
    })
}

/// Runs `body`, in the recorder, as a run's role. Nothing in it can go back to being the recorder, nor leave behind what runs
/// later, as VACUUM keeps the functions of indexes from that.
pub fn as_run_role<T>(
    role: pg_sys::Oid,
    body: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    with_user_id(role, pg_sys::SECURITY_RESTRICTED_OPERATION | pg_sys::SECURITY_LOCAL_USERID_CHANGE, body)
}

/// Runs `body`, which opens transactions of its own, as the bootstrap superuser, and goes back. Only for ALTER SYSTEM, which
/// cannot stand in a transaction: no restriction of the server's can be in force outside of one.
pub fn as_bootstrap_superuser<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    with_user_id(pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), 0, body)
}

/// Runs `body` as another user, within more of the server's restrictions, and goes back.
fn with_user_id<T>(user: pg_sys::Oid, restrictions: u32, body: impl FnOnce() -> T) -> T {
    // SAFETY: as the server's own referential integrity triggers switch roles (ri_PerformCheck);
    // LOCAL_USERID_CHANGE forbids SET ROLE inside. After an error, the abort of the (sub)transaction goes back.
    unsafe {
        let mut before = pg_sys::InvalidOid;
        let mut context = 0;
        pg_sys::GetUserIdAndSecContext(&raw mut before, &raw mut context);
        pg_sys::SetUserIdAndSecContext(user, context | restrictions as i32);
        let result = body();
        pg_sys::SetUserIdAndSecContext(before, context);
        result
    }
}
