//! A link: the session of a run that serves one node of a Citus cluster.
//!
//! It requests the node's part of the run, sends the start time, polls the progress, and fetches the results, all by
//! short queries over one connection as the calling role. If a query is never answered, only this process hangs: the
//! coordinator abandons it.

mod requests;

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::{ClockOffset, NodeSpec};
use bench_model::part::PartState;
use bench_model::spec::{Extent, RunSpec};
use pgrx::pg_sys;

use crate::cluster::sessions::{Sessions, directions};
use crate::error::internal;
use crate::server::background_worker::{self, Worker, WorkerKind};
use crate::server::process::{my_pid, nap, now_ns, wake};
use crate::server::signals::{OnTerminate, termination_requested};
use crate::server::transaction::transaction;
use crate::shm::{LinkState, NodeCell, ProgressFigures, Segment, StopReason, is_under_way};
use crate::store;
use crate::worker::{WorkerContext, attach, isolate_session};

/// The kind of worker that a link is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_link_main",
    title: c"pgbench_ext link",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// How long a node has for an answer.
const ANSWER_MS: i32 = 5_000;

/// How long a node has to start its part, for which it reads the rows of feeders.
pub const START_MS: i32 = 30_000;

/// How long a node has for a part of what it has measured, and this one to write it.
const FETCH_MS: i32 = 30_000;

/// How often a part is asked how far it is when there is nothing to wait for, and when there is.
const ASK_EVERY_NS: i64 = 2_000_000_000;
const ASK_SOON_NS: i64 = 100_000_000;

/// After so long without an answer a node counts as lost.
pub const LOST_NS: i64 = 10_000_000_000;

/// The longest that a link is silent while it takes over what its node has measured.
const FETCH_NS: i64 = 2 * FETCH_MS as i64 * 1_000_000;

/// The server's entry into a link.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_link_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::Flag) else { return };
    let cell = context.segment.node(context.index);
    cell.heard_ns.store(now_ns(), Relaxed);
    cell.pid.store(my_pid(), Release);
    if let Err(error) = isolate_session(KIND.title).and_then(|()| look_after(&context, cell)) {
        cell.fail(&error);
    }
    wake(context.segment.header().coordinator_pid.load(Relaxed));
}

fn look_after(context: &WorkerContext, cell: &NodeCell) -> Result<(), UserError> {
    let spec: RunSpec = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let cluster = spec.cluster.as_ref().ok_or_else(|| internal("a link without a cluster"))?;
    let node = &cluster.nodes[context.index as usize];
    let sessions = transaction(|| {
        let others: &[NodeSpec] = if node.is_local { &[] } else { std::slice::from_ref(node) };
        let ways = store::as_owner(|| directions(others, &spec.role, &spec.database))?;
        Sessions::new(others, &ways)
    })?;
    let mut link =
        NodeLink { context, cell, spec: &spec, node, sessions: RefCell::new(sessions), part: None };
    let is_served = spec.is_of_several_nodes() && node.clients > 0;
    let result = if is_served { link.attend() } else { link.observe() };
    // A node that does not answer is not asked again; and what a part has measured and could not be fetched stays there.
    if result.is_err() && cell.state() < LinkState::Over && now_ns() - cell.heard_ns.load(Relaxed) < LOST_NS {
        link.abandon();
    }
    result
}

struct NodeLink<'a> {
    context: &'a WorkerContext,
    cell: &'a NodeCell,
    spec: &'a RunSpec,
    node: &'a NodeSpec,
    /// The connection for all that the node is asked; none where it is this one.
    sessions: RefCell<Sessions>,
    /// The run's id on the node.
    part: Option<i64>,
}

