//! A limit to how long a statement of a worker's own may take, as statement_timeout is to a session's; and the limits that
//! are meant for sessions of users, which must not end the work of workers.

use std::ffi::{CStr, c_int};

use bench_core::error::UserError;

use super::guc::current;
use super::process::forget_cancel;

/// LOCK_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const LOCK_TIMEOUT: c_int = 2;

/// STATEMENT_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const STATEMENT_TIMEOUT: c_int = 3;

unsafe extern "C-unwind" {
    fn enable_timeout_after(id: c_int, delay_ms: c_int);
    fn disable_timeout(id: c_int, keep_indicator: bool);
}

/// Settings of a role, a database or the server by which a session's work is ended when it takes its time.
pub const TIMEOUTS: [&CStr; 4] = [
    c"statement_timeout",
    c"transaction_timeout",
    c"idle_in_transaction_session_timeout",
    c"idle_session_timeout",
];

/// Whether the server has this setting: transaction_timeout is there from PostgreSQL 17 on.
pub fn is_known(name: &CStr) -> bool {
    name.to_str().is_ok_and(|name| current(name).is_some())
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
