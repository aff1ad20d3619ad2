//! A job: a worker that runs its share of the clients, each over a connection, and waits for all of them at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_model::client::{ClientWorkload, Consequence, Lateness, TransactionRecorder};
use bench_model::spec::{Extent, RunSpec};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use pgrx::pg_sys;

use super::connection::{Connection, Next};
use super::{ClosingLinks, Disconnects, JobState, secrets};
use crate::driver::connection::{self, CancelRequest, Link, Route};
use crate::error::internal;
use crate::run::client;
use crate::server::background_worker::WorkerKind;
use crate::server::process::{
    Timer, current_timestamp, my_pid, now_ns, own_cpu_ns, own_switches, raise_open_files, wait_for_latch,
    wake,
};
use crate::server::signals::{OnTerminate, termination_requested};
use crate::shm::{ClientCounters, ClientSlot, ClientState, StopReason};
use crate::worker::{WorkerContext, attach_unconnected, report_fatal_error};

/// The kind of worker that a job is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_job_main",
    title: c"pgbench_ext job",
    noun: "job",
    connects: false,
    returns_after_crash: false,
};

/// How often a job looks at the gate, which opens without a word to it.
const GATE: Duration = Duration::from_millis(1);

/// How often it looks whether it has been stopped, where nothing else happens.
const LOOK: Duration = Duration::from_millis(50);

/// How often, in any case, it looks for the postmaster.
const LOOK_NS: i64 = 10_000_000;

/// Files that a job has open beside its connections.
const OTHER_FILES: u64 = 64;

/// Connections that a job opens at a time: each is a process that the server starts.
const OPENED_AT_ONCE: usize = 32;

/// When a connection is tried again for which there was no room in the server's queue.
const AGAIN_NS: i64 = 5_000_000;

/// How long the server has to end the sessions.
const DISCONNECT_NS: i64 = 5_000_000_000;

/// And for each of them: a process that ends takes its time, and all of them end at once.
const DISCONNECT_EACH_NS: i64 = 4_000_000;

/// The server's entry into a job.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_job_main(segment: pg_sys::Datum) {
    let Some(context) = attach_unconnected(segment, OnTerminate::Flag) else { return };
    let slot = context.segment.slot(context.index);
    slot.pid.store(my_pid(), Release);
    report_fatal_error(&context);
    let end = match work(&context) {
        Ok(()) => ClientState::Done,
        Err(error) => {
            slot.count_error(&SqlError::from(error), current_timestamp(), Consequence::Uncounted);
            ClientState::Aborted
        }
    };
    slot.set_state(end);
    wake(context.segment.header().coordinator_pid.load(Relaxed));
}

fn work(context: &WorkerContext) -> Result<(), UserError> {
    let header = context.segment.header();
    let spec: RunSpec = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let workload = client::workload(&spec, Some(&context.segment)).map_err(UserError::from)?;
    let Some(mut job) = Job::connect(context, &spec, workload)? else { return Ok(()) };
    let slot = context.segment.slot(context.index);
    slot.set_state(ClientState::Ready);
    wake(header.coordinator_pid.load(Relaxed));
    let result = job.run(&spec, slot);
    job.leave(slot);
    result
}

/// The work of one job.
struct Job<'a> {
    poll: Poll,
    events: Events,
    timer: Timer,
    shared: JobState<'a>,
    connections: Vec<Connection<'a>>,
    /// Connections that wait for a moment of the clock.
    due: BinaryHeap<Reverse<(i64, usize)>>,
    /// Connections that something has happened to.
    served: Vec<usize>,
    /// Those of them whose turn was over before all was read, or has not come: their next turn comes without a word.
    unread: Vec<usize>,
    /// Connections whose clients are over.
    disconnects: Disconnects,
    cancels: Cancels,
    /// When it was last told which connections are ready, by CLOCK_MONOTONIC.
    ready_ns: i64,
    /// When it last looked for the postmaster.
    looked_ns: i64,
    /// It has seen that the run has been stopped, and that nothing more is to be begun.
    has_stopped: bool,
    is_ending: bool,
    /// How late it came to them while measuring.
    lateness: Lateness,
    /// Clients that are not over.
    at_work: usize,
    /// Connections whose sessions have not ended.
    open: usize,
}

