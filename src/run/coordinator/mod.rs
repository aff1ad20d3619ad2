//! The coordinator, one background worker per run: it writes the run's row, launches the clients, opens the gate, writes a
//! sample for each interval, and writes the results.

pub mod close;
mod duel;
pub mod run_status;
pub mod sampler;
mod stop;

use std::sync::atomic::Ordering::*;

use bench_base::error::UserError;
use bench_model::spec::{Driver, Extent, RunOptions, RunSpec};
use bench_stats::until_steady::UntilSteady;
use pgrx::pg_sys;
use serde_json::Value;

use super::nodes::link::Links;
use super::nodes::node_coordinator;
use super::{before, client, connections};
use crate::cluster::citus;
use crate::driver::session::unsupported_settings;
use crate::error::internal;
use crate::observe::counters::{self, Counters, CountsById, TargetStatements};
use crate::observe::environment;
use crate::server::background_worker::WorkerKind;
use crate::server::process::{current_timestamp, my_pid, nap, now_ns, wake};
use crate::server::signals::OnTerminate;
use crate::server::transaction::transaction;
use crate::shm::{ClientSlot, ClientState, DetachCallback, RunState, Segment, StopReason, WarmupEnd, Work};
use crate::store::{self, recorder};
use crate::worker::{WorkerContext, attach, isolate_session, stop_reason, workers};
use duel::DuelWatch;
use run_status::timeline;
use sampler::{Sampler, TransactionLog, XidWatch};

/// The time between two searches for workers that ended without setting their state, per client: each check takes a lock.
const LOOK_FOR_LOST_NS: i64 = 100_000;

/// The sleep between two attempts to read an interval that clients without a processor may still count into.
const UNTIL_COMPLETE_MS: i64 = 2;

/// The time limit for links to read other nodes' state.
pub const LINKS_NS: i64 = 5_000_000_000;

/// The part of a duel's ramp in which each session executes only one arm.
const ALONE_NS: i64 = 300_000_000;

/// The ramp of a timed run, in which all clients wake: a fixed part, and a part per client.
const RAMP_NS: i64 = 10_000_000;
const RAMP_NS_PER_CLIENT: i64 = 500_000;

/// The kind of worker that a coordinator is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_coordinator_main",
    title: c"pgbench_ext coordinator",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// The server's entry into a coordinator.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_coordinator_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::Flag) else { return };
    let segment = &context.segment;
    let header = segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    // However this process ends, the clients end with it.
    segment.on_detach(&STOP_CLIENTS);
    if let Err(error) = isolate_session(KIND.title).and_then(|()| conduct(&context)) {
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

static STOP_CLIENTS: DetachCallback = DetachCallback(|segment| {
    let header = segment.header();
    header.timeline.measure_end_ns.store(0, Relaxed);
    header.request_stop(StopReason::Abandoned);
    header.secret.wipe();
    workers::terminate();
});

/// Conducts the run.
///
/// # Errors
/// Those that kept the run from being measured, or its results from being written.
fn conduct(context: &WorkerContext) -> Result<(), UserError> {
    let segment = &context.segment;
    let header = segment.header();
    let spec: RunSpec = serde_json::from_str(segment.spec()).map_err(|e| internal(e.to_string()))?;
    let run_id = recorder::begin(&spec, segment)?;
    segment.announce(Work::Run(run_id));
    if spec.is_of_several_nodes() {
        return node_coordinator::conduct(segment, &spec, run_id);
    }
    header.heard_ns.store(now_ns(), Relaxed);
    let mut run = RunUnderWay::new(segment, &spec, run_id);
    let result = run.start().and_then(|()| run.await_begin()).map(|begins_ns| run.measure(begins_ns));
    run.dismiss();
    let outcome = run.close(result.clone().err());
    result.and(outcome)
}

/// A run from its first worker to its last row.
pub struct RunUnderWay<'a> {
    pub segment: &'a Segment,
    pub spec: &'a RunSpec,
    pub run_id: i64,
    pub sampler: Sampler<'a>,
    /// The detector of steady throughput, during a warm-up without a given end.
    pub until_steady: Option<UntilSteady>,
    pub log: TransactionLog<'a>,
    pub duel: Option<DuelWatch>,
    pub before: Counters,
    /// The reading of the tables and indexes before the run.
    pub relations: Value,
    /// The next transaction id before the run, as a 64-bit number.
    pub next_xid: i64,
    /// The same id as an xid.
    pub horizon: String,
    xids: XidWatch,
    /// The error of the coordinator that ended the run early.
    pub cut_short: Option<UserError>,
    /// The error of writing samples or the log, which ended the run early.
    pub unwritten: Option<UserError>,
    pub query_ids: Vec<i64>,
    pub target_statements: TargetStatements,
    /// Statement counts of the targets before the run.
    pub target_counts: [Option<CountsById>; 2],
    /// When the stop was noticed, by CLOCK_MONOTONIC.
    pub stopped_at_ns: Option<i64>,
    /// The clients' statements have been canceled.
    pub canceled: bool,
    /// The clients' workers have been terminated.
    pub terminated: bool,
    /// The clients' connections to other nodes have been broken.
    pub severed: bool,
    /// Links to the nodes that serve the clients' statements.
    pub links: Option<Links<'a>>,
    /// The time of the last search for lost clients.
    looked_for_lost_ns: i64,
    /// Clients whose workers ended without setting their state, or did not end.
    pub lost: u32,
    /// The lost clients whose workers did not end, and these workers' processes.
    pub given_up: u32,
    pub stuck: Vec<i32>,
    pub measured: bool,
}

