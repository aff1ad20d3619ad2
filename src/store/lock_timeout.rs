//! How long writers of results wait for locks in their way.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};

use crate::server::process::nap_until_canceled;
use crate::server::signals::termination_requested;

/// How long the recorder waits for a lock on the tables of results.
pub struct LockTimeout {
    until: Instant,
}

impl LockTimeout {
    /// Ten seconds from now: VACUUM FULL of a small table passes, a forgotten session does not.
    pub fn new() -> Self {
        Self { until: Instant::now() + Duration::from_secs(10) }
    }

    /// Whether to try again after this error.
    pub fn allows_retry(&self, error: &UserError) -> bool {
        error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE && self.is_left()
    }

    /// Whether to wait for a lock. Not when the server wants the recorder gone.
    pub fn is_left(&self) -> bool {
        Instant::now() < self.until && !termination_requested()
    }
}

/// Runs `work` until no lock on the tables of results is in its way, for ten seconds at most.
pub fn with_lock_timeout(work: impl Fn() -> Result<(), UserError>) -> Result<(), UserError> {
    let lock_timeout = LockTimeout::new();
    loop {
        match work() {
            Err(error) if lock_timeout.allows_retry(&error) => {}
            result => return result,
        }
    }
}

/// Tries again and again to write how something ended, whatever is in the way, until `timeout` has passed since it
/// `began`. When what the row belongs to has gone, there is nothing to wait for.
///
/// # Errors
/// What the last try has met.
pub fn try_to_write(
    began: Instant,
    timeout: impl Fn() -> Duration,
    write: impl Fn() -> Result<(), UserError>,
) -> Result<(), UserError> {
    loop {
        match write() {
            Err(error) if error.sqlstate != sqlstate::UNDEFINED_OBJECT && began.elapsed() < timeout() => {
                // A cancel hurries nobody here. A lock has been waited for already.
                if error.sqlstate != sqlstate::LOCK_NOT_AVAILABLE {
                    drop(nap_until_canceled(100));
                }
            }
            result => return result,
        }
    }
}
