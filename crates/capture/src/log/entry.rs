//! Reads messages of the log: csvlog, jsonlog, and stderr with a log_line_prefix of our own; and the zones of their times, which
//! daylight saving time or log_timezone may change in the middle of a log.
//!
//! With our prefix, a line that begins with the mark begins a message or a part of one; continuation lines begin with a tab.
//! Names of roles and databases may have any character, but are shorter than the mark: no name can forge the beginning of a line.

use std::collections::{BTreeSet, HashMap};
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
    /// Time of writing, in milliseconds since 2000-01-01 in `zone`.
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
    /// Empty for success.
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    /// The statement that an error belongs to.
    pub query: String,
    /// The identifier in pg_stat_statements; 0 for none.
    pub query_id: i64,
}

/// The form of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Csv,
    Json,
}

impl LogFormat {
    /// Returns the format of a file from its first byte: jsonlog's lines are objects.
    pub fn of(first: u8) -> Self {
        if first == b'{' { Self::Json } else { Self::Csv }
    }
}

/// Parses `2026-11-24 21:52:47.123 CET` into milliseconds since 2000-01-01 in its zone, and the zone.
fn parse_time(text: &str) -> Option<(f64, &str)> {
    let mut words = text.split(' ');
    let date: jiff::civil::Date = words.next()?.parse().ok()?;
    let time: jiff::civil::Time = words.next()?.parse().ok()?;
    let since_2000 = date.to_datetime(time).duration_since(jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0));
    Some((since_2000.as_secs_f64() * 1e3, words.next().unwrap_or_default()))
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

    /// Returns the next line; `None` at the end. A malformed line, such as the last one of a file that is still being written, is
    /// `Some(None)`.
    ///
    /// # Errors
    /// 58030 where reading fails, in the outer result.
    pub fn read(&mut self) -> Result<Option<Option<LogEntry>>, UserError> {
        let has_record = self
            .reader
            .read_byte_record(&mut self.record)
            .map_err(|error| UserError::new("58030", "could not read the log").detail(error.to_string()))?;
        Ok(has_record.then(|| parse_record(&self.record)))
    }
}

/// Columns up to application_name; servers before PostgreSQL 14 do not write all later ones.
const MIN_COLUMNS: usize = 23;

fn parse_record(record: &csv::ByteRecord) -> Option<LogEntry> {
    if record.len() < MIN_COLUMNS {
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

/// Parses a line of jsonlog.
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

/// Bytes of a mark: more than a name has (NAMEDATALEN counts its final NUL).
pub const MARK_BYTES: usize = 64;

/// Longest message with all its parts; longer ones are left out.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Seconds from 1970, the epoch of `%n`, to 2000, that of [`LogEntry::at_ms`].
const SECS_1970_TO_2000: f64 = 946_684_800.0;

/// Returns the log_line_prefix with this mark.
pub fn line_prefix(mark: &str) -> String {
    format!("{mark}%n %c %v %e %Q {mark}%u{mark}%d{mark}")
}

/// The part of a message that a continuation line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Statement,
    Other,
}

/// Reads a log with our prefix line by line.
#[derive(Debug)]
pub struct PrefixedLog {
    mark: String,
    /// The unfinished message, its current part, and its bytes.
    pending: Option<(LogEntry, Part, usize)>,
}

impl PrefixedLog {
    /// Expects lines with this mark.
    pub fn new(mark: String) -> Self {
        Self { mark, pending: None }
    }

    /// Takes the next line, without its line feed; returns the message that is complete with it.
    pub fn take_line(&mut self, line: &str) -> Option<LogEntry> {
        if let Some(rest) = line.strip_prefix('\t') {
            self.append("\n");
            self.append(rest);
            return None;
        }
        let Some((entry, label, text)) = self.parse_line(line) else { return self.finish() };
        let part = match label {
            "DETAIL" => Part::Detail,
            "STATEMENT" => Part::Statement,
            "HINT" | "CONTEXT" | "QUERY" | "LOCATION" | "BACKTRACE" => Part::Other,
            _ => {
                let finished = self.finish();
                // log_error_verbosity = verbose puts the code before the message.
                let code = format!("{}: ", entry.sqlstate);
                let text = text.strip_prefix(&code).unwrap_or(text).to_owned();
                let sqlstate = Some(entry.sqlstate).filter(|state| state != "00000").unwrap_or_default();
                self.pending =
                    Some((LogEntry { severity: label.to_owned(), sqlstate, ..entry }, Part::Message, 0));
                self.append(&text);
                return finished;
            }
        };
        let is_same_session =
            self.pending.as_ref().is_some_and(|(pending, ..)| pending.session == entry.session);
        if !is_same_session {
            return self.finish();
        }
        if let Some((_, current, _)) = &mut self.pending {
            *current = part;
        }
        self.append(text);
        None
    }

    /// Takes the rest of a line that was too long, even if it begins like a message.
    pub fn take_rest(&mut self, rest: &str) {
        self.append(rest);
    }

    /// Returns the last message, at the end of the log.
    pub fn finish(&mut self) -> Option<LogEntry> {
        self.pending.take().filter(|(.., bytes)| *bytes <= MAX_MESSAGE_BYTES).map(|(entry, ..)| entry)
    }

    fn append(&mut self, text: &str) {
        let Some((entry, part, bytes)) = &mut self.pending else { return };
        *bytes += text.len();
        if *bytes > MAX_MESSAGE_BYTES {
            return;
        }
        match part {
            Part::Message => entry.message.push_str(text),
            Part::Detail => entry.detail.push_str(text),
            Part::Statement => entry.query.push_str(text),
            Part::Other => {}
        }
    }

    /// Splits a line with the mark into an entry with the prefix's fields, the label such as `LOG` or `DETAIL`, and the text.
    fn parse_line<'a>(&self, line: &'a str) -> Option<(LogEntry, &'a str, &'a str)> {
        let mut fields = line.strip_prefix(&self.mark)?.splitn(4, self.mark.as_str());
        let mut words = fields.next()?.split(' ');
        let (user, database, rest) = (fields.next()?, fields.next()?, fields.next()?);
        let mut word = || words.next();
        let entry = LogEntry {
            at_ms: (word()?.parse::<f64>().ok()? - SECS_1970_TO_2000) * 1e3,
            session: word()?.to_owned(),
            virtual_transaction: word()?.to_owned(),
            sqlstate: word()?.to_owned(),
            query_id: word()?.parse().unwrap_or_default(),
            user: user.to_owned(),
            database: database.to_owned(),
            ..LogEntry::default()
        };
        let (label, text) = rest.split_once(":  ")?;
        Some((entry, label, text))
    }
}

