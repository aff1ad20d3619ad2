//! One client of a job, and its connection.

mod lifecycle;

use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, UserError};
use bench_model::client::{Client, ClientStart, Consequence, Step, TransactionRecorder};
use bench_model::spec::{ARMS, QueryMode};
use bench_protocol::{SessionEvent, TransactionStatus, WireSession};
use bench_script::{Action, Pipeline, PipelineMode};

use super::{ArmMessage, JobState, Sent, keep};
use crate::driver::connection::{Link, Route};
use crate::server::process::{keep_on_processor, parent_of};
use crate::shm::{ClientState, ConnectionCell, MeasuredSession};

/// What a connection waits for.
enum WaitsFor {
    /// To be let in.
    Start,
    /// The gate.
    Gate,
    /// A moment between two transactions.
    Turn,
    /// A moment within a transaction.
    Sleep,
    /// A statement to be prepared for this command: its own, or one of the pipeline that it begins.
    Prepared { program: usize, command: usize, statement: usize },
    /// The statement of this place to be executed, or the pipeline that ends there.
    Executed { program: usize, command: usize },
    /// The session to be that of this arm, for which so many messages have been sent.
    Switched { arm: usize, sent: usize },
    /// The Sync after this error in a pipeline.
    Discarded(Box<SqlError>),
    /// The rollback after this error.
    RolledBack(Box<SqlError>),
    /// The server to end the session.
    Disconnect,
    /// A connection for its next transaction.
    Connection,
    /// Nothing any more.
    Nothing,
}

/// What is to be done for a connection.
pub enum Next {
    /// It waits for the server.
    Server,
    /// It waits for this moment of the clock.
    Clock(i64),
    /// It stands at the gate.
    Gate,
    /// It needs a connection: then [`Connection::start`], or [`Connection::refused`].
    Connect,
    /// Its client is over: then [`Connection::take_leave`], when it may.
    Disconnect,
    /// Its session has ended; with `at_once`, together with its client.
    Over { at_once: bool },
}

/// A client and its connection.
pub struct Connection<'a> {
    cell: &'a ConnectionCell,
    /// The one of the ways to the server that it goes.
    way: usize,
    link: Option<Link>,
    /// The session has been begun over it.
    is_established: bool,
    /// Nothing more will come in, once what is there has been read.
    is_closed: bool,
    session: WireSession,
    waits: WaitsFor,
    /// Before the gate has opened.
    beginning: Option<ClientStart>,
    client: Option<Client>,
    /// Whether the statement of each command of the run has been prepared.
    prepared: Vec<bool>,
    pipeline: PipelineMode,
    /// The moment that it waits for, or waited for last. The job may still have an older one of a connection that was lost.
    until_ns: i64,
    /// When it began to connect for its next transaction.
    connecting_ns: i64,
    /// How often the server has had no room for it since.
    refusals: u32,
    /// How often it could not be had since the last one.
    failures: u32,
    /// Bytes that have come since its client took leave.
    final_bytes: usize,
    /// The client's number.
    number: u32,
    /// And its place among those of the job.
    place: usize,
    /// In a duel, the process of its session, where that is one of this machine.
    backend: Option<i32>,
}

impl<'a> Connection<'a> {
    /// A client that has no connection yet.
    pub fn new(
        (number, place): (u32, usize),
        cell: &'a ConnectionCell,
        way: usize,
        beginning: ClientStart,
        commands: usize,
    ) -> Self {
        Self {
            cell,
            way,
            link: None,
            is_established: false,
            is_closed: false,
            session: WireSession::new(),
            waits: WaitsFor::Start,
            beginning: Some(beginning),
            client: None,
            prepared: vec![false; commands],
            pipeline: PipelineMode::default(),
            until_ns: 0,
            connecting_ns: 0,
            refusals: 0,
            failures: 0,
            final_bytes: 0,
            number,
            place,
            backend: None,
        }
    }