impl NodeLink<'_> {
    /// Of a node that only serves others' statements: its state before and after.
    fn observe(&mut self) -> Result<(), UserError> {
        self.compare_clocks()?;
        let before = self.state()?;
        if self.context.segment.header().gate.load(Acquire) != 0 {
            let message = format!("node {} answered after the run had started", self.node.name());
            return Err(UserError::new(sqlstate::CONNECTION_FAILURE, message));
        }
        self.cell.before.set(&before);
        self.advance(LinkState::Ready);
        self.await_collection();
        self.cell.after.set(&self.settled_state()?);
        self.advance(LinkState::Done);
        Ok(())
    }

    /// Of a node with clients.
    fn attend(&mut self) -> Result<(), UserError> {
        let clock = self.compare_clocks()?;
        self.start_part()?;
        self.await_readiness()?;
        self.cell.before.set(&self.state()?);
        self.advance(LinkState::Ready);
        if self.let_loose(clock)? {
            self.advance(LinkState::Running);
        }
        self.follow(clock)?;
        self.advance(LinkState::Over);
        self.await_collection();
        self.cell.after.set(&self.settled_state()?);
        self.fetch()?;
        // The coordinator ends links only when it waits for them no more.
        if termination_requested() {
            return Err(UserError::new(
                sqlstate::ADMIN_SHUTDOWN,
                format!("the link to node {} was terminated by an administrator's command", self.node.name()),
            ));
        }
        self.advance(LinkState::Done);
        Ok(())
    }

    fn advance(&self, state: LinkState) {
        self.cell.set_state(state);
        wake(self.context.segment.header().coordinator_pid.load(Relaxed));
    }

    /// Whether the run is to end early, or its coordinator is gone.
    fn is_to_stop(&self) -> bool {
        self.context.segment.header().stop() != StopReason::None
            || termination_requested()
            || !is_under_way(&self.context.segment)
    }

    fn await_readiness(&self) -> Result<(), UserError> {
        loop {
            let state = self.part_state(false)?;
            if state.is_ready {
                return Ok(());
            }
            if state.status.is_some() {
                return Err(self.part_error(state));
            }
            if self.is_to_stop() {
                return Err(UserError::new(sqlstate::QUERY_CANCELED, "stopped before it started"));
            }
            nap(50);
        }
    }

    /// Stops a part that is not going to be fetched, and leaves nothing of it. Where it does not hear of this, it ends when
    /// it has heard of nobody for a while.
    fn abandon(&self) {
        const LOOKS: usize = 30;
        for _ in 0..LOOKS {
            match self.part_state(true) {
                Ok(PartState { status: None, .. }) if self.part.is_some() => nap(100),
                Ok(_) => break,
                Err(_) => return,
            }
        }
        if let Some(part) = self.part {
            let _ = self.ask_within(ANSWER_MS, &format!("bench_internal.drop_part({part})"));
        }
    }

    /// Waits for the word that all are ready, and passes it on; false when the run is stopped before.
    fn let_loose(&self, clock: ClockOffset) -> Result<bool, UserError> {
        let header = self.context.segment.header();
        let mut asked_ns = now_ns();
        let begins_us = loop {
            let begins_us = header.begins_us.load(Acquire);
            if begins_us != 0 {
                break begins_us;
            }
            if self.is_to_stop() {
                return Ok(false);
            }
            // So that neither side takes the other for lost.
            if now_ns() - asked_ns >= ASK_EVERY_NS {
                asked_ns = now_ns();
                self.part_state(false)?;
            }
            nap(50);
        };
        let there_us = begins_us + clock.offset_us as i64;
        let part = self.part.unwrap_or_default();
        if self.ask(&format!("bench_internal.begin_part({part}, {there_us})"))? {
            return Ok(true);
        }
        Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("node {} received the start time too late", self.node.name()),
        )
        .hint("The node or the network was too slow: run again."))
    }

    /// Hears how far the part is until it has ended.
    fn follow(&self, clock: ClockOffset) -> Result<(), UserError> {
        let header = self.context.segment.header();
        let mut asked_ns = 0;
        let mut told = false;
        let mut sampled_secs = 0.0;
        loop {
            let stop = self.is_to_stop();
            let end_ns = header.timeline.measure_end_ns.load(Relaxed);
            let is_near = stop || (matches!(self.spec.options.extent, Extent::Secs(_)) && now_ns() > end_ns);
            let every_ns = if is_near { ASK_SOON_NS } else { ASK_EVERY_NS };
            if (stop && !told) || now_ns() - asked_ns >= every_ns {
                asked_ns = now_ns();
                match self.part_state(stop) {
                    Ok(state) => {
                        told = stop;
                        self.show(&state, clock);
                        if let Some(status) = state.status {
                            // Nobody has a use for what the others go on to measure without it.
                            if status != "completed" && !is_near {
                                self.cell.ended_early.store(1, Relaxed);
                                header.request_stop(StopReason::Abandoned);
                            }
                            return Ok(());
                        }
                        // At the end they come with all the rest.
                        if !is_near && let Err(error) = self.take_samples(&mut sampled_secs) {
                            self.check_lost(error)?;
                        }
                    }
                    Err(error) => self.check_lost(error)?,
                }
            }
            nap(50);
        }
    }

    fn show(&self, state: &PartState, clock: ClockOffset) {
        let progress = &self.cell.progress;
        progress.set_figures(ProgressFigures {
            elapsed_secs: state.elapsed_secs,
            tps: state.tps,
            latency_avg_ms: state.latency_avg_ms,
            latency_stddev_ms: state.latency_stddev_ms,
            lag_avg_ms: state.lag_avg_ms,
        });
        progress.in_warmup.store(state.in_warmup.into(), Relaxed);
        progress.transactions.set(state.transactions);
        progress.failed.set(state.failed);
        progress.aborted.set(state.aborted);
        progress.skipped.set(state.skipped);
        progress.clients.store(state.clients, Relaxed);
        progress.samples.store(state.samples, Release);
        if let Some(began_us) = state.began_us {
            self.cell.began_us.store(began_us - clock.offset_us as i64, Relaxed);
        }
    }

    /// Waits until all nodes have ended, meanwhile showing that this link is alive.
    fn await_collection(&self) {
        let header = self.context.segment.header();
        while header.collects.load(Acquire) == 0
            && !termination_requested()
            && is_under_way(&self.context.segment)
        {
            nap(100);
        }
    }
}