/// Returns the seconds east of UTC of a zone's abbreviation or name, at a local time in seconds since 2000-01-01; `None` for an
/// unknown zone.
pub type OffsetOf = fn(&str, f64) -> Option<i32>;

/// Longest name of a zone: PostgreSQL's TZ_STRLEN_MAX.
const MAX_ZONE_BYTES: usize = 255;

/// Most zones and hours whose offsets are looked up: those of a log of ten years in a zone that is written by its name.
const MAX_LOOKUPS: usize = 100_000;

/// Most unknown zones in a note.
const MAX_UNKNOWN: usize = 5;

/// The zones of a log.
#[derive(Debug)]
pub struct LogZones {
    offset_of: OffsetOf,
    offsets: HashMap<(String, i64), Option<i32>>,
    /// The offset of the message before.
    latest: Option<((String, i64), Option<i32>)>,
    unknown: BTreeSet<String>,
    /// Whether a time had a written offset.
    has_known: bool,
}

impl LogZones {
    /// Looks up zones by `offset_of`, except UTC and written offsets.
    pub fn new(offset_of: OffsetOf) -> Self {
        Self { offset_of, offsets: HashMap::new(), latest: None, unknown: BTreeSet::new(), has_known: false }
    }

    /// Returns the milliseconds to subtract from a local time for UTC; 0 in an unknown zone.
    pub fn offset_ms(&mut self, zone: &str, local_ms: f64) -> f64 {
        if let Some(secs) = written_offset(zone) {
            self.has_known = true;
            return f64::from(secs) * 1e3;
        }
        // Only zones with a name have daylight saving time.
        let hour = if zone.contains('/') { (local_ms / 3.6e6).floor() as i64 } else { 0 };
        let is_same =
            |((name, latest_hour), _): &((String, i64), Option<i32>)| *latest_hour == hour && name == zone;
        if !self.latest.as_ref().is_some_and(is_same) {
            let key = (zone.get(..MAX_ZONE_BYTES).unwrap_or(zone).to_owned(), hour);
            let offset = self.offset(&key, local_ms);
            self.latest = Some((key, offset));
        }
        f64::from(self.latest.as_ref().and_then(|(_, offset)| *offset).unwrap_or(0)) * 1e3
    }

