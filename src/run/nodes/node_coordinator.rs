//! A run on several nodes: its coordinator has no clients of its own, only links, and adds up what they bring.

use std::sync::atomic::Ordering::*;

use bench_base::error::UserError;
use bench_model::cluster::start_margin_us;
use bench_model::spec::RunSpec;
use bench_results::Environment;

use super::link::Links;
use crate::observe::audit;
use crate::run::before;
use crate::run::coordinator::run_status::{self, timeline};
use crate::server::process::{current_timestamp, nap, now_ns, wake};
use crate::shm::{LinkState, ProgressFigures, RunState, Segment, StopReason};
use crate::store::nodes;
use crate::store::recorder::{self, RunStatus};
use crate::worker::stop_reason;

/// How long nodes have to stand at the gate and to end after a stop.
const START_NS: i64 = 120_000_000_000;
const STOP_NS: i64 = 15_000_000_000;

/// How long nodes may go on handing over what they have measured, as long as none of them is silent.
const COLLECT_NS: i64 = 3_600_000_000_000;

/// The whole run, whose row is there.
///
/// # Errors
/// What kept it from being measured, or from being written down.
pub fn conduct(segment: &Segment, spec: &RunSpec, run_id: i64) -> Result<(), UserError> {
    let prepared = before::prepare_run(segment, spec, |reason| run_status::stop_error(reason, None));
    let links = prepared.and_then(|()| Links::launch(segment, spec)).inspect_err(|error| {
        // Where this fails as well, the run counts as crashed.
        let _ = nodes::finish(run_id, RunStatus::Failed, Some(error), Ok(()), None);
    })?;
    let run = ClusterRun { segment, spec, run_id, links };
    let begun = run.start();
    let measured = begun.is_ok();
    let result = begun.and_then(|()| run.measure());
    let collected = run.dismiss();
    run.close(measured, result.and(collected).err())
}

struct ClusterRun<'a> {
    segment: &'a Segment,
    spec: &'a RunSpec,
    run_id: i64,
    links: Links<'a>,
}