// The links of a run, from the coordinator's side.

/// One link for each node of the cluster.
pub struct Links<'a> {
    segment: &'a Segment,
    nodes: &'a [NodeSpec],
    /// Whether clients run on several nodes.
    several: bool,
    workers: Vec<Worker>,
    /// How long a link that has not ended may be silent.
    silence_limit_ns: Cell<i64>,
    /// When the links were looked at last, and since when they have been without a long break.
    looked_ns: Cell<i64>,
    awake_ns: Cell<i64>,
    /// Since when they are to hand over what was measured; the end of time before that.
    collecting_since_ns: Cell<i64>,
}

impl<'a> Links<'a> {
    /// Launches them; none for a run that has nothing to do with Citus.
    ///
    /// # Errors
    /// 53400 when the worker slots run out.
    pub fn launch(segment: &'a Segment, spec: &'a RunSpec) -> Result<Self, UserError> {
        let nodes = spec.cluster.as_ref().map_or(&[][..], |cluster| &cluster.nodes);
        let several = spec.is_of_several_nodes();
        let mut links = Self {
            segment,
            nodes,
            several,
            workers: Vec::new(),
            silence_limit_ns: Cell::new(SILENT_NS),
            looked_ns: Cell::new(0),
            awake_ns: Cell::new(0),
            collecting_since_ns: Cell::new(i64::MAX),
        };
        for index in 0..nodes.len() as u32 {
            match Worker::register(KIND, segment.handle(), index, spec.database_oid, spec.role_oid) {
                Some(worker) => links.workers.push(worker),
                None => {
                    links.terminate();
                    return Err(background_worker::no_slots(nodes.len() as u64 + 1, KIND.noun));
                }
            }
        }
        Ok(links)
    }

    /// Whether the node's clients are its link's business, and not those of the coordinator.
    fn is_served(&self, node: &NodeSpec) -> bool {
        self.several && node.clients > 0
    }

    /// Nodes and their cells.
    pub fn iter(&self) -> impl Iterator<Item = (&'a NodeSpec, &'a NodeCell)> {
        let segment = self.segment;
        self.nodes.iter().zip(segment.nodes())
    }

    /// What is known of each node that is lost.
    fn losses(&self) -> impl Iterator<Item = Option<UserError>> {
        let now = now_ns();
        // A coordinator that was kept from looking takes its own silence for nobody else's.
        if now - self.looked_ns.replace(now) > ASLEEP_NS {
            self.awake_ns.set(now);
        }
        self.iter().zip(&self.workers).map(move |((node, cell), worker)| {
            // A worker that ends has written its state first.
            let stopped = worker.has_stopped();
            match cell.state() {
                LinkState::Failed => {
                    Some(cell.failure().unwrap_or_else(|| lost(node, "the link to it failed")))
                }
                LinkState::Done => None,
                _ if stopped => Some(lost(node, "the link to it ended unexpectedly")),
                // Until it is to hand over what its node has measured it has nothing to say.
                LinkState::Over if self.collecting_since_ns.get() == i64::MAX => None,
                LinkState::Over => {
                    let heard_ns = cell.heard_ns.load(Acquire).max(self.collecting_since_ns.get());
                    let is_silent = now - heard_ns.max(self.awake_ns.get()) > FETCH_NS + ASLEEP_NS;
                    is_silent.then(|| unfetched(node))
                }
                // One that only watches says nothing for as long as the run lasts.
                LinkState::Ready if !self.is_served(node) => None,
                _ => {
                    let heard_ns = cell.heard_ns.load(Acquire);
                    let silence_limit_ns = match (self.silence_limit_ns.get(), cell.state()) {
                        (SILENT_NS, state) if state < LinkState::Ready => START_NS,
                        (silence_limit_ns, _) => silence_limit_ns,
                    };
                    let is_silent =
                        heard_ns != 0 && now - heard_ns.max(self.awake_ns.get()) > silence_limit_ns;
                    is_silent.then(|| lost(node, "no answer"))
                }
            }
        })
    }

