//! From the project's one error type to the server's report, and back.

mod carried;
mod client_text;

use bench_base::error::{UserError, cut, pack, sqlstate, unpack};
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::{PgLogLevel, PgSqlErrorCode};

pub use client_text::for_client;

/// Raises the error the server's way.
pub fn raise(error: UserError) -> ! {
    carried::carry(&error);
    report_of(error).report(PgLogLevel::ERROR);
    unreachable!("a report at ERROR does not return")
}

/// Writes the error to the server's log only.
pub fn log(error: UserError) {
    carried::carry(&error);
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
        CaughtError::PostgresError(report) => (report, carried::read()),
        CaughtError::ErrorReport(ereport) | CaughtError::RustPanic { ereport, .. } => {
            let carried = carried::take(ereport.sql_error_code());
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
