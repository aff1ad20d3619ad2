//! How workers take signals.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::*};

use pgrx::pg_sys;

use super::timeouts::{LOCK_TIMEOUT, STATEMENT_TIMEOUT};

/// How a worker takes SIGTERM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnTerminate {
    /// As a client's session: at the next CHECK_FOR_INTERRUPTS, rolling back.
    AtInterrupt,
    /// By a flag, [`termination_requested`], so that there is time to write down how it ended.
    Flag,
}

static TERMINATION_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether SIGTERM has come to a worker that takes it by a flag.
pub fn termination_requested() -> bool {
    TERMINATION_REQUESTED.load(Relaxed)
}

/// Sets a worker's handlers, and lets signals in.
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

/// Has a cancel ([`cancel_or_set_flag`]) reach a process that exits, which the server's own handler does not, and another
/// termination only set the flag, which nothing asks for there.
pub(super) fn take_signals_at_exit() {
    // SAFETY: the handlers are of this library, which stays loaded.
    unsafe {
        raw::pqsignal(libc::SIGINT, Some(cancel_or_set_flag));
        raw::pqsignal(libc::SIGTERM, Some(set_termination_flag));
    }
}

/// Whether SIGTERM has come to a worker that takes it as a session: the server's own word for it is gone as soon as the
/// session begins to end.
static IS_TO_END: AtomicBool = AtomicBool::new(false);

unsafe extern "C-unwind" fn die(signal: c_int, #[cfg(since_19)] info: *const pg_sys::pg_signal_info) {
    IS_TO_END.store(true, Relaxed);
    // SAFETY: the server's own handler, in the same place.
    unsafe {
        raw::die(
            signal,
            #[cfg(since_19)]
            info,
        );
    }
}

/// The first descriptors of a process, among which its connections are.
const DESCRIPTORS: c_int = 4096;

/// Breaks the connections of a session that is to end and waits where no signal ends it: for another server that does not
/// answer, as libpq's PQcancel does, whose recv goes on after every signal. As if the network were broken: recv then returns.
unsafe extern "C-unwind" fn sever(_: c_int, #[cfg(since_19)] _: *const pg_sys::pg_signal_info) {
    // SAFETY: calls that are made for signal handlers (POSIX lists all of them as async-signal-safe), on descriptors that may
    // be anything: what is no connection is left alone. `errno` is the interrupted code's.
    unsafe {
        if !IS_TO_END.load(Relaxed) {
            return;
        }
        let errno = *libc::__errno_location();
        for descriptor in 3..DESCRIPTORS {
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

/// A cancel means the same as a termination: the work as a whole is to end. But timeouts of locks and statements
/// come as SIGINT as well (LockTimeoutHandler in utils/init/postinit.c), and are the statement's.
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

/// Functions that serve as, or in, signal handlers: there no guard may stand around them.
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
