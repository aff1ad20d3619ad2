//! The only place with SQL on the bench.* tables.
//!
//! In a caller's session the tables are read and written as the extension's owner, whatever the
//! caller may do with them, after the question who may do what has been answered; in the
//! coordinator, which is connected as the bootstrap superuser, by [`recorder`]. All names are
//! qualified, and the search_path is pg_catalog. [`guard`] sees to it that what is touched belongs to superusers.

pub mod cluster;
mod definitions;
mod distributed;
mod document;
mod history;
mod horizon;
mod in_use;
mod loads;
pub mod recorder;
mod sweeps;
mod totals;
mod transfer;
mod version;

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::error::internal;
use crate::server::extension::anchor;
use crate::server::locks;
use crate::server::relations::owner_of;
use crate::server::roles::{acts_for, as_role};
use crate::server::spi::{fetch, fetch_all, read, run};

pub use cluster::{is_part, may_run, names_of, run_error, table_of};
pub use definitions::*;
pub use distributed::*;
pub use document::{check_visible, document, headline, strict_document, visible_headline, visible_run};
pub use history::history;
pub use horizon::*;
pub use in_use::{check_unused, runs_of_job};
pub use loads::*;
pub use sweeps::*;
pub use transfer::{Imported, delete_runs, export, forget_runs, import, prune, take_part};

/// A row of bench.workloads.
pub struct Workload {
    pub name: String,
    pub owner: String,
    pub fixture: Option<String>,
    pub script: String,
    pub builtin: bool,
}

/// A row of bench.fixtures.
pub struct Fixture {
    pub name: String,
    pub schema: String,
    pub owner: String,
    pub rows: i64,
    /// As given to bench.load.
    pub options: serde_json::Value,
    /// Tables that still exist.
    pub tables: Vec<pg_sys::Oid>,
    /// Tables that were dropped behind the extension's back.
    pub missing: i64,
}

/// Locks the anchor against DROP EXTENSION until the transaction ends.
///
/// # Errors
/// 42704 when the extension has gone. Without this a table that somebody made in its place, with
/// a trigger, would be written to as a superuser. 55000 when its SQL is another version's.
fn hold_extension() -> Result<pg_sys::Oid, UserError> {
    let table = anchor()?;
    locks::lock(table, pg_sys::AccessShareLock);
    if anchor()? != table {
        return Err(internal("the extension was replaced meanwhile"));
    }
    version::check()?;
    Ok(table)
}

/// Runs `body` as the extension's owner, with a search_path of pg_catalog, and goes back. An
/// error goes back as well: the end of the (sub)transaction restores role and settings.
pub fn as_owner<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let table = hold_extension()?;
    let result = as_role(owner_of(table)?, body);
    // Not until the transaction ends: a caller that waits for its run must not stand in the
    // way of what waits for this table, and so of its own recorder. What was written keeps
    // the locks of its own tables.
    locks::unlock(table, pg_sys::AccessShareLock);
    result
}

/// The extension's owner, for [`as_role`] when the extension may have gone.
fn extension_owner() -> Result<pg_sys::Oid, UserError> {
    owner_of(anchor()?)
}

/// A workload by its name.
pub fn workload(name: &str) -> Result<Option<Workload>, UserError> {
    as_owner(|| {
        let sql = "SELECT name, owner, fixture, script, builtin FROM bench.workloads WHERE name = $1";
        let found = fetch_all(sql, &[name.into()], |row| {
            let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
            Ok(Workload {
                name: text(1)?,
                owner: text(2)?,
                fixture: row.get(3)?,
                script: text(4)?,
                builtin: row.get::<bool>(5)?.unwrap_or_default(),
            })
        })?;
        Ok(found.into_iter().next())
    })
}

/// The names of all workloads.
pub fn workload_names() -> Result<Vec<String>, UserError> {
    as_owner(|| {
        let names = "SELECT pg_catalog.array_agg(name ORDER BY name) FROM bench.workloads";
        Ok(fetch::<Vec<String>>(names, &[])?.unwrap_or_default())
    })
}

/// Stores a workload of this owner's, over an older one of the same name.
///
/// A member who replaces the owner's leaves it the owner's; a superuser takes it over.
pub fn put_workload(
    name: &str,
    owner: &str,
    fixture: Option<&str>,
    script: &str,
    description: Option<&str>,
) -> Result<(), UserError> {
    as_owner(|| {
        run(
            "INSERT INTO bench.workloads (name, owner, fixture, script, description) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, fixture = EXCLUDED.fixture, \
                 script = EXCLUDED.script, description = EXCLUDED.description",
            &[name.into(), owner.into(), fixture.into(), script.into(), description.into()],
        )?;
        Ok(())
    })
}

/// Removes a workload.
pub fn delete_workload(name: &str) -> Result<(), UserError> {
    as_owner(|| run("DELETE FROM bench.workloads WHERE name = $1", &[name.into()]).map(drop))
}

/// Loaded fixtures of a name, newest first.
pub fn fixtures(name: &str) -> Result<Vec<Fixture>, UserError> {
    as_owner(|| {
        fetch_all(
            "SELECT f.schema, f.owner, f.rows, f.options, \
                    ARRAY(SELECT c.oid FROM pg_catalog.unnest(f.relations) WITH ORDINALITY AS u (relation, place) \
                          JOIN pg_catalog.pg_class c ON c.oid = u.relation ORDER BY u.place), \
                    (SELECT pg_catalog.count(*) FROM pg_catalog.unnest(f.relations) AS u (relation) \
                     WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = u.relation)) \
             FROM bench.fixtures f WHERE f.name = $1 ORDER BY f.loaded_at DESC",
            &[name.into()],
            |row| {
                Ok(Fixture {
                    name: name.to_owned(),
                    schema: row.get::<String>(1)?.unwrap_or_default(),
                    owner: row.get::<String>(2)?.unwrap_or_default(),
                    rows: row.get::<i64>(3)?.unwrap_or_default(),
                    options: row.get::<pgrx::JsonB>(4)?.map_or(serde_json::Value::Null, |json| json.0),
                    tables: row.get::<Vec<pg_sys::Oid>>(5)?.unwrap_or_default(),
                    missing: row.get::<i64>(6)?.unwrap_or_default(),
                })
            },
        )
    })
}

