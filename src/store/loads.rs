//! Loads: a row of bench_internal.load_log for the last one of each fixture, and a staging schema for its tables.
//!
//! The staging schema belongs to the extension's owner, and the calling role may create in it: the role needs CREATE on one
//! schema only, and no other role can add objects. The remains of a load whose leader died are removed by the next load.

use std::ffi::CString;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::datum::DatumWithOid;
use pgrx::{JsonB, pg_sys};
use serde::Deserialize;

use super::{as_owner, is_led, may_see};
use crate::cluster::citus;
use crate::guard::extension::anchor;
use crate::guard::switch_role::as_role;
use crate::server::guc::set_local;
use crate::server::jsonb::json_of;
use crate::server::process::nap;
use crate::server::relations::{self, schema_exists};
use crate::server::roles::name_of;
use crate::server::rows::select_from;
use crate::server::spi::{define, fetch, quote_identifier, run};
use crate::server::transaction::transaction;
use crate::shm::{Segment, Work};

/// Returns the schema that a load creates its tables in.
pub fn staging_schema(load_id: i64) -> String {
    format!("bench_loading_{load_id}")
}

/// A load that this process leads.
#[derive(Clone, Copy)]
pub struct OwnLoad {
    pub load_id: i64,
    /// The owner of the staging schema, which is the extension's.
    owner: pg_sys::Oid,
}

/// Begins a load of this fixture in its schema: writes its row, and creates the staging schema.
///
/// # Errors
/// 55006 if another session is loading it.
pub fn begin_load(
    fixture: &str,
    schema: &str,
    role: pg_sys::Oid,
    segment: &Segment,
) -> Result<OwnLoad, UserError> {
    let owner = super::extension_owner::extension_owner()?;
    as_owner(|| {
        let load_id = new_load_id()?;
        segment.claim(Work::Load(load_id));
        let taken = run(
            "INSERT INTO bench_internal.load_log AS l (load_id, fixture, schema, role, segment, owner_oid) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (schema, fixture) DO UPDATE SET load_id = excluded.load_id, role = excluded.role, segment = excluded.segment, \
                 owner_oid = excluded.owner_oid, status = excluded.status, started_at = excluded.started_at, finished_at = NULL, \
                 error = NULL WHERE l.status <> 'running'",
            &[
                load_id.into(),
                fixture.into(),
                schema.into(),
                existing(role)?.into(),
                i64::from(segment.handle()).into(),
                role.into(),
            ],
        )?;
        if taken == 0 {
            return Err(taken_by(fixture, schema)?);
        }
        grant_staging_schema(&staging_schema(load_id), role)?;
        Ok(OwnLoad { load_id, owner })
    })
}

/// Creates a staging schema in a transaction that will be rolled back.
pub fn try_staging_schema(role: pg_sys::Oid) -> Result<String, UserError> {
    as_owner(|| {
        let schema = staging_schema(new_load_id()?);
        grant_staging_schema(&schema, role).map(|()| schema)
    })
}

/// Returns a new id whose staging schema does not exist yet: a restored database may contain the remains of a crash.
fn new_load_id() -> Result<i64, UserError> {
    loop {
        let load_id = fetch::<i64>("SELECT nextval('bench_internal.load_id_seq')", &[])?.unwrap_or_default();
        if !schema_exists(&staging_schema(load_id))? {
            return Ok(load_id);
        }
    }
}

/// Returns the error for a fixture with another load under way, or with remains that could not be removed.
fn taken_by(fixture: &str, schema: &str) -> Result<UserError, UserError> {
    let others = entries("fixture = $1 AND schema = $2", &[fixture.into(), schema.into()])?;
    let leftover = others.iter().find(|entry| !is_led(Work::Load(entry.load_id), entry.segment));
    Ok(match leftover {
        None => UserError::new(
            sqlstate::OBJECT_IN_USE,
            format!("fixture \"{fixture}\" is being loaded by another session"),
        ),
        Some(entry) => UserError::new(
            sqlstate::OBJECT_IN_USE,
            format!(
                "cannot remove the tables that a failed load of fixture \"{fixture}\" left in schema \"{}\"",
                staging_schema(entry.load_id)
            ),
        )
        .hint("Other sessions may hold locks on the tables, or there may be more tables than max_locks_per_transaction allows: DROP them, then load again."),
    })
}

