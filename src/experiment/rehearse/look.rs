//! What the leader of a rehearsal reads of the server and of the run while the change is under way.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, unpack};
use bench_results::rehearsal::{BlockingSession, QueuedSession};
use serde::Deserialize;

use crate::server::rows::select;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::shm::Segment;

/// A session that waits for a lock now.
#[derive(Debug, Deserialize)]
pub struct Waiter {
    pub pid: i32,
    pub mode: String,
    pub locked: String,
    pub wait_secs: f64,
    pub blocked_by: Vec<i32>,
}

impl Waiter {
    /// Returns the wait for the record; `now` in seconds of the run.
    pub fn queued(&self, session: &str, now: f64) -> QueuedSession {
        QueuedSession {
            pid: self.pid,
            session: session.to_owned(),
            blocked_by: self.blocked_by.clone(),
            mode: self.mode.clone(),
            locked: self.locked.clone(),
            begin: now - self.wait_secs,
            end: now,
        }
    }
}

/// Reads which sessions of this database wait for locks.
///
/// # Errors
/// Those of queries.
pub fn waiters() -> Result<Vec<Waiter>, UserError> {
    let sql = "SELECT l.pid, l.mode, coalesce(l.relation::regclass::text, l.locktype) AS locked, \
                   coalesce(extract(epoch FROM clock_timestamp() - l.waitstart), 0)::float8 AS wait_secs, \
                   pg_blocking_pids(l.pid) AS blocked_by \
               FROM pg_locks l JOIN pg_stat_get_activity(NULL) a ON a.pid = l.pid \
               WHERE NOT l.granted AND a.datid = (SELECT oid FROM pg_database WHERE datname = current_database())";
    transaction(|| select::<Waiter>(sql, &[]))
}

/// Reads a session that others wait for. Its statement is visible as in pg_stat_activity.
///
/// # Errors
/// Those of queries.
pub fn blocking_session(pid: i32) -> Result<BlockingSession, UserError> {
    #[derive(Deserialize)]
    struct Row {
        statement: Option<String>,
        age_secs: Option<f64>,
    }
    let sql = "SELECT CASE WHEN query_start IS NOT NULL THEN query END AS statement, \
                   extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age_secs \
               FROM pg_stat_activity WHERE pid = $1";
    let rows = transaction(|| select::<Row>(sql, &[pid.into()]))?;
    Ok(rows.into_iter().next().map_or(BlockingSession { pid, ..BlockingSession::default() }, |row| {
        BlockingSession { pid, statement: row.statement, age_secs: row.age_secs }
    }))
}

/// Whether a session has a lock on a relation of users.
///
/// # Errors
/// Those of queries.
pub fn has_lock(pid: i32) -> Result<bool, UserError> {
    let sql = "SELECT true FROM pg_locks WHERE pid = $1 AND granted AND relation >= 16384 LIMIT 1";
    Ok(transaction(|| fetch::<bool>(sql, &[pid.into()]))? == Some(true))
}

/// Counts the columns that were dropped, which stay in the catalog.
///
/// # Errors
/// Those of queries.
pub fn dropped_columns() -> Result<i64, UserError> {
    let sql = "SELECT count(*) FROM pg_attribute WHERE attisdropped";
    Ok(transaction(|| fetch::<i64>(sql, &[]))?.unwrap_or_default())
}

/// Counts the failed transactions of a run's clients so far, by SQLSTATE.
pub fn failures(run: &Segment) -> BTreeMap<String, u64> {
    let mut failures = BTreeMap::new();
    for entry in run.slots().flat_map(|slot| &slot.errors) {
        let sqlstate = entry.sqlstate.load(Acquire);
        if sqlstate != 0 {
            *failures.entry(unpack(sqlstate)).or_default() += entry.failed.get();
        }
    }
    failures
}
