//! What becomes of the rows that a statement returns.
//!
//! 'serialize' uses the server's own printtup, which detoasts each value, calls its type's
//! output function and builds the protocol's message; only the last step, handing the bytes to a
//! socket, is replaced by dropping them. So it is exactly the work that a client's query costs
//! the server, up to the network. 'discard' uses the receiver that looks at nothing.
//!
//! What `\gset` and `\aset` keep is taken at the same place: the messages that would have gone to
//! the client are read here instead.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};

use bench_model::spec::Results;
use bench_script::CapturedRows;
use pgrx::pg_sys;

use super::raw;

unsafe extern "C-unwind" fn nothing() {}
unsafe extern "C-unwind" fn nothing_to_flush() -> c_int {
    0
}
unsafe extern "C-unwind" fn nothing_pending() -> bool {
    false
}
unsafe extern "C-unwind" fn drop_message(kind: c_char, body: *const c_char, length: usize) -> c_int {
    if CAPTURING.get() {
        // SAFETY: the server passes a message's body and its length.
        let body = unsafe { std::slice::from_raw_parts(body.cast::<u8>(), length) };
        CAPTURED.with_borrow_mut(|captured| captured.take(kind as u8, body));
    }
    0
}
unsafe extern "C-unwind" fn drop_message_noblock(_: c_char, _: *const c_char, _: usize) {}

static DROP_EVERYTHING: raw::PQcommMethods = raw::PQcommMethods {
    comm_reset: nothing,
    flush: nothing_to_flush,
    flush_if_writable: nothing_to_flush,
    is_send_pending: nothing_pending,
    putmessage: drop_message,
    putmessage_noblock: drop_message_noblock,
};

thread_local! {
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
    static CAPTURED: RefCell<CapturedRows> = const { RefCell::new(CapturedRows::own()) };
}

/// From now on what queries return is kept, or is not.
pub(super) fn capture(on: bool) {
    CAPTURING.set(on);
    if on {
        CAPTURED.with_borrow_mut(CapturedRows::clear);
    }
}

/// A query begins.
pub(super) fn begin_query() {
    if CAPTURING.get() {
        CAPTURED.with_borrow_mut(CapturedRows::next_query);
    }
}

/// What the queries of the last command returned.
pub(super) fn with_captured<T>(look: impl FnOnce(&CapturedRows) -> T) -> T {
    CAPTURED.with_borrow(look)
}

/// Makes receivers for one client's statements.
pub struct ReceiverFactory {
    results: Cell<Results>,
    /// printtup asks its portal for result formats: none are set, which means text.
    portal: pg_sys::Portal,
}

impl ReceiverFactory {
    /// For a process without a client of its own: its protocol output is replaced for good.
    pub fn new(results: Results) -> Self {
        // SAFETY: this is a background worker, so nothing else writes protocol messages here
        // (whereToSendOutput is DestNone), and the methods live as long as the library. A portal
        // of zeroes has no formats; printtup reads nothing else of it.
        unsafe {
            raw::PqCommMethods = &raw const DROP_EVERYTHING;
            let portal = pg_sys::MemoryContextAllocZero(
                pg_sys::TopMemoryContext,
                std::mem::size_of::<pg_sys::PortalData>(),
            );
            Self { results: Cell::new(results), portal: portal.cast() }
        }
    }

    /// What becomes of rows from here on.
    pub fn set(&self, results: Results) {
        self.results.set(results);
    }

    /// A receiver for one execution, allocated in the current memory context.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub unsafe fn receiver(&self) -> *mut pg_sys::DestReceiver {
        // SAFETY: by the caller; the portal lives in TopMemoryContext.
        unsafe {
            match self.results.get() {
                // With the description of the columns, which a prepared statement's client has asked for.
                _ if CAPTURING.get() => {
                    let receiver = raw::CreateDestReceiver(pg_sys::CommandDest::DestRemote);
                    raw::SetRemoteDestReceiverParams(receiver, self.portal);
                    receiver
                }
                Results::Discard => raw::CreateDestReceiver(pg_sys::CommandDest::DestNone),
                Results::Serialize => {
                    let receiver = raw::CreateDestReceiver(pg_sys::CommandDest::DestRemoteExecute);
                    raw::SetRemoteDestReceiverParams(receiver, self.portal);
                    receiver
                }
            }
        }
    }
}
