//! The links of a run, from the coordinator's side.

use std::cell::Cell;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::NodeSpec;
use bench_model::spec::RunSpec;

use super::link;
use crate::server::background_worker::{self, Worker};
use crate::server::process::{nap, now_ns, wake};
use crate::server::signals::termination_requested;
use crate::shm::{LinkState, NodeCell, Segment, StopReason};

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
            match Worker::register(link::KIND, segment.handle(), index, spec.database_oid, spec.role_oid) {
                Some(worker) => links.workers.push(worker),
                None => {
                    links.terminate();
                    return Err(background_worker::no_slots(nodes.len() as u64 + 1, link::KIND.noun));
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
                    let is_silent = now - heard_ns.max(self.awake_ns.get()) > link::FETCH_NS + ASLEEP_NS;
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
const SILENT_NS: i64 = link::LOST_NS + 5_000_000_000;

/// While its part is being started, for which the node reads the rows of feeders.
const START_NS: i64 = link::START_MS as i64 * 1_000_000 + 5_000_000_000;

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
