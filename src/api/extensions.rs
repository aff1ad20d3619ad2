//! What the extension says of itself, and what its own SQL asks of others' tables and extensions.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::required;
use crate::error::OrRaise;
use crate::guard::client_role;
use crate::guard::extension::LIBRARY_VERSION;
use crate::guard::other_extensions::check_extension_trusted;
use crate::server::pages;

/// Which library this is. See the COMMENT ON.
#[pg_extern(sql = false)]
fn version() -> String {
    format!(
        "pgbench_ext {LIBRARY_VERSION}, built for PostgreSQL {}, from sources {}",
        pg_sys::PG_VERSION.to_string_lossy(),
        env!("PGBENCH_EXT_SOURCES")
    )
}

/// Reads a table into shared buffers. See the COMMENT ON.
#[pg_extern(sql = false)]
fn prewarm_table(relation: Option<pg_sys::Oid>) -> i64 {
    required("relation", relation).and_then(pages::prewarm).or_raise()
}

/// Whom the caller would have to trust. See the COMMENT ON.
#[pg_extern(sql = false)]
fn check_extension(name: Option<String>) {
    required("name", name).and_then(|name| check_extension_trusted(&name)).or_raise();
}

/// Makes the roles of superusers' calls. See the COMMENT ON.
#[pg_extern(sql = false)]
fn make_own_roles() {
    client_role::make_own_roles().or_raise();
}
