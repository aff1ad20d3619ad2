//! Roles: the current one, their names, and their privileges.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::pg_sys;

use super::spi::{fetch, quote_identifier};

/// Whether the current role is a superuser.
pub fn superuser() -> bool {
    // SAFETY: looks up the current role, in a transaction.
    unsafe { pg_sys::superuser() }
}

/// Returns the OID of the current role.
pub fn current_role_oid() -> pg_sys::Oid {
    // SAFETY: this backend's own state.
    unsafe { pg_sys::GetUserId() }
}

/// Whether a role is both the session user and the current role.
pub fn is_session_of(role: pg_sys::Oid) -> bool {
    // SAFETY: this backend's own state.
    unsafe { pg_sys::GetSessionUserId() == role && pg_sys::GetUserId() == role }
}

/// Whether a role exists and is a superuser.
pub fn is_superuser(role: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up inside a transaction; false for a role that does not exist.
    unsafe { pg_sys::superuser_arg(role) }
}

/// pg_read_all_stats, whose members may see everything.
pub const READ_ALL_STATS: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::ROLE_PG_READ_ALL_STATS);

/// pg_signal_backend, whose members may stop work of all roles except superusers.
pub const SIGNAL_BACKEND: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::ROLE_PG_SIGNAL_BACKEND);

/// pg_checkpoint.
pub const CHECKPOINT: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::ROLE_PG_CHECKPOINT);

/// Whether the current role has the privileges of another: is it, inherits from it, or is a superuser; like pg_has_role
/// with USAGE. Only superusers have those of a dropped role and of role 0.
///
/// Takes an OID, because the name of a renamed or dropped role may belong to another role now.
pub fn acts_for(role: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups inside a transaction.
    unsafe {
        pg_sys::superuser()
            || (role != pg_sys::InvalidOid && pg_sys::has_privs_of_role(pg_sys::GetUserId(), role))
    }
}

/// Whether a role has the privileges of another: is it, inherits from it, or is a superuser.
pub fn has_privileges_of(role: pg_sys::Oid, other: pg_sys::Oid) -> bool {
    // SAFETY: a catalog look-up inside a transaction.
    unsafe { pg_sys::has_privs_of_role(role, other) }
}

/// Returns a role's current name; `None` if it was dropped.
pub fn name_of(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: a catalog look-up inside a transaction: a palloc'd string, or NULL.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// Returns the OID of the role with this name.
pub fn oid_of(name: &str) -> Result<Option<pg_sys::Oid>, UserError> {
    let sql = "SELECT oid FROM pg_roles WHERE rolname = $1::text";
    fetch::<pg_sys::Oid>(sql, &[name.into()])
}

/// Returns name and OID of the current role.
pub fn current() -> Role {
    Role { name: current_role(), oid: current_role_oid().to_u32() }
}

/// The privilege of pg_has_role that SET ROLE requires.
const SET_ROLE: &str = if cfg!(since_16) { "SET" } else { "MEMBER" };

/// Whether a role can SET ROLE to another; false for a dropped one.
///
/// # Errors
/// The server's.
pub fn may_become(who: u32, role: &Role) -> Result<bool, UserError> {
    let sql = "SELECT /* pgbench_ext */ pg_has_role(r.oid, $2, $3) FROM pg_roles r WHERE r.oid = $1";
    let (who, role) = (pg_sys::Oid::from(who), pg_sys::Oid::from(role.oid));
    Ok(fetch::<bool>(sql, &[who.into(), role.into(), SET_ROLE.into()])? == Some(true))
}

/// Whether the current role may replace and delete objects of another: it can SET ROLE to it. Objects of dropped roles are left to
/// superusers.
///
/// # Errors
/// The server's.
pub fn may_write_for(owner: pg_sys::Oid) -> Result<bool, UserError> {
    if superuser() {
        return Ok(true);
    }
    let owner = Role { name: String::new(), oid: owner.to_u32() };
    may_become(current_role_oid().to_u32(), &owner)
}

/// Checks that the current role can SET ROLE to another, and so may use sessions of it.
///
/// # Errors
/// 42501 if it cannot.
pub fn check_may_become(role: &Role) -> Result<(), UserError> {
    if may_become(current_role_oid().to_u32(), role)? {
        return Ok(());
    }
    let name = &role.name;
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("permission denied to have sessions of role \"{name}\""),
    )
    .detail(format!("Role \"{}\" cannot SET ROLE {}.", current_role(), quote_identifier(name)))
    .hint(format!(
        "Call as that role, or GRANT {} TO {}.",
        quote_identifier(name),
        quote_identifier(&current_role())
    )))
}

/// Looks up a role by its name.
///
/// # Errors
/// 42704 if it does not exist.
pub fn named(name: &str) -> Result<Role, UserError> {
    existing(oid_of(name)?.unwrap_or(pg_sys::InvalidOid), name)
}

/// Looks up a role by its OID; `name` is its recorded name for the error.
///
/// # Errors
/// 42704 if it was dropped.
pub fn existing(role: pg_sys::Oid, name: &str) -> Result<Role, UserError> {
    name_of(role)
        .map(|name| Role { name, oid: role.to_u32() })
        .ok_or_else(|| UserError::new(sqlstate::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist")))
}

/// Returns the current role's name.
pub fn current_role() -> String {
    // SAFETY: raises an error when the role is gone; otherwise a palloc'd string.
    unsafe {
        CStr::from_ptr(pg_sys::GetUserNameFromId(pg_sys::GetUserId(), false)).to_string_lossy().into_owned()
    }
}
