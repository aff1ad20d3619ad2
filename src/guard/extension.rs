//! The extension itself, as the server's catalogs have it.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::error::internal;
use crate::server::roles::{is_superuser, name_of};
use crate::server::spi::{fetch_all, quote_identifier};

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

// Whom other extensions belong to, whose functions are called with the caller's rights: who could have put something else in
// their place.

/// Who could change what a call of an extension's functions does, beside those whom the caller trusts anyway: superusers,
/// and its own role where it has not come to that by SET ROLE, which the function could undo. One line each: what (`extension`,
/// `schema`, `create`, `object`), the schema's name, the role's.
///
/// Whatever is in one of the extension's schemas counts, for its functions call each other by bare names. Nobody else can
/// rename, replace or add anything after this, so there is nothing to lock.
const STRANGERS: &str = "\
    WITH extension AS ( \
        SELECT e.oid, e.extowner, e.extnamespace FROM pg_extension e \
        WHERE e.extname = $1::name \
    ), member AS ( \
        SELECT d.classid, d.objid FROM extension e JOIN pg_depend d \
            ON d.refclassid = 'pg_extension'::regclass \
            AND d.refobjid = e.oid AND d.deptype = 'e'::\"char\" \
    ), home AS ( \
        SELECT n.oid, n.nspname, n.nspacl, n.nspowner, \
               CASE WHEN n.nspowner = 'pg_database_owner'::regrole THEN \
                   (SELECT b.datdba FROM pg_database b WHERE b.datname = current_database()) \
               ELSE n.nspowner END AS owner \
        FROM pg_namespace n WHERE n.nspname <> 'pg_catalog'::name AND n.oid = ANY (ARRAY( \
            SELECT extnamespace FROM extension UNION \
            SELECT p.pronamespace FROM member m JOIN pg_proc p ON p.oid = m.objid \
            WHERE m.classid = 'pg_proc'::regclass)) \
    ), object (schema, owner) AS ( \
        SELECT pronamespace, proowner FROM pg_proc UNION \
        SELECT relnamespace, relowner FROM pg_class UNION \
        SELECT oprnamespace, oprowner FROM pg_operator UNION \
        SELECT typnamespace, typowner FROM pg_type UNION \
        SELECT collnamespace, collowner FROM pg_collation \
    ), power (place, what, schema, role) AS ( \
        SELECT 1, 'extension', NULL::name, extowner FROM extension UNION ALL \
        SELECT 2, 'schema', nspname, owner FROM home UNION ALL \
        SELECT 3, 'create', nspname, a.grantee FROM home CROSS JOIN LATERAL aclexplode(nspacl) AS a \
        WHERE a.privilege_type = 'CREATE' AND a.grantee <> nspowner UNION ALL \
        SELECT 4, 'object', nspname, o.owner FROM home JOIN object o ON o.schema = home.oid UNION ALL \
        SELECT 4, 'object', NULL, p.proowner FROM member m JOIN pg_proc p ON p.oid = m.objid \
        WHERE m.classid = 'pg_proc'::regclass) \
    SELECT p.what, p.schema::text, coalesce(r.rolname::text, 'public') \
    FROM power p LEFT JOIN pg_roles r ON r.oid = p.role \
    WHERE r.rolsuper IS DISTINCT FROM true \
      AND (r.rolname IS NULL OR r.rolname <> current_user OR r.rolname <> session_user) \
    ORDER BY p.place, p.schema, r.rolname LIMIT 1";

/// # Errors
/// 42501 where somebody whom the caller does not trust could have the caller run something else than the extension.
pub fn check_extension_trusted(name: &str) -> Result<(), UserError> {
    let strangers = fetch_all(STRANGERS, &[name.into()], |row| {
        let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
        Ok((text(1)?, text(2)?, text(3)?))
    })?;
    let Some((what, schema, role)) = strangers.into_iter().next() else { return Ok(()) };
    let message = match what.as_str() {
        "extension" => format!("extension \"{name}\" belongs to role \"{role}\""),
        "schema" => format!("schema \"{schema}\" of extension \"{name}\" belongs to role \"{role}\""),
        "create" => {
            format!("role \"{role}\" may create objects in schema \"{schema}\" of extension \"{name}\"")
        }
        _ if schema.is_empty() => format!("a function of extension \"{name}\" belongs to role \"{role}\""),
        _ => {
            format!("an object in schema \"{schema}\" of extension \"{name}\" belongs to role \"{role}\"")
        }
    };
    let hint = match what.as_str() {
        "create" => {
            format!("REVOKE CREATE ON SCHEMA {} FROM {}.", quote_identifier(&schema), quote_identifier(&role))
        }
        _ => "A superuser must create it in a schema in which no other role owns objects or may create them."
            .to_owned(),
    };
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .detail("That role could add functions that run with your privileges.")
        .hint(hint))
}
