//! Where the log's messages come from: a table that has them, or the server's own files. Neither is ever in memory as a whole.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::{CsvLog, LogCapture, LogEntry, LogFormat, from_json};
use pgrx::pg_sys;

use crate::guard::planner_hook::Judged;
use crate::guard::switch_role::as_run_role;
use crate::server::files::{Interruptible, open_regular};
use crate::server::query::{self, ResultRow};
use crate::server::roles::current_role_oid;
use crate::server::spi::in_session::{fetch, fetch_all};
use crate::server::spi::quote_identifier;

/// A log.
pub enum LogSource {
    Table(pg_sys::Oid),
    /// A file, or a directory with files; relative to the data directory.
    File {
        path: String,
        format: Option<LogFormat>,
    },
    /// What the server has written since a moment.
    Since(LogPosition),
}

/// A moment in the server's jsonlog.
pub struct LogPosition {
    folder: PathBuf,
    /// What each file had then.
    bytes: HashMap<PathBuf, u64>,
}

impl LogPosition {
    /// Now, in the folder that the server writes to.
    ///
    /// # Errors
    /// 42501, 58P01 and 58030 where it cannot be looked at.
    pub fn of(folder: PathBuf) -> Result<Self, UserError> {
        let bytes = json_files(&folder)?.into_iter().map(|file| (file.path, file.bytes)).collect();
        Ok(Self { folder, bytes })
    }

    /// At the begin of a file in a folder that was not known before.
    pub fn begin_of(file: &Path) -> Self {
        Self { folder: file.parent().unwrap_or(Path::new(".")).to_owned(), bytes: HashMap::new() }
    }

    /// The files that have been written to since, the oldest first, each with where to begin.
    fn written(&self) -> Result<Vec<(PathBuf, u64)>, UserError> {
        let mut found: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for JsonFile { path, bytes, changed } in json_files(&self.folder)? {
            let before = self.bytes.get(&path).copied().unwrap_or(0);
            // One that is shorter now was begun anew.
            let from = if bytes < before { 0 } else { before };
            if bytes > from {
                found.push((changed, path, from));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, path, from)| (path, from)).collect())
    }

    /// Bytes that have been written since.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn bytes_since(&self) -> Result<u64, UserError> {
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        Ok(self.written()?.iter().map(|(path, from)| size(path).saturating_sub(*from)).sum())
    }
}

struct JsonFile {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
}

/// The logs of a folder, without those that go meanwhile.
fn json_files(folder: &Path) -> Result<Vec<JsonFile>, UserError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        match fs::metadata(&path) {
            Ok(of) => {
                let changed = of.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push(JsonFile { path, bytes: of.len(), changed });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(found)
}

/// How much was read.
#[derive(Default)]
pub struct Read {
    pub messages: u64,
    /// Lines that no server writes.
    pub unreadable: u64,
}

/// Bytes of one line of jsonlog, or of a file, that are read at once.
const BUFFER: usize = 1 << 16;

/// The longest message of csvlog and line of jsonlog, in bytes: longer ones are taken for broken.
const MAX_LINE: u64 = 16 << 20;

impl LogSource {
    /// Gives all messages to the capture.
    ///
    /// # Errors
    /// 42501 for files without pg_read_server_files, 58P01 and 58030 for those that cannot be read, 42809 for a table of
    /// another form, and the server's.
    pub fn read(&self, capture: &mut LogCapture) -> Result<Read, UserError> {
        let mut read = Read::default();
        match self {
            // As whoever may read it, and nothing that the table's views call can become anybody else.
            Self::Table(table) => {
                // Who filled it is not who reads it.
                let _judged = Judged::new()?;
                as_run_role(current_role_oid(), || read_table(*table, capture, &mut read))?;
            }
            Self::File { path, format } => {
                check_may_read_files()?;
                for file in files(path, *format)? {
                    read_file(&file, *format, 0, capture, &mut read)?;
                }
            }
            Self::Since(position) => {
                check_may_read_files()?;
                for (file, from) in position.written()? {
                    read_file(&file, Some(LogFormat::Json), from, capture, &mut read)?;
                }
            }
        }
        Ok(read)
    }
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

fn read_table(table: pg_sys::Oid, capture: &mut LogCapture, read: &mut Read) -> Result<(), UserError> {
    let name = fetch::<String>(
        "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace WHERE c.oid OPERATOR(pg_catalog.=) $1",
        &[table.into()],
    )?;
    let name = name.unwrap_or_default();
    let columns = fetch_all(
        "SELECT attname::pg_catalog.text, atttypid::pg_catalog.regtype::pg_catalog.text FROM pg_catalog.pg_attribute \
         WHERE attrelid OPERATOR(pg_catalog.=) $1 AND attnum OPERATOR(pg_catalog.>) 0 AND NOT attisdropped",
        &[table.into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
    )?;
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

fn take_line(line: &str, capture: &mut LogCapture, read: &mut Read) -> Result<(), UserError> {
    match Some(line).filter(|line| line.len() as u64 <= MAX_LINE).and_then(from_json) {
        Some(entry) => {
            read.messages += 1;
            capture.take(&entry)
        }
        None => {
            read.unreadable += 1;
            Ok(())
        }
    }
}

/// As the server's own functions for files: the path of those that may is not looked at
/// (`convert_and_check_filename` in src/backend/utils/adt/genfile.c).
fn check_may_read_files() -> Result<(), UserError> {
    let may = fetch::<bool>("SELECT pg_catalog.pg_has_role('pg_read_server_files', 'USAGE')", &[])?;
    if may == Some(true) {
        return Ok(());
    }
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, "permission denied to read the log's files")
        .detail("Only roles with the privileges of role pg_read_server_files may read files of the server.")
        .hint("Capture from a table: COPY the log into it, and pass it as log."))
}

/// The files of a path, in the order of their names.
fn files(path: &str, format: Option<LogFormat>) -> Result<Vec<PathBuf>, UserError> {
    let whole = Path::new(path);
    if !fs::metadata(whole).map_err(|error| unreadable(whole, &error))?.is_dir() {
        return Ok(vec![whole.to_owned()]);
    }
    let mut found: Vec<(LogFormat, PathBuf)> = Vec::new();
    for entry in fs::read_dir(whole).map_err(|error| unreadable(whole, &error))? {
        let path = entry.map_err(|error| unreadable(whole, &error))?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => found.push((LogFormat::Csv, path)),
            Some("json") => found.push((LogFormat::Json, path)),
            _ => {}
        }
    }
    if format.is_none() && found.iter().any(|(format, _)| *format != found[0].0) {
        let message = format!("directory \"{path}\" has logs in both formats");
        return Err(UserError::invalid(message)
            .hint("Both contain the same messages. Choose one: format => 'csv' or format => 'json'."));
    }
    found.retain(|(is, _)| format.is_none_or(|wanted| wanted == *is));
    if found.is_empty() {
        let message = format!("there is no log in directory \"{path}\"");
        return Err(UserError::new(UNDEFINED_FILE, message).hint("Logs end in .csv or .json."));
    }
    let mut files: Vec<PathBuf> = found.into_iter().map(|(_, path)| path).collect();
    files.sort();
    Ok(files)
}

/// undefined_file
const UNDEFINED_FILE: &str = "58P01";

fn unreadable(path: &Path, error: &std::io::Error) -> UserError {
    let (code, hint) = match error.kind() {
        std::io::ErrorKind::NotFound => (UNDEFINED_FILE, "A relative path begins in the data directory."),
        std::io::ErrorKind::PermissionDenied => (
            sqlstate::INSUFFICIENT_PRIVILEGE,
            "The operating-system user of the server must be able to read it.",
        ),
        _ => ("58030", "The path has to be a file of csvlog or jsonlog, or a directory of them."),
    };
    UserError::new(code, format!("could not read \"{}\": {error}", path.display())).hint(hint)
}

fn message_too_long(path: &Path) -> UserError {
    let message = format!("a message in \"{}\" is longer than {} MB", path.display(), MAX_LINE >> 20);
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("Remove the message from the log, or capture from a table with the other messages.")
}

/// A file of which only so much is read until somebody says that it may be more.
struct Limited<'a> {
    file: Interruptible,
    left: &'a Cell<u64>,
}