    /// What is known of the first node that is lost.
    pub fn loss(&self) -> Option<UserError> {
        self.losses().flatten().next()
    }

    /// Whether every node with clients is this far, or is lost.
    pub fn are(&self, state: LinkState) -> bool {
        self.iter().zip(self.losses()).all(|((node, cell), loss)| {
            loss.is_some() || cell.state() >= state || (!self.is_served(node) && state < LinkState::Done)
        })
    }

    /// Waits for less long from now on: whoever is there has something to say after a stop.
    pub fn hurry(&self) {
        self.silence_limit_ns.set(HURRY_NS);
    }

    /// Waits until they are.
    pub fn wait(&self, state: LinkState, limit_ns: i64) {
        let began_ns = now_ns();
        let mut until_ns = began_ns + limit_ns;
        while now_ns() < until_ns && !self.are(state) {
            if termination_requested() {
                until_ns = until_ns.min(began_ns + LEAVE_NS);
            }
            nap(20);
        }
    }

    /// Waits until every node's state is read, or will not be.
    pub fn wait_for_readings(&self, limit_ns: i64) {
        let until_ns = now_ns() + limit_ns;
        let is_stopped = || self.segment.header().stop() != StopReason::None;
        while now_ns() < until_ns
            && !is_stopped()
            && self.iter().any(|(_, cell)| cell.state() < LinkState::Ready)
        {
            nap(20);
        }
    }

    /// Has the nodes' state read once more, and what they have measured fetched.
    ///
    /// # Errors
    /// What is known of a node of which this was not possible.
    pub fn collect(&self, limit_ns: i64) -> Result<(), UserError> {
        self.collecting_since_ns.set(now_ns());
        self.segment.header().collects.store(1, Release);
        self.wake();
        self.wait(LinkState::Done, limit_ns);
        self.terminate();
        let rest = || {
            let node = self.iter().find(|(_, cell)| cell.state() < LinkState::Done)?.0;
            Some(unfetched(node))
        };
        self.loss().or_else(rest).map_or(Ok(()), Err)
    }

    /// Wakes all links.
    pub fn wake(&self) {
        self.segment.nodes().for_each(|cell| wake(cell.pid.load(Relaxed)));
    }

    /// Ends those that have not ended. One that hangs in the server's own code ends when it can.
    pub fn terminate(&self) {
        self.workers.iter().for_each(Worker::terminate);
    }
}

/// A link tells of its node's silence itself, unless it hangs in a question.
const SILENT_NS: i64 = LOST_NS + 5_000_000_000;

/// While its part is being started, for which the node reads the rows of feeders.
const START_NS: i64 = START_MS as i64 * 1_000_000 + 5_000_000_000;

/// How long nodes have when the server wants this process gone.
const LEAVE_NS: i64 = 3_000_000_000;

/// Longer than the coordinator's breaks between two looks.
const ASLEEP_NS: i64 = 2_000_000_000;

/// How long a link may be silent after a stop; longer than a link is silent between two questions.
const HURRY_NS: i64 = 3_000_000_000;

fn unfetched(node: &NodeSpec) -> UserError {
    lost(node, "its results could not be fetched").hint(
        "When the node is available again, fetch them with bench.fetch(run_id), as the role of the run.",
    )
}

fn lost(node: &NodeSpec, why: &str) -> UserError {
    UserError::new(sqlstate::CONNECTION_FAILURE, format!("node {} is lost: {why}", node.name()))
        .hint("See the server logs of both nodes.")
}
