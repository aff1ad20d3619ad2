//! The extension itself, as the server's catalogs have it.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::error::internal;
use crate::server::roles::{is_superuser, name_of};
use crate::server::spi::quote_identifier;

/// The version of this library, as Cargo.toml and the control file say.
pub const LIBRARY_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The table that stands for the extension: while it is locked, none of the others can go.
///
/// # Errors
/// 42704 when the extension has gone, 42501 when one of its schemas belongs to a role that is no superuser.
pub fn anchor() -> Result<pg_sys::Oid, UserError> {
    // SAFETY: system catalog look-ups inside a transaction.
    let (extension, schemas) = unsafe {
        let schemas =
            [c"bench_internal", c"bench"].map(|name| pg_sys::get_namespace_oid(name.as_ptr(), true));
        (pg_sys::get_extension_oid(c"pgbench_ext".as_ptr(), true), schemas)
    };
    if extension != pg_sys::InvalidOid {
        schemas.into_iter().filter(|schema| *schema != pg_sys::InvalidOid).try_for_each(check_owner)?;
    }
    // In schema bench it is the former version's, which callers then refuse.
    let table = schemas.into_iter().find_map(|schema| {
        // SAFETY: as above.
        unsafe {
            let table = pg_sys::get_relname_relid(c"run_log".as_ptr(), schema);
            let belongs = table != pg_sys::InvalidOid
                && extension != pg_sys::InvalidOid
                && pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) == extension;
            belongs.then_some(table)
        }
    });
    let Some(table) = table else {
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, "extension \"pgbench_ext\" is not installed"));
    };
    Ok(table)
}

/// The owner of a schema can have its name mean another one.
///
/// # Errors
/// 42501 where a schema of the extension belongs to a role that is no superuser.
fn check_owner(schema: pg_sys::Oid) -> Result<(), UserError> {
    // SAFETY: a syscache look-up; the tuple is released after its last use.
    let (name, owner) = unsafe {
        let id = pg_sys::SysCacheIdentifier::NAMESPACEOID as _;
        let tuple = pg_sys::SearchSysCache1(id, pg_sys::Datum::from(schema));
        if tuple.is_null() {
            return Err(internal("cache lookup failed for a schema of the extension"));
        }
        let row: *const pg_sys::FormData_pg_namespace = pg_sys::GETSTRUCT(tuple).cast();
        let name = CStr::from_ptr((*row).nspname.data.as_ptr()).to_string_lossy().into_owned();
        let owner = (*row).nspowner;
        pg_sys::ReleaseSysCache(tuple);
        (name, owner)
    };
    if is_superuser(owner) {
        return Ok(());
    }
    // By its number where it is gone.
    let role = name_of(owner).unwrap_or_else(|| owner.to_u32().to_string());
    let message = format!("schema {name} belongs to role \"{role}\", which is not a superuser");
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .detail("The recorder is a superuser, and the schema's owner could put another one in its place.")
        .hint(format!("ALTER SCHEMA {} OWNER TO a superuser.", quote_identifier(&name))))
}
