//! From the project's one error type to the server's report, and back.

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// Raises the error the server's way.
pub fn raise(error: UserError) -> ! {
    report_of(error).report(PgLogLevel::ERROR);
    unreachable!("a report at ERROR does not return")
}

/// Writes the error to the server's log only.
pub fn log(error: UserError) {
    report_of(error).report(PgLogLevel::LOG);
}

fn report_of(error: UserError) -> ErrorReport {
    let mut report = ErrorReport::new(code(&error.sqlstate), error.message, "pgbench_ext");
    if let Some(detail) = error.detail {
        report = report.set_detail(detail);
    }
    if let Some(hint) = error.hint {
        report = report.set_hint(hint);
    }
    report
}

/// A WARNING with a hint.
pub fn warn(message: impl Into<String>, hint: impl Into<String>) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message.into(), "pgbench_ext")
        .set_hint(hint.into())
        .report(PgLogLevel::WARNING);
}

/// A NOTICE with a hint.
pub fn notice(message: impl Into<String>, hint: impl Into<String>) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message.into(), "pgbench_ext")
        .set_hint(hint.into())
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

/// MAKE_SQLSTATE of utils/elog.h: five characters of six bits.
pub fn pack(sqlstate: &str) -> i32 {
    sqlstate
        .bytes()
        .take(5)
        .enumerate()
        .fold(0, |packed, (place, byte)| packed | ((i32::from(byte) - i32::from(b'0')) & 0x3F) << (6 * place))
}

/// unpack_sql_state of utils/error/elog.c.
pub fn unpack(mut packed: i32) -> String {
    (0..5)
        .map(|_| {
            let character = (packed & 0x3F) as u8 + b'0';
            packed >>= 6;
            char::from(character)
        })
        .collect()
}

fn code(sqlstate: &str) -> PgSqlErrorCode {
    PgSqlErrorCode::from(pack(sqlstate) as isize)
}

/// What a caught error says; the error is over with this.
pub fn from_caught(caught: CaughtError) -> UserError {
    let report = match caught {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
        CaughtError::RustPanic { ereport, .. } => ereport,
    };
    UserError {
        sqlstate: unpack(report.sql_error_code() as i32),
        message: report.message().to_owned(),
        detail: report.detail().map(str::to_owned),
        hint: report.hint().map(str::to_owned),
    }
}

/// An error in what this project assumes of itself or of the server.
pub fn internal(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::INTERNAL_ERROR, message)
}

/// What the server said of a statement that failed.
#[derive(Clone, Debug, Default)]
pub struct SqlError {
    /// As PostgreSQL packs it (MAKE_SQLSTATE).
    pub sqlstate: i32,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// The character in the statement's text, counted from 1; 0: none in particular.
    pub position: u32,
    /// What the server was doing: its CONTEXT.
    pub context: Option<String>,
}

impl From<UserError> for SqlError {
    fn from(error: UserError) -> Self {
        Self {
            sqlstate: pack(&error.sqlstate),
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            position: 0,
            context: None,
        }
    }
}

impl SqlError {
    /// An error of this project's own.
    pub fn new(sqlstate: PgSqlErrorCode, message: impl Into<String>) -> Self {
        Self { sqlstate: sqlstate as i32, message: message.into(), ..Self::default() }
    }

    /// Whether another try may succeed: serialization_failure or deadlock_detected.
    pub fn is_retryable(&self) -> bool {
        self.sqlstate == PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE as i32
            || self.sqlstate == PgSqlErrorCode::ERRCODE_T_R_DEADLOCK_DETECTED as i32
    }

    /// query_canceled.
    pub fn is_cancel(&self) -> bool {
        self.sqlstate == PgSqlErrorCode::ERRCODE_QUERY_CANCELED as i32
    }
}

impl From<SqlError> for UserError {
    fn from(error: SqlError) -> Self {
        let sqlstate = unpack(error.sqlstate);
        Self { sqlstate, message: error.message, detail: error.detail, hint: error.hint }
    }
}
