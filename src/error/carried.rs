//! What pgrx's report of an error has no room for: SQLSTATEs that PostgreSQL does not define, as functions raise them, and the
//! context of an error, of another process too. pgrx makes XX000 of the former. So they are read when the server reports an
//! error, by an error context callback, and put back by another one when pgrx reports it again.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use bench_core::error::{UserError, cut, pack};
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

unsafe extern "C-unwind" {
    fn geterrcode() -> c_int;
    fn errcode(sqlstate: c_int) -> c_int;
    fn errcontext_msg(format: *const c_char, ...) -> c_int;
    fn CopyErrorData() -> *mut pg_sys::ErrorData;
    fn FreeErrorData(data: *mut pg_sys::ErrorData);
}

/// What is to be put back.
struct Carried {
    /// Packed.
    sqlstate: c_int,
    context: Option<CString>,
}

thread_local! {
    static CARRIED: RefCell<Option<Carried>> = const { RefCell::new(None) };
    /// The SQLSTATE of the last message that the server has reported within [`watched`].
    static SEEN: Cell<c_int> = const { Cell::new(0) };
    /// The context of the last error likewise.
    static SEEN_CONTEXT: RefCell<Option<SeenContext>> = const { RefCell::new(None) };
}

/// Where an error came from, in the server's words.
struct SeenContext {
    /// All of it, down to the statement of ours that users' code was executed by.
    whole: String,
    /// The part of users' code.
    of_users: Option<CString>,
}

impl SeenContext {
    fn new(whole: String) -> SeenContext {
        // Where messages are translated, our own statement stays in it.
        let end = whole.rfind("SQL statement \"").unwrap_or(whole.len());
        let of_users = whole[..end].trim_end();
        // What our own functions raise says what is wrong without where.
        let is_own = of_users.is_empty() || OWN.iter().any(|schema| of_users.contains(schema));
        let of_users = (!is_own).then(|| CString::new(cut(of_users).as_ref()).ok()).flatten();
        SeenContext { whole, of_users }
    }
}

/// What the names of our own functions begin with.
const OWN: [&str; 2] = ["function bench_internal.", "function bench."];

/// The entry of the server's list of callbacks that puts things back. It outlives whatever the list is cut back to.
struct Entry(UnsafeCell<pg_sys::ErrorContextCallback>);

// SAFETY: a backend has one thread.
unsafe impl Sync for Entry {}

static ENTRY: Entry = Entry(UnsafeCell::new(pg_sys::ErrorContextCallback {
    previous: std::ptr::null_mut(),
    callback: Some(put_back),
    arg: std::ptr::null_mut(),
}));

/// The code as pgrx has it.
fn in_report(sqlstate: c_int) -> c_int {
    PgSqlErrorCode::from(sqlstate as isize) as c_int
}

/// Keeps what a report of this error loses, until it is reported or caught.
pub fn carry(error: &UserError) {
    let sqlstate = pack(&error.sqlstate);
    // As the server's own texts, it may be in another encoding; a zero byte cannot be part of any.
    let context = error.context.as_deref().and_then(|context| CString::new(cut(context).as_ref()).ok());
    if in_report(sqlstate) != sqlstate || context.is_some() {
        CARRIED.set(Some(Carried { sqlstate, context }));
        enter();
    }
}

/// The SQLSTATE, packed, and the context of an error that was caught and has this code in pgrx's report.
pub fn take(code: PgSqlErrorCode) -> (c_int, Option<String>) {
    leave();
    match CARRIED.take().filter(|carried| in_report(carried.sqlstate) == code as c_int) {
        Some(Carried { sqlstate, context }) => {
            (sqlstate, context.map(|text| text.to_string_lossy().into_owned()))
        }
        None => (code as c_int, None),
    }
}

