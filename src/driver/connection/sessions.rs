//! Sessions over connections, non-blocking and blocking, and requests to cancel their statements.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_base::untrusted;
use bench_model::spec::{Address, HostAddress};
use bench_protocol::{CommandOutcome, ResultWatcher, SessionEvent, WireSession, cancel_request};
use bench_script::{MAX_CAPTURED, QueryResult};
use mio::event::Source;
use mio::{Events, Interest, Poll, Registry, Token};

use super::link::{Socket, done};
use super::{Done, Link, Route, failed};
use crate::error::internal;
use crate::server::process::is_interrupted;

// A non-blocking session.

/// Bytes of one read.
const READ_BYTES: usize = 8192;

/// Reads of one turn: a server that sends without end must not keep the caller busy.
const MAX_READS: usize = 64;

/// Makes an internal query find names in pg_catalog alone. One message is one transaction, so the setting does not affect later
/// statements or, behind a pooler, other clients; in a transaction block it lasts until its end.
fn with_catalog_path(sql: &str) -> String {
    format!("SET LOCAL search_path = pg_catalog, pg_temp; {sql}")
}

/// A session with a server.
pub struct PolledSession {
    link: Link,
    session: WireSession,
    /// The startup message has been queued.
    is_started: bool,
    /// Bytes read since the last query or Parse message was queued.
    received: usize,
}

impl PolledSession {
    /// Starts to connect. Returns `None` if the server's queue is full; then the caller tries again.
    ///
    /// # Errors
    /// 08006.
    pub fn connect(route: &Route) -> Result<Option<Self>, UserError> {
        let link = Link::connect(route)?;
        Ok(link.map(|link| Self { link, session: WireSession::new(), is_started: false, received: 0 }))
    }

    /// Registers the connection for events.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry) -> Result<(), UserError> {
        self.link.register(registry, Token(0)).map_err(|error| internal(error.to_string()))
    }

    /// Returns the protocol's session.
    pub fn session(&self) -> &WireSession {
        &self.session
    }

    /// Queues an internal query, run with a search_path of pg_catalog; keeps its last row.
    ///
    /// # Errors
    /// As for [`WireSession::query`].
    pub fn ask(&mut self, sql: &str) -> Result<(), UserError> {
        self.ask_for(&with_catalog_path(sql), MAX_CAPTURED, false)
    }

    /// Queues a query and keeps at most `max_bytes` of its answer: all rows or the last one.
    ///
    /// # Errors
    /// As for [`WireSession::query`].
    pub fn ask_for(&mut self, sql: &str, max_bytes: usize, all_rows: bool) -> Result<(), UserError> {
        self.received = 0;
        self.session.capture_up_to(max_bytes, all_rows);
        self.session.query(sql)
    }

    /// Queues a statement to be parsed and analyzed.
    ///
    /// # Errors
    /// As for [`WireSession::prepare`].
    pub fn prepare(&mut self, sql: &str) -> Result<(), UserError> {
        self.received = 0;
        self.session.prepare("", sql)
    }

    /// Returns the outcome of the last command.
    pub fn outcome(&mut self) -> CommandOutcome<'_> {
        self.session.outcome()
    }

    /// Returns the first column of the last query's last row; `None` without rows. U+0000 in JSON, which jsonb cannot hold, is
    /// removed.
    ///
    /// # Errors
    /// The server's; 54000 for one that is too large.
    pub fn value(&mut self) -> Result<Option<String>, UserError> {
        let outcome = self.session.outcome();
        if let Some(error) = outcome.error {
            return Err(error.into());
        }
        let value = outcome.captured.first_value()?;
        Ok(value.map(|value| untrusted::without_zeros(String::from_utf8_lossy(value).into_owned())))
    }

    /// Returns the bytes read since the last query or Parse message was queued.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Sends and receives without waiting; true when the server is ready and has answered everything.
    ///
    /// # Errors
    /// The server's for a role that may not log in; the loss of the connection.
    pub fn turn(&mut self, route: &Route) -> Result<bool, UserError> {
        if !self.is_started {
            if !self.link.establish(route)? {
                return Ok(false);
            }
            self.session.start(&self.link.startup(route))?;
            self.is_started = true;
        }
        let mut buffer = [0; READ_BYTES];
        let mut event = None;
        for _ in 0..MAX_READS {
            self.send(route)?;
            let session = &mut self.session;
            let read = self.link.read(&mut buffer, route, |bytes| {
                event = Some(session.receive(bytes).map_err(|error| route.named(session, error))?);
                Ok(())
            });
            match read? {
                Done::Some(bytes) => {
                    self.received += bytes;
                    if event == Some(SessionEvent::Ready) {
                        return Ok(true);
                    }
                }
                Done::Blocked => {
                    self.link.leave(false);
                    return Ok(false);
                }
                Done::Closed => return Err(self.session.end_of_input()),
            }
        }
        self.link.leave(true);
        Ok(false)
    }

    /// Returns whether the next turn need not wait for an event.
    pub fn has_more(&self) -> bool {
        self.link.has_more()
    }

    /// Sends the message that ends the session, if possible without waiting.
    pub fn terminate(&mut self, route: &Route) {
        self.session.terminate();
        // Otherwise the server notices that the socket is closed.
        let _ = self.send(route);
    }

    /// Returns whether the server has closed the connection, after [`terminate`](Self::terminate).
    pub fn is_closed(&mut self) -> bool {
        let mut buffer = [0; READ_BYTES];
        !matches!(self.link.drain(&mut buffer), Ok(Done::Some(_) | Done::Blocked))
    }

    fn send(&mut self, route: &Route) -> Result<(), UserError> {
        let failed = |error| failed(&route.to, error);
        self.link.flush().map_err(failed)?;
        while !self.session.output().is_empty() {
            match self.link.write(self.session.output()).map_err(failed)? {
                Done::Some(bytes) => self.session.sent(bytes),
                // The next read returns the reason for a closed connection.
                Done::Blocked | Done::Closed => break,
            }
        }
        Ok(())
    }
}