impl ClusterRun<'_> {
    /// Waits until all nodes are ready, and gives them one instant.
    fn start(&self) -> Result<(), UserError> {
        // The links read their nodes' counters from here on.
        let counted_from = current_timestamp();
        let until_ns = now_ns() + START_NS;
        while !self.links.iter().all(|(_, cell)| cell.state() == LinkState::Ready) {
            if let Some(reason) = self.stop_reason() {
                return Err(run_status::stop_error(reason, None));
            }
            if let Some(error) = self.links.loss() {
                return Err(error);
            }
            if now_ns() > until_ns {
                return Err(crate::error::internal("the nodes did not become ready"));
            }
            nap(50);
        }
        recorder::running(self.run_id, &Environment::default(), counted_from)?;
        let slowest_us = self.links.iter().map(|(_, cell)| cell.slowest_us.load(Relaxed)).max();
        let margin_us = start_margin_us(slowest_us.unwrap_or_default());
        let timeline = timeline(&self.spec.options, now_ns() + margin_us * 1000);
        let header = self.segment.header();
        header.timeline.store(&timeline);
        header.begins_us.store(current_timestamp() + margin_us, Release);
        self.links.wake();
        header.set_state(RunState::Running);
        wake(header.caller_pid.load(Relaxed));
        Ok(())
    }

    /// Waits until the nodes' clients have ended, or the run is to end early.
    fn measure(&self) -> Result<(), UserError> {
        while !self.links.are(LinkState::Over) {
            if self.stop_reason().is_some() {
                return Ok(());
            }
            if let Some(error) = self.links.loss() {
                return Err(error);
            }
            self.show();
            nap(200);
        }
        self.links.loss().map_or(Ok(()), Err)
    }

    fn stop_reason(&self) -> Option<StopReason> {
        stop_reason(self.segment.header())
    }

    /// The newest sample of all nodes together, for those who wait.
    fn show(&self) {
        let progress = &self.segment.header().progress;
        let nodes: Vec<_> =
            self.links.iter().filter(|(node, _)| node.clients > 0).map(|(_, cell)| &cell.progress).collect();
        let samples = nodes.iter().map(|node| node.samples.load(Acquire)).min().unwrap_or_default();
        if samples == 0 || samples == progress.samples.load(Relaxed) {
            return;
        }
        let figures: Vec<ProgressFigures> = nodes.iter().map(|node| node.figures()).collect();
        let tps: f64 = figures.iter().map(|f| f.tps).sum();
        let mean = |of: &dyn Fn(&ProgressFigures) -> f64| {
            if tps > 0.0 { figures.iter().map(|f| of(f) * f.tps).sum::<f64>() / tps } else { 0.0 }
        };
        let latency_avg_ms = mean(&|f| f.latency_avg_ms);
        let squares = mean(&|f| f.latency_stddev_ms.powi(2) + f.latency_avg_ms.powi(2));
        progress.set_figures(ProgressFigures {
            elapsed_secs: figures.iter().map(|f| f.elapsed_secs).fold(0.0, f64::max),
            tps,
            latency_avg_ms,
            latency_stddev_ms: (squares - latency_avg_ms.powi(2)).max(0.0).sqrt(),
            lag_avg_ms: mean(&|f| f.lag_avg_ms),
        });
        progress.in_warmup.store(nodes.iter().all(|n| n.in_warmup.load(Relaxed) != 0).into(), Relaxed);
        progress.transactions.set(nodes.iter().map(|node| node.transactions.get()).sum());
        progress.failed.set(nodes.iter().map(|node| node.failed.get()).sum());
        progress.aborted.set(nodes.iter().map(|node| node.aborted.get()).sum());
        progress.skipped.set(nodes.iter().map(|node| node.skipped.get()).sum());
        progress.clients.store(nodes.iter().map(|node| node.clients.load(Relaxed)).sum(), Relaxed);
        progress.samples.store(samples, Release);
        wake(self.segment.header().caller_pid.load(Relaxed));
    }

    /// Has every node end, and takes over what it has; gives up those that do not.
    fn dismiss(&self) -> Result<(), UserError> {
        if !self.links.are(LinkState::Over) || self.links.loss().is_some() {
            self.segment.header().request_stop(StopReason::Abandoned);
            self.links.wake();
            self.links.hurry();
            self.links.wait(LinkState::Over, STOP_NS);
        }
        self.links.collect(COLLECT_NS)
    }

    /// Writes everything that is known at the end.
    fn close(&self, measured: bool, failure: Option<UserError>) -> Result<(), UserError> {
        let begins_us = self.segment.header().begins_us.load(Relaxed);
        let written = nodes::write_nodes(self.run_id, self.links.iter(), begins_us);
        // That a node is lost explains what the others then met, and that they were stopped.
        let first = self.links.iter().find(|(_, cell)| cell.ended_early.load(Relaxed) != 0);
        let first = first.map(|(node, _)| node.node);
        let of_part = || nodes::part_error(self.run_id, first).ok().flatten();
        let (status, error) = match (self.stop_reason(), failure.clone().or_else(of_part)) {
            (Some(reason), _) => (RunStatus::Canceled, Some(run_status::stop_error(reason, None))),
            (None, None) => (RunStatus::Completed, None),
            (None, Some(error)) if measured => (RunStatus::Incomplete, Some(error)),
            (None, Some(error)) => (RunStatus::Failed, Some(error)),
        };
        let shards = self.spec.cluster.as_ref();
        let shards = shards.map(|nodes| audit::tuples_of_shards(nodes, self.segment));
        nodes::finish(self.run_id, status, error.as_ref(), written, shards)?;
        // As of any run: what kept it from being measured is the caller's error.
        if measured { Ok(()) } else { failure.map_or(Ok(()), Err) }
    }
}