/// Does what may have the server report an error, and sees to it that its SQLSTATE is kept. Around what users' code is executed
/// by.
pub fn watched<T>(work: impl FnOnce() -> T) -> T {
    /// Takes the entry of this call out again, also where an error comes through.
    struct Back(*mut pg_sys::ErrorContextCallback);
    impl Drop for Back {
        fn drop(&mut self) {
            // SAFETY: the server's own global, back to what it was before this call, whose frames are alive.
            unsafe { pg_sys::error_context_stack = self.0 };
            if !std::thread::panicking() {
                return;
            }
            let seen = SEEN.get();
            let context = SEEN_CONTEXT.take().and_then(|seen| seen.of_users);
            CARRIED.with_borrow_mut(|carried| {
                // Of calls within each other, the innermost one has seen it first.
                if carried.is_none() && (in_report(seen) != seen || context.is_some()) {
                    *carried = Some(Carried { sqlstate: seen, context });
                }
                if carried.is_some() {
                    enter();
                }
            });
        }
    }
    // One that was caught without a word.
    leave();
    CARRIED.set(None);
    SEEN.set(0);
    SEEN_CONTEXT.set(None);
    // SAFETY: reads the server's own global.
    let previous = unsafe { pg_sys::error_context_stack };
    let mut entry = pg_sys::ErrorContextCallback { previous, callback: Some(see), arg: std::ptr::null_mut() };
    let _back = Back(previous);
    // SAFETY: the entry is in this frame, and taken out before that ends.
    unsafe { pg_sys::error_context_stack = &raw mut entry };
    work()
}

/// Puts [`ENTRY`] on top of the list.
fn enter() {
    // SAFETY: a backend has one thread, and the entry is not read while this runs. Whatever frame cuts the list back cuts it back
    // to what it was before that frame, so that what the entry points to is alive as long as the entry is on the list.
    unsafe {
        let entry = ENTRY.0.get();
        if !std::ptr::eq(pg_sys::error_context_stack, entry) {
            (*entry).previous = pg_sys::error_context_stack;
            pg_sys::error_context_stack = entry;
        }
    }
}

/// Takes it off.
fn leave() {
    // SAFETY: as in `enter`.
    unsafe {
        let entry = ENTRY.0.get();
        if std::ptr::eq(pg_sys::error_context_stack, entry) {
            pg_sys::error_context_stack = (*entry).previous;
        }
    }
}

/// The server's callback for each message that is reported within [`watched`].
unsafe extern "C-unwind" fn see(_: *mut c_void) {
    // SAFETY: an error is being reported.
    let sqlstate = unsafe { geterrcode() };
    SEEN.set(sqlstate);
    if in_report(sqlstate) == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int {
        return SEEN_CONTEXT.set(None);
    }
    // SAFETY: an error is being reported, and is copied into a context other than that of errors, as CopyErrorData asks for.
    // If there is no memory, that is reported instead; nothing of Rust's is alive then. The copy is freed.
    let (is_error, context) = unsafe {
        let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let copy = CopyErrorData();
        let has_context = !(*copy).context.is_null();
        let context = has_context.then(|| CStr::from_ptr((*copy).context).to_string_lossy().into_owned());
        let is_error = (*copy).elevel >= PgLogLevel::ERROR as c_int;
        FreeErrorData(copy);
        pg_sys::MemoryContextSwitchTo(before);
        (is_error, context)
    };
    if !is_error {
        return;
    }
    // That of an error that was caught before is not this one's.
    let Some(whole) = context else { return SEEN_CONTEXT.set(None) };
    SEEN_CONTEXT.with_borrow_mut(|seen| {
        // Of calls within each other, each is called for the same error, the innermost first.
        if seen.as_ref().is_none_or(|seen| !whole.starts_with(&seen.whole)) {
            *seen = Some(SeenContext::new(whole));
        }
    });
}

/// The server's callback for the report by pgrx.
unsafe extern "C-unwind" fn put_back(_: *mut c_void) {
    // SAFETY: an error is being reported; what is called may fail only for want of memory, and nothing is left to be dropped
    // then but the text. The list is read on from this entry, which is static.
    unsafe {
        let code = geterrcode();
        let Some(carried) = CARRIED.take().filter(|carried| in_report(carried.sqlstate) == code) else {
            return;
        };
        leave();
        errcode(carried.sqlstate);
        if let Some(context) = carried.context {
            errcontext_msg(c"%s".as_ptr(), context.as_ptr());
        }
    }
}