// A blocking session, for queries about a server before clients connect to it.

/// Interval of checks for interrupts.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// Interval of attempts to connect while the server's queue is full.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The longest answer to a query, in bytes, including notices and the like.
const MAX_ANSWER: usize = 32 << 20;

/// The longest single value of an answer, in bytes: it becomes part of the run.
const MAX_VALUE: usize = 1 << 20;

/// A session with a server.
pub struct BlockingSession {
    poll: Poll,
    events: Events,
    session: PolledSession,
    route: Route,
}

impl BlockingSession {
    /// Connects and waits until the server is ready. The route's timeout covers both.
    ///
    /// # Errors
    /// 08006, and the server's for a role that may not log in.
    pub fn connect(route: Route) -> Result<Self, UserError> {
        let deadline = route.timeout.map(|timeout| Instant::now() + timeout);
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let session = loop {
            pgrx::check_for_interrupts!();
            if is_late() {
                return Err(failed(&route.to, "timeout expired"));
            }
            match PolledSession::connect(&route)? {
                Some(session) => break session,
                None => std::thread::sleep(RETRY_INTERVAL),
            }
        };
        let poll = Poll::new().map_err(|error| internal(error.to_string()))?;
        let mut session = Self { poll, events: Events::with_capacity(8), session, route };
        session.session.register(session.poll.registry())?;
        session.settle(deadline)?;
        Ok(session)
    }

    /// Checks that the session meets the route's requirements.
    ///
    /// # Errors
    /// As for [`Route::check`].
    pub fn check(&self) -> Result<(), UserError> {
        self.route.check(self.session.session())
    }

    /// Returns the protocol's session.
    pub fn session(&self) -> &WireSession {
        self.session.session()
    }

