//! The extension itself, as the server's catalogs have it.

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::guard;

/// The version of this library, as Cargo.toml and the control file say.
pub const LIBRARY_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The table that stands for the extension: while it is locked, none of the others can go.
///
/// # Errors
/// 42704 when the extension has gone, 42501 when one of its schemas belongs to a role that is no superuser.
pub fn anchor() -> Result<pg_sys::Oid, UserError> {
    // SAFETY: system catalog look-ups inside a transaction.
    let (schemas, table) = unsafe {
        let schema = pg_sys::get_namespace_oid(c"bench".as_ptr(), true);
        let internal = pg_sys::get_namespace_oid(c"bench_internal".as_ptr(), true);
        // In schema bench it is the former version's, which callers then refuse.
        let table = [internal, schema]
            .map(|schema| pg_sys::get_relname_relid(c"run_log".as_ptr(), schema))
            .into_iter()
            .find(|table| *table != pg_sys::InvalidOid)
            .unwrap_or(pg_sys::InvalidOid);
        let extension = pg_sys::get_extension_oid(c"pgbench_ext".as_ptr(), true);
        let belongs = table != pg_sys::InvalidOid
            && extension != pg_sys::InvalidOid
            && pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) == extension;
        ([schema, internal], belongs.then_some(table))
    };
    let Some(table) = table else {
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, "extension \"pgbench_ext\" is not installed"));
    };
    schemas.into_iter().try_for_each(guard::check_schema)?;
    Ok(table)
}
