//! A connection's state, and what its owner may ask of it.

mod receive;

use std::io;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_script::{CapturedRows, MAX_CAPTURED};
use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use postgres_protocol::message::frontend::BindError;
use zeroize::Zeroize;

use crate::authentication::{Authentication, Startup};

/// As much output as a pipeline gathers before it has to be sent, in bytes: libpq's OUTBUFFER_THRESHOLD.
pub const FLUSH_THRESHOLD: usize = 65_536;

/// The room in bytes that an empty buffer may keep: enough for the messages of most statements, and little for 10,000
/// sessions.
const KEPT: usize = 4096;

/// The settings that are kept of what the server reports.
const PARAMETERS: [&str; 5] =
    ["server_version", "client_encoding", "in_hot_standby", "default_transaction_read_only", "is_superuser"];

/// What a session has captured that never captures.
static NOTHING: CapturedRows = CapturedRows::new();

/// Is passed the tag and the body of each message with the columns or a row of a result.
pub type ResultWatcher = Box<dyn FnMut(u8, &[u8])>;

/// What [`WireSession::receive`] has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// Answers are still to come, or a pipeline is open.
    Pending,
    /// All that was asked for has been answered.
    Ready,
}

/// What the last ReadyForQuery said of the session's transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Not in a transaction block.
    #[default]
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a transaction block that can only be rolled back.
    InFailedBlock,
}

/// What a command, or all commands of a pipeline, came to.
#[derive(Debug)]
pub struct CommandOutcome<'a> {
    /// Rows returned or changed, as the tags of the statements that were completed say.
    pub rows: u64,
    /// How many statements were completed before the first error. In a pipeline, in which each command is one
    /// statement, that is the index of the command that failed.
    pub completed: u64,
    /// The first error.
    pub error: Option<SqlError>,
    /// What the queries returned, where [`WireSession::capture`] is on.
    pub captured: &'a CapturedRows,
}

/// Where a session is in its life.
enum SessionPhase {
    /// Nothing has been sent.
    New,
    /// The server has not let the client in yet.
    Authenticating(Box<Authentication>),
    /// The server has let the client in, and tells of itself.
    Starting,
    /// The server takes commands.
    Running,
    /// After an error that [`WireSession::receive`] has returned.
    Over,
}

/// One session with a server.
pub struct WireSession {
    phase: SessionPhase,
    status: TransactionStatus,
    /// What is to be sent, from `sent` on.
    output: BytesMut,
    sent: usize,
    /// The beginning of a message whose end is still to come.
    partial: Vec<u8>,
    /// Bytes of a message that nobody wants, which are still to come.
    unread: usize,
    /// ReadyForQuery messages that are still to come.
    outstanding: usize,
    /// A pipeline is open.
    is_pipelining: bool,
    /// The message that ends the session is in the output.
    is_ending: bool,
    used_password: bool,
    backend: Option<(i32, i32)>,
    /// The values of [`PARAMETERS`].
    parameters: [Option<Box<str>>; PARAMETERS.len()],
    rows: u64,
    completed: u64,
    /// Results that may still come: at most one for each statement that was sent.
    unanswered: usize,
    error: Option<Box<SqlError>>,
    captures: bool,
    /// The messages of a query's result have begun to come.
    in_query: bool,
    /// Made when first needed: few scripts capture anything.
    captured: Option<Box<CapturedRows>>,
    watcher: Option<ResultWatcher>,
}

impl Default for WireSession {
    fn default() -> Self {
        Self::new()
    }
}

impl WireSession {
    /// A session that has not begun.
    pub fn new() -> Self {
        Self {
            phase: SessionPhase::New,
            status: TransactionStatus::Idle,
            output: BytesMut::new(),
            sent: 0,
            partial: Vec::new(),
            unread: 0,
            outstanding: 0,
            is_pipelining: false,
            is_ending: false,
            used_password: false,
            backend: None,
            parameters: Default::default(),
            rows: 0,
            completed: 0,
            unanswered: 0,
            error: None,
            captures: false,
            in_query: false,
            captured: None,
            watcher: None,
        }
    }

    /// Queues the startup message; [`receive`](Self::receive) answers what the server asks for, and is `Ready` when it
    /// takes commands.
    ///
    /// # Errors
    /// As for [`query`](Self::query).
    pub fn start(&mut self, startup: &Startup) -> Result<(), UserError> {
        self.put(|output| {
            let own = [("user", startup.user.as_str()), ("database", startup.database.as_str())];
            let further = startup.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            frontend::startup_message(own.into_iter().chain(further), output)
        })?;
        self.phase = SessionPhase::Authenticating(Box::new(Authentication::new(startup)));
        self.outstanding = 1;
        Ok(())
    }

