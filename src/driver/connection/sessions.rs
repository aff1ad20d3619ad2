//! Sessions over connections: one that never waits, one for which its process waits, and requests to cancel their statements.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_base::untrusted;
use bench_model::spec::{Address, HostAddress};
use bench_protocol::{CommandOutcome, SessionEvent, WireSession, cancel_request};
use bench_script::{MAX_CAPTURED, QueryResult};
use mio::event::Source;
use mio::{Events, Interest, Poll, Registry, Token};

use super::link::{Socket, done};
use super::{Done, Link, Route, failed};
use crate::error::internal;
use crate::server::process::is_interrupted;

// A session that never waits: its owner comes back to it.

/// As much as is read at once, in bytes.
const READ_BYTES: usize = 8192;

/// How often it reads in one turn, so that a server that sends without end does not keep its owner.
const READS: usize = 64;

/// This project's own query, as one that finds names in pg_catalog alone. Statements of one message are one transaction, so nothing
/// of this is left for the statements after it, nor, behind a pooler, for another client. In a transaction block it lasts to its end.
fn under_own_path(sql: &str) -> String {
    format!("SET LOCAL search_path = pg_catalog, pg_temp; {sql}")
}

/// A session with a server.
pub struct PolledSession {
    link: Link,
    session: WireSession,
    /// The startup message has been queued.
    is_started: bool,
    /// Bytes read since something was last asked.
    received: usize,
}

impl PolledSession {
    /// Begins to connect. `None`: the server's queue is full, and it is to be tried again.
    ///
    /// # Errors
    /// What keeps the server from being reached.
    pub fn connect(route: &Route) -> Result<Option<Self>, UserError> {
        let link = Link::connect(route)?;
        Ok(link.map(|link| Self { link, session: WireSession::new(), is_started: false, received: 0 }))
    }

    /// Has what happens to the connection reported.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry) -> Result<(), UserError> {
        self.link.register(registry, Token(0)).map_err(|error| internal(error.to_string()))
    }

    /// The session as the protocol has it.
    pub fn session(&self) -> &WireSession {
        &self.session
    }

    /// Queues this project's own query, of whose rows the last one is kept.
    ///
    /// # Errors
    /// As for [`WireSession::query`].
    pub fn ask(&mut self, sql: &str) -> Result<(), UserError> {
        self.ask_for(&under_own_path(sql), MAX_CAPTURED, false)
    }

    /// Queues a query as it is, with at most so many bytes of an answer; of all rows or the last one.
    ///
    /// # Errors
    /// As for [`WireSession::query`].
    pub fn ask_for(&mut self, sql: &str, most: usize, all_rows: bool) -> Result<(), UserError> {
        self.received = 0;
        self.session.capture_up_to(most, all_rows);
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

    /// What the last command came to.
    pub fn outcome(&mut self) -> CommandOutcome<'_> {
        self.session.outcome()
    }

    /// The first column of the last row that the last query returned; `None` where there is no row. JSON in it has no
    /// U+0000, which jsonb cannot hold.
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

    /// Bytes read since something was last asked.
    pub fn received(&self) -> usize {
        self.received
    }

    /// Does what can be done without waiting; true when the server takes commands and has answered everything.
    ///
    /// # Errors
    /// What keeps the server from letting the role in; the loss of the connection.
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
        for _ in 0..READS {
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

    /// Whether the next turn need not wait for anything to be reported.
    pub fn has_more(&self) -> bool {
        self.link.has_more()
    }

    /// Says that the session ends, as far as that can be sent at once.
    pub fn terminate(&mut self, route: &Route) {
        self.session.terminate();
        // If it cannot be sent now, the closed socket says it as well.
        let _ = self.send(route);
    }

    /// Whether the server has closed the connection of a session that was told to end.
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
                // Where it cannot be sent at all, reading tells why.
                Done::Blocked | Done::Closed => break,
            }
        }
        Ok(())
    }
}

// A session for which its process waits: what has to be known of a server before others connect to it.

/// How often it looks whether its process is to be interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// When a full queue is tried again.
const AGAIN: Duration = Duration::from_millis(5);

