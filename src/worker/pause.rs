//! Waiting for a moment of the clock, to the microsecond, with an ear for whoever wants the wait to end.

use std::ffi::c_int;
use std::time::Duration;

use pgrx::pg_sys;

use super::now_ns;
use crate::engine::{Session, SqlError};
use crate::shm::{Header, StopReason};

/// A session that waits for its client's next command: so do the sessions of pgbench while a script of
/// theirs sleeps, or waits for its turn. (WAIT_EVENT_CLIENT_READ, the first of its class in PostgreSQL 15 to 18.)
const CLIENT_READ: u32 = pg_sys::PG_WAIT_CLIENT;

/// Shows this session as waiting for its client meanwhile.
pub fn as_idle<T>(wait: impl FnOnce() -> T) -> T {
    // SAFETY: what pgstat_report_wait_start and pgstat_report_wait_end do (utils/wait_event.h): the word is this
    // process's own, and read by others.
    unsafe { pg_sys::my_wait_event_info.write_volatile(CLIENT_READ) };
    let result = wait();
    // SAFETY: as above.
    unsafe { pg_sys::my_wait_event_info.write_volatile(0) };
    result
}

/// The latch wakes to the millisecond; the rest is slept.
const BY_LATCH_NS: i64 = 2_000_000;

/// Ends a client's waits early when its run is stopped.
pub struct Alarm<'a> {
    header: &'a Header,
}

impl<'a> Alarm<'a> {
    pub fn new(header: &'a Header) -> Self {
        Self { header }
    }

    /// Waits until the clock shows `until_ns`; false when the run was stopped before.
    ///
    /// # Errors
    /// That of a termination, or of another interrupt; whatever was open is rolled back. A cancel finds
    /// nothing to cancel.
    pub fn wait_until(&self, until_ns: i64, session: &Session) -> Result<bool, SqlError> {
        let mut is_idle = false;
        loop {
            session.serve_interrupts_of_idle()?;
            if self.header.stop() != StopReason::None {
                return Ok(false);
            }
            let left_ns = until_ns.saturating_sub(now_ns());
            if left_ns <= 0 {
                return Ok(true);
            }
            if left_ns > BY_LATCH_NS {
                if !is_idle {
                    session.report_idle();
                    is_idle = true;
                }
                wait_for_latch((left_ns - BY_LATCH_NS / 2) / 1_000_000);
            } else {
                as_idle(|| sleep_until(until_ns));
            }
        }
    }

    /// Waits for so long, as `\sleep` does.
    ///
    /// # Errors
    /// 57014 when the run was stopped meanwhile, and as [`Alarm::wait_until`].
    pub fn sleep(&self, length: Duration, session: &Session) -> Result<(), SqlError> {
        let length_ns = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        if self.wait_until(now_ns().saturating_add(length_ns), session)? {
            return Ok(());
        }
        Err(SqlError::new(
            pgrx::PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
            "the run was stopped during a \\sleep",
        ))
    }
}

/// Waits until the latch is set or so many milliseconds have passed. Interrupts are the caller's.
fn wait_for_latch(milliseconds: i64) {
    // SAFETY: this process's own latch; WL_EXIT_ON_PM_DEATH ends the process with the postmaster.
    unsafe {
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        // The longest that fits the server's milliseconds; whoever waits longer looks again.
        let milliseconds = milliseconds.clamp(0, i64::from(i32::MAX));
        pg_sys::WaitLatch(pg_sys::MyLatch, events as c_int, milliseconds, CLIENT_READ);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

/// Sleeps to a moment of CLOCK_MONOTONIC, or to the next signal.
fn sleep_until(until_ns: i64) {
    let until = libc::timespec { tv_sec: until_ns / 1_000_000_000, tv_nsec: until_ns % 1_000_000_000 };
    // SAFETY: valid pointers; an early return is the caller's to notice.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null_mut(),
        );
    }
}
