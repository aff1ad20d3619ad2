//! A link: the session of a run that serves one node of a Citus cluster.
//!
//! It requests the node's part of the run, sends the start time, polls the progress, and fetches the results, all by
//! short queries over one connection as the calling role. If a query is never answered, only this process hangs: the
//! coordinator abandons it.

mod requests;

use std::cell::RefCell;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::{ClockOffset, NodeSpec};
use bench_model::part::PartState;
use bench_model::spec::{Extent, RunSpec};
use pgrx::pg_sys;

use crate::cluster::sessions::{Sessions, directions};
use crate::error::internal;
use crate::server::background_worker::WorkerKind;
use crate::server::process::{my_pid, nap, now_ns, wake};
use crate::server::signals::{OnTerminate, termination_requested};
use crate::server::transaction::transaction;
use crate::shm::{LinkState, NodeCell, ProgressFigures, StopReason, is_under_way};
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
pub const FETCH_NS: i64 = 2 * FETCH_MS as i64 * 1_000_000;

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
