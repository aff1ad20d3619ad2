//! From the arguments of bench.capture to its end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bench_core::captured::Counts;
use bench_core::error::{UserError, sqlstate};

use super::spec::CaptureSpec;
use super::statements;
use crate::catalog::{self, CaptureEnd, CapturedStatement};
use crate::error::warn;
use crate::launch::capture_name;
use crate::observe::statement_calls::{self, StatementCalls};
use crate::server::process::{current_timestamp, nap};

/// Removes a capture.
///
/// # Errors
/// 42704 where there is none, and as [`check_owner`].
pub fn drop(name: &str) -> Result<(), UserError> {
    if capture_name::check_owner(name)? {
        return catalog::delete_capture(name);
    }
    Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("capture \"{name}\" does not exist")))
}

/// The counters at the beginning.
pub struct FirstReading {
    /// A TimestampTz.
    pub at: i64,
    counts: HashMap<(u32, i64), Counts>,
    deallocations: Option<i64>,
}

impl FirstReading {
    /// Reads them; none where everything that the view has is to be taken.
    pub fn read(spec: &CaptureSpec) -> Result<Self, UserError> {
        let mut counts = HashMap::new();
        if spec.secs > 0.0 {
            for StatementCalls { user, query_id, counts: found, .. } in statement_calls::snapshot(false)? {
                if let Some(id) = query_id {
                    counts.insert((user, id), found);
                }
            }
        }
        Ok(Self { at: current_timestamp(), counts, deallocations: statement_calls::deallocations()? })
    }
}

/// What a capture says of itself to whoever has called it.
pub fn tell(spec: &CaptureSpec) -> Result<Vec<CapturedStatement>, UserError> {
    let options = spec.checked_options()?;
    let statements = catalog::captured_statements(&spec.name)?;
    for note in catalog::notes_of_capture(&spec.name)? {
        pgrx::notice!("{note}");
    }
    if options.writes && statements.iter().any(|s| s.workload.is_some()) {
        warn(
            format!(
                "runs of capture \"{}\" change the data of the tables that its statements write to",
                spec.name
            ),
            "Run it on a copy of the database.",
        );
    }
    Ok(statements)
}

/// Takes the second reading and keeps what was captured, in the row that has been begun.
pub fn keep(spec: &CaptureSpec, beginning: &FirstReading) -> Result<(), UserError> {
    let options = spec.checked_options()?;
    let mut entries = statement_calls::snapshot(true)?;
    let dropped = match (beginning.deallocations, statement_calls::deallocations()?) {
        (Some(before), Some(now)) if spec.secs > 0.0 => Some((now - before).max(0)),
        (_, now) => now,
    };
    for entry in &mut entries {
        let before = entry.query_id.and_then(|id| beginning.counts.get(&(entry.user, id)));
        if let Some(before) = before {
            entry.counts = entry.counts.since(before);
        }
    }
    entries.retain(|entry| entry.counts.calls > 0);
    let taken = statements::take(spec, &options, entries)?;
    let mut notes = taken.notes;
    if let Some(dropped) = dropped.filter(|&dropped| dropped > 0) {
        notes.push(format!(
            "pg_stat_statements dropped entries {dropped} times meanwhile: their calls are missing; raise pg_stat_statements.max"
        ));
    }
    let missing: f64 = taken.statements.iter().filter(|s| s.workload.is_none()).map(|s| s.share).sum();
    if missing > 0.0 {
        notes.push(format!(
            "statements that were not kept took {:.1} % of the execution time",
            100.0 * missing
        ));
    }
    for statement in &taken.statements {
        catalog::put_captured_statement(&spec.name, statement)?;
    }
    let end = CaptureEnd {
        status: "completed".to_owned(),
        calls: Some(taken.calls),
        exec_ms: Some(taken.exec_ms),
        dealloc: dropped,
        notes,
        error: None,
    };
    catalog::end_capture(&spec.name, &end)
}

fn missing(name: &str) -> UserError {
    UserError::new(sqlstate::UNDEFINED_OBJECT, format!("capture \"{name}\" does not exist"))
}

/// Waits until a capture has ended, or until then, and says how it is.
///
/// # Errors
/// 42704, also for what bench.captures does not show.
pub fn wait(name: &str, until: Option<Instant>) -> Result<String, UserError> {
    loop {
        let handle = catalog::capture(name)?.filter(|capture| catalog::may_see(capture.owner_oid));
        let status = handle.ok_or_else(|| missing(name))?.status;
        if status != "capturing" || until.is_some_and(|until| Instant::now() >= until) {
            return Ok(status);
        }
        nap(50);
    }
}

/// Stops a capture under way; false where there is none.
///
/// # Errors
/// 42704 for an unknown one, 42501 without the privileges of its role or of pg_signal_backend.
pub fn stop(name: &str) -> Result<bool, UserError> {
    let handle = catalog::capture(name)?.ok_or_else(|| missing(name))?;
    if !catalog::may_stop(handle.owner_oid) {
        let message = format!("capture \"{name}\" belongs to role \"{}\"", handle.role);
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."));
    }
    if handle.status != "capturing" || !crate::server::process::cancel(handle.pid) {
        return Ok(false);
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10)
        && catalog::capture(name)?.is_some_and(|now| now.status == "capturing")
    {
        nap(20);
    }
    Ok(true)
}