/// The most that a server may send in answer to one question, in bytes, notices and the like included.
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
    /// Connects, and waits until the server takes commands; the timeout is for all of it.
    ///
    /// # Errors
    /// What keeps the server from being reached, or from letting the role in.
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
                None => std::thread::sleep(AGAIN),
            }
        };
        let poll = Poll::new().map_err(|error| internal(error.to_string()))?;
        let mut session = Self { poll, events: Events::with_capacity(8), session, route };
        session.session.register(session.poll.registry())?;
        session.settle(deadline)?;
        Ok(session)
    }

    /// Whether it is one that the route asks for.
    ///
    /// # Errors
    /// As [`Route::check`].
    pub fn check(&self) -> Result<(), UserError> {
        self.route.check(self.session.session())
    }

    /// The session as the protocol has it.
    pub fn session(&self) -> &WireSession {
        self.session.session()
    }

    /// The first column of the last row of a query's result; `None` where there is no row.
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

    /// As [`Self::value`], of this project's own query, under a search_path of pg_catalog alone.
    ///
    /// # Errors
    /// As there.
    pub fn own_value(&mut self, sql: &str) -> Result<Option<String>, UserError> {
        self.value(&under_own_path(sql))
    }

    /// Has `look` see all that a query returns.
    ///
    /// # Errors
    /// The server's; 54000 for rows that are too large; those of `look`.
    pub fn rows<T>(
        &mut self,
        sql: &str,
        look: impl FnOnce(QueryResult) -> Result<T, UserError>,
    ) -> Result<T, UserError> {
        self.session.ask_for(sql, MAX_CAPTURED, true)?;
        self.settle(None)?;
        let outcome = self.session.outcome();
        if let Some(error) = outcome.error {
            return Err(error.into());
        }
        look(outcome.captured.table()?)
    }

    /// Has a statement parsed and analyzed.
    ///
    /// # Errors
    /// What the server finds wrong with it.
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
        while !self.session.turn(&self.route)? {
            if self.session.received() > MAX_ANSWER {
                let message = "the server answers one question without end";
                return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                    .detail(format!("The limit is {MAX_ANSWER} bytes.")));
            }
            self.wait(deadline)?;
        }
        Ok(())
    }

    /// Waits until something has happened to the connection, or for a moment.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), UserError> {
        // The server would go on with a statement whose client has gone.
        if is_interrupted()
            && let Some(backend) = self.session.session().backend()
        {
            cancel(&self.route.to, backend);
        }
        pgrx::check_for_interrupts!();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(failed(&self.route.to, "timeout expired"));
        }
        let longest = if self.session.has_more() { Duration::ZERO } else { LOOK };
        match self.poll.poll(&mut self.events, Some(left.map_or(longest, |left| left.min(longest)))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(internal(error.to_string())),
            _ => Ok(()),
        }
    }
}

// Requests to cancel a statement, each over a connection of its own.

/// How long the server has to answer at all.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Asks the server to cancel what one of its backends, known by its pid and its secret, is executing. Nothing tells whether
/// it does. As by libpq's PQcancel, the request is not encrypted.
pub fn cancel(to: &HostAddress, backend: (i32, i32)) {
    let request = cancel_request(backend);
    match &to.address {
        Address::Tcp(address) => {
            if let Ok(mut socket) = TcpStream::connect_timeout(address, TIMEOUT) {
                let _ = socket.write_all(&request);
            }
        }
        // One whose queue is full is not waited for.
        Address::Unix(path) => {
            if let Ok(mut socket) = mio::net::UnixStream::connect(path) {
                let _ = socket.write_all(&request);
            }
        }
    }
}

/// As much as a server may have to say to a request, in bytes: it has taken it when it closes the connection, and one that
/// talks on is not listened to.
const MOST_WORDS: usize = 8192;

/// A request that nobody waits for. Its connection is there until the server has taken it.
pub struct CancelRequest {
    socket: Socket,
    message: Vec<u8>,
    /// Bytes of the message that have been sent.
    sent: usize,
    /// Bytes that the server has answered.
    heard: usize,
}

impl CancelRequest {
    /// Begins a request, as [`cancel`] makes it; what happens to its socket is reported under this token. `None`: the
    /// server's queue is full, and it is to be tried again.
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
        Ok(Some(Self { socket, message: cancel_request(backend), sent: 0, heard: 0 }))
    }

    /// Goes on with it, and tells whether that is all: the server closes the connection when it has taken the request.
    pub fn is_over(&mut self) -> bool {
        while let Some(rest @ [_, ..]) = self.message.get(self.sent..) {
            match done(self.socket.write(rest)) {
                Ok(Done::Some(bytes)) => self.sent += bytes,
                Ok(Done::Blocked) => return false,
                Ok(Done::Closed) | Err(_) => return true,
            }
        }
        let mut answer = [0; 1024];
        while self.heard < MOST_WORDS {
            match done(self.socket.read(&mut answer)) {
                Ok(Done::Some(bytes)) => self.heard += bytes,
                Ok(Done::Blocked) => return false,
                Ok(Done::Closed) | Err(_) => return true,
            }
        }
        true
    }
}