impl std::io::Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left.get() == 0 {
            return Err(std::io::Error::other("a message is too long"));
        }
        let read = self.file.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(read as u64));
        Ok(read)
    }
}

fn read_file(
    path: &Path,
    format: Option<LogFormat>,
    from: u64,
    capture: &mut LogCapture,
    read: &mut Read,
) -> Result<(), UserError> {
    let (mut file, _) = open_regular(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => {
            let message = format!("\"{}\" is not a regular file", path.display());
            UserError::new(sqlstate::WRONG_OBJECT_TYPE, message)
        }
        _ => unreadable(path, &error),
    })?;
    file.seek(SeekFrom::Start(from)).map_err(|error| unreadable(path, &error))?;
    let left = Cell::new(MAX_LINE);
    let mut input = BufReader::with_capacity(BUFFER, Limited { file: Interruptible(file), left: &left });
    let first = input.fill_buf().map_err(|error| unreadable(path, &error))?.first().copied();
    let Some(first) = first else { return Ok(()) };
    let before = read.messages;
    match format.unwrap_or(LogFormat::of(first)) {
        LogFormat::Csv => {
            let mut log = CsvLog::new(input);
            let too_long = |error| if left.get() == 0 { message_too_long(path) } else { error };
            while let Some(entry) = log.read().map_err(too_long)? {
                match entry {
                    Some(entry) => {
                        read.messages += 1;
                        capture.take(&entry)?;
                    }
                    None => read.unreadable += 1,
                }
                left.set(MAX_LINE);
                check_form(path, read, before)?;
            }
        }
        LogFormat::Json => {
            let mut line = Vec::new();
            loop {
                line.clear();
                left.set(2 * MAX_LINE);
                let length = (&mut input).take(MAX_LINE).read_until(b'\n', &mut line);
                if length.map_err(|error| unreadable(path, &error))? == 0 {
                    break;
                }
                take_line(&String::from_utf8_lossy(&line), capture, read)?;
                check_form(path, read, before)?;
            }
        }
    }
    Ok(())
}

/// Gives up where a file is something else.
fn check_form(path: &Path, read: &Read, before: u64) -> Result<(), UserError> {
    const PATIENCE: u64 = 100;
    if read.messages > before || read.unreadable < PATIENCE {
        return Ok(());
    }
    // bad_copy_file_format
    let message = format!("\"{}\" is neither csvlog nor jsonlog", path.display());
    Err(UserError::new("22P04", message).hint(
        "Such logs are written with log_destination = 'csvlog' or 'jsonlog', and logging_collector = on.",
    ))
}