    /// Runs a query and returns the first column of its last row; `None` without rows.
    ///
    /// # Errors
    /// The server's; 54000 for one that is too large.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, UserError> {
        self.session.ask_for(sql, MAX_CAPTURED, false)?;
        self.settle(None)?;
        let value = self.session.value()?;
        match value.as_ref().map_or(0, String::len) {
            length if length > MAX_VALUE => {
                let message = format!("the server answers one question in {length} bytes");
                Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                    .detail(format!("The limit is {MAX_VALUE} bytes.")))
            }
            _ => Ok(value),
        }
    }

    /// Like [`Self::value`], for an internal query under a search_path of pg_catalog alone.
    ///
    /// # Errors
    /// As for [`Self::value`].
    pub fn own_value(&mut self, sql: &str) -> Result<Option<String>, UserError> {
        self.value(&with_catalog_path(sql))
    }

    /// Runs a query and passes its whole result to `convert`.
    ///
    /// # Errors
    /// The server's; 54000 for rows that are too large; those of `convert`.
    pub fn rows<T>(
        &mut self,
        sql: &str,
        convert: impl FnOnce(QueryResult) -> Result<T, UserError>,
    ) -> Result<T, UserError> {
        self.session.ask_for(sql, MAX_CAPTURED, true)?;
        self.settle(None)?;
        let outcome = self.session.outcome();
        if let Some(error) = outcome.error {
            return Err(error.into());
        }
        convert(outcome.captured.table()?)
    }

    /// Executes the command that `send` queues within a time limit, and passes its result, of any length, to `watcher`. After an
    /// error the session is of no use.
    ///
    /// # Errors
    /// 08006 for the loss of the connection and after the limit, when the statement has been cancelled; those of `send`.
    pub fn watched(
        &mut self,
        limit: Duration,
        watcher: ResultWatcher,
        send: impl FnOnce(&mut WireSession) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let session = &mut self.session.session;
        session.watch(Some(watcher));
        send(session)?;
        self.settle_up_to(usize::MAX, Some(Instant::now() + limit))?;
        self.session.session.watch(None);
        Ok(())
    }

    /// Returns the outcome of the last command.
    pub fn outcome(&mut self) -> CommandOutcome<'_> {
        self.session.outcome()
    }

    /// Lets the server parse and analyze a statement.
    ///
    /// # Errors
    /// The server's.
    pub fn parse(&mut self, sql: &str) -> Result<(), SqlError> {
        self.session.prepare(sql)?;
        self.settle(None)?;
        self.session.outcome().error.map_or(Ok(()), Err)
    }

    /// Ends the session.
    pub fn close(mut self) {
        self.session.terminate(&self.route);
    }

    /// Waits until the server has answered everything.
    fn settle(&mut self, deadline: Option<Instant>) -> Result<(), UserError> {
        self.settle_up_to(MAX_ANSWER, deadline)
    }

    fn settle_up_to(&mut self, max_bytes: usize, deadline: Option<Instant>) -> Result<(), UserError> {
        while !self.session.turn(&self.route)? {
            if self.session.received() > max_bytes {
                let message = "the server answers one question without end";
                return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                    .detail(format!("The limit is {MAX_ANSWER} bytes.")));
            }
            self.wait(deadline)?;
        }
        Ok(())
    }

    /// Waits for an event of the connection, at most [`INTERRUPT_INTERVAL`].
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), UserError> {
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let is_late = remaining.is_some_and(|remaining| remaining.is_zero());
        // Without a cancel the server would continue the statement after the client has gone.
        if (is_late || is_interrupted())
            && let Some(backend) = self.session.session().backend()
        {
            cancel(&self.route.to, backend);
        }
        pgrx::check_for_interrupts!();
        if is_late {
            return Err(failed(&self.route.to, "timeout expired"));
        }
        let longest = if self.session.has_more() { Duration::ZERO } else { INTERRUPT_INTERVAL };
        match self
            .poll
            .poll(&mut self.events, Some(remaining.map_or(longest, |remaining| remaining.min(longest))))
        {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(internal(error.to_string())),
            _ => Ok(()),
        }
    }
}

// Requests to cancel a statement, each over a connection of its own.

/// How long connecting for a cancel request may take.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks the server to cancel the statement of a backend, given by pid and secret. The server reports no success. Like libpq's
/// PQcancel, the request is not encrypted.
pub fn cancel(to: &HostAddress, backend: (i32, i32)) {
    let request = cancel_request(backend);
    match &to.address {
        Address::Tcp(address) => {
            if let Ok(mut socket) = TcpStream::connect_timeout(address, CANCEL_TIMEOUT) {
                let _ = socket.write_all(&request);
            }
        }
        // Does not wait for a server whose queue is full.
        Address::Unix(path) => {
            if let Ok(mut socket) = mio::net::UnixStream::connect(path) {
                let _ = socket.write_all(&request);
            }
        }
    }
}

/// The longest answer to a cancel request that is read, in bytes. The server normally closes the connection without one.
const MAX_CANCEL_ANSWER: usize = 8192;

/// A cancel request that is sent without waiting, over a connection that lasts until the server has accepted it.
pub struct CancelRequest {
    socket: Socket,
    message: Vec<u8>,
    /// Bytes of the message that have been sent.
    sent: usize,
    /// Bytes of the server's answer.
    received: usize,
}

impl CancelRequest {
    /// Starts a request like [`cancel`] and registers its socket under this token. Returns `None` if the server's queue is full;
    /// then the caller tries again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin(
        route: &Route,
        backend: (i32, i32),
        registry: &Registry,
        token: Token,
    ) -> io::Result<Option<Self>> {
        let Some(mut socket) = Socket::connect(&route.to.address, &route.tcp)? else { return Ok(None) };
        socket.register(registry, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Some(Self { socket, message: cancel_request(backend), sent: 0, received: 0 }))
    }

    /// Continues the request. Returns whether it is over: the server closes the connection once it has accepted it.
    pub fn is_over(&mut self) -> bool {
        while let Some(rest @ [_, ..]) = self.message.get(self.sent..) {
            match done(self.socket.write(rest)) {
                Ok(Done::Some(bytes)) => self.sent += bytes,
                Ok(Done::Blocked) => return false,
                Ok(Done::Closed) | Err(_) => return true,
            }
        }
        let mut answer = [0; 1024];
        while self.received < MAX_CANCEL_ANSWER {
            match done(self.socket.read(&mut answer)) {
                Ok(Done::Some(bytes)) => self.received += bytes,
                Ok(Done::Blocked) => return false,
                Ok(Done::Closed) | Err(_) => return true,
            }
        }
        true
    }
}
