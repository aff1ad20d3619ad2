//! The messages of a log, and a log in a table or a view, which is read in a session of a role without special rights: its
//! columns' types, its policies and a view's functions may be anybody's.

use std::ffi::{CStr, CString};

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::{CapturedLog, LogCapture, LogEntry, from_json};
use bench_capture::options::LogOptions;
use bench_model::spec::Role;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::guard::session_role::session_of;
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::server::background_worker::WorkerKind;
use crate::server::query::{self, ResultRow};
use crate::server::relations::owner_of;
use crate::server::spi::{fetch, fetch_all, quote_identifier};
use crate::server::transaction::rolled_back;
use crate::server::{guc, roles};

/// How much was read.
#[derive(Default, Serialize, Deserialize)]
pub struct Read {
    pub messages: u64,
    /// Lines that no server writes.
    pub unreadable: u64,
    /// Whether this server has written all of it, so that it is known who executed what.
    pub is_servers: bool,
}

/// The longest message of csvlog and line of jsonlog, in bytes: longer ones are taken for broken.
pub(super) const MAX_LINE: u64 = 16 << 20;

/// Gives a line of jsonlog to the capture.
pub(super) fn take_line(line: &str, capture: &mut LogCapture, read: &mut Read) -> Result<(), UserError> {
    match Some(line).filter(|line| line.len() as u64 <= MAX_LINE).and_then(from_json) {
        Some(entry) => {
            read.messages += 1;
            capture.take(entry)
        }
        None => {
            read.unreadable += 1;
            Ok(())
        }
    }
}

/// Seconds east of UTC of a zone at a local time, in seconds since 2000-01-01. An abbreviation is first looked for in the zone
/// that the log is written in: `IST` is not Israel's in India.
pub fn offset_of(zone: &str, local_secs: f64) -> Option<i32> {
    let log_zone = CString::new(guc::current("log_timezone")?).ok()?;
    // At the end of a summer, a local time has two abbreviations.
    let sql = "SELECT extract(epoch FROM l.local - (i.at AT TIME ZONE 'UTC'))::int4 \
               FROM (SELECT timestamp '2000-01-01' + make_interval(secs => $2) AS local) l, \
                    unnest('{0 h,1 h,-1 h}'::interval[]) AS s (step), \
                    LATERAL (SELECT l.local::timestamptz + s.step AS at) i \
               WHERE to_char(i.at, 'TZ') = $1 AND i.at::timestamp = l.local LIMIT 1";
    let of_log =
        guc::with_setting(c"TimeZone", &log_zone, || fetch::<i32>(sql, &[zone.into(), local_secs.into()]));
    if let Ok(Some(offset)) = of_log {
        return Some(offset);
    }
    let sql = "SELECT extract(epoch FROM l.local - ((l.local AT TIME ZONE $1) AT TIME ZONE 'UTC'))::int4 \
               FROM (SELECT timestamp '2000-01-01' + make_interval(secs => $2) AS local) l";
    match rolled_back(|| fetch::<i32>(sql, &[zone.into(), local_secs.into()])) {
        Ok(offset) => offset,
        Err(canceled) if canceled.sqlstate == sqlstate::QUERY_CANCELED => crate::error::raise(canceled),
        Err(_) => None,
    }
}

/// The kind of worker that reads tables.
const KIND: WorkerKind = kind(c"pgbench_ext_log_table_main", c"pgbench_ext capture");

#[derive(Serialize, Deserialize)]
struct TableRequest {
    table: u32,
    /// Qualified, and quoted where it has to be.
    name: String,
    options: LogOptions,
}

/// Collects the transactions of a table's messages: in a session of the caller; of one with special rights, in a session of the
/// table's owner or, if that has some as well, of the client role.
///
/// # Errors
/// 42501 where the role of the session may not read the table; 42809 for a table of another form; those of a capture and of a
/// question to another session.
pub(super) fn read(table: pg_sys::Oid, options: &LogOptions) -> Result<(CapturedLog, Read), UserError> {
    let sql = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.oid = $1";
    let Some(name) = fetch::<String>(sql, &[table.into()])? else {
        let message = format!("relation with OID {} does not exist", table.to_u32());
        return Err(UserError::new(sqlstate::UNDEFINED_TABLE, message));
    };
    let caller = roles::current();
    let owner = owner_of(table)?;
    let owner = roles::name_of(owner).map(|name| Role { name, oid: owner.to_u32() });
    let role = session_of(&caller, &caller, owner)?;
    check_readable(table, &name, &role)?;
    let question = TableRequest { table: table.to_u32(), name, options: options.clone() };
    ask(KIND, &role, None, &question).map(|(answer, _)| answer)
}

/// # Errors
/// 42501 with the GRANT that a role lacks for reading a table.
fn check_readable(table: pg_sys::Oid, name: &str, role: &Role) -> Result<(), UserError> {
    let sql = "SELECT CASE WHEN NOT has_schema_privilege($2, c.relnamespace, 'USAGE') \
                   THEN format('GRANT USAGE ON SCHEMA %s TO %s', c.relnamespace::regnamespace, $2::regrole) \
               WHEN NOT has_any_column_privilege($2, c.oid, 'SELECT') THEN format('GRANT SELECT ON %s TO %s', $3, $2::regrole) END \
               FROM pg_class c WHERE c.oid = $1";
    let role_oid = pg_sys::Oid::from(role.oid);
    match fetch::<String>(sql, &[table.into(), role_oid.into(), name.into()])? {
        None => Ok(()),
        Some(grant) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for table {name}"),
        )
        .detail(format!("It is read in a session of role \"{}\".", role.name))
        .hint(format!("{grant}."))),
    }
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_log_table_main(segment: pg_sys::Datum) {
    answer(segment, |TableRequest { table, name, options }: TableRequest| {
        read_only()?;
        let mut capture = LogCapture::new(options).with_zones(offset_of);
        let mut read = Read::default();
        rolled_back(|| read_rows(table.into(), &name, &mut capture, &mut read))?;
        Ok(((capture.finish()?, read), Vec::new()))
    });
}

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
fn read_rows(
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
                    capture.take(entry)?;
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
