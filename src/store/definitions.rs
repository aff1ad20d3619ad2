//! Fixtures that users have defined.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::as_owner;
use crate::server::rows::select_one;
use crate::server::spi::{fetch, run};

/// A row of bench_internal.custom_fixtures.
#[derive(Serialize, Deserialize)]
pub struct Definition {
    pub name: String,
    /// Its present name, or the one that was kept.
    pub owner: String,
    #[serde(default)]
    pub owner_oid: pg_sys::Oid,
    /// Makes the tables, one of them called as the fixture.
    pub ddl: String,
    /// The rows of the ids $1 … $2 of the table that is called as the fixture.
    pub rows_query: String,
    /// Indexes, as a rule.
    pub after_ddl: Option<String>,
    /// How many ids when nobody says how many.
    pub rows: i64,
}

/// A fixture's definition by its name.
pub fn definition(name: &str) -> Result<Option<Definition>, UserError> {
    as_owner(|| {
        let sql = "SELECT name, bench_internal.role_name(owner_oid, owner) AS owner, ddl, rows_query, after_ddl, rows, owner_oid \
             FROM bench_internal.custom_fixtures WHERE name = $1";
        select_one(sql, &[name.into()])
    })
}

/// The names of all that users have defined.
pub fn definition_names() -> Result<Vec<String>, UserError> {
    as_owner(|| {
        let names = "SELECT array_agg(name ORDER BY name) FROM bench_internal.custom_fixtures";
        Ok(fetch::<Vec<String>>(names, &[])?.unwrap_or_default())
    })
}

/// Stores a definition, over an older one of the same name that was this owner's when it was looked at.
///
/// # Errors
/// 55006 when somebody else has come first.
pub fn put_definition(definition: &Definition, old_owner: Option<pg_sys::Oid>) -> Result<(), UserError> {
    as_owner(|| {
        // The OID 0 is passed as NULL.
        let stored = run(
            "INSERT INTO bench_internal.custom_fixtures AS f (name, owner, ddl, rows_query, after_ddl, rows, owner_oid) \
             VALUES ($1, $2, $3, $4, $5, $6, $8) \
             ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, owner_oid = EXCLUDED.owner_oid, ddl = EXCLUDED.ddl, rows_query = EXCLUDED.rows_query, \
                 after_ddl = EXCLUDED.after_ddl, rows = EXCLUDED.rows \
             WHERE f.owner_oid = coalesce($7, 0)",
            &[
                definition.name.as_str().into(),
                definition.owner.as_str().into(),
                definition.ddl.as_str().into(),
                definition.rows_query.as_str().into(),
                definition.after_ddl.as_deref().into(),
                definition.rows.into(),
                old_owner.into(),
                definition.owner_oid.into(),
            ],
        )?;
        if stored == 0 { Err(changed(&definition.name)) } else { Ok(()) }
    })
}

fn changed(name: &str) -> UserError {
    UserError::new(sqlstate::OBJECT_IN_USE, format!("fixture \"{name}\" has been changed by another session"))
        .hint("Check bench.fixture_definitions, then try again.")
}

/// Removes a definition of this owner's.
///
/// # Errors
/// 55006 when it has become another's.
pub fn delete_definition(name: &str, owner: pg_sys::Oid) -> Result<(), UserError> {
    as_owner(|| {
        let sql =
            "DELETE FROM bench_internal.custom_fixtures WHERE name = $1 AND owner_oid = coalesce($2, 0)";
        if run(sql, &[name.into(), owner.into()])? == 0 { Err(changed(name)) } else { Ok(()) }
    })
}
