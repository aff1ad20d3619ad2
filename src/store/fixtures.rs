//! Users' definitions of fixtures, and loaded fixtures.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::as_owner;
use crate::server::rows::{select, select_one};
use crate::server::spi::{fetch, run};

/// A row of bench_internal.custom_fixtures.
#[derive(Serialize, Deserialize)]
pub struct Definition {
    pub name: String,
    /// Its present name, or the one that was kept.
    pub owner: String,
    #[serde(default)]
    pub owner_oid: pg_sys::Oid,
    /// The statements that create the tables, one of which has the fixture's name.
    pub ddl: String,
    /// The query for the rows with the ids $1 … $2 of that table.
    pub rows_query: String,
    /// Statements after the rows, usually for indexes.
    pub after_ddl: Option<String>,
    /// The default number of ids.
    pub rows: i64,
}

/// Reads a fixture's definition by its name.
pub fn definition(name: &str) -> Result<Option<Definition>, UserError> {
    as_owner(|| {
        let sql = "SELECT name, bench_internal.role_name(owner_oid, owner) AS owner, ddl, rows_query, after_ddl, rows, owner_oid \
             FROM bench_internal.custom_fixtures WHERE name = $1";
        select_one(sql, &[name.into()])
    })
}

/// Returns the names of all users' definitions.
pub fn definition_names() -> Result<Vec<String>, UserError> {
    as_owner(|| {
        let names = "SELECT array_agg(name ORDER BY name) FROM bench_internal.custom_fixtures";
        Ok(fetch::<Vec<String>>(names, &[])?.unwrap_or_default())
    })
}

/// Stores a definition, and replaces an older one of the same name that belonged to `old_owner` when it was read.
///
/// # Errors
/// 55006 if another session has changed it.
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

/// Deletes a definition of this owner.
///
/// # Errors
/// 55006 if it has another owner now.
pub fn delete_definition(name: &str, owner: pg_sys::Oid) -> Result<(), UserError> {
    as_owner(|| {
        let sql =
            "DELETE FROM bench_internal.custom_fixtures WHERE name = $1 AND owner_oid = coalesce($2, 0)";
        if run(sql, &[name.into(), owner.into()])? == 0 { Err(changed(name)) } else { Ok(()) }
    })
}

/// A row of bench.fixtures.
#[derive(Deserialize)]
pub struct Fixture {
    pub name: String,
    pub schema: String,
    /// Its present name, or the one that was kept.
    pub owner: String,
    #[serde(default)]
    pub owner_oid: pg_sys::Oid,
    pub rows: i64,
    /// As given to bench.load.
    #[serde(default)]
    pub options: serde_json::Value,
    /// Tables that still exist.
    pub tables: Vec<pg_sys::Oid>,
    /// The number of tables that were dropped by DROP TABLE.
    pub missing: i64,
}

/// Reads the loaded fixtures of a name, newest first.
pub fn fixtures(name: &str) -> Result<Vec<Fixture>, UserError> {
    as_owner(|| {
        select(
            "SELECT f.name, f.schema, bench_internal.role_name(f.owner_oid, f.owner) AS owner, f.rows, f.options, \
                    ARRAY(SELECT c.oid FROM unnest(f.relations) WITH ORDINALITY AS u (relation, place) \
                          JOIN pg_class c ON c.oid = u.relation ORDER BY u.place) AS tables, \
                    (SELECT count(*) FROM unnest(f.relations) AS u (relation) \
                     WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = u.relation)) AS missing, f.owner_oid \
             FROM bench.fixtures f WHERE f.name = $1 ORDER BY f.loaded_at DESC",
            &[name.into()],
        )
    })
}

/// The figures of a load.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadFigures {
    /// Rows written.
    pub rows: i64,
    /// Seconds spent on writing the rows.
    pub load_secs: f64,
    /// Seconds spent on indexes after, or before, the load.
    pub index_secs: f64,
    /// Seconds spent on VACUUM and ANALYZE.
    pub vacuum_secs: f64,
    /// Bytes of the tables, and of their indexes.
    pub bytes: (i64, i64),
    /// Levels of the largest primary key's B-tree.
    pub index_levels: Option<i32>,
    /// The correlation between that key's values and their places in the table.
    pub key_correlation: Option<f32>,
}

/// A fixture that has just been loaded.
pub struct NewFixture<'a> {
    pub name: &'a str,
    pub schema: &'a str,
    /// The owner.
    pub role: &'a str,
    pub role_oid: pg_sys::Oid,
    pub rows: i64,
    /// As given to bench.load.
    pub options: &'a serde_json::Value,
    /// The query of the table whose rows count as the fixture's.
    pub rows_query: Option<&'a str>,
}

