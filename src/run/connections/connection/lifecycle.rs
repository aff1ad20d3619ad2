//! The life of a connection: how it is opened, read, written, lost and closed.

use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, UserError, pack, sqlstate, unpack};
use bench_model::client::{Consequence, Step, TransactionRecorder, back_off_ns};
use bench_protocol::{SessionEvent, TransactionStatus, WireSession};
use bench_script::{Action, PipelineMode};

use super::{Connection, Next, WaitsFor};
use crate::driver::connection::{self, Done, Link};
use crate::observe::waits;
use crate::run::connections::JobState;
use crate::server::process::cpu_ns;
use crate::shm::ClientState;

/// How long it is until a connection is tried again for which the server had no room, and how often: sessions that are
/// about to end still count against max_connections.
const AGAIN_NS: i64 = 5_000_000;
const REFUSALS: u32 = 2000;

/// How often a connection is read in one turn: a server that sends without end does not keep the job from the others, nor
/// from its end. With the buffer of a job that is a megabyte, which takes some milliseconds at most.
const READS: usize = 16;

/// As much as a server may have to say after the end of its session, in bytes. One that talks on is not waited for.
const MAX_FINAL_BYTES: usize = 1 << 20;

/// Whether it is no use to try again: the role or the database is not let in (class 28, 3D000).
fn is_for_good(error: &SqlError) -> bool {
    let state = unpack(error.sqlstate);
    state.starts_with("28") || state == "3D000"
}

