//! Rows of a table as the log's messages.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::{LogCapture, LogEntry};
use pgrx::pg_sys;

use super::messages::{MAX_LINE, Read, take_line};
use crate::server::query::{self, ResultRow};
use crate::server::spi::{fetch_all, quote_identifier};

/// The columns of the manual's table postgres_log that are needed.
const COLUMNS: [&str; 10] = [
    "user_name",
    "database_name",
    "application_name",
    "session_id",
    "virtual_transaction_id",
    "error_severity",
    "sql_state_code",
    "message",
    "detail",
    "query",
];

/// Gives the messages of a table or a view of this name to the capture, in a session that is asked.
///
/// # Errors
/// 42P01 for what this session does not see; 42809 for a table of another form; the server's.
pub(super) fn read_rows(
    table: pg_sys::Oid,
    name: &str,
    capture: &mut LogCapture,
    read: &mut Read,
) -> Result<(), UserError> {
    let columns = fetch_all(
        "SELECT attname::text, atttypid::regtype::text FROM pg_attribute \
         WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped",
        &[table.into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
    )?;
    if columns.is_empty() {
        let message = format!("table {name} does not exist for another session");
        return Err(UserError::new(sqlstate::UNDEFINED_TABLE, message)
            .hint("The log is read in a session of its own: commit before the call."));
    }
    let has = |wanted: &str| columns.iter().any(|(column, _)| column == wanted);
    if COLUMNS.iter().chain(&["log_time", "session_line_num"]).all(|column| has(column)) {
        let list: Vec<String> = COLUMNS.iter().map(|column| format!("{column}::pg_catalog.text")).collect();
        let sql = format!(
            "SELECT pg_catalog.date_part('epoch', log_time), {} FROM {name} \
             ORDER BY session_id::pg_catalog.text, session_line_num::pg_catalog.int8",
            list.join(", ")
        );
        return query::each_row(&sql, |row| {
            match from_row(row) {
                Some(entry) => {
                    read.messages += 1;
                    capture.take(&entry)?;
                }
                None => read.unreadable += 1,
            }
            Ok(true)
        });
    }
    let document = columns
        .first()
        .filter(|(_, kind)| columns.len() == 1 && ["json", "jsonb", "text"].contains(&kind.as_str()));
    let Some((column, _)) = document else {
        let message =
            format!("table {name} has neither the columns of csvlog nor one column of jsonlog's lines");
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message)
            .detail(format!("Columns of csvlog that are needed: log_time, session_line_num, {}.", COLUMNS.join(", ")))
            .hint("Create it like table postgres_log in the manual's section on csvlog, or with one column of type \
                   jsonb, json or text."));
    };
    let column = quote_identifier(column);
    let get = |key: &str| format!("({column}::pg_catalog.jsonb OPERATOR(pg_catalog.->>) '{key}')");
    let sql = format!(
        "SELECT {column}::pg_catalog.text FROM {name} ORDER BY {}, {}::pg_catalog.int8",
        get("session_id"),
        get("line_num")
    );
    query::each_row(&sql, |row| {
        take_line(&row.text(0).map_or_else(Default::default, CStr::to_string_lossy), capture, read)?;
        Ok(true)
    })
}

/// None for one that is too long.
fn from_row(row: &ResultRow) -> Option<LogEntry> {
    let texts: Vec<&CStr> = (0..=COLUMNS.len()).map(|column| row.text(column).unwrap_or_default()).collect();
    if texts.iter().map(|text| text.count_bytes() as u64).sum::<u64>() > MAX_LINE {
        return None;
    }
    let text = |place: usize| texts[place + 1].to_string_lossy().into_owned();
    Some(LogEntry {
        at_ms: texts[0].to_string_lossy().parse::<f64>().unwrap_or_default() * 1e3,
        zone: String::new(),
        user: text(0),
        database: text(1),
        application: text(2),
        session: text(3),
        virtual_transaction: text(4),
        severity: text(5),
        sqlstate: text(6),
        message: text(7),
        detail: text(8),
        query: text(9),
        query_id: 0,
    })
}
