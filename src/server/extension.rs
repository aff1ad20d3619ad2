//! The extension itself, as the server's catalogs have it.

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::guard;

/// The table that stands for the extension: while it is locked, none of the others can go.
///
/// # Errors
/// 42704 when the extension has gone, 42501 when its schema belongs to a role that is no superuser.
pub fn anchor() -> Result<pg_sys::Oid, UserError> {
    // SAFETY: system catalog look-ups inside a transaction.
    let (schema, table) = unsafe {
        let schema = pg_sys::get_namespace_oid(c"bench".as_ptr(), true);
        let table = pg_sys::get_relname_relid(c"run_log".as_ptr(), schema);
        let extension = pg_sys::get_extension_oid(c"pgbench_ext".as_ptr(), true);
        let belongs = table != pg_sys::InvalidOid
            && extension != pg_sys::InvalidOid
            && pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) == extension;
        (schema, belongs.then_some(table))
    };
    match table {
        Some(table) => guard::check_schema(schema).map(|()| table),
        None => Err(UserError::new(sqlstate::UNDEFINED_OBJECT, "extension \"pgbench_ext\" is not installed")),
    }
}
