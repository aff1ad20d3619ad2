//! A session for which its process waits: what has to be known of a server before others connect to it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bench_core::error::{SqlError, UserError, sqlstate};
use bench_core::script::{MAX_CAPTURED, Table};
use bench_core::wire::Session;
use mio::{Events, Poll};

use super::{PolledSession, Route, cancel, failed};
use crate::error::internal;
use crate::server::process::is_interrupted;

/// How often it looks whether its process is to be interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// When a full queue is tried again.
const AGAIN: Duration = Duration::from_millis(5);

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
    pub fn session(&self) -> &Session {
        self.session.session()
    }

    /// The first column of the last row of a query's result; `None` where there is no row.
    ///
    /// # Errors
    /// The server's.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, UserError> {
        self.session.ask(sql)?;
        self.settle(None)?;
        self.session.value()
    }

    /// Has `look` see all that a query returns.
    ///
    /// # Errors
    /// The server's; 54000 for a row that is too large; those of `look`.
    pub fn rows<T>(
        &mut self,
        sql: &str,
        look: impl FnOnce(Table) -> Result<T, UserError>,
    ) -> Result<T, UserError> {
        self.session.ask_rows(sql)?;
        self.settle(None)?;
        let outcome = self.session.outcome();
        if let Some(error) = outcome.error {
            return Err(error.into());
        }
        let table = outcome.captured.table().ok_or_else(|| {
            UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "a row is too large")
                .detail(format!("The limit is {MAX_CAPTURED} bytes."))
        })?;
        look(table)
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
        match self.poll.poll(&mut self.events, Some(left.map_or(LOOK, |left| left.min(LOOK)))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(internal(error.to_string())),
            _ => Ok(()),
        }
    }
}
