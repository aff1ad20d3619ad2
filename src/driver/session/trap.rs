//! PG_TRY for the transaction loop.

use bench_base::error::SqlError;
use cee_scape::{SigJmpBufFields, call_with_sigsetjmp};
use pgrx::pg_sys;

use super::raw;

/// Whether an error is written to the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Errors,
    /// Of an attempt that may well fail.
    Nothing,
}

/// Runs `body`; an ERROR out of it is logged, its transaction rolled back, and returned.
///
/// # Safety
/// As [`trap_with`].
#[inline]
pub unsafe fn trap<F: FnOnce()>(body: F) -> Result<(), SqlError> {
    // SAFETY: by the caller.
    unsafe { trap_with(Log::Errors, body) }
}

/// Runs `body` as [`trap`] does; `log` says whether an ERROR is logged.
///
/// # Safety
/// Between `body`'s start and any call that can raise an ERROR there must be no live value with a
/// destructor in `body` or below it, no panic, and no call that sets a trap of its own around
/// Rust frames: the server's longjmp deallocates those frames without running anything.
#[inline]
pub unsafe fn trap_with<F: FnOnce()>(log: Log, body: F) -> Result<(), SqlError> {
    // SAFETY: the two globals are the server's own, and a backend has one thread. While `body`
    // runs, PG_exception_stack points into a frame that is alive; both are restored before that
    // frame ends, by return or by jump, as PG_END_TRY does (utils/elog.h).
    unsafe {
        let exception_stack = pg_sys::PG_exception_stack;
        let context_stack = pg_sys::error_context_stack;
        let jumped = call_with_sigsetjmp(false, |buffer: &SigJmpBufFields| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            body();
            0
        });
        pg_sys::PG_exception_stack = exception_stack;
        pg_sys::error_context_stack = context_stack;
        if jumped == 0 { Ok(()) } else { Err(recover(log)) }
    }
}

/// Runs `body` in a subtransaction of the transaction that is open, and rolls that back: nothing is left of it in the
/// database, and of an ERROR out of it only what `told` makes of its message. It is rolled back after success, too, for
/// errors that `body` does not see: Citus shows that it has got no plan from another node, and leaves the transaction there
/// failed, which only goes on from a savepoint. A cancel, which is meant for the statement as a whole, goes on to the trap
/// around.
///
/// # Safety
/// Inside a [`trap`] and a transaction, outside of parallel mode; `body` as for [`trap_with`], and `told` must not raise
/// an ERROR.
#[cold]
pub unsafe fn in_subtransaction(body: impl FnOnce(), told: impl FnOnce(&std::ffi::CStr)) {
    // SAFETY: as PL/pgSQL does it for a block with an exception handler (exec_stmt_block in pl_exec.c). The two globals
    // are restored before this frame ends, as in `trap_with`; ReThrowError jumps to the trap around, over frames that have
    // nothing to drop.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        raw::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::CurrentMemoryContext = context;
        let exception_stack = pg_sys::PG_exception_stack;
        let context_stack = pg_sys::error_context_stack;
        let jumped = call_with_sigsetjmp(false, |buffer: &SigJmpBufFields| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            body();
            0
        });
        pg_sys::PG_exception_stack = exception_stack;
        pg_sys::error_context_stack = context_stack;
        pg_sys::CurrentMemoryContext = context;
        let mut error = std::ptr::null_mut();
        if jumped != 0 {
            error = raw::CopyErrorData();
            raw::FlushErrorState();
            if (*error).sqlerrcode == pgrx::PgSqlErrorCode::ERRCODE_QUERY_CANCELED as i32 {
                raw::ReThrowError(error);
            }
        }
        raw::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::CurrentMemoryContext = context;
        if !error.is_null() {
            if !(*error).message.is_null() {
                told(std::ffi::CStr::from_ptr((*error).message));
            }
            raw::FreeErrorData(error);
        }
        pg_sys::CurrentResourceOwner = owner;
    }
}

/// What PostgresMain does after its own longjmp: report, roll back, forget.
///
/// An error in here finds no trap: in a worker it ends the process cleanly (StartBackgroundWorker
/// catches it and exits with 1), having released what the backend held.
///
/// # Safety
/// After an error's longjmp, with the globals as they were before its sigsetjmp, and the error still on the server's stack.
#[cold]
unsafe fn recover(log: Log) -> SqlError {
    // SAFETY: the order is PostgresMain's. The error's data is copied into a context that
    // survives the abort, and the Rust string is made only when nothing can fail any more.
    // AbortOutOfAnyTransaction leaves a BEGIN block as well, where AbortCurrentTransaction would
    // leave the session waiting for a ROLLBACK: the next StartTransactionCommand would then run
    // inside an aborted block.
    unsafe {
        pg_sys::InterruptHoldoffCount += 1;
        raw::disable_all_timeouts(false);
        pg_sys::QueryCancelPending = 0;
        if log == Log::Errors {
            raw::EmitErrorReport();
        }
        // A context of its own: FreeErrorData leaves behind some of what CopyErrorData makes.
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"pgbench_ext error".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        pg_sys::CurrentMemoryContext = context;
        let data = raw::CopyErrorData();
        pg_sys::debug_query_string = std::ptr::null();
        raw::AbortOutOfAnyTransaction();
        raw::PortalErrorCleanup();
        raw::jit_reset_after_error();
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        raw::FlushErrorState();
        let text = |text: *const std::ffi::c_char| {
            (!text.is_null()).then(|| std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        let error = SqlError {
            sqlstate: (*data).sqlerrcode,
            message: text((*data).message).unwrap_or_default(),
            detail: text((*data).detail),
            hint: text((*data).hint),
            position: (*data).cursorpos.max(0).unsigned_abs(),
            context: text((*data).context),
            is_of_client: false,
        };
        pg_sys::MemoryContextDelete(context);
        pg_sys::InterruptHoldoffCount -= 1;
        error
    }
}
