//! The end of a run, in parts: each is a transaction of its own, so that one that cannot be written takes none of the
//! others with it. The status comes last: who reads that a run is over finds what there is of it.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_base::words;
use bench_results::UnwrittenParts;

use super::extension_hold::hold;
use crate::server::guc::set_local;
use crate::server::process::report_idle;
use crate::server::signals::termination_requested;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::store::lock_timeout::{LockTimeout, try_to_write};

words! {
    /// How a run, or a sweep of them, ended, as the columns status have it.
    pub enum RunStatus {
        Completed = "completed",
        /// Clients were lost on the way, or runs of a sweep; the rest is there.
        Incomplete = "incomplete",
        Canceled = "canceled",
        /// Nothing was measured.
        Failed = "failed",
    }
}

/// A part of the end, by the view that users read it in.
pub type Part = &'static str;

/// What of a run's row is written together with its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunColumns {
    Whole,
    /// The status, the error and the time: the least there must be.
    StatusOnly,
}

/// The writing of a run's end.
pub struct RunEnd {
    run_id: i64,
    /// With locks, for all parts together.
    lock_timeout: LockTimeout,
    missing: UnwrittenParts,
}

impl RunEnd {
    /// Begins to write the end of a run.
    pub fn new(run_id: i64) -> Self {
        Self { run_id, lock_timeout: LockTimeout::new(), missing: UnwrittenParts::default() }
    }

    /// A part that cannot be written, as it could not be read.
    pub fn miss(&mut self, part: Part, reason: UserError) {
        self.missing.add(part, reason);
    }

    /// Writes a part. What prevents it is kept for the run's error.
    pub fn part(&mut self, part: Part, write: impl Fn() -> Result<(), UserError>) {
        loop {
            let may_wait = self.lock_timeout.is_left();
            let result = transaction(AssertUnwindSafe(|| {
                if !may_wait {
                    set_local(c"lock_timeout", c"50ms");
                }
                hold()?;
                still_there(self.run_id)?;
                write()
            }));
            match result {
                Ok(()) => return,
                Err(error) if self.lock_timeout.allows_retry(&error) => {}
                Err(error) => return self.missing.add(part, error),
            }
        }
    }

    /// Writes how the run ended: with `write`, which returns how many rows it has changed. Complete is only what is there
    /// with all of its parts. Tries for a while, and then leaves it to the server's log, with `told`, the figures in short.
    ///
    /// # Errors
    /// What could not be written.
    pub fn close(
        mut self,
        status: RunStatus,
        error: Option<&UserError>,
        told: &str,
        write: impl Fn(RunStatus, Option<&UserError>, RunColumns) -> Result<usize, UserError>,
    ) -> Result<(), UserError> {
        // Whoever has seen how this run ended may start another one before this process is gone.
        report_idle();
        let began = Instant::now();
        let mut row = RunColumns::Whole;
        loop {
            let status = match status {
                RunStatus::Completed if !self.missing.is_empty() => RunStatus::Incomplete,
                status => status,
            };
            let error = self.missing.told_with(error.cloned());
            let written = try_to_write(began, status_timeout, || {
                transaction(AssertUnwindSafe(|| {
                    hold()?;
                    match write(status, error.as_ref(), row)? {
                        0 => Err(gone(self.run_id)),
                        _ => Ok(()),
                    }
                }))
            });
            let Err(reason) = written else {
                return if self.missing.is_empty() { Ok(()) } else { error.map_or(Ok(()), Err) };
            };
            // Who deletes a run, or drops the extension, asks for nothing more.
            if reason.sqlstate == sqlstate::UNDEFINED_OBJECT {
                return Err(reason);
            }
            if row == RunColumns::Whole && reason.sqlstate != sqlstate::LOCK_NOT_AVAILABLE {
                self.missing.add("the figures in bench.summary", reason);
                row = RunColumns::StatusOnly;
            } else {
                tell_log(self.run_id, status, &reason, error.as_ref(), told);
                return Err(reason);
            }
        }
    }
}

/// How long it is tried to write a status. A shutdown is not held up for longer than it takes a lock to be given up.
fn status_timeout() -> Duration {
    Duration::from_secs(if termination_requested() { 2 } else { 10 })
}

/// # Errors
/// 42704: lines of a run that has been deleted would stay for ever.
fn still_there(run_id: i64) -> Result<(), UserError> {
    let sql = "SELECT true FROM bench_internal.run_log WHERE run_id = $1";
    fetch::<bool>(sql, &[run_id.into()])?.map(drop).ok_or_else(|| gone(run_id))
}

/// The error for a run whose row was deleted meanwhile.
pub fn gone(run_id: i64) -> UserError {
    UserError::new(sqlstate::UNDEFINED_OBJECT, format!("the row of run {run_id} is gone"))
}

fn tell_log(run_id: i64, status: RunStatus, reason: &UserError, error: Option<&UserError>, told: &str) {
    let own = error.map(|error| format!(" Its error: {error}.")).unwrap_or_default();
    let log = UserError::new(
        &reason.sqlstate,
        format!(
            "could not record in bench.runs that run {run_id} is {}: {}",
            status.as_str(),
            reason.message
        ),
    )
    .detail(format!("{told}{own}"))
    .hint("bench.runs shows it as \"crashed\"; results recorded before that are kept.");
    crate::error::log(log);
}
