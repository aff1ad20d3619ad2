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
mod guard;
mod history;
mod horizon;
mod in_use;
mod loads;
mod ownership;
pub mod recorder;
mod rolled_back;
mod sweeps;
mod totals;
mod transfer;
mod trust;
mod version;

use std::ffi::CStr;

use bench_core::error::{UserError, sqlstate};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiHeapTupleData};
use pgrx::{PgTryBuilder, Spi, pg_sys};

use crate::error::{from_caught, internal};

pub use cluster::{is_part, may_run, names_of, run_error, table_of};
pub use definitions::*;
pub use distributed::*;
pub use document::{check_visible, document, headline, strict_document, visible_headline, visible_run};
pub use guard::{check_fixture_triggers, watch_fixtures};
pub use history::history;
pub use horizon::*;
pub use in_use::{check_unused, runs_of_job};
pub use loads::*;
pub use ownership::*;
pub use rolled_back::rolled_back;
pub use sweeps::*;
pub use transfer::{Imported, StoredJsonb, delete_runs, export, forget_runs, import, prune, take_part};
pub use trust::check_extension_trusted;

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

/// The table that stands for the extension: while it is locked, none of the others can go.
fn anchor() -> Result<pg_sys::Oid, UserError> {
    // SAFETY: system catalog look-ups inside a transaction.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"bench".as_ptr(), true);
        let table = pg_sys::get_relname_relid(c"run_log".as_ptr(), schema);
        let extension = pg_sys::get_extension_oid(c"pgbench_ext".as_ptr(), true);
        let belongs = table != pg_sys::InvalidOid
            && extension != pg_sys::InvalidOid
            && pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) == extension;
        if belongs {
            guard::check_schema(schema)?;
            Ok(table)
        } else {
            Err(UserError::new(sqlstate::UNDEFINED_OBJECT, "extension \"pgbench_ext\" is not installed"))
        }
    }
}

/// Locks the anchor against DROP EXTENSION until the transaction ends.
///
/// # Errors
/// 42704 when the extension has gone. Without this a table that somebody made in its place, with
/// a trigger, would be written to as a superuser. 55000 when its SQL is another version's.
fn hold_extension() -> Result<pg_sys::Oid, UserError> {
    let table = anchor()?;
    // SAFETY: a lock that the transaction gives back.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::AccessShareLock as i32) };
    if anchor()? != table {
        return Err(internal("the extension was replaced meanwhile"));
    }
    version::check()?;
    // SAFETY: a system catalog look-up inside a transaction.
    let internal = unsafe { pg_sys::get_namespace_oid(c"bench_internal".as_ptr(), true) };
    if internal != pg_sys::InvalidOid {
        guard::check_schema(internal)?;
    }
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
    // SAFETY: the lock that was taken above.
    unsafe { pg_sys::UnlockRelationOid(table, pg_sys::AccessShareLock as i32) };
    result
}

/// The extension's owner, for [`as_role`] when the extension may have gone.
fn extension_owner() -> Result<pg_sys::Oid, UserError> {
    owner_of(anchor()?)
}