    /// What a client begins with, once.
    pub fn take_beginning(&mut self) -> Option<ClientStart> {
        self.beginning.take()
    }

    /// The gate has opened.
    pub fn begin(&mut self, client: Client, shared: &mut JobState) -> Next {
        self.cell.set_state(ClientState::Running);
        shared.recorder.turn_to(self.place);
        let step = client.start(&shared.recorder);
        self.client = Some(client);
        self.go_on(step, shared)
    }

    /// The moment has come that it waits for, or with `came` false the run has been stopped. Not if it has come to wait for
    /// another one since.
    pub fn wake(&mut self, until_ns: i64, came: bool, shared: &mut JobState) -> Next {
        if until_ns != self.until_ns {
            return Next::Server;
        }
        self.until_ns = i64::MIN;
        shared.recorder.turn_to(self.place);
        let Some(client) = &mut self.client else { return Next::Server };
        let step = match self.waits {
            WaitsFor::Turn => client.due(&shared.workload, &mut shared.recorder, came),
            WaitsFor::Sleep => client.slept(&shared.workload, &mut shared.recorder, came),
            WaitsFor::Connection if came && shared.recorder.now_ns() < shared.recorder.end_ns() => {
                return if self.link.is_some() { self.too_late(shared) } else { Next::Connect };
            }
            WaitsFor::Connection => client.unconnected(None),
            _ => return Next::Server,
        };
        self.go_on(step, shared)
    }

    /// The socket can be read or written, or both.
    ///
    /// # Errors
    /// What keeps the client from the gate.
    pub fn serve(&mut self, shared: &mut JobState) -> Result<Next, UserError> {
        shared.recorder.turn_to(self.place);
        match self.establish(shared) {
            Ok(true) => self.flush(),
            Ok(false) => return Ok(Next::Server),
            Err(error) => return self.lost(error, shared),
        }
        loop {
            let next = match self.receive(shared) {
                Ok(Some(SessionEvent::Ready)) => {
                    if let WaitsFor::Start = self.waits {
                        shared.routes[self.way].check(&self.session)?;
                    }
                    self.ready(shared)
                }
                Ok(_) => {
                    self.flush();
                    return Ok(Next::Server);
                }
                Err(error) => return self.lost(error, shared),
            };
            // Of a connection that has been closed behind its last answer nothing will be told again.
            let is_done = self.link.is_none() || matches!(next, Next::Disconnect | Next::Over { .. });
            if !self.is_closed || is_done {
                return Ok(next);
            }
        }
    }

    /// The server has closed the connection; what it has sent before can still be read.
    pub fn closed(&mut self) {
        self.is_closed = true;
    }

    /// The server has answered all that it was asked.
    fn ready(&mut self, shared: &mut JobState) -> Next {
        let step = match std::mem::replace(&mut self.waits, WaitsFor::Nothing) {
            WaitsFor::Start => {
                self.waits = WaitsFor::Gate;
                self.show_backend(shared);
                if shared.recorder.is_of_duel() {
                    self.backend = self.backend_here(shared);
                    self.stay_with_the_other_arm();
                }
                self.cell.set_state(ClientState::Ready);
                return Next::Gate;
            }
            WaitsFor::Connection => match self.opened(shared) {
                Ok(Some(step)) => step,
                Ok(None) => return Next::Server,
                Err(error) => {
                    self.waits = WaitsFor::Connection;
                    self.session.terminate();
                    self.flush();
                    return self.refused(error, shared);
                }
            },
            WaitsFor::Prepared { program, command, statement } => {
                let first = shared.workload.programs[program].first_command;
                if let Some(error) = self.session.outcome().error {
                    let error = self.point_at(error, (program, statement), shared);
                    return self.failed((program, command), error, shared);
                }
                self.prepared[first + statement] = true;
                let Some(step) = self.try_to_execute(program, command, shared) else { return Next::Server };
                step
            }
            WaitsFor::Executed { program, command } => {
                let place = shared.workload.programs[program].first_command + command;
                let counters = &shared.counters[place];
                let Some(client) = &mut self.client else { return Next::Server };
                let outcome = self.session.outcome();
                counters.rows.add(outcome.rows);
                let result = match outcome.error {
                    Some(error) => Err(shared.point_at(error, &client.variables, (program, command))),
                    None => keep(
                        outcome.captured,
                        (program, command),
                        &mut shared.workload,
                        &mut client.variables,
                    ),
                };
                if let Err(error) = result {
                    return self.failed((program, command), error, shared);
                }
                counters.executions.add(1);
                let in_block = self.session.status() != TransactionStatus::Idle;
                client.executed(&shared.workload, &mut shared.recorder, Ok(in_block))
            }
            WaitsFor::Switched { arm, sent } => {
                let Some(step) = self.switch(arm, sent, shared) else { return Next::Server };
                step
            }
            WaitsFor::Discarded(error) => {
                let Some(step) = self.roll_back(*error, shared) else { return Next::Server };
                step
            }
            WaitsFor::RolledBack(error) => {
                // An error of the rollback ends the client.
                let error = self.session.outcome().error.unwrap_or(*error);
                self.fail(error, shared)
            }
            // Nothing was asked: a parameter's new value, or the like.
            waits => {
                self.waits = waits;
                return Next::Server;
            }
        };
        self.go_on(step, shared)
    }

