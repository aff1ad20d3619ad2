//! Where the log's messages come from: a table that has them, or the server's own files. Neither is ever in memory as a whole.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::{CapturedLog, CsvLog, LogCapture, LogEntry, LogFormat, PrefixedLog};
use bench_capture::options::LogOptions;
use pgrx::pg_sys;

use super::table::{self, MAX_LINE, Read, offset_of, take_line};
use crate::capture::activity;
use crate::server::files::{Interruptible, open_regular};
use crate::server::guc;
use crate::server::spi::fetch;
use crate::shm::CapturePhase;

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

/// A moment in the server's log.
pub enum LogPosition {
    /// Of a collector's jsonlog.
    Folder {
        folder: PathBuf,
        /// What each file had then.
        bytes: HashMap<PathBuf, u64>,
    },
    /// Of the file that is the server's stderr, with lines of this mark.
    Stderr { bytes: u64, mark: String },
}

/// The server's stderr, which each of its processes has from the postmaster.
const STDERR: &str = "/proc/self/fd/2";

/// What keeps the server's stderr from being read; `None`: it is a regular file, as Debian's `/var/log/postgresql/…` or that of
/// `pg_ctl -l`.
pub fn obstacle_of_stderr() -> Option<String> {
    match open_regular(Path::new(STDERR)) {
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Some("the server may not read the file that is its stderr".to_owned())
        }
        Err(_) => Some("the server's stderr is no regular file".to_owned()),
    }
}

impl LogPosition {
    /// Now, in the folder that the server writes to.
    ///
    /// # Errors
    /// 42501, 58P01 and 58030 where it cannot be looked at.
    pub fn of(folder: PathBuf) -> Result<Self, UserError> {
        let bytes = json_files(&folder)?.into_iter().map(|file| (file.path, file.bytes)).collect();
        Ok(Self::Folder { folder, bytes })
    }

    /// Now, in the server's stderr.
    ///
    /// # Errors
    /// 42501, 58P01 and 58030 where it cannot be looked at.
    pub fn of_stderr(mark: String) -> Result<Self, UserError> {
        let path = Path::new(STDERR);
        let bytes = fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
        Ok(Self::Stderr { bytes, mark })
    }

    /// At the begin of a file in a folder that was not known before.
    pub fn begin_of(file: &Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        Self::Folder { folder, bytes: HashMap::new() }
    }

    /// The files that have been written to since, the oldest first, each with where to begin.
    fn written(&self) -> Result<Vec<(PathBuf, u64)>, UserError> {
        let (folder, before) = match self {
            Self::Folder { folder, bytes } => (folder, bytes),
            Self::Stderr { bytes, .. } => {
                let path = PathBuf::from(STDERR);
                let length = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.len();
                // One that is shorter now was truncated, as logrotate's copytruncate does it.
                return Ok(vec![(path, if length < *bytes { 0 } else { *bytes })]);
            }
        };
        let mut found: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for JsonFile { path, bytes, changed } in json_files(folder)? {
            let before = before.get(&path).copied().unwrap_or(0);
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

/// Bytes of one line of jsonlog, or of a file, that are read at once.
const BUFFER: usize = 1 << 16;

impl LogSource {
    /// Reads all messages, and collects their transactions.
    ///
    /// # Errors
    /// 42501 for files without pg_read_server_files, 58P01 and 58030 for those that cannot be read, those of a table, and those of
    /// a capture.
    pub fn read(&self, options: &LogOptions) -> Result<(CapturedLog, Read), UserError> {
        let files = match self {
            Self::Table(table) => return table::read(*table, options),
            Self::File { path, format } => {
                check_may_read_files()?;
                files(path, *format)?.into_iter().map(|file| (file, *format, 0)).collect()
            }
            Self::Since(position) => {
                check_may_read_files()?;
                let written = position.written()?.into_iter();
                written.map(|(file, from)| (file, Some(LogFormat::Json), from)).collect::<Vec<_>>()
            }
        };
        let mut prefixed = match self {
            Self::Since(LogPosition::Stderr { mark, .. }) => Some(PrefixedLog::new(mark.clone())),
            _ => None,
        };
        let mut capture = LogCapture::new(options.clone()).with_zones(offset_of);
        let mut read = Read {
            is_servers: prefixed.is_some() || files.iter().all(|(file, ..)| is_servers(file)),
            ..Read::default()
        };
        let size = |(file, _, from): &(PathBuf, _, u64)| {
            fs::metadata(file).map_or(0, |metadata| metadata.len()).saturating_sub(*from)
        };
        activity::enter(CapturePhase::Log, files.iter().map(size).sum());
        for (file, format, from) in files {
            read_file(&file, format, from, prefixed.as_mut(), &mut capture, &mut read)?;
        }
        Ok((capture.finish()?, read))
    }
}

/// Whether a file is in the folder that the server writes its log to, into which nobody else but the operating system's user writes.
fn is_servers(file: &Path) -> bool {
    let folder = guc::current("log_directory").map(|folder| Path::new(&folder).canonicalize());
    let Some(Ok(folder)) = folder else { return false };
    file.canonicalize().is_ok_and(|file| file.parent() == Some(folder.as_path()))
}

/// As the server's own functions for files: the path of those that may is not looked at
/// (`convert_and_check_filename` in src/backend/utils/adt/genfile.c).
fn check_may_read_files() -> Result<(), UserError> {
    let may = fetch::<bool>("SELECT pg_has_role('pg_read_server_files', 'USAGE')", &[])?;
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
        activity::advance(read as u64);
        Ok(read)
    }
}

fn read_file(
    path: &Path,
    format: Option<LogFormat>,
    from: u64,
    prefixed: Option<&mut PrefixedLog>,
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
    if let Some(log) = prefixed {
        let mut take = |entry: Option<LogEntry>| {
            let Some(entry) = entry else { return Ok(()) };
            read.messages += 1;
            capture.take(entry)
        };
        each_line(path, &mut input, &left, |line, is_begun| match is_begun {
            true => take(log.take_line(line.trim_end_matches('\n'))),
            false => {
                log.take_rest(line.trim_end_matches('\n'));
                Ok(())
            }
        })?;
        return take(log.finish());
    }
    match format.unwrap_or(LogFormat::of(first)) {
        LogFormat::Csv => {
            let mut log = CsvLog::new(input);
            let too_long = |error| if left.get() == 0 { message_too_long(path) } else { error };
            while let Some(entry) = log.read().map_err(too_long)? {
                match entry {
                    Some(entry) => {
                        read.messages += 1;
                        capture.take(entry)?;
                    }
                    None => read.unreadable += 1,
                }
                left.set(MAX_LINE);
                check_form(path, read, before)?;
            }
        }
        LogFormat::Json => each_line(path, &mut input, &left, |line, _| {
            take_line(line, capture, read)?;
            check_form(path, read, before)
        })?,
    }
    Ok(())
}

/// Calls `take` with each line of a file; of one that is too long, with its pieces, and whether it is the first one: what follows
/// may begin with anything.
fn each_line(
    path: &Path,
    input: &mut impl BufRead,
    left: &Cell<u64>,
    mut take: impl FnMut(&str, bool) -> Result<(), UserError>,
) -> Result<(), UserError> {
    let mut line = Vec::new();
    loop {
        let is_begun = line.last().is_none_or(|&last| last == b'\n');
        line.clear();
        left.set(2 * MAX_LINE);
        let length = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if length.map_err(|error| unreadable(path, &error))? == 0 {
            return Ok(());
        }
        take(&String::from_utf8_lossy(&line), is_begun)?;
    }
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