impl<'a> RunUnderWay<'a> {
    fn new(segment: &'a Segment, spec: &'a RunSpec, run_id: i64) -> Self {
        Self {
            segment,
            spec,
            run_id,
            sampler: Sampler::new(segment, spec, run_id),
            until_steady: until_steady(&spec.options),
            log: TransactionLog::new(segment, run_id),
            duel: DuelWatch::of(spec),
            before: Counters::default(),
            relations: counters::no_relations(),
            next_xid: 0,
            xids: XidWatch::default(),
            cut_short: None,
            unwritten: None,
            horizon: String::new(),
            query_ids: Vec::new(),
            target_statements: TargetStatements::default(),
            target_counts: [None, None],
            stopped_at_ns: None,
            canceled: false,
            terminated: false,
            severed: false,
            links: None,
            looked_for_lost_ns: 0,
            lost: 0,
            given_up: 0,
            stuck: Vec::new(),
            measured: false,
        }
    }

    /// Launches the clients' workers: jobs of the wire driver, or one session for each client, of its role.
    fn launch_clients(&self, kind: WorkerKind, slots: u32) -> Result<(), UserError> {
        let (handle, database) = (self.segment.handle(), self.spec.database_oid);
        if self.spec.options.driver == Driver::Wire {
            // Jobs share the connections, all of which are of one role.
            return workers::launch(kind, handle, slots, database, self.spec.role_oid);
        }
        let mut first = 0;
        for (role, count) in self.spec.sessions()? {
            workers::launch_more(kind, handle, first..first + count, database, role.oid)?;
            first += count;
        }
        Ok(())
    }

    /// Launches the clients and waits until all stand at the gate.
    fn start(&mut self) -> Result<(), UserError> {
        let part_of = self.spec.part_of.as_ref();
        before::prepare_run(self.segment, self.spec, |reason| run_status::stop_error(reason, part_of))?;
        let kind = match self.spec.options.driver {
            Driver::Engine => client::KIND,
            // The caller has checked the scripts on the target already.
            Driver::Wire if self.spec.target.is_some() => connections::job::KIND,
            Driver::Wire => {
                connections::script_check::examine(self.segment, self.spec, |reason| {
                    run_status::stop_error(reason, part_of)
                })?;
                connections::job::KIND
            }
        };
        let clients = self.segment.shape().slots;
        self.launch_clients(kind, clients)?;
        if self.spec.cluster.is_some() {
            self.links = Some(Links::launch(self.segment, self.spec)?);
        }
        // Clients before `next` are ready. A client that gets ready, or whose process begins, wakes this process.
        let mut next = 0;
        let mut looked_ns = 0;
        loop {
            while next < clients && self.segment.slot(next).state() == ClientState::Ready {
                next += 1;
            }
            let now = now_ns();
            if next == clients || now - looked_ns >= LOOK_FOR_LOST_NS * i64::from(clients) {
                looked_ns = now;
                if let Some(client) = (0..clients).find(|&c| self.failed_to_start(c)) {
                    return Err(run_status::start_error(self.segment, self.spec, client));
                }
            }
            if next == clients {
                break;
            }
            if let Some(reason) = self.stop_reason() {
                return Err(run_status::stop_error(reason, self.spec.part_of.as_ref()));
            }
            if let Some(part_of) = &self.spec.part_of {
                run_status::check_heard(self.segment.header(), part_of)?;
            }
            nap(100);
        }
        self.watch_target()?;
        // Every job has read it by now.
        self.segment.header().secret.wipe();
        if let Some(links) = &self.links {
            // A node without a reading is left out of the results; clients' statements may reach it nevertheless.
            links.wait_for_readings(LINKS_NS);
        }
        self.query_ids = counters::query_ids(self.segment);
        self.before = counters::read(self.spec, &self.query_ids)?;
        let header = self.segment.header();
        self.target_counts = self.target_statements.read(|| stop_reason(header).is_some());
        let read = counters::read_relations(&self.tables());
        self.relations = self.sampler.observer.tolerate(read).unwrap_or_else(counters::no_relations);
        let segment = self.segment;
        self.sampler.observer.prepare(now_ns(), || stop_reason(segment.header()).is_some());
        let header = self.segment.header();
        let unsupported = unsupported_settings::names(header.unsupported.load(Relaxed));
        let mut environment = match &self.spec.target {
            Some(target) => environment::of_target(target),
            None => environment::read(header.settings.get(), &unsupported),
        };
        environment.unlogged_tables = counters::unlogged(&self.tables()).unwrap_or_default();
        (self.next_xid, self.horizon) = transaction(store::next_transaction_ids)?;
        self.xids.check(header)?;
        recorder::running(self.run_id, &environment, self.before.at)
    }

