//! A link: the session of a run that looks after one node of a Citus cluster.
//!
//! It asks the node for its part of the run, tells it when to begin, hears how far it is, and fetches what was measured,
//! all by short questions that Citus carries there in the name of the calling role. Where a question is never answered,
//! only this process is held up: the coordinator gives it up.

use std::sync::atomic::Ordering::*;

use bench_core::cluster::{
    ClockOffset, Exchange, NodeSpec, PartAnswer, PartOf, PartRequest, PartState, clock_offset,
};
use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{Extent, RunSpec};
use pgrx::pg_sys;
use serde::de::DeserializeOwned;

use super::time_limit::within;
use super::{
    OnTerminate, Post, is_under_way, my_pid, nap, now_ns, report_for_duty, termination_requested, wake,
};
use crate::catalog::{self, transaction};
use crate::error::internal;
use crate::integration::citus;
use crate::observe::node::NodeState;
use crate::settings::quote_literal;
use crate::shm::{LinkState, NodeCell, ProgressFigures, StopReason};

/// The kind of worker that a link is.
pub const KIND: super::Kind = super::Kind {
    entry: c"pgbench_ext_link_main",
    title: c"pgbench_ext link",
    noun: "client",
    returns_after_crash: false,
};

/// How long a node has for an answer, and for what it has measured.
const ANSWER_MS: i32 = 5_000;
const FETCH_MS: i32 = 120_000;

/// How often a part is asked how far it is when there is nothing to wait for, and when there is.
const ASK_EVERY_NS: i64 = 2_000_000_000;
const ASK_SOON_NS: i64 = 100_000_000;

/// After so long without an answer a node counts as lost.
pub const LOST_NS: i64 = 10_000_000_000;

/// Questions about the time: the more, the less the clocks' difference can be wrong by.
const EXCHANGES: usize = 5;

/// The server's entry into a link.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_link_main(segment: pg_sys::Datum) {
    let Some(post) = report_for_duty(segment, OnTerminate::Flag) else { return };
    let cell = post.segment.node(post.index);
    cell.heard_ns.store(now_ns(), Relaxed);
    cell.pid.store(my_pid(), Release);
    if let Err(error) = look_after(&post, cell) {
        cell.fail(&error);
    }
    wake(post.segment.header().coordinator_pid.load(Relaxed));
}

fn look_after(post: &Post, cell: &NodeCell) -> Result<(), UserError> {
    let spec: RunSpec = serde_json::from_str(post.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let cluster = spec.cluster.as_ref().ok_or_else(|| internal("a link without a cluster"))?;
    let node = &cluster.nodes[post.index as usize];
    let mut link = Link { post, cell, spec: &spec, node, part: None };
    let is_served = spec.is_of_several_nodes() && node.clients > 0;
    let result = if is_served { link.attend() } else { link.observe() };
    // A node that does not answer is not asked again.
    if result.is_err() && now_ns() - cell.heard_ns.load(Relaxed) < LOST_NS {
        link.abandon();
    }
    result
}

struct Link<'a> {
    post: &'a Post,
    cell: &'a NodeCell,
    spec: &'a RunSpec,
    node: &'a NodeSpec,
    /// The run's id on the node.
    part: Option<i64>,
}