/// The timer's token; a connection's is its index.
const TIMER: Token = Token(usize::MAX);

impl<'a> Job<'a> {
    /// Opens the connections. `None` when the run was stopped meanwhile.
    ///
    /// # Errors
    /// Those of the first connection that cannot be had.
    fn connect(
        context: &'a WorkerContext,
        spec: &RunSpec,
        mut workload: ClientWorkload<'a>,
    ) -> Result<Option<Self>, UserError> {
        let segment = &context.segment;
        let header = segment.header();
        let routes = Route::of_run(spec, header.search_path.get().as_deref(), &secrets(header)?)?;
        let clients = segment.clients_of(context.index);
        // With those of the transactions before, which the server has not ended yet.
        check_open_files(clients.len() as u64 * (1 + u64::from(spec.options.reconnect)))?;
        let commands = segment.shape().commands as usize;
        let connections: Vec<Connection> = clients
            .enumerate()
            .map(|(place, number)| {
                let beginning = client::beginning(spec, number, &mut workload.symbols);
                let way = beginning.turns.and_then(|turns| turns.only).unwrap_or_default();
                Connection::new((number, place), segment.connection(number), way, beginning, commands)
            })
            .collect();
        let recorder = ClientCounters::new(segment, context.index, spec.options.latency_limit_ms);
        let poll = Poll::new().map_err(failed_to_wait)?;
        let timer = Timer::new().map_err(failed_to_wait)?;
        let registry = poll.registry();
        registry
            .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)
            .map_err(failed_to_wait)?;
        let closing = ClosingLinks::new(registry.try_clone().map_err(failed_to_wait)?);
        let cancels = Cancels::new(registry.try_clone().map_err(failed_to_wait)?);
        let mut job = Self {
            poll,
            events: Events::with_capacity(1024),
            timer,
            shared: JobState::new(segment, context.index, workload, recorder, closing, spec, routes),
            served: Vec::new(),
            unread: Vec::new(),
            disconnects: Disconnects::default(),
            cancels,
            ready_ns: 0,
            looked_ns: 0,
            has_stopped: false,
            is_ending: false,
            lateness: Lateness::default(),
            at_work: connections.len(),
            open: connections.len(),
            connections,
            due: BinaryHeap::new(),
        };
        match job.open_all() {
            Ok(true) => Ok(Some(job)),
            result => {
                // The server hears of it before the sockets are closed.
                job.connections.iter_mut().for_each(Connection::take_leave);
                result.map(|_| None)
            }
        }
    }

    /// Waits until the server has ended the sessions of all connections that were closed meanwhile.
    fn see_off(&mut self) -> Result<(), UserError> {
        let until_ns = now_ns() + DISCONNECT_NS;
        while self.shared.closing.reap() > 0 && now_ns() < until_ns && !termination_requested() {
            self.wait(GATE)?;
        }
        Ok(())
    }

    /// Runs the clients until all are over.
    fn run(&mut self, spec: &RunSpec, slot: &ClientSlot) -> Result<(), UserError> {
        while self.shared.header.gate.load(Acquire) == 0 {
            if self.is_stopped() {
                return Ok(());
            }
            self.wait(GATE)?;
            for place in 0..self.served.len() {
                self.turn(place)?;
            }
        }
        self.shared.recorder.begin();
        for index in 0..self.connections.len() {
            if let Some(beginning) = self.connections[index].take_beginning() {
                let client = client::start(spec, &self.shared.workload, beginning, self.shared.header);
                let next = self.connections[index].begin(client, &mut self.shared);
                self.note(index, next);
            }
        }
        let mut disconnect_ns = i64::MAX;
        while self.open > 0 && !termination_requested() && (self.at_work > 0 || now_ns() < disconnect_ns) {
            self.wait(LOOK)?;
            self.serve()?;
            if !self.has_stopped && self.is_stopped() {
                self.has_stopped = true;
                self.stop_connecting();
            }
            if self.shared.header.cancels.load(Relaxed) != 0 {
                self.cancels.begin(self.connections.len());
            }
            self.cancels.go_on(&self.connections, &self.shared);
            self.wake_those_due(self.has_stopped);
            while let Some(index) = self.disconnects.next() {
                self.connections[index].take_leave();
            }
            if self.at_work == 0 {
                self.tell_unended(slot);
                if disconnect_ns == i64::MAX {
                    disconnect_ns = now_ns() + DISCONNECT_NS + DISCONNECT_EACH_NS * self.open as i64;
                    self.tell_backlog(spec);
                    slot.tell_lateness(&self.lateness);
                    tell_end(slot);
                    wake(self.shared.header.coordinator_pid.load(Relaxed));
                }
            }
        }
        (self.has_stopped, self.is_ending) = (true, true);
        if self.shared.routes[0].is_remote {
            self.cancel_statements()?;
        }
        if disconnect_ns == i64::MAX {
            self.tell_backlog(spec);
        }
        self.see_off()
    }

    /// Serves the connections that are ready. The clock is read as each transaction ends, so that it tells when the next
    /// connection's turn has come.
    fn serve(&mut self) -> Result<(), UserError> {
        let is_measured = !self.served.is_empty() && self.shared.recorder.is_measured(self.ready_ns);
        for place in 0..self.served.len() {
            if is_measured {
                self.lateness.serve(self.ready_ns, self.shared.recorder.read_ns());
            }
            if let Some(next) = self.turn(place)? {
                self.note(self.served[place], next);
            }
        }
        if is_measured {
            self.lateness.end_round(self.ready_ns, self.shared.recorder.read_ns());
        }
        Ok(())
    }

    /// Serves the connection at this place of those that are ready. `None`: a stop that was not seen yet comes first, or the
    /// end of this process, and its turn comes then.
    fn turn(&mut self, place: usize) -> Result<Option<Next>, UserError> {
        let index = self.served[place];
        let must_look =
            (termination_requested() && !self.is_ending) || (self.is_stopped() && !self.has_stopped);
        if must_look {
            self.unread.push(index);
            return Ok(None);
        }
        let next = self.connections[index].serve(&mut self.shared)?;
        if self.connections[index].has_more() {
            self.unread.push(index);
        }
        Ok(Some(next))
    }

    /// Tells what of the run's transactions came too late.
    fn tell_backlog(&self, spec: &RunSpec) {
        if let Extent::Secs(_) = spec.options.extent {
            let end_ns = self.shared.recorder.end_ns();
            let backlog = self.connections.iter().map(|connection| connection.backlog(end_ns)).sum();
            self.shared.recorder.backlog(backlog);
        }
    }

    /// Tells how many sessions the server has not ended.
    fn tell_unended(&mut self, slot: &ClientSlot) {
        let closing = self.shared.closing.reap();
        slot.unended.store((self.open + closing) as u32, Relaxed);
    }

    /// Waits until something has happened, at most so long; `served` are the connections that it has happened to, and those
    /// that have not read all.
    fn wait(&mut self, longest: Duration) -> Result<(), UserError> {
        self.served.clear();
        self.served.append(&mut self.unread);
        let longest = if self.served.is_empty() { longest } else { Duration::ZERO };
        let until_ns = self.due.peek().map_or(i64::MAX, |Reverse((until_ns, _))| *until_ns);
        self.timer.set(until_ns).map_err(failed_to_wait)?;
        let polled = self.poll.poll(&mut self.events, Some(longest));
        self.ready_ns = now_ns();
        match polled {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(failed_to_wait(error)),
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        // With the postmaster the backends end, and so the connections: a job in which nothing happens has to look, and so
        // has one to which somebody else sends without end.
        if self.events.is_empty() || self.ready_ns - self.looked_ns > LOOK_NS {
            self.looked_ns = self.ready_ns;
            wait_for_latch(0, pg_sys::PG_WAIT_EXTENSION);
        }
        for event in &self.events {
            match event.token() {
                TIMER => self.timer.acknowledge(),
                TOKEN => {}
                Token(index) => {
                    if event.is_read_closed() {
                        self.connections[index].closed();
                    }
                    self.served.push(index);
                }
            }
        }
        Ok(())
    }

    /// Wakes the connections whose moment has come; with `all`, those too that wait for another one, because the run has
    /// been stopped.
    fn wake_those_due(&mut self, all: bool) {
        if self.due.is_empty() {
            return;
        }
        let now = now_ns();
        while let Some(&Reverse((until_ns, index))) = self.due.peek() {
            let has_come = until_ns <= now;
            if !has_come && !all {
                return;
            }
            self.due.pop();
            let next = self.connections[index].wake(until_ns, has_come, &mut self.shared);
            self.note(index, next);
        }
    }

    /// Opens all connections and waits until they stand at the gate; false when the run was stopped before.
    fn open_all(&mut self) -> Result<bool, UserError> {
        let (mut begun, mut at_gate) = (0, 0);
        let mut again_ns = 0;
        let timeout_ns = self.shared.routes[0].timeout_ns();
        let mut progress_ns = now_ns();
        while at_gate < self.connections.len() {
            if self.is_stopped() {
                return Ok(false);
            }
            while begun < self.connections.len() && begun - at_gate < OPENED_AT_ONCE && now_ns() >= again_ns {
                if !self.open(begun)? {
                    again_ns = now_ns() + AGAIN_NS;
                    break;
                }
                begun += 1;
            }
            self.wait(GATE)?;
            for place in 0..self.served.len() {
                if let Some(Next::Gate) = self.turn(place)? {
                    at_gate += 1;
                    progress_ns = now_ns();
                }
            }
            if timeout_ns.is_some_and(|timeout_ns| now_ns() - progress_ns > timeout_ns) {
                return Err(connection::failed(&self.shared.routes[0].to, "timeout expired"));
            }
        }
        Ok(true)
    }

    /// Begins to open a connection; false where there is no room for it in the server's queue.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn open(&mut self, index: usize) -> Result<bool, UserError> {
        let Some(mut link) = Link::connect(self.connections[index].route(&self.shared))? else {
            return Ok(false);
        };
        link.register(self.poll.registry(), Token(index)).map_err(failed_to_wait)?;
        self.connections[index].start(link);
        Ok(true)
    }

    /// Opens a connection for a client's next transaction. While as many as the job has clients are still to be ended by
    /// the server, there is no room for another one.
    fn open_anew(&mut self, index: usize) -> Next {
        let has_room = self.shared.closing.reap() <= self.connections.len();
        let opened = if has_room { self.open(index) } else { Ok(false) };
        let connection = &mut self.connections[index];
        match opened {
            Ok(true) => connection.await_server(&mut self.shared),
            Ok(false) => connection.connect_later(&mut self.shared),
            Err(error) => connection.refused(error, &mut self.shared),
        }
    }

    /// The run has been stopped: connections that are being opened are given up.
    fn stop_connecting(&mut self) {
        for index in 0..self.connections.len() {
            let next = self.connections[index].stop_connecting(&mut self.shared);
            self.note(index, next);
        }
    }

    /// Notes what a connection waits for.
    fn note(&mut self, index: usize, next: Next) {
        match next {
            Next::Clock(until_ns) => self.due.push(Reverse((until_ns, index))),
            Next::Connect => {
                let next = self.open_anew(index);
                self.note(index, next);
            }
            Next::Disconnect => {
                self.at_work -= 1;
                self.disconnects.add(index);
            }
            Next::Over { at_once } => {
                self.at_work -= usize::from(at_once);
                self.open -= 1;
                self.disconnects.ended(index);
            }
            Next::Server | Next::Gate => {}
        }
    }

    /// Has another server cancel the statements that are still under way: here, the coordinator does it by a signal.
    fn cancel_statements(&mut self) -> Result<(), UserError> {
        self.cancels.begin(self.connections.len());
        self.cancels.go_on(&self.connections, &self.shared);
        while self.at_work > 0 && !self.cancels.are_over() {
            self.wait(GATE)?;
            self.serve()?;
            self.cancels.go_on(&self.connections, &self.shared);
        }
        Ok(())
    }

    /// Tells what is known when all sessions have ended, or are waited for no longer.
    fn leave(&mut self, slot: &ClientSlot) {
        self.tell_unended(slot);
        slot.tell_lateness(&self.lateness);
        if slot.ended_ns.load(Relaxed) == 0 {
            tell_end(slot);
        }
    }

    fn is_stopped(&self) -> bool {
        termination_requested() || self.shared.header.stop() != StopReason::None
    }
}