    /// Starts observing the target, over a connection of its own.
    fn watch_target(&mut self) -> Result<(), UserError> {
        if self.spec.target.is_some() {
            let secrets = connections::secrets(self.segment.header())?;
            self.sampler.observer.watch(self.segment, self.spec, &secrets[0]);
            self.target_statements = TargetStatements::new(self.spec, &secrets);
        }
        Ok(())
    }

    /// In a part of another node's run, waits until that node has set the begin of the first interval, and until the ramp
    /// before it. Returns that begin.
    fn await_begin(&mut self) -> Result<Option<i64>, UserError> {
        let Some(part_of) = &self.spec.part_of else { return Ok(None) };
        let header = self.segment.header();
        header.is_ready.store(1, Release);
        loop {
            if let Some(reason) = self.stop_reason() {
                return Err(run_status::stop_error(reason, self.spec.part_of.as_ref()));
            }
            run_status::check_heard(header, part_of)?;
            match run_status::begins_ns(header) {
                None => nap(100),
                Some(begins_ns) => {
                    let wait_ns = begins_ns - self.ramp_ns() - now_ns();
                    if wait_ns <= 0 {
                        return Ok(Some(begins_ns));
                    }
                    nap((wait_ns / 1_000_000).clamp(1, 100));
                }
            }
        }
    }

    /// Returns the time between the opening of the gate and the first interval.
    fn ramp_ns(&self) -> i64 {
        // Rows of feeders that come only once must all be counted.
        if self.spec.feeders().any(|(_, feeder)| feeder.once) {
            return 0;
        }
        match self.spec.options.extent {
            // Time for every client to wake, so that the first interval has all of them.
            Extent::Secs(_) => {
                // Processor time can be read only of the engine's sessions.
                let is_alone = self.spec.options.duel.is_some() && self.spec.options.driver == Driver::Engine;
                let alone_ns = if is_alone { ALONE_NS } else { 0 };
                RAMP_NS + RAMP_NS_PER_CLIENT * i64::from(self.segment.clients()) + alone_ns
            }
            // Each transaction must be counted.
            Extent::Transactions(_) => 0,
        }
    }

    /// Returns the run's tables without distributed ones, of which this server's sizes and statistics mean nothing.
    pub fn tables(&self) -> Vec<pg_sys::Oid> {
        let tables: Vec<pg_sys::Oid> = self.spec.tables().map(pg_sys::Oid::from).collect();
        if self.spec.cluster.is_none() && self.spec.part_of.is_none() {
            return tables;
        }
        transaction(|| citus::local(&tables)).unwrap_or_default()
    }

    fn failed_to_start(&self, client: u32) -> bool {
        let slot = self.segment.slot(client);
        // The order matters: a worker sets its state before it ends.
        let stopped = workers::has_stopped(client);
        match slot.state() {
            ClientState::Aborted => true,
            ClientState::Starting => stopped,
            _ => false,
        }
    }

