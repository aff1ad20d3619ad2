//! The extension itself, as the server's catalogs have it.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::planner_hook;

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
        schemas
            .into_iter()
            .filter(|schema| *schema != pg_sys::InvalidOid)
            .try_for_each(planner_hook::check_schema)?;
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
