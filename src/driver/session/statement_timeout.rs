//! statement_timeout, as a command of a client's begins and ends it.

use pgrx::pg_sys;

use super::raw;
use crate::server::signals::STATEMENT_TIMEOUT;

/// Arms statement_timeout.
///
/// # Safety
/// Inside a trap.
#[inline]
pub unsafe fn start_timeout() {
    // SAFETY: by the caller; enable_statement_timeout (tcop/postgres.c).
    unsafe {
        if pg_sys::StatementTimeout > 0 {
            raw::enable_timeout_after(STATEMENT_TIMEOUT, pg_sys::StatementTimeout);
        }
    }
}

/// Disarms statement_timeout.
///
/// # Safety
/// Inside a trap.
#[inline]
pub unsafe fn stop_timeout() {
    // SAFETY: by the caller; disable_statement_timeout (tcop/postgres.c).
    unsafe {
        if raw::get_timeout_active(STATEMENT_TIMEOUT) {
            raw::disable_timeout(STATEMENT_TIMEOUT, false);
        }
    }
}