    /// Does what the client's step says, and what follows from it, until it has to wait.
    fn go_on(&mut self, mut step: Step, shared: &mut JobState) -> Next {
        loop {
            let Some(client) = &mut self.client else { return Next::Server };
            step = match step {
                Step::Between => {
                    self.cell.attempts.add(1);
                    if !client.is_connected() {
                        self.leave(shared);
                    }
                    let Some(client) = &mut self.client else { return Next::Server };
                    client.next(&shared.workload, &mut shared.recorder)
                }
                Step::Switch { arm } => {
                    let Some(step) = self.switch(arm, 0, shared) else { return Next::Server };
                    step
                }
                Step::Wait { until_ns } => {
                    self.waits = WaitsFor::Turn;
                    return self.wait_until(until_ns);
                }
                Step::Sleep { until_ns } => {
                    self.waits = WaitsFor::Sleep;
                    return self.wait_until(until_ns);
                }
                Step::Connect => {
                    self.waits = WaitsFor::Connection;
                    self.connecting_ns = shared.recorder.now_ns();
                    self.refusals = 0;
                    return Next::Connect;
                }
                Step::Execute { program, command } => {
                    let Some(step) = self.try_to_execute(program, command, shared) else {
                        return Next::Server;
                    };
                    step
                }
                // These end the client, and the connection with it: the server rolls back.
                Step::Abort(error) => client.failed(&shared.workload, &mut shared.recorder, *error),
                Step::AbortAtEnd => {
                    let aborted = self.pipeline.check_end().map_err(SqlError::from);
                    client.left_open(&shared.workload, &mut shared.recorder, aborted)
                }
                Step::Retry => client.retry(&shared.workload, &mut shared.recorder),
                Step::End(error) => return self.end(error.is_some(), shared),
            };
        }
    }

    /// Executes a command; the next step, unless the server has to answer first.
    fn try_to_execute(&mut self, program: usize, command: usize, shared: &mut JobState) -> Option<Step> {
        let place = shared.workload.programs[program].first_command + command;
        let result = match shared.workload.programs[program].script.commands[command].action {
            Action::Pipeline(what) => self.execute_pipeline(what, program, command, shared),
            _ => self.execute(program, command, shared),
        };
        let counters = &shared.counters[place];
        match result {
            Ok(true) => {
                self.flush();
                None
            }
            // Its end, whether it will succeed, is not known before that of the pipeline.
            Ok(false) => {
                self.flush();
                counters.executions.add(1);
                let client = self.client.as_mut()?;
                Some(client.executed(&shared.workload, &mut shared.recorder, Ok(true)))
            }
            Err(error) => {
                counters.errors.add(1);
                Some(self.fail(error.into(), shared))
            }
        }
    }