/// Runs `body` as another role, with a search_path of pg_catalog, and goes back, as [`as_owner`].
fn as_role<T>(owner: pg_sys::Oid, body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let _guard = guard::Guard::new();
    // SAFETY: as the server's own referential integrity triggers switch roles (ri_PerformCheck);
    // LOCAL_USERID_CHANGE forbids SET ROLE inside. The settings' nest level is closed below, or by
    // the abort of the transaction.
    unsafe {
        let mut role = pg_sys::InvalidOid;
        let mut context = 0;
        pg_sys::GetUserIdAndSecContext(&raw mut role, &raw mut context);
        let level = pg_sys::NewGUCNestLevel();
        set_local(c"search_path", c"pg_catalog, pg_temp");
        pg_sys::SetUserIdAndSecContext(owner, context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as i32);
        let result = body();
        pg_sys::SetUserIdAndSecContext(role, context);
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}

/// Runs `body`, in the recorder, as a run's role. Nothing in it can go back to being the recorder, nor leave behind what runs
/// later, as VACUUM keeps the functions of indexes from that.
pub fn as_run_role<T>(
    role: pg_sys::Oid,
    body: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    // SAFETY: as in `as_role`; the abort of the transaction goes back after an error.
    unsafe {
        let mut before = pg_sys::InvalidOid;
        let mut context = 0;
        pg_sys::GetUserIdAndSecContext(&raw mut before, &raw mut context);
        let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION | pg_sys::SECURITY_LOCAL_USERID_CHANGE;
        pg_sys::SetUserIdAndSecContext(role, context | restricted as i32);
        let result = body();
        pg_sys::SetUserIdAndSecContext(before, context);
        result
    }
}

/// Sets a configuration parameter until the transaction, or the settings' nest level, ends.
///
/// # Safety
/// Inside one of them.
pub unsafe fn set_local(name: &CStr, value: &CStr) {
    // SAFETY: by the caller; NUL-terminated strings.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

fn owner_of(table: pg_sys::Oid) -> Result<pg_sys::Oid, UserError> {
    // SAFETY: a syscache look-up; the tuple is released before returning.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, pg_sys::Datum::from(table));
        if tuple.is_null() {
            return Err(internal("cache lookup failed for bench.run_log"));
        }
        let class: *mut pg_sys::FormData_pg_class = pg_sys::GETSTRUCT(tuple).cast();
        let owner = (*class).relowner;
        pg_sys::ReleaseSysCache(tuple);
        Ok(owner)
    }
}

/// Runs `body` in a transaction of its own, in a worker that has none open. An error rolls it
/// back and is returned.
pub fn transaction<T>(
    body: impl FnOnce() -> Result<T, UserError> + std::panic::UnwindSafe + std::panic::RefUnwindSafe,
) -> Result<T, UserError> {
    let result = PgTryBuilder::new(std::panic::AssertUnwindSafe(|| {
        // SAFETY: the usual frame of a worker's transaction; an error unwinds to the catch below.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            let result = body();
            if result.is_ok() {
                pg_sys::PopActiveSnapshot();
                pg_sys::CommitTransactionCommand();
                pg_sys::pgstat_report_stat(false);
            }
            result
        }
    }))
    .catch_others(|caught| Err(from_caught(caught)))
    .execute();
    if result.is_err() {
        roll_back();
    }
    result
}

/// As [`transaction`], for what must survive a crash of the server once this returns, whatever synchronous_commit says. No
/// standby is waited for.
pub fn durable_transaction<T>(
    body: impl FnOnce() -> Result<T, UserError> + std::panic::UnwindSafe + std::panic::RefUnwindSafe,
) -> Result<T, UserError> {
    transaction(|| {
        // SAFETY: inside a transaction, at whose commit the setting is still in force.
        unsafe { set_local(c"synchronous_commit", c"local") };
        body()
    })
}

/// Runs `body` with locks on tables, in a worker that has no transaction open. It has no snapshot, and so holds
/// back nothing else.
pub fn locked<T>(
    tables: &[pg_sys::Oid],
    mode: i32,
    body: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    let result = PgTryBuilder::new(std::panic::AssertUnwindSafe(|| {
        // SAFETY: as in `transaction`.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            tables.iter().for_each(|&table| pg_sys::LockRelationOid(table, mode));
            let result = body();
            if result.is_ok() {
                pg_sys::CommitTransactionCommand();
            }
            result
        }
    }))
    .catch_others(|caught| Err(from_caught(caught)))
    .execute();
    if result.is_err() {
        roll_back();
    }
    result
}

/// Leaves whatever is open; outside a transaction it does nothing.
fn roll_back() {
    // SAFETY: as PostgresMain does after an error.
    unsafe {
        pg_sys::AbortOutOfAnyTransaction();
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
    }
}

