//! A limit to how long a statement of a worker's own may take, as statement_timeout is to a session's.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::process::forget_cancel;

/// LOCK_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const LOCK_TIMEOUT: u32 = 2;

/// STATEMENT_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const STATEMENT_TIMEOUT: u32 = 3;

unsafe extern "C-unwind" {
    fn enable_timeout_after(id: u32, delay_ms: c_int);
    fn disable_timeout(id: u32, keep_indicator: bool);
    fn get_timeout_indicator(id: u32, reset_indicator: bool) -> bool;
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

/// What [`limited`] fails with where the time runs out.
const LIMIT: &str = "53400";

/// Whether an error says that the time of [`limited`] has run out.
pub fn is_limit(error: &UserError) -> bool {
    error.sqlstate == LIMIT
}

/// As [`within`], in a worker that users may cancel: their cancel is not forgotten, and fails with 57014.
///
/// # Errors
/// Those of the work; 53400 where it took longer.
pub fn limited<T>(limit: Duration, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let began = Instant::now();
    let limit_ms = limit.as_millis() as c_int;
    // SAFETY: as in `within`; the last call reads a flag that says whether the time has run out without having been served.
    let (result, is_late) = unsafe {
        enable_timeout_after(STATEMENT_TIMEOUT, limit_ms);
        let result = work();
        disable_timeout(STATEMENT_TIMEOUT, true);
        (result, get_timeout_indicator(STATEMENT_TIMEOUT, true))
    };
    if is_late {
        forget_cancel();
    }
    result.map_err(|error| match error.sqlstate == sqlstate::QUERY_CANCELED && began.elapsed() >= limit {
        true => UserError::new(LIMIT, format!("a call took more than {limit_ms} ms")),
        false => error,
    })
}

/// statement_timeout of this session in seconds, if it has one.
pub fn of_statement() -> Option<f64> {
    // SAFETY: a configuration variable of the process's.
    let milliseconds = unsafe { pg_sys::StatementTimeout };
    (milliseconds > 0).then(|| f64::from(milliseconds) / 1000.0)
}

/// The error that ended a statement which waited for work; where that was statement_timeout, with what to do. The server's
/// message is in the language of lc_messages, and so the time tells.
pub fn explain(error: UserError) -> UserError {
    // SAFETY: reads the clock, and when the statement under way began.
    let waited_us = unsafe { pg_sys::GetCurrentTimestamp() - pg_sys::GetCurrentStatementStartTimestamp() };
    let is_over = of_statement().is_some_and(|secs| waited_us as f64 >= secs * 1e6);
    if error.sqlstate == sqlstate::QUERY_CANCELED && is_over {
        return error.hint(
            "statement_timeout covers calls that wait. Use bench.start, bench.start_load or another start function, which do not wait, or SET statement_timeout = 0.",
        );
    }
    error
}
