//! Runs as their rows tell of them, for those who wait for one, stop it, or ask how it went.

use std::sync::atomic::Ordering::*;

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::{as_owner, check_visible};
use crate::server::database::is_standby;
use crate::server::process::is_backend;
use crate::server::spi::{fetch, fetch_all, read};
use crate::shm::{Segment, Work, build};

/// How to find the coordinator of a run that may be under way.
pub struct RunHandle {
    pub segment: u32,
    pub status: String,
    /// Its present name, or the one that was kept.
    pub role: String,
    pub owner_oid: pg_sys::Oid,
}

/// A run's row, for those who want to wait for it or stop it.
///
/// # Errors
/// 42704 for a run that does not exist.
pub fn run_handle(run_id: i64) -> Result<RunHandle, UserError> {
    as_owner(|| {
        read(|client| {
            let table = client.select(
                "SELECT segment, status, bench_internal.role_name(owner_oid, role), owner_oid \
                 FROM bench_internal.run_log WHERE run_id = $1",
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
                owner_oid: row.get::<pg_sys::Oid>(4)?.unwrap_or(pg_sys::InvalidOid),
            }))
        })?
        .ok_or_else(|| UserError::new(sqlstate::UNDEFINED_OBJECT, format!("run {run_id} does not exist")))
    })
}

/// Buckets of a run's histogram as (low ms, high ms, count), in ascending order.
pub fn histogram(run_id: i64) -> Result<Vec<(f64, f64, u64)>, UserError> {
    as_owner(|| {
        fetch_all(
            "SELECT low_ms, high_ms, pg_catalog.sum(count)::pg_catalog.int8 FROM bench.latencies \
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

/// A run's status, 'crashed' included.
pub fn status(run_id: i64) -> Result<String, UserError> {
    let handle = run_handle(run_id)?;
    current_status(handle.status, handle.segment, run_id)
}

/// What a run's row says, unless its coordinator is gone.
///
/// # Errors
/// 42501 for a run that the caller may not see.
pub fn current_status(status: String, segment: u32, run_id: i64) -> Result<String, UserError> {
    // A standby cannot know, so there the row stands as it is.
    if !is_open(&status) || is_standby() {
        return Ok(status);
    }
    let is_at_work = |segment: &Segment| {
        segment.is_of(Work::Run(run_id)) && is_backend(segment.header().coordinator_pid.load(Acquire))
    };
    if Segment::peek(segment, is_at_work) == Some(true) || build::is_led_by_other(segment, Work::Run(run_id))
    {
        return Ok(status);
    }
    // The row may have been read before the run ended well.
    if let Ok(latest) = run_handle(run_id) {
        // bench.audits looks at others' runs, too. It has the segment from the row, which tells it to nobody.
        if latest.segment != segment {
            check_visible(run_id)?;
        }
        if !is_open(&latest.status) {
            return Ok(latest.status);
        }
    }
    Ok("crashed".to_owned())
}

/// Whether a row with this status has not been closed.
pub fn is_open(status: &str) -> bool {
    matches!(status, "starting" | "running")
}

/// Transactions of a run that are in the sample of an earlier interval than their own, if there are any.
pub fn misplaced(run_id: i64) -> Result<Option<i64>, UserError> {
    as_owner(|| {
        fetch::<i64>(
            "SELECT harness FROM bench_internal.audit_log WHERE run_id = $1 AND counter = 'misplaced' AND harness > 0",
            &[run_id.into()],
        )
    })
}

/// Why a run did not complete, as a line.
pub fn error_line(run_id: i64) -> Result<Option<String>, UserError> {
    as_owner(|| {
        fetch::<String>(
            "SELECT error ->> 'message' || coalesce(' (' || (error ->> 'detail') || ')', '') \
             FROM bench_internal.run_log WHERE run_id = $1",
            &[run_id.into()],
        )
    })
}

/// What to do about it, where that is known.
pub fn error_hint(run_id: i64) -> Result<Option<String>, UserError> {
    let sql = "SELECT error ->> 'hint' FROM bench_internal.run_log WHERE run_id = $1";
    as_owner(|| fetch::<String>(sql, &[run_id.into()]))
}

/// How many transactions of a run each SQLSTATE has failed, the most frequent first.
pub fn failures(run_id: i64) -> Result<Vec<(String, i64)>, UserError> {
    let sql = "SELECT sqlstate, pg_catalog.sum(failed)::pg_catalog.int8 AS failed FROM bench_internal.error_log \
               WHERE run_id = $1 AND failed > 0 GROUP BY sqlstate ORDER BY failed DESC, sqlstate";
    as_owner(|| {
        fetch_all(sql, &[run_id.into()], |row| {
            Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<i64>(2)?.unwrap_or_default()))
        })
    })
}

/// Whether errors of a run's transactions have been kept.
pub fn has_errors(run_id: i64) -> Result<bool, UserError> {
    let sql = "SELECT true FROM bench_internal.error_log WHERE run_id = $1 LIMIT 1";
    Ok(as_owner(|| fetch::<bool>(sql, &[run_id.into()]))?.is_some())
}
