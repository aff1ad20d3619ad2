//! Switches to another role for a part of a session's work, within the server's own restrictions.

use bench_base::error::UserError;
use bench_model::spec::Role;
use pgrx::pg_sys;

use crate::server::guc::{in_nest_level, restrict};
use crate::server::roles::current_role_oid;

/// Runs `body` as another role, with a search_path of pg_catalog, and goes back. An error goes back as well: the end of the
/// (sub)transaction restores role and settings.
pub fn as_role<T>(owner: pg_sys::Oid, body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
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

/// Runs `body` as a role, where that is another one than the current: what that role may not do, its sessions may not either.
pub fn as_session_of<T>(role: &Role, body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    if role.oid == current_role_oid().to_u32() { body() } else { as_run_role(role.oid.into(), body) }
}

/// Runs `body`, which opens transactions of its own, as the bootstrap superuser, and goes back. Only for ALTER SYSTEM, which
/// cannot stand in a transaction: no restriction of the server's can be in force outside of one.
pub fn as_bootstrap_superuser<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    with_user_id(pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), 0, body)
}

/// Runs `body` as another user, within more of the server's restrictions, and goes back, however it ends.
fn with_user_id<T>(user: pg_sys::Oid, restrictions: u32, body: impl FnOnce() -> T) -> T {
    struct Before {
        user: pg_sys::Oid,
        context: i32,
    }
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: variables of the process's, as they were.
            unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) };
        }
    }
    let mut before = Before { user: pg_sys::InvalidOid, context: 0 };
    // SAFETY: as the server's own referential integrity triggers switch roles (ri_PerformCheck);
    // LOCAL_USERID_CHANGE forbids SET ROLE inside. The abort of a (sub)transaction goes back to the user that it began with.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut before.user, &raw mut before.context);
        pg_sys::SetUserIdAndSecContext(user, before.context | restrictions as i32);
    }
    body()
}
