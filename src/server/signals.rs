//! Signals and ends of workers: signal handlers, time limits for statements, exit callbacks, and the FATAL error that ended one.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{SqlError, UserError, sqlstate};
use pgrx::pg_sys;

use super::process::{self, forget_cancel};

/// A worker's reaction to SIGTERM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnTerminate {
    /// Ends like a client's session: at the next CHECK_FOR_INTERRUPTS, rolling back.
    AtInterrupt,
    /// Sets a flag, [`termination_requested`], so that the worker can still write how it ended.
    Flag,
}

static TERMINATION_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether a worker with [`OnTerminate::Flag`] has received SIGTERM or a cancel.
pub fn termination_requested() -> bool {
    TERMINATION_REQUESTED.load(Relaxed)
}

/// Installs a worker's signal handlers, and unblocks signals.
pub(super) fn install(on_terminate: OnTerminate) {
    let handler = match on_terminate {
        OnTerminate::AtInterrupt => die as Handler,
        OnTerminate::Flag => set_termination_flag,
    };
    // SAFETY: handlers of the server's own or of this library, which stays loaded; signals are still blocked.
    unsafe {
        raw::pqsignal(libc::SIGTERM, Some(handler));
        match on_terminate {
            OnTerminate::Flag => raw::pqsignal(libc::SIGINT, Some(cancel_or_set_flag)),
            OnTerminate::AtInterrupt => raw::pqsignal(libc::SIGUSR2, Some(sever)),
        };
        raw::pqsignal(libc::SIGHUP, Some(raw::SignalHandlerForConfigReload));
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// Installs the handlers for a process's exit: [`cancel_or_set_flag`] for cancels, which the server's handler ignores there,
/// and a harmless flag for further terminations.
fn take_signals_at_exit() {
    // SAFETY: the handlers are of this library, which stays loaded.
    unsafe {
        raw::pqsignal(libc::SIGINT, Some(cancel_or_set_flag));
        raw::pqsignal(libc::SIGTERM, Some(set_termination_flag));
    }
}

/// Whether a worker with [`OnTerminate::AtInterrupt`] has received SIGTERM: the server resets its own flag as soon as the session
/// begins to end.
static IS_TO_END: AtomicBool = AtomicBool::new(false);

unsafe extern "C-unwind" fn die(signal: c_int, #[cfg(since_19)] info: *const pg_sys::pg_signal_info) {
    IS_TO_END.store(true, Relaxed);
    // SAFETY: the server's own handler, called as a handler.
    unsafe {
        raw::die(
            signal,
            #[cfg(since_19)]
            info,
        );
    }
}

/// Descriptors below this number may be connections.
const MAX_DESCRIPTOR: c_int = 4096;

/// Shuts down the connections of a session that must end, but waits for another server where signals do not end the wait:
/// libpq's PQcancel, for example, restarts its recv after every signal. After the shutdown recv returns.
unsafe extern "C-unwind" fn sever(_: c_int, #[cfg(since_19)] _: *const pg_sys::pg_signal_info) {
    // SAFETY: calls that are made for signal handlers (POSIX lists all of them as async-signal-safe), on descriptors that may
    // be anything: what is no connection is left alone. `errno` is the interrupted code's.
    unsafe {
        if !IS_TO_END.load(Relaxed) {
            return;
        }
        let errno = *libc::__errno_location();
        for descriptor in 3..MAX_DESCRIPTOR {
            if is_connection(descriptor) {
                libc::shutdown(descriptor, libc::SHUT_RDWR);
            }
        }
        *libc::__errno_location() = errno;
        raw::SetLatch(pg_sys::MyLatch);
    }
}

/// Whether a descriptor is a TCP connection to another process. Unix sockets and sockets that listen are not: the postmaster
/// may have those as well.
///
/// # Safety
/// None is needed; it may be called by a signal handler.
unsafe fn is_connection(descriptor: c_int) -> bool {
    // SAFETY: the address has room for any, and the length says so; a failure leaves it zeroed.
    unsafe {
        let mut address: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = std::mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let result = libc::getpeername(descriptor, (&raw mut address).cast(), &raw mut length);
        result == 0 && matches!(c_int::from(address.ss_family), libc::AF_INET | libc::AF_INET6)
    }
}

unsafe extern "C-unwind" fn set_termination_flag(
    _: c_int,
    #[cfg(since_19)] _: *const pg_sys::pg_signal_info,
) {
    request_termination();
}

fn request_termination() {
    TERMINATION_REQUESTED.store(true, Relaxed);
    // SAFETY: SetLatch is made for signal handlers; MyLatch is set before signals are let in.
    unsafe { raw::SetLatch(pg_sys::MyLatch) };
}

/// Treats a cancel as a termination of the whole work. Only for timeouts of locks and statements, which arrive as SIGINT, too
/// (LockTimeoutHandler in utils/init/postinit.c), it cancels the statement.
unsafe extern "C-unwind" fn cancel_or_set_flag(_: c_int, #[cfg(since_19)] _: *const pg_sys::pg_signal_info) {
    // SAFETY: what StatementCancelHandler does (tcop/postgres.c); the indicator is a plain read.
    unsafe {
        if raw::get_timeout_indicator(LOCK_TIMEOUT, false)
            || raw::get_timeout_indicator(STATEMENT_TIMEOUT, false)
        {
            (&raw mut pg_sys::QueryCancelPending).write_volatile(1);
            (&raw mut pg_sys::InterruptPending).write_volatile(1);
            raw::SetLatch(pg_sys::MyLatch);
        } else {
            request_termination();
        }
    }
}

/// SIGNAL_ARGS of c.h.
#[cfg(not(since_19))]
type Handler = unsafe extern "C-unwind" fn(c_int);
#[cfg(since_19)]
type Handler = unsafe extern "C-unwind" fn(c_int, *const pg_sys::pg_signal_info);

/// Functions called as, or in, signal handlers, where pgrx's guards must not be used.
mod raw {
    use std::ffi::c_int;

    unsafe extern "C-unwind" {
        pub fn die(signal: c_int, #[cfg(since_19)] info: *const pgrx::pg_sys::pg_signal_info);
        pub fn SignalHandlerForConfigReload(
            signal: c_int,
            #[cfg(since_19)] info: *const pgrx::pg_sys::pg_signal_info,
        );
        pub fn SetLatch(latch: *mut pgrx::pg_sys::Latch);
        pub fn get_timeout_indicator(id: u32, reset_indicator: bool) -> bool;
        #[cfg(not(since_18))]
        pub fn pqsignal(signal: c_int, handler: Option<super::Handler>) -> Option<super::Handler>;
        #[cfg(since_18)]
        #[link_name = "pqsignal_be"]
        pub fn pqsignal(signal: c_int, handler: Option<super::Handler>);
    }
}

// Time limits for a worker's own statements.

/// LOCK_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const LOCK_TIMEOUT: u32 = 2;

/// STATEMENT_TIMEOUT of utils/timeout.h, the same in PostgreSQL 15 to 18.
pub const STATEMENT_TIMEOUT: u32 = 3;

unsafe extern "C-unwind" {
    fn enable_timeout_after(id: u32, delay_ms: c_int);
    fn disable_timeout(id: u32, keep_indicator: bool);
    fn get_timeout_indicator(id: u32, reset_indicator: bool) -> bool;
}

/// Runs `work`, a transaction of its own that returns its errors, and cancels it after `limit_ms`.
///
/// # Errors
/// Those of the work, and 57014 after the limit.
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

/// The SQLSTATE of [`limited`] after its time limit.
const LIMIT_STATE: &str = "53400";

/// Whether an error is that of [`limited`] after its time limit.
pub fn is_limit(error: &UserError) -> bool {
    error.sqlstate == LIMIT_STATE
}

/// As [`within`], in a worker that users may cancel: their cancel stays pending, and fails with 57014.
///
/// # Errors
/// Those of the work; 53400 after the limit.
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
        true => UserError::new(LIMIT_STATE, format!("a call took more than {limit_ms} ms")),
        false => error,
    })
}

