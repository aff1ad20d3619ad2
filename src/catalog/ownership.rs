//! Who is who, and what keeps a superuser from running what others have put in its way.

use std::ffi::CStr;

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::fetch;
use crate::error::internal;

/// Whether a role of this name exists and is a superuser.
pub fn is_superuser(role: &str) -> Result<bool, UserError> {
    let sql =
        "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) $1::pg_catalog.text";
    Ok(fetch::<bool>(sql, &[role.into()])?.unwrap_or_default())
}

/// A superuser's workers must not work in a schema of somebody else: its owner can drop any table
/// in it, and put one with triggers in its place.
///
/// # Errors
/// 42501; never for other roles, nor for a schema that does not exist.
pub fn check_schema_owner(schema: &str) -> Result<(), UserError> {
    // SAFETY: looks up the current role.
    if !unsafe { pg_sys::superuser() } {
        return Ok(());
    }
    let owner = fetch::<String>(
        // The members of pg_database_owner are the database's owner alone.
        "SELECT r.rolname::pg_catalog.text FROM pg_catalog.pg_namespace n \
         JOIN pg_catalog.pg_database d ON d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() \
         JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) \
             CASE WHEN n.nspowner OPERATOR(pg_catalog.=) 'pg_database_owner'::pg_catalog.regrole THEN d.datdba ELSE n.nspowner END \
         WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text AND NOT r.rolsuper",
        &[schema.into()],
    )?;
    match owner {
        None => Ok(()),
        Some(owner) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("schema \"{schema}\" belongs to role \"{owner}\", whose triggers a superuser could run"),
        )
        .hint(format!(
            "SET ROLE to its owner before the call, load into another schema, or ALTER SCHEMA {} OWNER TO CURRENT_USER.",
            crate::settings::quote_identifier(schema)
        ))),
    }
}

/// What keeps a superuser from a schema in which others have put something of their own, or can,
/// before what a script means: the schema of a fixture comes first in the clients' search_path.
///
/// # Errors
/// 42501; never for other roles.
pub fn check_schema_creators(schema: &str) -> Result<(), UserError> {
    // SAFETY: looks up the current role.
    if !unsafe { pg_sys::superuser() } {
        return Ok(());
    }
    let creator = fetch::<String>(
        "SELECT pg_catalog.min(coalesce(r.rolname::pg_catalog.text, 'public')) FROM pg_catalog.pg_namespace n \
         CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) AS a \
         LEFT JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) a.grantee \
         WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text AND a.privilege_type OPERATOR(pg_catalog.=) 'CREATE' \
           AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner AND coalesce(NOT r.rolsuper, true)",
        &[schema.into()],
    )?;
    let stranger = fetch::<String>(
        "SELECT pg_catalog.min(r.rolname::pg_catalog.text) FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL ( \
             SELECT relowner FROM pg_catalog.pg_class WHERE relnamespace OPERATOR(pg_catalog.=) n.oid UNION \
             SELECT proowner FROM pg_catalog.pg_proc WHERE pronamespace OPERATOR(pg_catalog.=) n.oid UNION \
             SELECT oprowner FROM pg_catalog.pg_operator WHERE oprnamespace OPERATOR(pg_catalog.=) n.oid UNION \
             SELECT typowner FROM pg_catalog.pg_type WHERE typnamespace OPERATOR(pg_catalog.=) n.oid UNION \
             SELECT collowner FROM pg_catalog.pg_collation WHERE collnamespace OPERATOR(pg_catalog.=) n.oid \
         ) AS o (owner) JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) o.owner \
         WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text AND NOT r.rolsuper",
        &[schema.into()],
    )?;
    if let Some(stranger) = stranger {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("role \"{stranger}\" owns objects in schema \"{schema}\", which a superuser could run"),
        )
        .hint(
            "SET ROLE to another role before the call, or load into a schema in which you own all objects.",
        ));
    }
    match creator {
        None => Ok(()),
        Some(creator) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("role \"{creator}\" may create objects in schema \"{schema}\", which a superuser could run"),
        )
        .hint(format!(
            "SET ROLE to another role before the call, load into another schema, or REVOKE CREATE ON SCHEMA {}.",
            crate::settings::quote_identifier(schema)
        ))),
    }
}

/// Whether the tables belong to superusers.
pub fn are_superusers(tables: &[pg_sys::Oid]) -> Result<bool, UserError> {
    let others = fetch::<i64>(
        "SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r \
         ON r.oid OPERATOR(pg_catalog.=) c.relowner \
         WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1) AND NOT r.rolsuper",
        &[tables.to_vec().into()],
    )?;
    Ok(others == Some(0))
}

/// Whether the current role has the privileges of the named one: is it, inherits from it, or is a superuser; as
/// pg_has_role with USAGE. A role that no longer exists has only superusers above it.
pub fn acts_for(role: &str) -> Result<bool, UserError> {
    let role = std::ffi::CString::new(role).map_err(|_| internal("a role's name with a zero byte"))?;
    // SAFETY: catalog look-ups inside a transaction.
    Ok(unsafe {
        let oid = pg_sys::get_role_oid(role.as_ptr(), true);
        pg_sys::superuser()
            || (oid != pg_sys::InvalidOid && pg_sys::has_privs_of_role(pg_sys::GetUserId(), oid))
    })
}

/// The rule of who sees what belongs to a run, a load or a sweep of this role: who has its privileges or those of
/// pg_read_all_stats, and superusers. What a role has left that no longer exists is for the latter two.
pub fn may_see(role: &str) -> Result<bool, UserError> {
    Ok(acts_for(role)? || acts_for("pg_read_all_stats")?)
}

/// The current role's name: the one that a workload runs as.
pub fn current_role() -> String {
    // SAFETY: raises an error when the role is gone; otherwise a palloc'd string.
    unsafe {
        CStr::from_ptr(pg_sys::GetUserNameFromId(pg_sys::GetUserId(), false)).to_string_lossy().into_owned()
    }
}
