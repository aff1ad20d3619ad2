//! A session for which its process waits: what has to be known of a server before others connect to it.

use std::io::ErrorKind;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bench_core::error::{SqlError, UserError, sqlstate};
use bench_core::wire::{Event, Session};
use mio::{Events, Poll, Token};

use super::{Done, Link, Route, cancel, failed, failed_by};
use crate::error::internal;
use crate::server::process::is_interrupted;

/// How often it looks whether its process is to be interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// When a full queue is tried again.
const AGAIN: Duration = Duration::from_millis(5);

/// As much as is read at once, in bytes.
const READ_BYTES: usize = 8192;

/// A session with a server.
pub struct BlockingSession {
    poll: Poll,
    events: Events,
    link: Link,
    session: Session,
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
        let link = loop {
            pgrx::check_for_interrupts!();
            if is_late() {
                return Err(failed(&route.to, "timeout expired"));
            }
            match Link::connect(&route)? {
                Some(link) => break link,
                None => std::thread::sleep(AGAIN),
            }
        };
        let poll = Poll::new().map_err(|error| internal(error.to_string()))?;
        let registry = poll.registry().try_clone().map_err(|error| internal(error.to_string()))?;
        let mut session =
            Self { poll, events: Events::with_capacity(8), link, session: Session::new(), route };
        session.link.register(&Rc::new(registry), Token(0)).map_err(|error| internal(error.to_string()))?;
        while !session.link.establish(&session.route)? {
            session.wait(deadline)?;
        }
        session.session.start(&session.route.startup(&session.link))?;
        session.settle(deadline)?;
        Ok(session)
    }

    /// Whether it is one that the route asks for.
    ///
    /// # Errors
    /// As [`Route::check`].
    pub fn check(&self) -> Result<(), UserError> {
        self.route.check(&self.session)
    }

    /// The session as the protocol has it.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The first column of the last row of a query's result; `None` where there is no row.
    ///
    /// # Errors
    /// The server's.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, UserError> {
        self.session.capture(true);
        self.session.query(sql)?;
        self.settle(None)?;
        let outcome = self.session.outcome();
        match outcome.error {
            Some(error) => Err(error.into()),
            None => {
                Ok(outcome.captured.first_value().map(|value| String::from_utf8_lossy(value).into_owned()))
            }
        }
    }

    /// Has a statement parsed and analyzed.
    ///
    /// # Errors
    /// What the server finds wrong with it.
    pub fn parse(&mut self, sql: &str) -> Result<(), SqlError> {
        self.session.prepare("", sql)?;
        self.settle(None)?;
        self.session.outcome().error.map_or(Ok(()), Err)
    }

    /// Ends the session.
    pub fn close(mut self) {
        self.session.terminate();
        // If it cannot be sent now, the closed socket says it as well.
        let _ = self.send();
    }

    /// Waits until the server has answered everything.
    fn settle(&mut self, deadline: Option<Instant>) -> Result<(), UserError> {
        let mut buffer = [0; READ_BYTES];
        let mut event = None;
        loop {
            self.send()?;
            let (session, route) = (&mut self.session, &self.route);
            let read = self.link.read(&mut buffer, route, |bytes| {
                event = Some(session.receive(bytes).map_err(|error| named(route, session, error))?);
                Ok(())
            });
            match read? {
                Done::Some(_) if event == Some(Event::Ready) => return Ok(()),
                Done::Some(_) => {}
                Done::Blocked => self.wait(deadline)?,
                Done::Closed => return Err(self.session.end_of_input()),
            }
        }
    }

    /// Waits until something has happened to the connection, or for a moment.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), UserError> {
        // The server would go on with a statement whose client has gone.
        if is_interrupted()
            && let Some(backend) = self.session.backend()
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

    fn send(&mut self) -> Result<(), UserError> {
        let failed = |error| failed(&self.route.to, error);
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

/// An error of the server's before it takes commands, with the server's place as psql puts it.
fn named(route: &Route, session: &Session, error: UserError) -> UserError {
    if error.sqlstate == sqlstate::PROTOCOL_VIOLATION || session.backend().is_some() {
        return error;
    }
    failed_by(&route.to, error)
}