/// Returns statement_timeout of this session in seconds, if it is set.
pub fn of_statement() -> Option<f64> {
    // SAFETY: a configuration variable of the process's.
    let milliseconds = unsafe { pg_sys::StatementTimeout };
    (milliseconds > 0).then(|| f64::from(milliseconds) / 1000.0)
}

/// Adds a hint to the error of a waiting statement if statement_timeout canceled it, which is recognized by the elapsed time: the
/// server's message depends on lc_messages.
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

// Cleanup by a terminated worker, in a callback of its process's exit.
//
// There the server interrupts no wait, so that another session's lock could keep the process; therefore interrupts are enabled,
// and locks and statements get time limits. And there each ERROR is promoted to FATAL, which nothing catches (errstart in
// utils/error/elog.c); therefore proc_exit_inprogress is unset meanwhile.

/// A function called before this process detaches from shared memory, however it ends. Must be a static: the server stores its
/// address.
pub struct Callback(pub fn());

/// Registers a callback; the last one registered is called first.
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

/// lock_timeout during the cleanup.
const EXIT_LOCK_TIMEOUT: &CStr = c"2s";

/// The time limit of the cleanup.
const EXIT_LIMIT_MS: i32 = 5000;

/// Runs `work`, which opens transactions of its own, within [`EXIT_LIMIT_MS`] and as the session's user: a switch of roles
/// outside of a transaction, which no abort undoes, may be in force.
///
/// # Errors
/// Those of the work, including the server's.
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
            EXIT_LOCK_TIMEOUT.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
        process::forget_cancel();
        let held_off = pg_sys::InterruptHoldoffCount;
        pg_sys::InterruptHoldoffCount = 0;
        let result = within(EXIT_LIMIT_MS, work);
        pg_sys::InterruptHoldoffCount = held_off;
        pg_sys::proc_exit_inprogress = exits;
        result
    }
}

// The FATAL error that ends this process. Nothing catches it, and it is gone when exit callbacks run, so a hook of the server's
// log records it.

thread_local! {
    static FATAL: RefCell<Option<SqlError>> = const { RefCell::new(None) };
    /// The hook installed before.
    static NEXT_HOOK: Cell<pg_sys::emit_log_hook_type> = const { Cell::new(None) };
}

/// Starts recording a FATAL error. Call it once in a process.
pub fn listen() {
    // SAFETY: a hook of this process's; the function is of this library, which stays loaded, and calls on the one that was
    // there before.
    unsafe {
        NEXT_HOOK.set(pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(record_fatal);
    }
}

/// Returns the FATAL error that ended this process, except for an administrator's command. Unknown if log_min_messages is panic.
pub fn fatal_error() -> Option<SqlError> {
    FATAL.take().filter(|error| !error.is(sqlstate::ADMIN_SHUTDOWN))
}

unsafe extern "C-unwind" fn record_fatal(error: *mut pg_sys::ErrorData) {
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
        if let Some(next) = NEXT_HOOK.get() {
            next(error);
        }
    }
}
