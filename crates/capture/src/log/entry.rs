//! What of a line of the log matters here, and the two forms in which servers write it.

use std::io::Read;

use bench_base::error::UserError;
use serde::Deserialize;

/// Columns of csvlog in PostgreSQL 14 to 18, in the order of the manual's table postgres_log.
pub const CSV_COLUMNS: [&str; 26] = [
    "log_time",
    "user_name",
    "database_name",
    "process_id",
    "connection_from",
    "session_id",
    "session_line_num",
    "command_tag",
    "session_start_time",
    "virtual_transaction_id",
    "transaction_id",
    "error_severity",
    "sql_state_code",
    "message",
    "detail",
    "hint",
    "internal_query",
    "internal_query_pos",
    "context",
    "query",
    "query_pos",
    "location",
    "application_name",
    "backend_type",
    "leader_pid",
    "query_id",
];

/// One message of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogEntry {
    /// When it was written, in milliseconds since 2000-01-01 in `zone`.
    pub at_ms: f64,
    /// An abbreviation, an offset or a name of a zone; empty for UTC.
    pub zone: String,
    pub user: String,
    pub database: String,
    pub application: String,
    pub session: String,
    /// `backend/local`; empty outside of sessions.
    pub virtual_transaction: String,
    pub severity: String,
    /// Empty where it says success.
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    /// The statement that an error belongs to.
    pub query: String,
    /// As in pg_stat_statements; 0: none.
    pub query_id: i64,
}

/// The form of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Csv,
    Json,
}

impl LogFormat {
    /// Of its first byte: jsonlog's lines are objects.
    pub fn of(first: u8) -> Self {
        if first == b'{' { Self::Json } else { Self::Csv }
    }
}

/// `2026-11-24 21:52:47.123 CET` as milliseconds since 2000-01-01 in its zone, and the zone. None for anything else.
pub fn parse_time(text: &str) -> Option<(f64, &str)> {
    let mut words = text.split(' ');
    let date: jiff::civil::Date = words.next()?.parse().ok()?;
    let time: jiff::civil::Time = words.next()?.parse().ok()?;
    let moment = date.to_datetime(time);
    let since = moment.duration_since(jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0));
    Some((since.as_secs_f64() * 1e3, words.next().unwrap_or_default()))
}

/// Reads csvlog piece by piece.
pub struct CsvLog<R> {
    reader: csv::Reader<R>,
    record: csv::ByteRecord,
}

impl<R: Read> CsvLog<R> {
    pub fn new(source: R) -> Self {
        let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source);
        Self { reader, record: csv::ByteRecord::new() }
    }

    /// The next line; None at the end. A line that no server writes, such as the last one of a file that is still being
    /// written, is `Some(None)`.
    ///
    /// # Errors
    /// 58030 where reading fails, in the outer result.
    pub fn read(&mut self) -> Result<Option<Option<LogEntry>>, UserError> {
        let more = self
            .reader
            .read_byte_record(&mut self.record)
            .map_err(|error| UserError::new("58030", "could not read the log").detail(error.to_string()))?;
        Ok(more.then(|| from_record(&self.record)))
    }
}

fn from_record(record: &csv::ByteRecord) -> Option<LogEntry> {
    // 14 columns are needed; those of older versions lack the last.
    if record.len() < 23 {
        return None;
    }
    let field = |place: usize| String::from_utf8_lossy(record.get(place).unwrap_or_default()).into_owned();
    let time = field(0);
    let (at_ms, zone) = parse_time(&time)?;
    Some(LogEntry {
        at_ms,
        zone: zone.to_owned(),
        user: field(1),
        database: field(2),
        session: field(5),
        virtual_transaction: field(9),
        severity: field(11),
        sqlstate: Some(field(12)).filter(|state| state != "00000").unwrap_or_default(),
        message: field(13),
        detail: field(14),
        query: field(19),
        application: field(22),
        query_id: field(25).parse().unwrap_or_default(),
    })
}

/// A line of jsonlog; None for anything else.
pub fn from_json(line: &str) -> Option<LogEntry> {
    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct LogLine {
        timestamp: String,
        user: String,
        dbname: String,
        session_id: String,
        vxid: String,
        error_severity: String,
        state_code: String,
        message: String,
        detail: String,
        statement: String,
        application_name: String,
        query_id: i64,
    }
    let line: LogLine = serde_json::from_str(line).ok()?;
    let (at_ms, zone) = parse_time(&line.timestamp)?;
    Some(LogEntry {
        at_ms,
        zone: zone.to_owned(),
        user: line.user,
        database: line.dbname,
        session: line.session_id,
        virtual_transaction: line.vxid,
        severity: line.error_severity,
        sqlstate: line.state_code,
        message: line.message,
        detail: line.detail,
        query: line.statement,
        application: line.application_name,
        query_id: line.query_id,
    })
}
