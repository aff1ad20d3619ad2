//! What a worker still has to put in order when it is terminated, from a callback of its process's exit.
//!
//! In such a callback the server interrupts no wait: a lock that somebody else holds would keep the process for as long. So interrupts
//! are let in, and locks and statements are limited. And an ERROR is a FATAL error there, which nothing catches (errstart in
//! utils/error/elog.c): so meanwhile the server does not know that the process exits.

use std::ffi::CStr;

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::signals::take_signals_at_exit;
use super::{process, timeouts};

/// What is called before this process lets go of shared memory, however it ends. A static, by whose address the server knows
/// it.
pub struct Callback(pub fn());

/// Has the server call it: what was registered last is called first.
pub fn register(callback: &'static Callback) {
    // SAFETY: the function is of this library, which stays loaded, and its argument lives as long.
    unsafe {
        pg_sys::before_shmem_exit(Some(call_back), pg_sys::Datum::from(std::ptr::from_ref(callback)));
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn call_back(_code: i32, argument: pg_sys::Datum) {
    // SAFETY: the argument is what `register` has registered.
    let Callback(function) = unsafe { &*argument.cast_mut_ptr::<Callback>() };
    function();
}

/// How long a lock is waited for. A setting of the session's.
const LOCK_TIMEOUT: &CStr = c"2s";

/// How long all of it may take.
const LIMIT_MS: i32 = 5000;

/// Runs `work`, which opens transactions of its own, within seconds, as the session's user: the exit may have come while a
/// switch of roles was in force outside of a transaction, which no abort takes back.
///
/// # Errors
/// Those of the work, the server's among them.
pub fn put_in_order(work: impl FnOnce() -> Result<(), UserError>) -> Result<(), UserError> {
    // SAFETY: leaves whatever was open; outside a transaction it does nothing. The counter is what keeps interrupts off
    // (proc_exit_prepare sets it to 1); with no transaction open nothing is held that an interrupt could leave behind. The
    // flag is what makes ERRORs FATAL and signals of termination ignored, which the handler now does. Where something exits all
    // the same, proc_exit sets it again and goes on with the next callback, for it has taken this one off its list.
    unsafe {
        pg_sys::AbortOutOfAnyTransaction();
        pg_sys::SetUserIdAndSecContext(pg_sys::GetOuterUserId(), 0);
        take_signals_at_exit();
        let exits = (&raw mut pg_sys::proc_exit_inprogress).replace(false);
        pg_sys::SetConfigOption(
            c"lock_timeout".as_ptr(),
            LOCK_TIMEOUT.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
        process::forget_cancel();
        let held_off = pg_sys::InterruptHoldoffCount;
        pg_sys::InterruptHoldoffCount = 0;
        let result = timeouts::within(LIMIT_MS, work);
        pg_sys::InterruptHoldoffCount = held_off;
        pg_sys::proc_exit_inprogress = exits;
        result
    }
}