/// Registers a fixture that has just been loaded, and replaces an older one of the same name and schema.
pub fn put_fixture(
    fixture: &NewFixture,
    tables: &[pg_sys::Oid],
    figures: &LoadFigures,
) -> Result<(), UserError> {
    as_owner(|| {
        run(
            "INSERT INTO bench.fixtures (name, schema, owner, relations, rows, options, loaded_at, load_secs, \
                                         rows_per_sec, table_bytes, index_bytes, rows_query, index_secs, vacuum_secs, \
                                         index_levels, key_correlation, owner_oid) \
             SELECT $1, $2, bench_internal.role_name($16, $3), $4::oid[]::regclass[], $5, $6, clock_timestamp(), \
                    $7, CASE WHEN $8 > 0 THEN $8 / $7 END, $9, $10, $11, $12, $13, $14, $15, $16 \
             ON CONFLICT (schema, name) DO UPDATE SET owner = EXCLUDED.owner, owner_oid = EXCLUDED.owner_oid, relations = EXCLUDED.relations, \
                 rows = EXCLUDED.rows, options = EXCLUDED.options, loaded_at = EXCLUDED.loaded_at, \
                 load_secs = EXCLUDED.load_secs, rows_per_sec = EXCLUDED.rows_per_sec, \
                 table_bytes = EXCLUDED.table_bytes, index_bytes = EXCLUDED.index_bytes, \
                 rows_query = EXCLUDED.rows_query, index_secs = EXCLUDED.index_secs, vacuum_secs = EXCLUDED.vacuum_secs, \
                 index_levels = EXCLUDED.index_levels, key_correlation = EXCLUDED.key_correlation",
            &[
                fixture.name.into(),
                fixture.schema.into(),
                fixture.role.into(),
                tables.to_vec().into(),
                fixture.rows.into(),
                pgrx::JsonB(fixture.options.clone()).into(),
                figures.load_secs.into(),
                figures.rows.into(),
                figures.bytes.0.into(),
                figures.bytes.1.into(),
                fixture.rows_query.into(),
                figures.index_secs.into(),
                figures.vacuum_secs.into(),
                figures.index_levels.into(),
                figures.key_correlation.into(),
                fixture.role_oid.into(),
            ],
        )
        .map(drop)
    })
}

/// The sizes of a fixture's tables after the load and now.
pub struct Growth {
    /// Bytes of the tables without their indexes, after the load and now.
    pub loaded_bytes: i64,
    pub bytes: i64,
    /// Rows now, by the cumulative statistics.
    pub live: i64,
}

/// Compares the sizes of a fixture's tables, given with their partitions, with those after the load.
pub fn growth(name: &str, schema: &str, tables: &[pg_sys::Oid]) -> Result<Option<Growth>, UserError> {
    let found = as_owner(|| {
        select_one::<(Option<i64>, Option<i64>, Option<i64>)>(
            "SELECT f.table_bytes, t.bytes, t.live FROM bench.fixtures f CROSS JOIN ( \
                 SELECT sum(pg_table_size(c.oid))::int8 AS bytes, \
                        sum(pg_stat_get_live_tuples(c.oid))::int8 AS live \
                 FROM pg_class c WHERE c.oid = ANY ($3) AND c.relkind = 'r') AS t \
             WHERE f.name = $1 AND f.schema = $2",
            &[name.into(), schema.into(), tables.to_vec().into()],
        )
    })?;
    Ok(found.and_then(|(loaded_bytes, bytes, live)| {
        Some(Growth { loaded_bytes: loaded_bytes?, bytes: bytes?, live: live? })
    }))
}

/// Deletes the row of a loaded fixture.
pub fn delete_fixture(schema: &str, name: &str) -> Result<(), UserError> {
    as_owner(|| {
        let sql = "DELETE FROM bench.fixtures WHERE schema = $1 AND name = $2";
        run(sql, &[schema.into(), name.into()]).map(drop)
    })
}

/// Returns a line about a load's results and the time of each part.
pub fn load_line(name: &str, schema: &str) -> Result<Option<String>, UserError> {
    as_owner(|| {
        fetch::<String>(
            "SELECT format('loaded \"%s\": %s rows in %s s%s, indexes %s s, vacuum and analyze %s s; tables %s, indexes %s', \
                        name, rows, round(load_secs::numeric, 2), \
                        ' (' || round(rows_per_sec) || ' rows/s)', \
                        round(index_secs::numeric, 2), round(vacuum_secs::numeric, 2), \
                        pg_size_pretty(table_bytes), pg_size_pretty(index_bytes)) \
             FROM bench.fixtures WHERE name = $1 AND schema = $2",
            &[name.into(), schema.into()],
        )
    })
}