/// An SPI failure that is not an ERROR of the server's: a bug of ours.
fn spi_error(error: pgrx::spi::Error) -> UserError {
    // Users' own statements: those of a fixture.
    if matches!(error, pgrx::spi::Error::SpiError(pgrx::spi::SpiErrorCodes::Transaction)) {
        let message = "cannot begin or end transactions in the statements of a fixture";
        return UserError::new(sqlstate::INVALID_TRANSACTION_TERMINATION, message);
    }
    internal(format!("unexpected SPI result: {error}"))
}

/// Reads with the latest snapshot, for what workers commit while this session's statement runs has
/// to be seen, whatever its isolation level. No transaction id is assigned: one would hold back the xmin horizon.
pub fn read<T>(body: impl FnOnce(&SpiClient) -> pgrx::spi::Result<T>) -> Result<T, UserError> {
    // SAFETY: inside a transaction; popped below, or by the abort after an error.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let result = Spi::connect(body).map_err(spi_error);
    // SAFETY: the one that was pushed above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// Runs a query for its first value.
pub fn fetch<T: FromDatum + IntoDatum>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    read(|client| {
        let table = client.select(sql, Some(1), arguments)?;
        if table.is_empty() { Ok(None) } else { table.first().get(1) }
    })
}

/// Runs a statement for its effect; the number of rows.
pub fn run(sql: &str, arguments: &[DatumWithOid]) -> Result<usize, UserError> {
    Spi::connect_mut(|client| client.update(sql, None, arguments).map(|table| table.len())).map_err(spi_error)
}

/// Runs a statement for its effect and its first value.
pub fn call<T: FromDatum + IntoDatum>(sql: &str, arguments: &[DatumWithOid]) -> Result<Option<T>, UserError> {
    Spi::connect_mut(|client| client.update(sql, None, arguments)?.first().get(1)).map_err(spi_error)
}

/// All rows of a query, each as `row` has it.
pub fn fetch_all<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
) -> Result<Vec<T>, UserError> {
    read(|client| client.select(sql, None, arguments)?.map(|found| row(&found)).collect())
}

/// The same of a query that locks the rows it finds, which is no reading.
pub fn locked_rows<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
) -> Result<Vec<T>, UserError> {
    let all = |client: &mut SpiClient| -> pgrx::spi::Result<Vec<T>> {
        client.update(sql, None, arguments)?.map(|found| row(&found)).collect()
    };
    Spi::connect_mut(all).map_err(spi_error)
}

/// Whether there is a schema of this name.
pub fn schema_exists(name: &str) -> Result<bool, UserError> {
    let sql =
        "SELECT true FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text";
    Ok(fetch::<bool>(sql, &[name.into()])?.is_some())
}

/// Drops tables, as the current role: all at once, for they may refer to each other.
pub fn drop_tables(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let names = fetch::<String>(
        "SELECT pg_catalog.string_agg(t::pg_catalog.regclass::pg_catalog.text, ', ') FROM pg_catalog.unnest($1) AS t",
        &[tables.to_vec().into()],
    )?;
    names.map_or(Ok(()), |names| run(&format!("DROP TABLE {names}"), &[]).map(drop))
}

/// Tables, and then the partitions that they have, without a lock on any.
pub fn with_partitions(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    let partitions = fetch::<Vec<pg_sys::Oid>>(
        "WITH RECURSIVE tree (relation) AS ( \
             SELECT t FROM pg_catalog.unnest($1) AS t \
             UNION \
             SELECT c.oid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent OPERATOR(pg_catalog.=) tree.relation \
             JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid AND c.relispartition) \
         SELECT pg_catalog.array_agg(relation ORDER BY relation) FROM tree \
         WHERE relation OPERATOR(pg_catalog.<>) ALL ($1)",
        &[tables.to_vec().into()],
    )?;
    Ok([tables, &partitions.unwrap_or_default()].concat())
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

/// The name of this session's database.
pub fn database_name() -> Result<String, UserError> {
    Ok(fetch::<String>("SELECT pg_catalog.current_database()::pg_catalog.text", &[])?.unwrap_or_default())
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
            "SELECT low_ms, high_ms, bench_internal.as_bigint(pg_catalog.sum(count)) FROM bench.latencies \
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
