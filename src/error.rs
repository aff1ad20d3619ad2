//! From the project's one error type to the server's report, and back.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use bench_base::error::{UserError, cut, pack, sqlstate, unpack};
use bench_base::untrusted::in_ascii;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

/// Raises the error the server's way.
pub fn raise(error: UserError) -> ! {
    carry(&error);
    report_of(error).report(PgLogLevel::ERROR);
    unreachable!("a report at ERROR does not return")
}

/// Writes the error to the server's log only.
pub fn log(error: UserError) {
    carry(&error);
    report_of(error).report(PgLogLevel::LOG);
}

/// Texts of others may be in it: none goes whole into the server's log or to a client, however long it is.
fn shown(text: &str) -> String {
    for_client(cut(text).into_owned())
}

fn report_of(error: UserError) -> ErrorReport {
    let mut report = ErrorReport::new(code(&error.sqlstate), shown(&error.message), "pgbench_ext");
    if let Some(detail) = error.detail {
        report = report.set_detail(shown(&detail));
    }
    if let Some(hint) = error.hint {
        report = report.set_hint(shown(&hint));
    }
    report
}

/// A WARNING with a hint.
pub fn warn(message: impl Into<String>, hint: impl Into<String>) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, shown(&message.into()), "pgbench_ext")
        .set_hint(shown(&hint.into()))
        .report(PgLogLevel::WARNING);
}

/// A NOTICE with a hint.
pub fn notice(message: impl Into<String>, hint: impl Into<String>) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, shown(&message.into()), "pgbench_ext")
        .set_hint(shown(&hint.into()))
        .report(PgLogLevel::NOTICE);
}

/// The value, or the error raised.
pub trait OrRaise<T> {
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T, UserError> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| raise(error))
    }
}

fn code(sqlstate: &str) -> PgSqlErrorCode {
    PgSqlErrorCode::from(pack(sqlstate) as isize)
}

/// What a caught error says; the error is over with this.
pub fn from_caught(caught: CaughtError) -> UserError {
    let (report, (sqlstate, context)) = match caught {
        CaughtError::PostgresError(report) => (report, read_carried()),
        CaughtError::ErrorReport(ereport) | CaughtError::RustPanic { ereport, .. } => {
            let carried = take_carried(ereport.sql_error_code());
            (ereport, carried)
        }
    };
    UserError {
        sqlstate: unpack(sqlstate),
        message: report.message().to_owned(),
        detail: report.detail().map(str::to_owned),
        hint: report.hint().map(str::to_owned),
        context,
    }
}

/// An error in what this project assumes of itself or of the server.
pub fn internal(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::INTERNAL_ERROR, message)
}

// What pgrx's report of an error has no room for: SQLSTATEs that PostgreSQL does not define, as functions raise them, and the
// context of an error, of another process too. Of an error that the server raised in this process they are read from its own
// record, and what is not caught goes on unchanged; of one of ours, an error context callback adds them as it is reported.

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
}

/// The part of an error's context that is users' code: down to the statement of ours that it was executed by.
fn of_users(whole: &str) -> Option<String> {
    /// What the names of our own functions begin with. What they raise says what is wrong without where.
    const OWN: [&str; 2] = ["function bench_internal.", "function bench."];
    // Where messages are translated, our own statement stays in it.
    let end = whole.rfind("SQL statement \"").unwrap_or(whole.len());
    let of_users = whole[..end].trim_end();
    let is_own = of_users.is_empty() || OWN.iter().any(|schema| of_users.contains(schema));
    (!is_own).then(|| cut(of_users).into_owned())
}

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
    // One that was to be logged, and is below what the log takes, was never reported.
    leave();
    CARRIED.set(None);
    let sqlstate = pack(&error.sqlstate);
    // As the server's own texts, it may be in another encoding; a zero byte cannot be part of any.
    let context = error.context.as_deref().and_then(|context| CString::new(cut(context).as_ref()).ok());
    if in_report(sqlstate) != sqlstate || context.is_some() {
        CARRIED.set(Some(Carried { sqlstate, context }));
        enter();
    }
}

/// The SQLSTATE, packed, and the context of an error of ours that was caught before it was reported, and has this code in
/// pgrx's report.
fn take_carried(code: PgSqlErrorCode) -> (c_int, Option<String>) {
    leave();
    match CARRIED.take().filter(|carried| in_report(carried.sqlstate) == code as c_int) {
        Some(Carried { sqlstate, context }) => {
            (sqlstate, context.map(|text| text.to_string_lossy().into_owned()))
        }
        None => (code as c_int, None),
    }
}

/// The same of an error that the server has raised. In the handler that has caught it, before any other error.
fn read_carried() -> (c_int, Option<String>) {
    // SAFETY: pgrx leaves an error that is caught on the server's stack until its handler is done. It is copied into a context
    // other than that of errors, as CopyErrorData asks for, and the copy is freed.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let copy = pg_sys::ffi::pg_guard_ffi_boundary(|| CopyErrorData());
        let context = (*copy).context;
        let context = (!context.is_null()).then(|| CStr::from_ptr(context).to_string_lossy().into_owned());
        let sqlstate = (*copy).sqlerrcode;
        FreeErrorData(copy);
        pg_sys::MemoryContextSwitchTo(before);
        (sqlstate, context.as_deref().and_then(of_users))
    }
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

// Texts for clients whose encoding lacks some of our characters: the server would refuse the whole with 22P05.

/// The text as this session's client can show it.
pub fn for_client(text: String) -> String {
    // SAFETY: reads a variable of the process's, which is set from its start on.
    let encoding = unsafe { pg_sys::pg_get_client_encoding() };
    let has_all = [pg_sys::pg_enc::PG_UTF8, pg_sys::pg_enc::PG_SQL_ASCII].contains(&encoding.cast_unsigned());
    if has_all { text } else { in_ascii(&text).into_owned() }
}