/// What was measured of a load.
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
    /// Of the tables, and of their indexes.
    pub bytes: (i64, i64),
    /// Levels of the largest primary key's B-tree.
    pub index_levels: Option<i32>,
    /// Between that key's values and where they are in the table.
    pub key_correlation: Option<f32>,
}

/// Registers a fixture that has just been loaded, over an older one in the same place.
pub fn put_fixture(
    fixture: &crate::fixture::LoadSpec,
    tables: &[pg_sys::Oid],
    figures: &LoadFigures,
) -> Result<(), UserError> {
    as_owner(|| {
        run(
            "INSERT INTO bench.fixtures (name, schema, owner, relations, rows, options, loaded_at, load_secs, \
                                         rows_per_sec, table_bytes, index_bytes, rows_query, index_secs, vacuum_secs, \
                                         index_levels, key_correlation) \
             SELECT $1, $2, $3, $4::pg_catalog.oid[]::pg_catalog.regclass[], $5, $6, pg_catalog.clock_timestamp(), \
                    $7, CASE WHEN $8 > 0 THEN $8 / $7 END, $9, $10, $11, $12, $13, $14, $15 \
             ON CONFLICT (schema, name) DO UPDATE SET owner = EXCLUDED.owner, relations = EXCLUDED.relations, \
                 rows = EXCLUDED.rows, options = EXCLUDED.options, loaded_at = EXCLUDED.loaded_at, \
                 load_secs = EXCLUDED.load_secs, rows_per_sec = EXCLUDED.rows_per_sec, \
                 table_bytes = EXCLUDED.table_bytes, index_bytes = EXCLUDED.index_bytes, \
                 rows_query = EXCLUDED.rows_query, index_secs = EXCLUDED.index_secs, vacuum_secs = EXCLUDED.vacuum_secs, \
                 index_levels = EXCLUDED.index_levels, key_correlation = EXCLUDED.key_correlation",
            &[
                fixture.name.as_str().into(),
                fixture.schema.as_str().into(),
                fixture.role.as_str().into(),
                tables.to_vec().into(),
                fixture.rows.into(),
                pgrx::JsonB(fixture.options.clone()).into(),
                figures.load_secs.into(),
                figures.rows.into(),
                figures.bytes.0.into(),
                figures.bytes.1.into(),
                fixture.fills.iter().find(|fill| fill.counts).map(|fill| fill.query.as_str()).into(),
                figures.index_secs.into(),
                figures.vacuum_secs.into(),
                figures.index_levels.into(),
                figures.key_correlation.into(),
            ],
        )
        .map(drop)
    })
}

/// Forgets a fixture.
pub fn delete_fixture(schema: &str, name: &str) -> Result<(), UserError> {
    as_owner(|| {
        let sql = "DELETE FROM bench.fixtures WHERE schema = $1 AND name = $2";
        run(sql, &[schema.into(), name.into()]).map(drop)
    })
}

/// How to find the coordinator of a run that may be under way.
pub struct RunHandle {
    pub segment: u32,
    pub status: String,
    pub role: String,
}

/// A run's row, for those who want to wait for it or stop it.
///
/// # Errors
/// 42704 for a run that does not exist.
pub fn run_handle(run_id: i64) -> Result<RunHandle, UserError> {
    as_owner(|| {
        read(|client| {
            let table = client.select(
                "SELECT segment, status, role FROM bench.run_log WHERE run_id = $1",
                Some(1),
                &[run_id.into()],
            )?;
            if table.is_empty() {
                return Ok(None);
            }
            let row = table.first();
            Ok(Some(RunHandle {
                segment: row.get::<i64>(1)?.unwrap_or_default() as u32,
                status: row.get::<String>(2)?.unwrap_or_default(),
                role: row.get::<String>(3)?.unwrap_or_default(),
            }))
        })?
        .ok_or_else(|| UserError::new(sqlstate::UNDEFINED_OBJECT, format!("run {run_id} does not exist")))
    })
}

/// Buckets of a run's histogram as (low ms, high ms, count), in ascending order.
pub fn histogram(run_id: i64) -> Result<Vec<(f64, f64, u64)>, UserError> {
    as_owner(|| {
        fetch_all(
            "SELECT low_ms, high_ms, bench.as_bigint(pg_catalog.sum(count)) FROM bench.latencies \
             WHERE run_id = $1 GROUP BY low_ms, high_ms ORDER BY low_ms",
            &[run_id.into()],
            |row| {
                let count = row.get::<i64>(3)?.unwrap_or_default();
                let low = row.get::<f64>(1)?.unwrap_or_default();
                Ok((low, row.get::<f64>(2)?.unwrap_or_default(), count.unsigned_abs()))
            },
        )
    })
}

/// The rule of who sees what belongs to a run, a load or a sweep of this role: who has its privileges or those of
/// pg_read_all_stats, and superusers. What a role has left that no longer exists is for the latter two.
pub fn may_see(role: &str) -> Result<bool, UserError> {
    Ok(acts_for(role)? || acts_for("pg_read_all_stats")?)
}
