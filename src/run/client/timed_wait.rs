//! Waiting for a moment of the clock, to the microsecond, unless the run is stopped.

use bench_base::error::SqlError;

use crate::driver::session::Session;
use crate::server::process::{as_idle, now_ns, sleep_until, wait_idle};
use crate::shm::{Header, StopReason};

/// The latch wakes to the millisecond; the rest is slept.
const BY_LATCH_NS: i64 = 2_000_000;

/// Ends a client's waits early when its run is stopped.
pub struct Alarm<'a> {
    header: &'a Header,
}

impl<'a> Alarm<'a> {
    /// For the clients of the run with this header.
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
                wait_idle((left_ns - BY_LATCH_NS / 2) / 1_000_000);
            } else {
                as_idle(|| sleep_until(until_ns));
            }
        }
    }
}