/// Creates a schema of the extension's owner in which a role may create.
///
/// # Errors
/// 42P06 if it exists.
fn grant_staging_schema(schema: &str, role: pg_sys::Oid) -> Result<(), UserError> {
    let (schema, role) = (quote_identifier(schema), quote_identifier(&existing(role)?));
    define(&format!("CREATE SCHEMA {schema}"))?;
    define(&format!("GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}"))
}

/// Returns the name of a role.
///
/// # Errors
/// 42704 if it was dropped.
fn existing(role: pg_sys::Oid) -> Result<String, UserError> {
    let gone = || {
        UserError::new(sqlstate::UNDEFINED_OBJECT, format!("role with OID {} does not exist", role.to_u32()))
    };
    name_of(role).ok_or_else(gone)
}

/// The end of a load.
#[derive(Clone, Copy)]
pub enum LoadEnd<'a> {
    Completed,
    Failed(&'a UserError),
    /// Its leader died without recording an end.
    Crashed,
}

impl LoadEnd<'_> {
    /// Returns the status in bench.loads.
    fn status(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(UserError { sqlstate, .. })
                if matches!(sqlstate.as_str(), sqlstate::QUERY_CANCELED | sqlstate::ADMIN_SHUTDOWN) =>
            {
                "canceled"
            }
            Self::Failed(_) => "failed",
            Self::Crashed => "crashed",
        }
    }
}

/// Completes a load whose tables have been moved to their schema.
///
/// # Errors
/// 2BP01 if the staging schema is not empty.
pub fn end_load(load: OwnLoad) -> Result<(), UserError> {
    as_owner(|| close(load, LoadEnd::Completed, "RESTRICT"))
}

/// Removes the remains of a load in a transaction of its own. If other sessions hold locks on them for longer than `timeout`,
/// they are left to the next load. Other errors are followed by up to `tries` - 1 further attempts: a concurrent DROP EXTENSION
/// may have caused them.
pub fn abandon(load: OwnLoad, timeout: Duration, tries: u32, end: LoadEnd) {
    for left in (0..tries).rev() {
        match transaction(AssertUnwindSafe(|| abandon_load(load, timeout, end))) {
            Ok(()) => break,
            Err(error) if left > 0 && error.sqlstate != sqlstate::LOCK_NOT_AVAILABLE => {}
            Err(error) => {
                log_remains(load, &error);
                break;
            }
        }
    }
}

/// Writes to the server's log that a load's tables still exist. Locks can prevent their removal, or an event trigger on sql_drop.
fn log_remains(load: OwnLoad, reason: &UserError) {
    let message = format!("could not remove the tables of load {}: {}", load.load_id, reason.message);
    crate::error::log(
        UserError::new(&reason.sqlstate, message)
            .detail(format!("They are in schema \"{}\".", staging_schema(load.load_id)))
            .hint("The next bench.load removes them."),
    );
}

/// Removes everything that a failed load has created, within a transaction.
///
/// # Errors
/// 55P03 if other sessions hold locks.
fn abandon_load(load: OwnLoad, timeout: Duration, end: LoadEnd) -> Result<(), UserError> {
    let schema = staging_schema(load.load_id);
    if anchor().is_err() {
        // The extension was dropped, and the load's row with it.
        return as_role(load.owner, || {
            lock_tables(&schema, timeout)?;
            drop_schema(load.load_id, load.owner, "CASCADE")
        });
    }
    as_owner(|| {
        lock_tables(&schema, timeout)?;
        close(load, end, "CASCADE")
    })
}

/// Locks the relations of a schema. Takes each lock conditionally, so that other sessions do not queue behind a waiting one.
fn lock_tables(schema: &str, timeout: Duration) -> Result<(), UserError> {
    let began = Instant::now();
    let tables = fetch::<Vec<pg_sys::Oid>>(
        "SELECT array_agg(c.oid) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'S', 'i', 'I')",
        &[schema.into()],
    )?;
    // For other objects in the schema. The setting lasts until the transaction ends.
    let setting = CString::new(timeout.as_millis().to_string()).unwrap_or_default();
    set_local(c"lock_timeout", &setting);
    for table in tables.unwrap_or_default() {
        while !relations::try_lock(table, pg_sys::AccessExclusiveLock) {
            if began.elapsed() >= timeout {
                return Err(UserError::new(
                    sqlstate::LOCK_NOT_AVAILABLE,
                    format!("tables that a load left in schema \"{schema}\" are in use"),
                ));
            }
            nap(10);
        }
    }
    Ok(())
}