    /// Opens the gate and writes samples until the end. `begins_ns` is the begin of the first interval if another node has set
    /// it.
    fn measure(&mut self, begins_ns: Option<i64>) {
        let header = self.segment.header();
        let ramp_ns = self.ramp_ns();
        // Taken before the gate opens, so that clients that wake late leave no time out.
        let now = now_ns();
        let begins_ns = begins_ns.map_or(now + ramp_ns, |begins_ns| begins_ns.max(now));
        let timeline = timeline(&self.spec.options, begins_ns);
        header.timeline.store(&timeline);
        if self.until_steady.is_some() {
            header.set_warmup_end(WarmupEnd::Awaited);
        }
        let began = (now_ns(), current_timestamp());
        self.sampler.begin(timeline, began);
        self.log.begin(began);
        let mut observes = ramp_ns == 0;
        if observes {
            self.sampler.observe();
        }
        self.open_gate();
        loop {
            let now = now_ns();
            if self.all_over()
                || self.stop_reason().is_some()
                || header.ends_early.load(Relaxed) != 0
                || now >= self.sampler.timeline().measure_end_ns
            {
                return;
            }
            self.limit_warmup(now);
            if !observes && now >= timeline.warmup_start_ns {
                observes = true;
                self.sampler.observe();
                continue;
            }
            self.sampler.observer.look(now);
            if self.duel.as_mut().is_some_and(|duel| duel.look(self.segment, self.sampler.timeline(), now)) {
                return;
            }
            let lease =
                self.spec.part_of.as_ref().map_or(Ok(()), |part_of| run_status::check_heard(header, part_of));
            if let Err(error) = self.xids.check(header).and(lease) {
                self.cut_short = Some(error);
                return;
            }
            // The last interval is read when every client has ended.
            let end_ns = self.sampler.interval_end_ns();
            if end_ns < self.sampler.timeline().measure_end_ns && now >= end_ns {
                if !self.sampler.read_next() {
                    nap(UNTIL_COMPLETE_MS);
                    continue;
                }
                self.judge_warmup();
                // Read all intervals that are due before writing, which may wait for locks.
                if self.sampler.has_read_what_was_due()
                    && let Err(error) = self.sampler.write().and_then(|()| self.log.follow(true))
                {
                    // Measuring on is useless if results cannot be written. The rest is tried once more at the end.
                    self.unwritten = Some(error);
                    return;
                }
                continue;
            }
            let longest_ms = match self.log.follow(false) {
                Ok(more) if more => 0,
                Ok(_) if self.log.is_on() => 20,
                // The cap is for a stop without a set latch.
                Ok(_) => 200,
                Err(error) => {
                    self.unwritten = Some(error);
                    return;
                }
            };
            let begin_ns = if observes { i64::MAX } else { timeline.warmup_start_ns };
            let until_ns = begin_ns.min(self.next_look_ns());
            nap(((until_ns - now) / 1_000_000 + 1).clamp(0, longest_ms));
        }
    }

    fn open_gate(&mut self) {
        let header = self.segment.header();
        header.gate.store(1, Release);
        header.set_state(RunState::Running);
        for slot in self.segment.slots() {
            wake(slot.pid.load(Relaxed));
        }
        wake(header.caller_pid.load(Relaxed));
        self.measured = true;
    }

    /// Returns the time of the next interval, observation or batch.
    fn next_look_ns(&self) -> i64 {
        let batch_ns = self.duel.as_ref().map_or(i64::MAX, |duel| duel.next_ns(self.sampler.timeline()));
        self.sampler.interval_end_ns().min(self.sampler.observer.next_look_ns()).min(batch_ns)
    }

    /// Returns the reason to end the run early, if there is one.
    pub fn stop_reason(&self) -> Option<StopReason> {
        stop_reason(self.segment.header())
    }

    /// Whether every client has ended; counts those whose workers ended without setting their state.
    pub fn all_over(&mut self) -> bool {
        let clients = self.segment.shape().slots;
        let now = now_ns();
        if now - self.looked_for_lost_ns >= LOOK_FOR_LOST_NS * i64::from(clients) {
            self.looked_for_lost_ns = now;
            for client in 0..clients {
                let slot = self.segment.slot(client);
                // The state is read again after the process's end: a worker sets it before it ends.
                if !slot.is_over() && workers::has_stopped(client) && !slot.is_over() {
                    self.lost += self.segment.lose_clients(client, now);
                    self.segment.header().client_aborted();
                }
            }
        }
        self.segment.slots().all(ClientSlot::is_over)
    }
}

/// Returns the detector of steady throughput for a warm-up without a given end.
fn until_steady(options: &RunOptions) -> Option<UntilSteady> {
    // With a latency limit, late transactions are skipped, and no backlog grows.
    let watches_lag = options.rate.is_some() && options.latency_limit_ms.is_none();
    options.warmup_secs.is_none().then(|| UntilSteady::new(watches_lag))
}
