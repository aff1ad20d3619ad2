//! What becomes of the rows that a statement returns.
//!
//! 'serialize' uses the server's own printtup, which detoasts each value, calls its type's
//! output function and builds the protocol's message; only the last step, handing the bytes to a
//! socket, is replaced by dropping them. So it is exactly the work that a client's query costs
//! the server, up to the network. 'discard' uses the receiver that looks at nothing.
//!
//! What `\gset` and `\aset` keep is taken at the same place: the messages that would have gone to
//! the client are read here instead.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};

use bench_core::spec::Results;
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

/// What the queries of one command returned, up to what `\gset` and `\aset` can see of it.
#[derive(Default)]
pub struct Captured {
    queries: Vec<CapturedQuery>,
    /// How many of `queries` are of this command; the rest are buffers to use again.
    length: usize,
}

/// What one query returned.
#[derive(Default)]
pub struct CapturedQuery {
    /// The body of its RowDescription message; empty for a query without result columns.
    description: Vec<u8>,
    /// The body of its last DataRow message.
    last_row: Vec<u8>,
    pub rows: u64,
    /// One of the messages was more than a variable may hold, and was not kept.
    pub is_too_large: bool,
}

/// The largest message that is kept, in bytes.
pub const MAX_CAPTURED: usize = 64 << 20;

thread_local! {
    static CAPTURING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    static CAPTURED: RefCell<Captured> = const { RefCell::new(Captured { queries: Vec::new(), length: 0 }) };
}

impl Captured {
    fn next_query(&mut self) {
        if self.length == self.queries.len() {
            self.queries.push(CapturedQuery::default());
        }
        let query = &mut self.queries[self.length];
        query.description.clear();
        query.last_row.clear();
        query.rows = 0;
        query.is_too_large = false;
        self.length += 1;
    }

    /// Takes a message of the server's: protocol 3, RowDescription and DataRow.
    fn take(&mut self, kind: u8, body: &[u8]) {
        let Some(query) = self.queries[..self.length].last_mut() else { return };
        let kept = match kind {
            b'T' => &mut query.description,
            b'D' => {
                query.rows += 1;
                &mut query.last_row
            }
            _ => return,
        };
        kept.clear();
        if body.len() <= MAX_CAPTURED && kept.try_reserve(body.len()).is_ok() {
            kept.extend_from_slice(body);
        } else {
            query.is_too_large = true;
        }
    }
}

impl CapturedQuery {
    /// Calls `visit` with each column's name and its value in the last row, in the client's encoding;
    /// as for libpq, a NULL is an empty text.
    pub fn for_each_column(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        // Each column: its name, a zero byte, 18 bytes of table, type and format.
        const AFTER_NAME: usize = 19;
        let mut names = self.description.get(2..).unwrap_or_default();
        let mut values = self.last_row.get(2..).unwrap_or_default();
        while let Some(end) = names.iter().position(|&byte| byte == 0)
            && let Some((length, rest)) = values.split_first_chunk::<4>()
        {
            // -1 is NULL.
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            let (value, rest) = rest.split_at(length.min(rest.len()));
            visit(&names[..end], value);
            values = rest;
            names = names.get(end + AFTER_NAME..).unwrap_or_default();
        }
    }
}

/// From now on what queries return is kept, or is not.
pub(super) fn capture(on: bool) {
    CAPTURING.set(on);
    if on {
        CAPTURED.with_borrow_mut(|captured| captured.length = 0);
    }
}

/// A query begins.
pub(super) fn begin_query() {
    if CAPTURING.get() {
        CAPTURED.with_borrow_mut(Captured::next_query);
    }
}

/// What the queries of the last command returned.
pub(super) fn with_captured<T>(look: impl FnOnce(&[CapturedQuery]) -> T) -> T {
    CAPTURED.with_borrow(|captured| look(&captured.queries[..captured.length]))
}

/// Makes receivers for one client's statements.
pub struct ReceiverFactory {
    results: Results,
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
            Self { results, portal: portal.cast() }
        }
    }

    /// A receiver for one execution, allocated in the current memory context.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub unsafe fn receiver(&self) -> *mut pg_sys::DestReceiver {
        // SAFETY: by the caller; the portal lives in TopMemoryContext.
        unsafe {
            match self.results {
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
