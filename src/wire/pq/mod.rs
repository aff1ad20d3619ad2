//! A session with a server, by libpq.

mod ffi;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use bench_core::error::{SqlError, UserError, pack, sqlstate};
use bench_core::script::{CapturedRows, MAX_CAPTURED};
use bench_core::spec::{Address, Encryption};
use bench_core::untrusted;
use bench_core::wire::{CommandOutcome, SessionEvent, TransactionStatus};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::{Route, failed};
use ffi::*;

/// The most that may come in answer to one command, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// As much as a turn takes in, in bytes, before others have theirs.
const MAX_TURN: usize = 1 << 20;

static NOTHING: CapturedRows = CapturedRows::new();

enum Phase {
    Connecting,
    Running,
    Over,
}

/// What the server has said to nobody: an error that ends the session.
#[derive(Default)]
struct Fatal(Option<SqlError>);

/// A statement's texts of parameters, each ended by a zero byte.
#[derive(Default)]
pub struct Values {
    texts: Vec<u8>,
    /// Where each begins; `usize::MAX`: NULL.
    starts: Vec<usize>,
    pointers: Vec<*const c_char>,
}

impl Values {
    fn fill<V: AsRef<str>>(&mut self, values: impl IntoIterator<Item = Option<V>>) {
        self.texts.clear();
        self.starts.clear();
        self.pointers.clear();
        for value in values {
            match value {
                Some(value) => {
                    self.starts.push(self.texts.len());
                    self.texts.extend_from_slice(value.as_ref().as_bytes());
                    self.texts.push(0);
                }
                None => self.starts.push(usize::MAX),
            }
        }
        let texts = &self.texts;
        let pointer = |&start: &usize| match start {
            usize::MAX => ptr::null(),
            start => texts[start..].as_ptr().cast(),
        };
        self.pointers.extend(self.starts.iter().map(pointer));
    }
}

pub struct PqSession {
    /// Null before it has begun, and when it has been ended.
    conn: *mut PGconn,
    phase: Phase,
    fatal: Box<Fatal>,
    token: Token,
    is_registered: bool,
    has_more: bool,
    /// Bytes of the answer under way that were taken in in more than one piece.
    received: usize,
    is_pipelining: bool,
    /// Syncs of a pipeline that are not answered.
    syncs: usize,
    is_busy: bool,
    rows: u64,
    completed: u64,
    error: Option<Box<SqlError>>,
    captures: bool,
    captured: Option<Box<CapturedRows>>,
}

unsafe extern "C" fn take_notice(fatal: *mut c_void, result: *const PGresult) {
    // SAFETY: libpq hands on what was given with this function: the box of the session, which outlives the connection.
    let fatal = unsafe { &mut *fatal.cast::<Fatal>() };
    if is_fatal(result) {
        fatal.0 = Some(error_of(result));
    }
}

fn text_of<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: libpq's texts end with a zero byte; the caller looks at it before the result or the connection changes.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

fn field<'a>(result: *const PGresult, code: u8) -> Option<&'a [u8]> {
    // SAFETY: a result that has not been cleared.
    let text = unsafe { PQresultErrorField(result, c_int::from(code)) };
    (!text.is_null()).then(|| text_of(text))
}

fn is_fatal(result: *const PGresult) -> bool {
    let severity = field(result, b'V').or_else(|| field(result, b'S')).unwrap_or_default();
    severity == b"FATAL" || severity == b"PANIC"
}

fn error_of(result: *const PGresult) -> SqlError {
    let text = |code| field(result, code).map(|text| untrusted::text(text, 0));
    let mut error = SqlError {
        sqlstate: pack(&text(b'C').filter(|state| state.len() == 5).unwrap_or("08006".into())),
        ..SqlError::default()
    };
    error.message = match text(b'M') {
        Some(message) => message,
        // SAFETY: a result that has not been cleared.
        None => untrusted::text(text_of(unsafe { PQresultErrorMessage(result) }), 0).trim().to_owned(),
    };
    error.detail = text(b'D');
    error.hint = text(b'H');
    error.context = text(b'W');
    error.position = text(b'P').and_then(|position| position.parse().ok()).unwrap_or(0);
    error
}

