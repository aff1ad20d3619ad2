//! Whether the SQL of the extension is this library's: `make install` replaces the library for all databases at once, and
//! each of them has its SQL updated by itself, later.

use bench_base::error::{UserError, sqlstate};

use crate::guard::extension::LIBRARY_VERSION;
use crate::server::spi::fetch;

/// Checks the version of the extension in this database.
///
/// # Errors
/// 55000 when it is another one: tables and functions may be others than this library knows.
pub fn check() -> Result<(), UserError> {
    let sql = "SELECT extversion FROM pg_extension \
               WHERE extname = 'pgbench_ext'::name";
    match fetch::<String>(sql, &[])? {
        Some(of_sql) if of_sql != LIBRARY_VERSION => Err(mismatch(&of_sql)),
        _ => Ok(()),
    }
}

fn mismatch(of_sql: &str) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        "the library of pgbench_ext and the extension in this database have different versions",
    )
    .detail(format!("The library has version {LIBRARY_VERSION}, the extension has version {of_sql}."))
    .hint("Run ALTER EXTENSION pgbench_ext UPDATE. If the extension is the newer one, install its library.")
}
