//! A limit to how long a statement of a worker's own may take, as statement_timeout is to a session's.

use std::ffi::c_int;

use bench_core::error::UserError;

use super::process::forget_cancel;

/// LOCK_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const LOCK_TIMEOUT: c_int = 2;

/// STATEMENT_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const STATEMENT_TIMEOUT: c_int = 3;

unsafe extern "C-unwind" {
    fn enable_timeout_after(id: c_int, delay_ms: c_int);
    fn disable_timeout(id: c_int, keep_indicator: bool);
}

/// Cancels `work`, which has to be a transaction of its own that returns its errors, when it takes longer.
///
/// # Errors
/// Those of the work, 57014 among them.
pub fn within<T>(limit_ms: i32, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    // SAFETY: every backend that is connected to a database has this timeout registered (InitPostgres); neither call
    // raises an error.
    unsafe { enable_timeout_after(STATEMENT_TIMEOUT, limit_ms) };
    let result = work();
    // SAFETY: as above. A cancel that came too late must not hit what follows.
    unsafe { disable_timeout(STATEMENT_TIMEOUT, false) };
    forget_cancel();
    result
}
