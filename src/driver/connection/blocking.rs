//! A session for which its process waits: what has to be known of a server before others connect to it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_protocol::WireSession;
use bench_script::{MAX_CAPTURED, QueryResult};
use mio::{Events, Poll};

use super::polled::under_own_path;
use super::{PolledSession, Route, cancel, failed};
use crate::error::internal;
use crate::server::process::is_interrupted;

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