/// Closes the row, and then drops the staging schema; does nothing if the row is closed. Runs as the extension's owner.
fn close(load: OwnLoad, end: LoadEnd, dependents: &str) -> Result<(), UserError> {
    let error = match end {
        LoadEnd::Failed(error) => Some(JsonB(json_of(error))),
        _ => None,
    };
    let sql = "UPDATE bench_internal.load_log SET status = $2, finished_at = clock_timestamp(), error = $3 \
               WHERE load_id = $1 AND status = 'running'";
    if run(sql, &[load.load_id.into(), end.status().into(), error.into()])? == 0 {
        return Ok(());
    }
    drop_schema(load.load_id, load.owner, dependents)
}

/// Drops the staging schema, if the load has created it.
fn drop_schema(load_id: i64, owner: pg_sys::Oid, dependents: &str) -> Result<(), UserError> {
    let schema = staging_schema(load_id);
    let is_ours = "SELECT true FROM pg_namespace WHERE nspname = $1::text AND nspowner = $2";
    if fetch::<bool>(is_ours, &[schema.as_str().into(), owner.into()])?.is_none() {
        return Ok(());
    }
    define(&format!("DROP SCHEMA {} {dependents}", quote_identifier(&schema)))
}

/// Removes the remains of loads whose leaders died. Those that cannot be removed now are left to a later load, so that they do
/// not keep other roles from loading.
pub fn remove_dead_loads() -> Result<(), UserError> {
    const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
    for entry in transaction(|| as_owner(|| entries("true", &[])))? {
        if !transaction(|| Ok(is_led(Work::Load(entry.load_id), entry.segment)))? {
            let _ = transaction(|| {
                let owner = super::extension_owner::extension_owner()?;
                abandon_load(OwnLoad { load_id: entry.load_id, owner }, LOCK_TIMEOUT, LoadEnd::Crashed)
            });
        }
    }
    Ok(())
}

/// Returns those of a load's tables that only INSERT can fill: tables that have, or whose partitions have, rules, forced row
/// security, insert triggers or generated columns, foreign tables and the like, and distributed tables.
pub fn tables_for_insert(load_id: i64) -> Result<Vec<String>, UserError> {
    let or_distributed = if citus::is_installed()? {
        "OR EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid::oid = c.oid)"
    } else {
        ""
    };
    let tables = fetch::<Vec<String>>(
        &format!(
            "WITH RECURSIVE tree (root, relation) AS ( \
             SELECT c.relname, c.oid FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = $1::text AND NOT c.relispartition \
               AND c.relkind = ANY ('{{r,p}}'::\"char\"[]) \
             UNION ALL \
             SELECT tree.root, c.oid FROM tree \
             JOIN pg_inherits i ON i.inhparent = tree.relation \
             JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition) \
         SELECT array_agg(DISTINCT tree.root::text) FROM tree \
         JOIN pg_class c ON c.oid = tree.relation \
         WHERE c.relkind <> ALL ('{{r,p}}'::\"char\"[]) OR c.relhasrules OR c.relforcerowsecurity \
            OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid \
                         AND (t.tgtype::int4 & 4) <> 0) \
            OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid \
                         AND a.attgenerated <> ''::\"char\") \
            {or_distributed}"
        ),
        &[staging_schema(load_id).into()],
    )?;
    Ok(tables.unwrap_or_default())
}

/// Whether the caller may see a load; false if it does not exist.
pub fn may_see_load(load_id: i64) -> Result<bool, UserError> {
    let sql = "SELECT owner_oid FROM bench_internal.load_log WHERE load_id = $1";
    Ok(as_owner(|| fetch::<pg_sys::Oid>(sql, &[load_id.into()]))?.is_some_and(may_see))
}

/// An open row of bench_internal.load_log: a load under way, or one whose leader died.
#[derive(Deserialize)]
struct LoadLogRow {
    load_id: i64,
    segment: u32,
}

/// Reads the open rows of bench_internal.load_log that satisfy a condition, as the extension's owner.
fn entries(condition: &str, arguments: &[DatumWithOid]) -> Result<Vec<LoadLogRow>, UserError> {
    select_from(&format!("bench_internal.load_log WHERE status = 'running' AND {condition}"), arguments)
}