/// The clients are over: what comes after that is not the run's.
fn tell_end(slot: &ClientSlot) {
    slot.cpu_ns.store(own_cpu_ns(), Relaxed);
    slot.switches.store(own_switches(), Relaxed);
    slot.ended_ns.store(now_ns(), Release);
}

fn failed_to_wait(error: io::Error) -> UserError {
    UserError::new(sqlstate::INTERNAL_ERROR, format!("could not wait for connections: {error}"))
}

/// Raises the limit as far as it may be raised.
///
/// # Errors
/// 53000 where a process may not have so many connections.
fn check_open_files(connections: u64) -> Result<(), UserError> {
    let limit = raise_open_files();
    if connections + OTHER_FILES <= limit {
        return Ok(());
    }
    let message = format!("a job cannot have {connections} connections");
    Err(UserError::new(sqlstate::INSUFFICIENT_RESOURCES, message)
        .detail(format!("The server's processes may have {limit} files open (RLIMIT_NOFILE)."))
        .hint("Use more jobs, or raise the limit for the server (ulimit -Hn, LimitNOFILE of systemd)."))
}

// Requests to another server to cancel statements. Each is a process that the server starts: some are under way at a
// time, and the job serves its connections meanwhile.

/// Requests of a job that may be under way at a time.
const AT_ONCE: usize = 32;