impl Connection<'_> {
    /// Takes a connection that has been begun.
    pub fn start(&mut self, link: Link) {
        self.is_closed = false;
        self.is_established = false;
        self.link = Some(link);
    }

    /// Does what comes before the session, and begins it; false while the server is waited for.
    pub(super) fn establish(&mut self, shared: &JobState) -> Result<bool, UserError> {
        if !self.is_established
            && let Some(link) = &mut self.link
        {
            let route = &shared.routes[self.way];
            if !link.establish(route)? {
                return Ok(false);
            }
            self.is_established = true;
            self.session.start(&link.startup(route))?;
        }
        Ok(true)
    }

    /// Whether there is more to read than one turn has read.
    pub fn has_more(&self) -> bool {
        self.link.as_ref().is_some_and(Link::has_more)
    }

    /// Reads until the session is ready, or nothing more is there, or it is the turn of others.
    pub(super) fn receive(&mut self, shared: &mut JobState) -> Result<Option<SessionEvent>, UserError> {
        let Some(link) = &mut self.link else { return Ok(None) };
        let mut event = None;
        let session = &mut self.session;
        link.leave(false);
        for _ in 0..READS {
            let route = &shared.routes[self.way];
            let read = link.read(&mut shared.buffer, route, |bytes| {
                event = Some(session.receive(bytes).map_err(|error| route.named(session, error))?);
                Ok(())
            });
            match read? {
                Done::Some(bytes) => {
                    if let WaitsFor::Disconnect = self.waits {
                        self.final_bytes += bytes;
                        if self.final_bytes > MAX_FINAL_BYTES {
                            return Err(self.session.end_of_input());
                        }
                    }
                    // Of a stream, less than there was room for is all that there was.
                    if bytes < shared.buffer.len() && !self.is_closed {
                        return Ok(event);
                    }
                }
                Done::Blocked => return Ok(event),
                Done::Closed if event == Some(SessionEvent::Ready) => return Ok(event),
                Done::Closed => return Err(self.session.end_of_input()),
            }
        }
        link.leave(true);
        Ok(event)
    }

    /// Sends what is to be sent, as far as there is room for it: the rest goes when the socket can be written again. Where
    /// it cannot be sent at all, reading tells why.
    pub(super) fn flush(&mut self) {
        let Some(link) = &mut self.link else { return };
        let _ = link.flush();
        while self.session.must_send() {
            match link.write(self.session.output()) {
                Ok(Done::Some(bytes)) => self.session.sent(bytes),
                Ok(Done::Blocked) => return,
                Ok(Done::Closed) | Err(_) => self.session.sent(usize::MAX),
            }
        }
    }

    /// The connection is lost, or the server has ended the session.
    pub(super) fn lost(&mut self, error: UserError, shared: &mut JobState) -> Result<Next, UserError> {
        if let WaitsFor::Disconnect | WaitsFor::Nothing = self.waits {
            self.close();
            return Ok(Next::Over { at_once: false });
        }
        if self.client.is_none() {
            return Err(error);
        }
        if let WaitsFor::Connection = self.waits {
            return Ok(self.refused(error, shared));
        }
        let in_doubt = self.is_in_doubt(shared);
        // Where it is the session that has come to an end, the server is told.
        if !self.is_closed {
            self.session.terminate();
            self.flush();
        }
        self.give_up_link(shared);
        self.cell.hide_backend();
        self.forget_session();
        let mut error = SqlError::from(error);
        // As a standby says that cancels a session for the sake of recovery: without it there is no other try.
        if error.is_retryable() || error.is_of_data() {
            error.sqlstate = pack(sqlstate::CONNECTION_FAILURE);
        }
        let Some(client) = &mut self.client else { return Ok(Next::Server) };
        let step = match std::mem::replace(&mut self.waits, WaitsFor::Nothing) {
            WaitsFor::Prepared { .. }
            | WaitsFor::Executed { .. }
            | WaitsFor::Discarded(_)
            | WaitsFor::RolledBack(_)
            | WaitsFor::Sleep => client.lost(&shared.workload, &mut shared.recorder, error, in_doubt),
            waits => {
                if client.lost_between(&mut shared.recorder, &error) {
                    // It goes on waiting for its next transaction.
                    self.waits = waits;
                    return Ok(Next::Clock(self.until_ns));
                }
                Step::End(Some(Box::new(error)))
            }
        };
        Ok(self.go_on(step, shared))
    }

    /// Whether what was sent and not answered may have committed something.
    fn is_in_doubt(&self, shared: &JobState) -> bool {
        if self.pipeline.is_open() {
            return true;
        }
        let WaitsFor::Executed { program, command } = self.waits else { return false };
        match &shared.workload.programs[program].script.commands[command].action {
            Action::Sql(sql) => sql.may_commit(self.session.status() != TransactionStatus::Idle),
            _ => true,
        }
    }

    /// No connection could be had for the next transaction, or not yet.
    pub fn refused(&mut self, error: UserError, shared: &mut JobState) -> Next {
        self.give_up_link(shared);
        self.forget_session();
        let error = SqlError::from(error);
        if error.sqlstate == pack(sqlstate::TOO_MANY_CONNECTIONS) && self.refusals < REFUSALS {
            self.refusals += 1;
            return self.connect_later(shared);
        }
        shared.recorder.error(&error, Consequence::Uncounted);
        if !shared.survives || is_for_good(&error) {
            return self.do_without(Some(Box::new(error)), shared);
        }
        // The next of the target's hosts may have taken the place of this one.
        self.way = (self.way + 1) % shared.routes.len();
        let now_ns = shared.recorder.now_ns();
        let until_ns = (now_ns + back_off_ns(self.failures, self.number)).min(shared.recorder.end_ns());
        self.failures += 1;
        // The outage is not part of what the connection takes.
        self.connecting_ns = until_ns;
        if until_ns <= now_ns { self.do_without(None, shared) } else { self.wait_until(until_ns) }
    }

    pub(super) fn wait_until(&mut self, until_ns: i64) -> Next {
        self.until_ns = until_ns;
        Next::Clock(until_ns)
    }

    /// A connection has been begun for its next transaction: it waits for the server, as long as that may take.
    pub fn await_server(&mut self, shared: &mut JobState) -> Next {
        match shared.routes[self.way].timeout_ns() {
            Some(timeout_ns) => self.wait_until(shared.recorder.now_ns().saturating_add(timeout_ns)),
            None => Next::Server,
        }
    }

    /// The server has not let it in in time.
    pub(super) fn too_late(&mut self, shared: &mut JobState) -> Next {
        let error = connection::failed(&shared.routes[self.way].to, "timeout expired");
        self.refused(error, shared)
    }

    /// There is no room for another connection at this moment.
    pub fn connect_later(&mut self, shared: &mut JobState) -> Next {
        self.wait_until(shared.recorder.now_ns() + AGAIN_NS)
    }

    /// The run has been stopped: a connection that the server has not answered is not waited for.
    pub fn stop_connecting(&mut self, shared: &mut JobState) -> Next {
        match self.waits {
            WaitsFor::Connection if self.link.is_some() => self.do_without(None, shared),
            _ => Next::Server,
        }
    }

    fn do_without(&mut self, error: Option<Box<SqlError>>, shared: &mut JobState) -> Next {
        let Some(client) = &mut self.client else { return Next::Server };
        let step = client.unconnected(error);
        self.go_on(step, shared)
    }

    /// The server may still have to end the session that it has taken leave of.
    fn give_up_link(&mut self, shared: &mut JobState) {
        if let Some(link) = self.link.take() {
            shared.closing.push(link);
        }
    }

    fn forget_session(&mut self) {
        self.session = WireSession::new();
        self.prepared.fill(false);
        self.pipeline = PipelineMode::default();
    }

    /// The server takes commands over the connection for the next transaction.
    ///
    /// # Errors
    /// 08006 for a session that is not one of those that the target asks for.
    pub(super) fn opened(&mut self, shared: &mut JobState) -> Result<Option<Step>, UserError> {
        shared.routes[self.way].check(&self.session)?;
        self.show_backend(shared);
        let Some(client) = self.client.as_mut() else { return Ok(None) };
        if shared.recorder.is_stopped() {
            return Ok(Some(client.unconnected(None)));
        }
        self.failures = 0;
        let now_ns = shared.recorder.now_ns();
        if shared.reconnects && shared.recorder.is_measured(now_ns) {
            shared.connects.commit((now_ns - self.connecting_ns).max(0).unsigned_abs());
        }
        Ok(Some(client.connected(&shared.workload, &mut shared.recorder)))
    }

    /// Ends the session after its transaction. What else the server does of it is waited for at the end of the run only
    /// (`finishCon` in pgbench.c).
    pub(super) fn leave(&mut self, shared: &mut JobState) {
        self.session.terminate();
        self.flush();
        self.cell.hide_backend();
        let is_sent = !self.session.must_send();
        // Without its last message, the server hears of the end by the closed socket.
        if let Some(link) = self.link.take().filter(|_| is_sent) {
            shared.closing.push(link);
        }
        self.forget_session();
    }

    /// The client is over.
    pub(super) fn end(&mut self, early: bool, shared: &mut JobState) -> Next {
        if early {
            shared.header.client_aborted();
        }
        let now_ns = shared.recorder.now_ns();
        let pid = self.cell.pid.load(Relaxed);
        self.cell.cpu_ns.store(cpu_ns(pid).unwrap_or(0), Relaxed);
        self.cell.switches.store(waits::of_process(pid).unwrap_or(0), Relaxed);
        self.cell.remote_pid.store(0, Relaxed);
        self.cell.ended_ns.store(now_ns, Relaxed);
        self.cell.set_state(if early { ClientState::Aborted } else { ClientState::Done });
        // Where the server has closed the connection, it has ended the session.
        if self.link.is_some() && !self.is_closed {
            self.waits = WaitsFor::Disconnect;
            Next::Disconnect
        } else {
            self.close();
            Next::Over { at_once: true }
        }
    }

    /// Ends the session. When the server has ended it as well, its statistics are there, and its locks gone.
    pub fn take_leave(&mut self) {
        self.waits = WaitsFor::Disconnect;
        self.final_bytes = 0;
        self.session.terminate();
        self.flush();
    }

    fn close(&mut self) {
        self.waits = WaitsFor::Nothing;
        self.link = None;
    }
}
