//! What a worker still has to put in order when it is terminated, from a callback of its process's exit.
//!
//! There the server interrupts no wait: a lock that somebody else holds would keep the process for as long. So interrupts
//! are let in, and locks and statements are limited. An ERROR is a FATAL error there (errstart in utils/error/elog.c):
//! it ends the callback, and the exit goes on with the next one, which rolls back (shmem_exit in storage/ipc/ipc.c).

use std::ffi::CStr;

use bench_core::error::UserError;
use pgrx::pg_sys;

use super::{cancel_or_set_flag, raw_handlers, time_limit};

/// How long a lock is waited for. A setting of the session's.
const LOCK_TIMEOUT: &CStr = c"2s";

/// How long all of it may take.
const LIMIT_MS: i32 = 5000;

/// Runs `work`, which opens transactions of its own, within seconds. Where it meets an ERROR of the server's, this does not
/// return: the callback is over, and the next one is called.
///
/// # Errors
/// Those of the work.
pub fn put_in_order(work: impl FnOnce() -> Result<(), UserError>) -> Result<(), UserError> {
    // SAFETY: leaves whatever was open; outside a transaction it does nothing. The handler is of this library, which stays
    // loaded: the server's own takes no cancel from a process that exits. The counter is what keeps interrupts off
    // (proc_exit_prepare sets it to 1); with no transaction open nothing is held that an interrupt could leave behind.
    unsafe {
        pg_sys::AbortOutOfAnyTransaction();
        raw_handlers::pqsignal(libc::SIGINT, Some(cancel_or_set_flag));
        pg_sys::SetConfigOption(
            c"lock_timeout".as_ptr(),
            LOCK_TIMEOUT.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
        (&raw mut pg_sys::QueryCancelPending).write_volatile(0);
        let held_off = pg_sys::InterruptHoldoffCount;
        pg_sys::InterruptHoldoffCount = 0;
        let result = time_limit::within(LIMIT_MS, work);
        pg_sys::InterruptHoldoffCount = held_off;
        result
    }
}
