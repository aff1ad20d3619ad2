//! What a link asks its node.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::{ClockOffset, ClockReading, NodeSpec, PartOf, clock_offset};
use bench_model::part::{PartAnswer, PartRequest, PartState};
use bench_model::spec::RunSpec;
use pgrx::pg_sys;
use serde::de::DeserializeOwned;

use super::{ANSWER_MS, FETCH_MS, LOST_NS, NodeLink, START_MS};
use crate::cluster::citus;
use crate::error::internal;
use crate::observe::machine::NodeState;
use crate::server::process::{current_timestamp, nap, now_ns};
use crate::server::signals::within;
use crate::server::spi::{self, quote_literal};
use crate::server::transaction::transaction;
use crate::store;
use crate::store::extension_owner::with_lock_timeout;

/// Questions about the time: the more, the less the clocks' difference can be wrong by.
const EXCHANGES: usize = 20;

/// When the question arrived, and now, in seconds of the Unix epoch.
const CLOCK: &str = "pg_catalog.json_build_array( \
    pg_catalog.date_part('epoch', pg_catalog.statement_timestamp()), pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()))";

/// The begin of PostgreSQL's timestamps, in microseconds of the Unix epoch.
const EPOCH_US: i64 = 946_684_800_000_000;

impl NodeLink<'_> {
    /// Asks the node. This one is asked without a detour.
    pub(super) fn ask_within(&self, limit_ms: i32, command: &str) -> Result<String, UserError> {
        let statement = format!("SELECT ({command})::pg_catalog.text");
        let answer = if self.node.is_local {
            within(limit_ms, || {
                transaction(|| Ok(spi::call::<String>(&statement, &[])?.unwrap_or_default()))
            })?
        } else {
            self.ask_there(limit_ms, statement)?
        };
        self.cell.heard_ns.store(now_ns(), Release);
        Ok(answer)
    }

    fn ask_there(&self, limit_ms: i32, statement: String) -> Result<String, UserError> {
        let carry = |questions: &[(NodeSpec, String)]| {
            within(limit_ms, || transaction(AssertUnwindSafe(|| citus::ask_all(questions))))
        };
        let limit = Duration::from_millis(limit_ms.unsigned_abs().into());
        let answers = self.sessions.borrow_mut().ask(&[Some(statement)], limit, carry)?;
        answers.into_iter().next().flatten().unwrap_or_else(|| Err(internal("a node was not asked")))
    }

    pub(super) fn ask<T: DeserializeOwned>(&self, command: &str) -> Result<T, UserError> {
        self.answer(&self.ask_within(ANSWER_MS, command)?)
    }

    fn answer<T: DeserializeOwned>(&self, answer: &str) -> Result<T, UserError> {
        serde_json::from_str(answer).map_err(|e| {
            UserError::new(sqlstate::CONNECTION_FAILURE, format!("node {}: {e}", self.node.name()))
        })
    }

    /// The node's state, as JSON.
    pub(super) fn state(&self) -> Result<String, UserError> {
        let tables = self.spec.cluster.iter().flat_map(|cluster| &cluster.tables);
        let listed: Vec<String> = tables.map(|table| quote_literal(table)).collect();
        self.ask_within(
            ANSWER_MS,
            &format!("bench_internal.node_state(ARRAY[{}]::pg_catalog.text[])", listed.join(", ")),
        )
    }

    /// The state at the end: processors at once, the rest when the sessions that served the clients have handed in their
    /// statistics, as they do when they end.
    pub(super) fn settled_state(&self) -> Result<String, UserError> {
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

    pub(super) fn compare_clocks(&self) -> Result<ClockOffset, UserError> {
        let mut exchanges = Vec::new();
        while !self.node.is_local && exchanges.len() < EXCHANGES {
            let sent_us = current_timestamp();
            let [began_us, answered_us]: [f64; 2] = self.ask(CLOCK)?;
            let received_us = current_timestamp();
            let of_epoch = |secs: f64| (secs * 1e6) as i64 - EPOCH_US;
            exchanges.push(ClockReading {
                sent_us,
                began_us: of_epoch(began_us),
                answered_us: of_epoch(answered_us),
                received_us,
            });
        }
        let slowest = exchanges.iter().map(|e| e.received_us - e.sent_us).max();
        self.cell.slowest_us.store(slowest.unwrap_or_default(), Relaxed);
        let clock = clock_offset(&exchanges).unwrap_or(ClockOffset { offset_us: 0.0, error_us: 0.0 });
        self.cell.set_clock(clock);
        Ok(clock)
    }

    pub(super) fn start_part(&mut self) -> Result<(), UserError> {
        let cluster = self.spec.cluster.as_ref();
        let asking = cluster.and_then(|cluster| cluster.nodes.iter().find(|node| node.is_local));
        let served: Vec<i32> = cluster.map_or_else(Vec::new, |cluster| {
            cluster.nodes.iter().filter(|node| node.clients > 0).map(|node| node.node).collect()
        });
        let part_of = PartOf {
            place: served.iter().position(|node| *node == self.node.node).unwrap_or_default() as u32,
            places: served.len() as u32,
            node: asking.map_or(0, |node| node.node),
            name: asking.map(NodeSpec::name).unwrap_or_default(),
            run_id: self.context.segment.run_id(),
        };
        let (tables, kept) = transaction(|| {
            let of = |tables: &[u32]| {
                let tables: Vec<pg_sys::Oid> = tables.iter().map(|&table| table.into()).collect();
                store::names_of(&tables)
            };
            let fixtures = self.spec.fixtures.iter();
            let tables = fixtures.map(|fixture| of(&fixture.tables)).collect::<Result<Vec<_>, _>>()?;
            let mut kept = Vec::new();
            let captured = self.spec.scripts.iter().filter(|script| script.captured && !self.node.is_local);
            for script in captured {
                kept.extend(store::kept_rows(&script.name, &script.feeders)?);
            }
            Ok((tables, kept))
        })?;
        let mut spec = RunSpec { cluster: None, part_of: Some(part_of), ..self.spec.clone() };
        // They have been done for all nodes.
        spec.options.before.clear();
        // Other random numbers on each node, and its share of the rate.
        spec.seed = spec.seed.wrapping_add(self.node.node.into());
        let share = 1.0 / served.len().max(1) as f64;
        spec.options.rate = spec.options.rate.map(|rate| rate * share);
        spec.options.rates = spec.options.rates.map(|rates| rates.scaled(share));
        let request = PartRequest { spec, tables, kept };
        let request = serde_json::to_string(&request).map_err(|e| internal(e.to_string()))?;
        let command = format!("bench_internal.start_part({})", quote_literal(&request));
        match self.answer(&self.ask_within(START_MS, &command)?)? {
            PartAnswer::RunId(run_id) => {
                self.part = Some(run_id);
                Ok(())
            }
            PartAnswer::Error(error) => {
                Err(UserError { message: format!("node {}: {}", self.node.name(), error.message), ..error })
            }
        }
    }

    pub(super) fn part_state(&self, stop: bool) -> Result<PartState, UserError> {
        match self.part {
            Some(part) => self.ask(&format!("bench_internal.part_state({part}, {stop})")),
            None => Ok(PartState::default()),
        }
    }

    /// What kept a part from its end, with the node's name.
    pub(super) fn part_error(&self, state: PartState) -> UserError {
        let error = state.error.and_then(|error| serde_json::from_value::<UserError>(error).ok());
        let error = error.unwrap_or_else(|| internal("its part of the run ended unexpectedly"));
        UserError { message: format!("node {}: {}", self.node.name(), error.message), ..error }
    }

    /// # Errors
    /// What kept the node from answering, when it has not answered for long enough.
    pub(super) fn check_lost(&self, error: UserError) -> Result<(), UserError> {
        let silent_ns = now_ns() - self.cell.heard_ns.load(Relaxed);
        if silent_ns < LOST_NS {
            return Ok(());
        }
        let secs = silent_ns / 1_000_000_000;
        let message = format!("node {} has not answered for {secs} s", self.node.name());
        Err(UserError::new(sqlstate::CONNECTION_FAILURE, message).detail(error.message))
    }

    /// Takes over what the node has sampled since `sampled_secs`, so that this is here if the node is lost. Where it cannot be
    /// written now, it is with the next.
    ///
    /// # Errors
    /// What kept the node from answering.
    pub(super) fn take_samples(&self, sampled_secs: &mut f64) -> Result<(), UserError> {
        let part = self.part.unwrap_or_default();
        let question = format!("bench_internal.part_samples({part}, '{sampled_secs}')");
        let samples = self.ask_within(ANSWER_MS, &question)?;
        if samples.is_empty() {
            return Ok(());
        }
        let run_id = self.context.segment.run_id();
        let taken = within(ANSWER_MS, || {
            transaction(|| store::take_samples(run_id, self.node.node, *sampled_secs, &samples))
        });
        self.cell.heard_ns.store(now_ns(), Release);
        if let Ok(last) = taken {
            *sampled_secs = last;
        }
        Ok(())
    }

    /// Takes over what the node has measured, which then is kept here only: in parts, so that no answer is large, and whoever
    /// waits for this sees that it goes on.
    pub(super) fn fetch(&self) -> Result<(), UserError> {
        let part = self.part.unwrap_or_default();
        let run_id = self.context.segment.run_id();
        let of: i32 = self.ask(&format!("bench_internal.export_part_count('{{{part}}}')"))?;
        for number in 1..=of {
            let document =
                self.ask_within(FETCH_MS, &format!("bench_internal.export_part('{{{part}}}', {number})"))?;
            // Whatever it has to wait for: nothing else ends this.
            within(FETCH_MS, || {
                with_lock_timeout(|| {
                    transaction(|| store::take_part(run_id, self.node.node, &document, (number, of)))
                })
            })?;
            self.cell.heard_ns.store(now_ns(), Release);
        }
        // Where that fails it stays there, marked as a part.
        let _ = self.ask_within(ANSWER_MS, &format!("bench_internal.drop_part({part})"));
        Ok(())
    }
}