/// How long all of them may take.
const LONGEST_NS: i64 = 2_000_000_000;

/// The token of the requests' sockets.
const TOKEN: Token = Token(usize::MAX - 1);

/// The requests of a job.
pub struct Cancels {
    registry: Registry,
    /// Connections whose statements are still to be canceled, by their places in the job.
    waiting: VecDeque<usize>,
    under_way: Vec<CancelRequest>,
    /// When those that are left are given up; `None` before they are asked for.
    until_ns: Option<i64>,
}

impl Cancels {
    /// None yet; their sockets will be part of this poll.
    pub fn new(registry: Registry) -> Self {
        Self { registry, waiting: VecDeque::new(), under_way: Vec::new(), until_ns: None }
    }

    /// Asks for the statements of so many connections to be canceled, once.
    pub fn begin(&mut self, connections: usize) {
        if self.until_ns.is_none() {
            self.until_ns = Some(now_ns() + LONGEST_NS);
            self.waiting = (0..connections).collect();
        }
    }

    /// Sends requests for those that still have a statement under way, as many as there may be at a time.
    pub fn go_on(&mut self, connections: &[Connection], shared: &JobState) {
        self.under_way.retain_mut(|request| !request.is_over());
        while self.under_way.len() < AT_ONCE
            && let Some(connection) = self.waiting.front().and_then(|&index| connections.get(index))
        {
            if let Some(backend) = connection.backend_at_work() {
                let route = connection.route(shared);
                match CancelRequest::begin(route, backend, &self.registry, TOKEN) {
                    Ok(Some(request)) => self.under_way.push(request),
                    // The server's queue is full.
                    Ok(None) => return,
                    // A server that takes no connection cannot be asked.
                    Err(_) => {}
                }
            }
            self.waiting.pop_front();
        }
    }

    /// Whether nothing is left to be sent or waited for.
    pub fn are_over(&self) -> bool {
        (self.waiting.is_empty() && self.under_way.is_empty())
            || self.until_ns.is_some_and(|until_ns| now_ns() >= until_ns)
    }
}