impl PqSession {
    /// One that has not begun.
    pub fn new() -> Self {
        Self {
            conn: ptr::null_mut(),
            phase: Phase::Over,
            fatal: Box::default(),
            token: Token(0),
            is_registered: false,
            has_more: false,
            received: 0,
            is_pipelining: false,
            syncs: 0,
            is_busy: false,
            rows: 0,
            completed: 0,
            error: None,
            captures: false,
            captured: None,
        }
    }

    /// Whether there is a connection.
    pub fn is_open(&self) -> bool {
        !self.conn.is_null()
    }

    /// Begins to connect.
    pub fn connect(route: &Route, registry: &Registry, token: Token) -> Result<Self, UserError> {
        let mut options: Vec<(&str, String)> = Vec::new();
        let startup = &route.startup;
        options.push(("user", startup.user.clone()));
        options.push(("dbname", startup.database.clone()));
        if let Some(password) = &startup.password {
            options.push(("password", password.to_string()));
        }
        match &route.to.address {
            Address::Unix(path) => {
                options.push((
                    "host",
                    path.parent().map_or_else(String::new, |p| p.to_string_lossy().into_owned()),
                ));
            }
            Address::Tcp(address) => {
                options.push(("host", route.to.host.name.clone()));
                options.push(("hostaddr", address.ip().to_string()));
            }
        }
        options.push(("port", route.to.host.port.to_string()));
        options.push((
            "sslmode",
            match route.to.encryption {
                Encryption::None => "disable",
                Encryption::Preferred => "prefer",
                Encryption::Required => "require",
            }
            .into(),
        ));
        options.push(("gssencmode", "disable".into()));
        let mut settings = String::new();
        for (name, value) in &startup.parameters {
            match name.as_str() {
                "client_encoding" => options.push(("client_encoding", value.clone())),
                "application_name" => options.push(("application_name", value.clone())),
                "options" => settings.push_str(value),
                _ => {
                    settings.push_str(" -c ");
                    settings.push_str(name);
                    settings.push('=');
                    for character in value.chars() {
                        if character == '\\' || character.is_whitespace() {
                            settings.push('\\');
                        }
                        settings.push(character);
                    }
                }
            }
        }
        if !settings.is_empty() {
            options.push(("options", settings));
        }
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let names: Vec<CString> = options.iter().map(|(name, _)| text(name)).collect();
        let values: Vec<CString> = options.iter().map(|(_, value)| text(value)).collect();
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
        };
        // SAFETY: two arrays that end with a null pointer.
        let conn = unsafe { PQconnectStartParams(pointers(&names).as_ptr(), pointers(&values).as_ptr(), 0) };
        if conn.is_null() {
            return Err(UserError::new(sqlstate::OUT_OF_MEMORY, "out of memory for a connection"));
        }
        let mut fatal = Box::<Fatal>::default();
        // SAFETY: the box stays where it is as long as the connection is there.
        unsafe { PQsetNoticeReceiver(conn, Some(take_notice), (&raw mut *fatal).cast()) };
        // So that errors of the start tell their SQLSTATE.
        unsafe { PQsetErrorVerbosity(conn, PQERRORS_VERBOSE) };
        let mut session = Self::new();
        (session.conn, session.phase) = (conn, Phase::Connecting);
        (session.fatal, session.token) = (fatal, token);
        if unsafe { PQstatus(conn) } == CONNECTION_BAD {
            return Err(failed(&route.to, session.message()));
        }
        session.register(registry, Interest::WRITABLE)?;
        Ok(session)
    }

    fn register(&mut self, registry: &Registry, interest: Interest) -> Result<(), UserError> {
        let fd = self.socket();
        let mut result = if self.is_registered {
            registry.reregister(&mut SourceFd(&fd), self.token, interest)
        } else {
            registry.register(&mut SourceFd(&fd), self.token, interest)
        };
        if let Err(error) = &result
            && error.raw_os_error() == Some(libc::ENOENT)
        {
            result = registry.register(&mut SourceFd(&fd), self.token, interest);
        }
        self.is_registered = true;
        result.map_err(|error| UserError::new(sqlstate::CONNECTION_FAILURE, error.to_string()))
    }

    fn socket(&self) -> RawFd {
        unsafe { PQsocket(self.conn) }
    }

    fn message(&self) -> String {
        let text = text_of(unsafe { PQerrorMessage(self.conn) });
        untrusted::text(text, 0).trim().to_owned()
    }

    /// Bytes that can be read at once.
    fn available(&self) -> usize {
        let mut count: c_int = 0;
        // SAFETY: a socket, and a place for the number.
        match unsafe { libc::ioctl(self.socket(), libc::FIONREAD, &raw mut count) } {
            0 => count.max(0) as usize,
            _ => 0,
        }
    }

    pub fn has_more(&self) -> bool {
        self.has_more
    }

    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    pub fn receive(
        &mut self,
        route: &Route,
        registry: &Registry,
        is_closed: bool,
    ) -> Result<SessionEvent, UserError> {
        match self.phase {
            Phase::Connecting => return self.poll(route, registry),
            Phase::Over => return Err(self.end_of_input()),
            Phase::Running => {}
        }
        self.has_more = false;
        let mut turn = 0;
        let mut available = 0;
        loop {
            // SAFETY: a connection.
            let is_lost = unsafe { PQconsumeInput(self.conn) } == 0;
            self.take_results()?;
            if !self.is_busy && !is_lost {
                self.received = 0;
                if let Some(fatal) = self.fatal.0.take() {
                    return Err(fatal.into());
                }
                return Ok(SessionEvent::Ready);
            }
            if is_lost {
                let error = self.end_of_input();
                self.phase = Phase::Over;
                return Err(error);
            }
            self.received += available;
            turn += available;
            if self.received > MAX_ANSWER {
                self.phase = Phase::Over;
                return Err(UserError::new(sqlstate::PROTOCOL_VIOLATION, "the answer is too large"));
            }
            if turn > MAX_TURN {
                self.has_more = true;
                return Ok(SessionEvent::Pending);
            }
            available = self.available();
            if available == 0 && !is_closed {
                return Ok(SessionEvent::Pending);
            }
        }
    }

    fn poll(&mut self, route: &Route, registry: &Registry) -> Result<SessionEvent, UserError> {
        match unsafe { PQconnectPoll(self.conn) } {
            PGRES_POLLING_OK => {
                unsafe { PQsetnonblocking(self.conn, 1) };
                self.phase = Phase::Running;
                self.register(registry, Interest::READABLE | Interest::WRITABLE)?;
                Ok(SessionEvent::Ready)
            }
            PGRES_POLLING_FAILED => {
                self.phase = Phase::Over;
                Err(failed(&route.to, self.message()))
            }
            waits => {
                // Only for what it waits for: a socket can nearly always be written.
                let interest =
                    if waits == PGRES_POLLING_READING { Interest::READABLE } else { Interest::WRITABLE };
                self.register(registry, interest)?;
                Ok(SessionEvent::Pending)
            }
        }
    }

    fn take_results(&mut self) -> Result<(), UserError> {
        while self.is_busy {
            // SAFETY: a connection.
            if unsafe { PQisBusy(self.conn) } != 0 {
                return Ok(());
            }
            if !self.is_pipelining
                && self.syncs == 0
                && unsafe { PQtransactionStatus(self.conn) } != PQTRANS_ACTIVE
            {
                self.is_busy = false;
                return Ok(());
            }
            let result = unsafe { PQgetResult(self.conn) };
            if result.is_null() {
                if !self.is_pipelining && self.syncs == 0 {
                    self.is_busy = false;
                    return Ok(());
                }
                if self.is_pipelining {
                    // Between two commands; at the end, the connection is busy or has nothing.
                    let again = unsafe { PQgetResult(self.conn) };
                    if again.is_null() {
                        return Ok(());
                    }
                    self.take(again)?;
                }
                continue;
            }
            self.take(result)?;
        }
        Ok(())
    }

    fn take(&mut self, result: *mut PGresult) -> Result<(), UserError> {
        let taken = self.look(result);
        // SAFETY: nobody looks at it any more.
        unsafe { PQclear(result) };
        taken
    }

    fn look(&mut self, result: *mut PGresult) -> Result<(), UserError> {
        // SAFETY: a result that has not been cleared.
        match unsafe { PQresultStatus(result) } {
            status @ (PGRES_COMMAND_OK | PGRES_TUPLES_OK | PGRES_EMPTY_QUERY) => {
                let mut rows = 0_u64;
                for &byte in text_of(unsafe { PQcmdTuples(result) }) {
                    rows = rows.saturating_mul(10).saturating_add(u64::from(byte.wrapping_sub(b'0')));
                }
                self.rows = self.rows.saturating_add(rows);
                if self.error.is_none() {
                    self.completed += 1;
                }
                if self.captures
                    && let Some(captured) = &mut self.captured
                {
                    captured.next_query();
                    if status == PGRES_TUPLES_OK {
                        keep(captured, result);
                    }
                }
                Ok(())
            }
            PGRES_PIPELINE_SYNC => {
                self.syncs = self.syncs.saturating_sub(1);
                if self.syncs == 0 && !self.is_pipelining {
                    unsafe { PQexitPipelineMode(self.conn) };
                    self.is_busy = false;
                }
                Ok(())
            }
            PGRES_PIPELINE_ABORTED => Ok(()),
            PGRES_COPY_IN | PGRES_COPY_OUT | PGRES_COPY_BOTH => {
                self.phase = Phase::Over;
                let message = "COPY from or to the client is not possible: it neither sends nor keeps rows";
                Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
            }
            _ => {
                let error = error_of(result);
                if is_fatal(result) {
                    self.phase = Phase::Over;
                    return Err(error.into());
                }
                self.error.get_or_insert_with(|| Box::new(error));
                Ok(())
            }
        }
    }

    pub fn status(&self) -> TransactionStatus {
        match unsafe { PQtransactionStatus(self.conn) } {
            PQTRANS_INTRANS => TransactionStatus::InBlock,
            PQTRANS_INERROR => TransactionStatus::InFailedBlock,
            _ => TransactionStatus::Idle,
        }
    }

    pub fn pid(&self) -> i32 {
        unsafe { PQbackendPID(self.conn) }
    }

    pub fn parameter(&self, name: &CStr) -> Option<&str> {
        let value = unsafe { PQparameterStatus(self.conn, name.as_ptr()) };
        (!value.is_null()).then(|| std::str::from_utf8(text_of(value)).ok()).flatten()
    }

    pub fn used_password(&self) -> bool {
        unsafe { PQconnectionUsedPassword(self.conn) != 0 }
    }

    fn begin(&mut self) {
        if self.is_busy || self.is_pipelining {
            return;
        }
        self.rows = 0;
        self.completed = 0;
        self.error = None;
        if let Some(captured) = &mut self.captured {
            captured.clear();
        }
    }

    fn sent(&mut self, result: c_int) -> Result<(), UserError> {
        self.is_busy = true;
        if result == 0 {
            self.is_busy = self.is_pipelining;
            return Err(UserError::new(sqlstate::CONNECTION_FAILURE, self.message()));
        }
        Ok(())
    }

    pub fn query(&mut self, text: &CStr) -> Result<(), UserError> {
        self.begin();
        let result = unsafe { PQsendQuery(self.conn, text.as_ptr()) };
        self.sent(result)
    }

    pub fn prepare(&mut self, name: &CStr, text: &CStr) -> Result<(), UserError> {
        self.begin();
        let result = unsafe { PQsendPrepare(self.conn, name.as_ptr(), text.as_ptr(), 0, ptr::null()) };
        self.sent(result)
    }

    pub fn execute_prepared<V: AsRef<str>>(
        &mut self,
        name: &CStr,
        scratch: &mut Values,
        values: impl IntoIterator<Item = Option<V>>,
    ) -> Result<(), UserError> {
        self.begin();
        scratch.fill(values);
        let (count, values) = (scratch.pointers.len() as c_int, scratch.pointers.as_ptr());
        let result = unsafe {
            PQsendQueryPrepared(self.conn, name.as_ptr(), count, values, ptr::null(), ptr::null(), 0)
        };
        self.sent(result)
    }

    pub fn execute_params<V: AsRef<str>>(
        &mut self,
        text: &CStr,
        scratch: &mut Values,
        values: impl IntoIterator<Item = Option<V>>,
    ) -> Result<(), UserError> {
        self.begin();
        scratch.fill(values);
        let (count, values) = (scratch.pointers.len() as c_int, scratch.pointers.as_ptr());
        let result = unsafe {
            PQsendQueryParams(
                self.conn,
                text.as_ptr(),
                count,
                ptr::null(),
                values,
                ptr::null(),
                ptr::null(),
                0,
            )
        };
        self.sent(result)
    }

    pub fn start_pipeline(&mut self) {
        self.begin();
        unsafe { PQenterPipelineMode(self.conn) };
        self.is_pipelining = true;
    }

    pub fn sync_pipeline(&mut self) {
        self.is_busy = true;
        self.syncs += 1;
        unsafe { PQpipelineSync(self.conn) };
    }

    pub fn end_pipeline(&mut self) {
        self.sync_pipeline();
        self.is_pipelining = false;
    }

    pub fn discard_until_sync(&mut self) {
        self.start_pipeline();
        self.end_pipeline();
    }

    pub fn capture(&mut self, on: bool) {
        self.captures = on;
        if on {
            self.captured.get_or_insert_default().keep_up_to(MAX_CAPTURED, false);
        }
    }

    pub fn outcome(&mut self) -> CommandOutcome<'_> {
        CommandOutcome {
            rows: self.rows,
            completed: self.completed,
            error: self.error.take().map(|error| *error),
            captured: self.captured.as_deref().unwrap_or(&NOTHING),
        }
    }

    pub fn end_of_input(&mut self) -> UserError {
        if let Some(fatal) = self.fatal.0.take() {
            return fatal.into();
        }
        let message = "server closed the connection unexpectedly";
        let detail = match self.phase {
            Phase::Running if self.is_busy => "A command was being executed.",
            Phase::Running => "No command was being executed.",
            _ => "The session was not authenticated yet.",
        };
        UserError::new(sqlstate::CONNECTION_FAILURE, message)
            .detail(detail)
            .hint("The server's log has the reason, if the server ended in good order.")
    }

    /// Ends the session. What is left is a socket, which the server closes when it has done so too.
    pub fn finish(&mut self, registry: &Registry) -> Option<OwnedFd> {
        if self.conn.is_null() {
            return None;
        }
        let fd = self.socket();
        let left = if fd >= 0 {
            let _ = registry.deregister(&mut SourceFd(&fd));
            // SAFETY: libpq's socket, which is open as long as the connection is there.
            unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().ok()
        } else {
            None
        };
        *self = Self::new();
        left
    }
}