    fn offset(&mut self, key: &(String, i64), local_ms: f64) -> Option<i32> {
        if let Some(&known) = self.offsets.get(key) {
            return known;
        }
        let can_look_up = self.offsets.len() < MAX_LOOKUPS;
        let offset = if can_look_up { (self.offset_of)(&key.0, local_ms / 1e3) } else { None };
        if can_look_up {
            self.offsets.insert(key.clone(), offset);
        }
        if offset.is_none() && self.unknown.len() < MAX_UNKNOWN {
            self.unknown.insert(key.0.clone());
        }
        offset
    }

    /// Returns the unknown zones; none where the log has only one zone: only differences of times matter.
    pub fn unknown(self) -> Vec<String> {
        let is_mixed = self.has_known || self.offsets.len() > 1;
        self.unknown.into_iter().filter(|_| is_mixed).collect()
    }
}

/// Parses `UTC`, `GMT`, and abbreviations such as `+03`, `-0330` and `+05:30` into seconds east of UTC; an empty zone is UTC.
fn written_offset(zone: &str) -> Option<i32> {
    if matches!(zone, "" | "UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|&c| c != ':').collect();
    if !matches!(digits.len(), 2 | 4 | 6) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |start: usize| digits.get(start..start + 2).map_or(0, |two| two.parse::<i32>().unwrap_or(0));
    Some(sign * (part(0) * 3600 + part(2) * 60 + part(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Vec<LogEntry> {
        let mut reader = PrefixedLog::new("M".repeat(MARK_BYTES));
        let log = log.replace('@', &"M".repeat(MARK_BYTES));
        let mut entries: Vec<LogEntry> = log.lines().filter_map(|line| reader.take_line(line)).collect();
        entries.extend(reader.finish());
        entries
    }

    #[test]
    fn messages_have_their_parts_and_lines() {
        let found = read(
            "2026-11-30 LOG:  another's\n\tgoes on\n\
             @946684801.500 1a.2b 3/17 00000 -42 @app role@shop@LOG:  duration: 1.2 ms  execute s: SELECT\n\t$1:  x\n\
             @946684801.500 1a.2b 3/17 00000 -42 @app role@shop@DETAIL:  parameters: $1 = 'a\n\t\tb'\n\
             @946684801.600 1a.2b  23505 0 @app role@shop@ERROR:  23505: duplicate\n\
             @946684801.600 1a.2b  23505 0 @app role@shop@HINT:  none\n\
             @946684801.600 1a.2b  23505 0 @app role@shop@STATEMENT:  INSERT\n\
             LOG:  no prefix\n@cut",
        );
        let first = LogEntry {
            at_ms: 1500.0,
            user: "app role".into(),
            database: "shop".into(),
            session: "1a.2b".into(),
            virtual_transaction: "3/17".into(),
            severity: "LOG".into(),
            message: "duration: 1.2 ms  execute s: SELECT\n$1:  x".into(),
            detail: "parameters: $1 = 'a\n\tb'".into(),
            query_id: -42,
            ..LogEntry::default()
        };
        assert_eq!(found[0], first);
        assert_eq!(
            (found[1].sqlstate.as_str(), found[1].message.as_str(), found[1].query.as_str()),
            ("23505", "duplicate", "INSERT")
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_rest_of_a_line_begins_no_message() {
        let mark = "M".repeat(MARK_BYTES);
        let line = |name: &str| {
            format!("{mark}1 s 3/1 00000 0 {mark}{name}{mark}shop{mark}LOG:  statement: SELECT 1")
        };
        let mut reader = PrefixedLog::new(mark.clone());
        assert_eq!(reader.take_line(&line("app")), None);
        reader.take_rest(&line("boss"));
        assert_eq!(reader.finish().map(|entry| entry.user), Some("app".to_owned()));
    }

    #[test]
    fn offsets_are_read() {
        let read = ["UTC", "+03", "-0330", "+05:30", "", "CET", "+3", "--03", "+0a"].map(written_offset);
        assert_eq!(
            read,
            [Some(0), Some(10_800), Some(-12_600), Some(19_800), Some(0), None, None, None, None]
        );
    }

    #[test]
    fn each_zone_is_asked_for_once() {
        thread_local! {
            static ASKED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
        }
        let mut zones = LogZones::new(|zone, _| {
            ASKED.set(ASKED.get() + 1);
            (zone == "CET").then_some(3600)
        });
        for _ in 0..3 {
            assert_eq!(zones.offset_ms("CET", 7.2e6), 3.6e6);
            assert_eq!(zones.offset_ms("MOON", 7.2e6), 0.0);
        }
        assert_eq!((ASKED.get(), zones.unknown()), (2, vec!["MOON".to_owned()]));
    }
}
