//! A session that never waits: its owner comes back to it.

use bench_base::error::UserError;
use bench_base::untrusted;
use bench_protocol::{CommandOutcome, SessionEvent, WireSession};
use bench_script::MAX_CAPTURED;
use mio::{Registry, Token};

use super::{Done, Link, Route, failed};
use crate::error::internal;

/// As much as is read at once, in bytes.
const READ_BYTES: usize = 8192;

/// How often it reads in one turn, so that a server that sends without end does not keep its owner.
const READS: usize = 64;

/// This project's own query, as one that finds names in pg_catalog alone. Statements of one message are one transaction, so nothing
/// of this is left for the statements after it, nor, behind a pooler, for another client. In a transaction block it lasts to its end.
pub fn under_own_path(sql: &str) -> String {
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