/// The messages of a result, as the protocol has them.
fn keep(captured: &mut CapturedRows, result: *const PGresult) {
    let (columns, rows) = unsafe { (PQnfields(result), PQntuples(result)) };
    let mut body = Vec::new();
    body.extend_from_slice(&(columns as u16).to_be_bytes());
    for column in 0..columns {
        body.extend_from_slice(text_of(unsafe { PQfname(result, column) }));
        body.extend_from_slice(&[0; 7]);
        body.extend_from_slice(&unsafe { PQftype(result, column) }.to_be_bytes());
        body.extend_from_slice(&[0; 8]);
    }
    captured.take(b'T', &body);
    for row in 0..rows {
        body.clear();
        body.extend_from_slice(&(columns as u16).to_be_bytes());
        for column in 0..columns {
            unsafe {
                if PQgetisnull(result, row, column) != 0 {
                    body.extend_from_slice(&(-1_i32).to_be_bytes());
                    continue;
                }
                let length = PQgetlength(result, row, column);
                body.extend_from_slice(&length.to_be_bytes());
                let value = PQgetvalue(result, row, column);
                body.extend_from_slice(std::slice::from_raw_parts(value.cast(), length.max(0) as usize));
            }
        }
        captured.take(b'D', &body);
    }
}

impl Drop for PqSession {
    fn drop(&mut self) {
        if self.conn.is_null() {
            return;
        }
        // SAFETY: nobody else knows it.
        unsafe { PQfinish(self.conn) };
    }
}