    /// The bytes to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Takes this many bytes off the front of [`output`](Self::output): they have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.output.len().min(self.sent.saturating_add(bytes));
        if self.sent == self.output.len() {
            // A password may be in it.
            if let SessionPhase::Authenticating(_) | SessionPhase::Starting = self.phase {
                self.output.zeroize();
            }
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > KEPT {
                self.output = BytesMut::new();
            }
        }
    }

    /// Whether the output has to be sent now, as libpq does: in a pipeline only from [`FLUSH_THRESHOLD`] on, at its end,
    /// and at that of the session. \syncpipeline sends nothing by itself.
    pub fn must_send(&self) -> bool {
        let length = self.output().len();
        length >= FLUSH_THRESHOLD || (length > 0 && (!self.is_pipelining || self.is_ending))
    }

    /// The session's transaction, by the last ReadyForQuery.
    pub fn status(&self) -> TransactionStatus {
        self.status
    }

    /// The pid and the secret of BackendKeyData. A pooler invents its own; some servers have none.
    pub fn backend(&self) -> Option<(i32, i32)> {
        self.backend
    }

    /// A setting that the server reports: server_version, client_encoding, is_superuser, in_hot_standby (since PostgreSQL 14)
    /// or default_transaction_read_only (since 14). The others are not kept.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let place = PARAMETERS.iter().position(|parameter| *parameter == name)?;
        self.parameters[place].as_deref()
    }

    /// Whether the server has asked for a password, in whatever form: where not, the connection stands on the trust of
    /// whoever runs this process (as for libpq's PQconnectionUsedPassword).
    pub fn used_password(&self) -> bool {
        self.used_password
    }

    /// Whether a pipeline is open.
    pub fn is_pipelining(&self) -> bool {
        self.is_pipelining
    }

    /// Queues a Query message: all statements of a text, by the simple protocol (PQsendQuery).
    ///
    /// # Errors
    /// 22023 for a text with a zero byte, and for one of more than 2 GB; 55000 in a pipeline. Nothing is queued then.
    pub fn query(&mut self, text: &str) -> Result<(), UserError> {
        if self.is_pipelining {
            let message = "the simple query protocol cannot be used in a pipeline";
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message));
        }
        self.begin();
        self.put(|output| frontend::query(text, output))?;
        // Statements end with a semicolon, but for the last one.
        self.unanswered += 1 + text.bytes().filter(|&byte| byte == b';').count();
        self.outstanding += 1;
        Ok(())
    }

    /// Queues Parse: a prepared statement, with types as the server infers them (PQprepare). Outside of a pipeline Sync
    /// follows; pgbench prepares the statements of a pipeline one by one before it begins.
    ///
    /// # Errors
    /// As for [`query`](Self::query).
    pub fn prepare(&mut self, name: &str, text: &str) -> Result<(), UserError> {
        self.begin();
        self.put(|output| frontend::parse(name, text, [], output))?;
        self.end_command();
        Ok(())
    }

    /// Queues the execution of a prepared statement with these values, NULL where there is none (PQsendQueryPrepared):
    /// Bind, Describe, Execute, and outside of a pipeline Sync.
    ///
    /// # Errors
    /// As for [`query`](Self::query).
    pub fn execute_prepared<V: AsRef<str>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = Option<V>>,
    ) -> Result<(), UserError> {
        self.begin();
        self.put(|output| execute(name, values, output))?;
        self.unanswered += 1;
        self.end_command();
        Ok(())
    }

    /// Queues a statement with these values (PQsendQueryParams): Parse, then as
    /// [`execute_prepared`](Self::execute_prepared).
    ///
    /// # Errors
    /// As for [`query`](Self::query).
    pub fn execute_params<V: AsRef<str>>(
        &mut self,
        text: &str,
        values: impl IntoIterator<Item = Option<V>>,
    ) -> Result<(), UserError> {
        self.begin();
        self.put(|output| {
            frontend::parse("", text, [], output)?;
            execute("", values, output)
        })?;
        self.unanswered += 1;
        self.end_command();
        Ok(())
    }

    /// Begins a pipeline (PQenterPipelineMode): commands are queued without waiting for answers. `receive` is `Pending`
    /// until it has ended and all of it has been answered.
    pub fn start_pipeline(&mut self) {
        self.begin();
        self.is_pipelining = true;
    }

    /// Queues a Sync: what follows in the pipeline is a transaction of its own, and is executed even after an error
    /// (PQsendPipelineSync).
    pub fn sync_pipeline(&mut self) {
        frontend::sync(&mut self.output);
        self.outstanding += 1;
    }

    /// Ends a pipeline by a Sync; `receive` is `Ready` when all of its commands have been answered.
    pub fn end_pipeline(&mut self) {
        self.sync_pipeline();
        self.is_pipelining = false;
    }

    /// Queues one more Sync, as pgbench does before it rolls back after an error in a pipeline that may be tried again
    /// (`discardUntilSync`). The pipeline's own have been answered by then, so that this is for the sake of sending what
    /// pgbench sends.
    pub fn discard_until_sync(&mut self) {
        self.end_pipeline();
    }

    /// From the next command on, keeps what `\gset` and `\aset` need of the queries' results, or no longer does.
    pub fn capture(&mut self, on: bool) {
        if on {
            self.capture_up_to(MAX_CAPTURED, false);
        } else {
            self.captures = false;
        }
    }

    /// From the next command on, keeps at most so many bytes of what the queries of a command return: of each, all rows or
    /// the last one.
    pub fn capture_up_to(&mut self, most: usize, all_rows: bool) {
        self.captures = true;
        self.captured.get_or_insert_default().keep_up_to(most, all_rows);
    }

    /// Passes results to a watcher, at any length, until it is set anew.
    pub fn watch(&mut self, watcher: Option<ResultWatcher>) {
        self.watcher = watcher;
    }

    /// What has come of the last command, or of the pipeline, until now; the error is taken.
    pub fn outcome(&mut self) -> CommandOutcome<'_> {
        CommandOutcome {
            rows: self.rows,
            completed: self.completed,
            error: self.error.take().map(|error| *error),
            captured: self.captured.as_deref().unwrap_or(&NOTHING),
        }
    }

    /// Queues the message that ends the session; the server answers by closing the connection.
    pub fn terminate(&mut self) {
        frontend::terminate(&mut self.output);
        self.is_ending = true;
    }

    /// The error for a connection that the server has closed.
    pub fn end_of_input(&self) -> UserError {
        let message = "server closed the connection unexpectedly";
        let detail = match self.phase {
            SessionPhase::Running if self.is_busy() => "A command was being executed.",
            SessionPhase::Running => "No command was being executed.",
            SessionPhase::Starting => "The session was being started.",
            _ => "The session was not authenticated yet.",
        };
        UserError::new(sqlstate::CONNECTION_FAILURE, message)
            .detail(detail)
            .hint("The server's log has the reason, if the server ended in good order.")
    }

    /// The bytes that its buffers have room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.output.capacity() + self.partial.capacity()
    }

    fn is_busy(&self) -> bool {
        self.outstanding > 0 || self.is_pipelining
    }

    /// A command begins: the outcome of the one before it is past, unless both belong to one pipeline.
    fn begin(&mut self) {
        if self.is_busy() {
            return;
        }
        self.rows = 0;
        self.completed = 0;
        self.unanswered = 0;
        self.error = None;
        self.in_query = false;
        if let Some(captured) = &mut self.captured {
            captured.clear();
        }
    }

    /// A command of the extended protocol ends.
    fn end_command(&mut self) {
        if !self.is_pipelining {
            self.sync_pipeline();
        }
    }

    /// Adds messages to the output, all or none of them.
    fn put(&mut self, write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), UserError> {
        let before = self.output.len();
        write(&mut self.output).map_err(|error| {
            self.output.truncate(before);
            UserError::invalid("no message can hold this text").detail(format!("{error}."))
        })
    }
}

/// Bind with values as text, Describe and Execute, all of the unnamed portal.
fn execute<V: AsRef<str>>(
    name: &str,
    values: impl IntoIterator<Item = Option<V>>,
    output: &mut BytesMut,
) -> io::Result<()> {
    let value = |value: Option<V>, output: &mut BytesMut| match value {
        Some(value) => {
            output.put_slice(value.as_ref().as_bytes());
            Ok(IsNull::No)
        }
        None => Ok(IsNull::Yes),
    };
    const TEXT: i16 = 0;
    frontend::bind("", name, [], values, value, [TEXT], output).map_err(|error| match error {
        BindError::Serialization(error) => error,
        BindError::Conversion(error) => io::Error::other(error),
    })?;
    frontend::describe(b'P', "", output)?;
    frontend::execute("", 0, output)
}