impl Link<'_> {
    /// Of a node that only serves others' statements: its state before and after.
    fn observe(&mut self) -> Result<(), UserError> {
        self.compare_clocks()?;
        self.cell.before.set(&self.state()?);
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
        wake(self.post.segment.header().coordinator_pid.load(Relaxed));
    }

    /// Whether the run is to end early, or its coordinator is gone.
    fn is_to_stop(&self) -> bool {
        self.post.segment.header().stop() != StopReason::None
            || termination_requested()
            || !is_under_way(&self.post.segment)
    }

    /// Asks the node. This one is asked without a detour.
    fn ask_within(&self, limit_ms: i32, command: &str) -> Result<String, UserError> {
        let node = self.node;
        let answer = within(limit_ms, || {
            transaction(|| {
                let statement = format!("SELECT ({command})::pg_catalog.text");
                if node.is_local {
                    Ok(catalog::call::<String>(&statement, &[])?.unwrap_or_default())
                } else {
                    citus::ask(node, &statement)
                }
            })
        })?;
        self.cell.heard_ns.store(now_ns(), Release);
        Ok(answer)
    }

    fn ask<T: DeserializeOwned>(&self, command: &str) -> Result<T, UserError> {
        let answer = self.ask_within(ANSWER_MS, command)?;
        serde_json::from_str(&answer).map_err(|e| {
            UserError::new(sqlstate::CONNECTION_FAILURE, format!("node {}: {e}", self.node.name()))
        })
    }

    /// The node's state, as JSON.
    fn state(&self) -> Result<String, UserError> {
        let tables = self.spec.cluster.iter().flat_map(|cluster| &cluster.tables);
        let listed: Vec<String> = tables.map(|table| quote_literal(table)).collect();
        self.ask_within(
            ANSWER_MS,
            &format!("bench.node_state(ARRAY[{}]::pg_catalog.text[])", listed.join(", ")),
        )
    }

    /// The state at the end: processors at once, the rest when the sessions that served the clients have handed in their
    /// statistics, as they do when they end.
    fn settled_state(&self) -> Result<String, UserError> {
        const LOOKS: usize = 10;
        let read = || serde_json::from_str::<NodeState>(&self.state()?).map_err(|e| internal(e.to_string()));
        let first = read()?;
        let mut state = first.clone();
        for _ in 0..LOOKS {
            nap(200);
            let next = read()?;
            let is_settled =
                (next.inserted, next.updated, next.deleted) == (state.inserted, state.updated, state.deleted);
            state = next;
            if is_settled {
                break;
            }
        }
        serde_json::to_string(&NodeState { cpu: first.cpu, ..state }).map_err(|e| internal(e.to_string()))
    }

    fn compare_clocks(&self) -> Result<ClockOffset, UserError> {
        let mut exchanges = Vec::new();
        while !self.node.is_local && exchanges.len() < EXCHANGES {
            let sent_us = timestamp_us();
            let state: NodeState = self.ask("bench.node_state('{}')")?;
            let received_us = timestamp_us();
            let NodeState { began_us, answered_us, .. } = state;
            exchanges.push(Exchange { sent_us, began_us, answered_us, received_us });
        }
        let slowest = exchanges.iter().map(|e| e.received_us - e.sent_us).max();
        self.cell.slowest_us.store(slowest.unwrap_or_default(), Relaxed);
        let clock = clock_offset(&exchanges).unwrap_or(ClockOffset { offset_us: 0.0, error_us: 0.0 });
        self.cell.set_clock(clock);
        Ok(clock)
    }

    fn start_part(&mut self) -> Result<(), UserError> {
        let cluster = self.spec.cluster.as_ref();
        let asking = cluster.and_then(|cluster| cluster.nodes.iter().find(|node| node.is_local));
        let part_of = PartOf {
            node: asking.map_or(0, |node| node.node),
            name: asking.map(NodeSpec::name).unwrap_or_default(),
            run_id: self.post.segment.header().run_id.load(Relaxed),
        };
        let tables = transaction(|| {
            let of = |tables: &[u32]| {
                let tables: Vec<pg_sys::Oid> = tables.iter().map(|&table| table.into()).collect();
                catalog::names_of(&tables)
            };
            self.spec.fixtures.iter().map(|fixture| of(&fixture.tables)).collect::<Result<Vec<_>, _>>()
        })?;
        let mut spec = RunSpec { cluster: None, part_of: Some(part_of), ..self.spec.clone() };
        // Other random numbers on each node, and its share of the rate.
        spec.seed = spec.seed.wrapping_add(self.node.node.into());
        let served =
            cluster.map_or(1, |cluster| cluster.nodes.iter().filter(|node| node.clients > 0).count());
        spec.options.rate = spec.options.rate.map(|rate| rate / served as f64);
        let request =
            serde_json::to_string(&PartRequest { spec, tables }).map_err(|e| internal(e.to_string()))?;
        match self.ask(&format!("bench.start_part({}::pg_catalog.jsonb)", quote_literal(&request)))? {
            PartAnswer::RunId(run_id) => {
                self.part = Some(run_id);
                Ok(())
            }
            PartAnswer::Error(error) => {
                Err(UserError { message: format!("node {}: {}", self.node.name(), error.message), ..error })
            }
        }
    }

    fn part_state(&self, stop: bool) -> Result<PartState, UserError> {
        match self.part {
            Some(part) => self.ask(&format!("bench.part_state({part}, {stop})")),
            None => Ok(PartState::default()),
        }
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
                return Err(UserError::new(sqlstate::QUERY_CANCELED, "stopped before it began"));
            }
            nap(50);
        }
    }

    /// What kept a part from its end, with the node's name.
    fn part_error(&self, state: PartState) -> UserError {
        let error = state.error.and_then(|error| serde_json::from_value::<UserError>(error).ok());
        let error = error.unwrap_or_else(|| internal("its part of the run has ended unexpectedly"));
        UserError { message: format!("node {}: {}", self.node.name(), error.message), ..error }
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
            let _ = self.ask_within(ANSWER_MS, &format!("bench.drop_part({part})"));
        }
    }

    /// Waits for the word that all are ready, and passes it on; false when the run is stopped before.
    fn let_loose(&self, clock: ClockOffset) -> Result<bool, UserError> {
        let header = self.post.segment.header();
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
        if self.ask(&format!("bench.begin_part({part}, {there_us})"))? {
            return Ok(true);
        }
        Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("node {} was told to begin too late", self.node.name()),
        )
        .hint("It, or the way to it, was too slow; run again."))
    }

    /// Hears how far the part is until it has ended.
    fn follow(&self, clock: ClockOffset) -> Result<(), UserError> {
        let header = self.post.segment.header();
        let mut asked_ns = 0;
        let mut told = false;
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
                        if state.status.is_some() {
                            return Ok(());
                        }
                    }
                    Err(error) => self.check_lost(error)?,
                }
            }
            nap(50);
        }
    }

    /// # Errors
    /// What kept the node from answering, when it has not answered for long enough.
    fn check_lost(&self, error: UserError) -> Result<(), UserError> {
        let silent_ns = now_ns() - self.cell.heard_ns.load(Relaxed);
        if silent_ns < LOST_NS {
            return Ok(());
        }
        let secs = silent_ns / 1_000_000_000;
        let message = format!("node {} has not answered for {secs} s", self.node.name());
        Err(UserError::new(sqlstate::CONNECTION_FAILURE, message).detail(error.message))
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
        progress.skipped.set(state.skipped);
        progress.clients.store(state.clients, Relaxed);
        progress.samples.store(state.samples, Release);
        if let Some(began_us) = state.began_us {
            self.cell.began_us.store(began_us - clock.offset_us as i64, Relaxed);
        }
    }

    /// Waits until all nodes have ended, meanwhile showing that this link is alive.
    fn await_collection(&self) {
        let header = self.post.segment.header();
        while header.collects.load(Acquire) == 0
            && !termination_requested()
            && is_under_way(&self.post.segment)
        {
            nap(100);
        }
    }

    /// Takes over what the node has measured, which then is kept here only.
    fn fetch(&self) -> Result<(), UserError> {
        let part = self.part.unwrap_or_default();
        let document =
            self.ask_within(FETCH_MS, &format!("bench.export(ARRAY[{part}]::pg_catalog.int8[])"))?;
        let run_id = self.post.segment.header().run_id.load(Relaxed);
        transaction(|| catalog::take_part(run_id, self.node.node, &document))?;
        // Where that fails it stays there, marked as a part.
        let _ = self.ask_within(ANSWER_MS, &format!("bench.drop_part({part})"));
        Ok(())
    }
}

fn timestamp_us() -> i64 {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}