    /// Sends a statement, or asks for it to be prepared. Returns whether the server has to answer before the client goes
    /// on.
    ///
    /// # Errors
    /// What keeps it from being sent.
    fn execute(&mut self, program: usize, command: usize, shared: &mut JobState) -> Result<bool, UserError> {
        let Some(client) = &self.client else { return Ok(true) };
        let of = &shared.workload.programs[program];
        if let Action::Sql(sql) = &of.script.commands[command].action {
            self.pipeline.check_statement(sql)?;
        }
        let place = of.first_command + command;
        let mut send =
            |is_prepared| shared.send(&mut self.session, &client.variables, (program, command), is_prepared);
        let mut sent = send(self.prepared[place])?;
        // A condition has led around the \endpipeline up to which statements were prepared: Parse is part of the pipeline.
        if self.pipeline.is_open() && matches!(sent, Sent::Preparation) {
            self.prepared[place] = true;
            sent = send(true)?;
        }
        self.waits = match sent {
            Sent::Statement => WaitsFor::Executed { program, command },
            Sent::Preparation => WaitsFor::Prepared { program, command, statement: command },
        };
        Ok(!self.pipeline.is_open())
    }

    /// Begins, synchronizes or ends a pipeline, as [`execute`](Self::execute). What it will execute is prepared before it
    /// begins.
    ///
    /// # Errors
    /// For what may not come now.
    fn execute_pipeline(
        &mut self,
        what: Pipeline,
        program: usize,
        command: usize,
        shared: &mut JobState,
    ) -> Result<bool, UserError> {
        let of = &shared.workload.programs[program];
        if what == Pipeline::Start
            && shared.mode(program) == QueryMode::Prepared
            && !self.pipeline.is_open()
            && let Some(client) = &self.client
        {
            let at = {
                let mut statements = of.script.statements_in_pipeline(command).map(|(at, _)| at);
                statements.find(|at| !self.prepared[of.first_command + at])
            };
            if let Some(at) = at {
                shared.send(&mut self.session, &client.variables, (program, at), false)?;
                self.waits = WaitsFor::Prepared { program, command, statement: at };
                return Ok(true);
            }
        }
        self.pipeline.perform(what, shared.mode(program) == QueryMode::Simple)?;
        match what {
            Pipeline::Start => self.session.start_pipeline(),
            Pipeline::Sync => self.session.sync_pipeline(),
            Pipeline::End => {
                self.session.end_pipeline();
                self.waits = WaitsFor::Executed { program, command };
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Shows who serves it.
    fn show_backend(&self, shared: &JobState) {
        let pid = self.session.backend().map_or(0, |(pid, _)| pid);
        let Route { is_remote, is_watched, .. } = *self.route(shared);
        self.cell.show_backend(if is_watched { pid } else { 0 }, is_remote);
    }

    /// The process of its session, if that is one of this machine: what another server, or a pool, names is one if it is a child of
    /// the process that listens.
    fn backend_here(&self, shared: &JobState) -> Option<i32> {
        let (pid, _) = self.session.backend()?;
        let server = || self.link.as_ref().and_then(Link::server_pid);
        let is_here =
            !self.route(shared).is_remote || server().is_some_and(|server| parent_of(pid) == Some(server));
        is_here.then_some(pid)
    }

    /// In a duel of two servers: the backends of both arms' clients of one pair take turns on one processor. Where the kernel
    /// placed them by chance, processor times of equal arms would be up to 20 % apart.
    fn stay_with_the_other_arm(&self) {
        let only = self.beginning.as_ref().and_then(|beginning| beginning.turns?.only);
        if let Some((pid, _)) = self.backend.zip(only) {
            keep_on_processor(pid, self.number / ARMS.len() as u32);
        }
    }

    /// The way that it goes to the server.
    pub fn route<'r>(&self, shared: &'r JobState) -> &'r Route {
        &shared.routes[self.way]
    }

    /// What a request to cancel its statement names, if it has one under way.
    pub fn backend_at_work(&self) -> Option<(i32, i32)> {
        let is_busy = matches!(
            self.waits,
            WaitsFor::Prepared { .. }
                | WaitsFor::Executed { .. }
                | WaitsFor::Discarded(_)
                | WaitsFor::RolledBack(_)
        );
        self.session.backend().filter(|_| is_busy)
    }

    /// Transactions due before `end_ns` that were neither started nor skipped.
    pub fn backlog(&self, end_ns: i64) -> u64 {
        self.client.as_ref().map_or(0, |client| client.backlog(end_ns))
    }

    /// Makes the session that of an arm, for which so many messages have been `sent` and answered; the next step, unless the
    /// server has to answer another one first.
    fn switch(&mut self, arm: usize, sent: usize, shared: &mut JobState) -> Option<Step> {
        if sent == 0 {
            shared.recorder.end_stretch();
        } else if let Some(error) = self.session.outcome().error {
            return Some(not_switched(error, shared));
        }
        let asked = match shared.arms[arm].get(sent) {
            Some(ArmMessage::Reset(text)) => self.session.query(text),
            Some(ArmMessage::Set(text, values)) => {
                self.session.capture(false);
                self.session.execute_params(text, values.iter().map(Some))
            }
            None => {
                self.cell.arm.store(arm as u32 + 1, Relaxed);
                if let Some(pid) = self.backend {
                    shared.recorder.begin_stretch(MeasuredSession::Backend(pid), arm, false);
                }
                let client = self.client.as_mut()?;
                return Some(client.switched(&shared.workload, &mut shared.recorder));
            }
        };
        if let Err(error) = asked {
            return Some(not_switched(error.into(), shared));
        }
        self.flush();
        self.waits = WaitsFor::Switched { arm, sent: sent + 1 };
        None
    }

    #[cold]
    fn point_at(&self, error: SqlError, place: (usize, usize), shared: &JobState) -> SqlError {
        match &self.client {
            Some(client) => shared.point_at(error, &client.variables, place),
            None => error,
        }
    }

    /// The command under way has failed: what is open is rolled back, where the client may go on after it.
    fn failed(&mut self, (program, command): (usize, usize), error: SqlError, shared: &mut JobState) -> Next {
        let of = &shared.workload.programs[program];
        shared.counters[of.first_command + command].errors.add(1);
        let in_pipeline = matches!(of.script.commands[command].action, Action::Pipeline(Pipeline::End));
        self.pipeline = PipelineMode::default();
        if !of.outlives(command, &error) {
            let step = self.fail(error, shared);
            return self.go_on(step, shared);
        }
        self.session.capture(false);
        if in_pipeline {
            self.session.discard_until_sync();
            self.waits = WaitsFor::Discarded(Box::new(error));
            self.flush();
            return Next::Server;
        }
        match self.roll_back(error, shared) {
            Some(step) => self.go_on(step, shared),
            None => Next::Server,
        }
    }

    /// Rolls back what is open after this error; the next step, unless the server has to answer first.
    fn roll_back(&mut self, error: SqlError, shared: &mut JobState) -> Option<Step> {
        if self.session.status() != TransactionStatus::Idle && self.session.query("ROLLBACK").is_ok() {
            self.waits = WaitsFor::RolledBack(Box::new(error));
            self.flush();
            return None;
        }
        Some(self.fail(error, shared))
    }

    fn fail(&mut self, error: SqlError, shared: &mut JobState) -> Step {
        match &mut self.client {
            Some(client) => client.failed(&shared.workload, &mut shared.recorder, error),
            None => Step::End(None),
        }
    }
}

/// A client that cannot be of its arm is over.
#[cold]
fn not_switched(error: SqlError, shared: &mut JobState) -> Step {
    shared.recorder.error(&error, Consequence::Uncounted);
    Step::End(Some(Box::new(error)))
}
