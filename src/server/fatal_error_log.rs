//! The FATAL error that ends this process. No trap catches it, and the server has forgotten it by the time exit
//! callbacks run; so it is recorded on its way to the server's log.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;

use bench_base::error::{SqlError, sqlstate};
use pgrx::pg_sys;

thread_local! {
    static FATAL: RefCell<Option<SqlError>> = const { RefCell::new(None) };
    /// Whoever listened before.
    static NEXT: Cell<pg_sys::emit_log_hook_type> = const { Cell::new(None) };
}

/// From now on, takes down a FATAL error. Once in a process.
pub fn listen() {
    // SAFETY: a hook of this process's; the function is of this library, which stays loaded, and calls on the one that was
    // there before.
    unsafe {
        NEXT.set(pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(take_down);
    }
}

/// What ended this process, if that was an error of its own: not the command of an administrator, who knows why. Unknown
/// where log_min_messages is panic.
pub fn fatal_error() -> Option<SqlError> {
    FATAL.take().filter(|error| !error.is(sqlstate::ADMIN_SHUTDOWN))
}

unsafe extern "C-unwind" fn take_down(error: *mut pg_sys::ErrorData) {
    // SAFETY: the server passes the error that it reports, whose texts are NUL-terminated or NULL; nothing in here raises
    // another.
    unsafe {
        if (*error).elevel == pg_sys::FATAL as i32 {
            let text = |text: *const std::ffi::c_char| {
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            FATAL.set(Some(SqlError {
                sqlstate: (*error).sqlerrcode,
                message: text((*error).message).unwrap_or_default(),
                detail: text((*error).detail),
                hint: text((*error).hint),
                position: 0,
                context: text((*error).context),
                is_of_client: false,
            }));
        }
        if let Some(next) = NEXT.get() {
            next(error);
        }
    }
}
