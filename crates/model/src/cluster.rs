//! Runs on a Citus cluster: the nodes and their clients, and one instant for all to begin at.

mod limits;
#[cfg(test)]
mod tests;

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};

use bench_base::words;

pub use limits::{Demand, FanOut, Limits, check_connections, check_pool, check_worker_slots, room_for};

words! {
    /// On which nodes a run's clients are to be.
    #[derive(Default)]
    pub enum Nodes {
        /// The one that is asked.
        #[default]
        Local = "local",
        /// All but Citus' coordinator.
        Workers = "workers",
        All = "all",
    }
}

/// A node of the cluster, as pg_dist_node has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Citus' number for it.
    pub node: i32,
    pub host: String,
    pub port: i32,
    /// Whether it is Citus' coordinator: the node of group 0.
    pub is_coordinator: bool,
    /// Whether it is the one that was asked for the run.
    pub is_local: bool,
    /// Clients of the run that are on it; 0 where it only serves others' statements.
    pub clients: u32,
}

impl NodeSpec {
    /// Host and port, as users know it.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// The cluster of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// All active nodes that answered, in the order of their numbers.
    pub nodes: Vec<NodeSpec>,
    /// The run's distributed tables, by qualified names, quoted.
    pub tables: Vec<String>,
    /// Nodes that are not among these because they did not answer.
    #[serde(default)]
    pub silent: u32,
}

/// The run that a part of it belongs to, on the node that was asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOf {
    /// Citus' number for the node that asked, and its name.
    pub node: i32,
    pub name: String,
    pub run_id: i64,
    /// This part's place among the parts of the run, counted from 0.
    #[serde(default)]
    pub place: u32,
    /// How many parts the run has; 0: an older version has asked.
    #[serde(default)]
    pub places: u32,
}

/// Gives the chosen nodes their clients.
///
/// # Errors
/// 55000 where there are no nodes of that kind, or Citus does not know its coordinator.
pub fn place(nodes: &mut [NodeSpec], chosen: Nodes, clients: u32) -> Result<(), UserError> {
    let state =
        |message: &str, hint: &str| UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint(hint);
    if chosen == Nodes::Workers && nodes.iter().all(|node| node.is_coordinator) {
        return Err(state(
            "the Citus cluster has no workers",
            "Add workers with SELECT citus_add_node('host', 5432), or use nodes => 'local'.",
        ));
    }
    // One that pg_dist_node does not have is known to itself only, as number 0.
    if chosen == Nodes::All && !nodes.iter().any(|node| node.is_coordinator && node.node != 0) {
        return Err(state(
            "Citus does not know how to reach its coordinator",
            "Run SELECT citus_set_coordinator_host('host', 5432) on the coordinator, or use nodes => 'workers'.",
        ));
    }
    for node in nodes {
        let is_chosen = match chosen {
            Nodes::Local => node.is_local,
            Nodes::Workers => !node.is_coordinator,
            Nodes::All => true,
        };
        node.clients = if is_chosen { clients } else { 0 };
    }
    Ok(())
}

/// Samples that a run leaves at most, of all nodes together: in a second, and in the whole.
const SAMPLES_PER_SEC: f64 = 100.0;
const SAMPLES: f64 = 1_000_000.0;

/// Returns the seconds between samples on several nodes: `wanted`, or more tenths of a second where the samples of all nodes
/// would exceed [`SAMPLES_PER_SEC`] or [`SAMPLES`]. `secs`: the length of the run, where that is known.
pub fn sample_interval_secs(wanted: f64, nodes: u32, secs: Option<f64>) -> f64 {
    let nodes = f64::from(nodes);
    let needed = (nodes / SAMPLES_PER_SEC).max(nodes * secs.unwrap_or_default() / SAMPLES);
    // A hair less, lest a rounding error make a tenth more.
    if needed <= wanted { wanted } else { ((needed * 10.0 - 1e-9).ceil() / 10.0).min(3600.0) }
}

/// A node, and what identifies its machine.
#[derive(Clone, Copy, Debug)]
pub struct Tenant<'a> {
    /// Citus' number for it.
    pub node: i32,
    /// The name or address that other nodes reach it by.
    pub host: &'a str,
    /// The identity of the machine; `None` where the node did not send it.
    pub identity: Option<&'a str>,
}

/// For each node the first one that is on the same machine: one with the same identity, or where one of the two has none, on
/// the same host.
pub fn machines(tenants: &[Tenant]) -> Vec<i32> {
    let is_same = |one: &Tenant, other: &Tenant| match (one.identity, other.identity) {
        (Some(one), Some(other)) => one == other,
        _ => one.host == other.host,
    };
    let first = |tenant: &Tenant| tenants.iter().find(|other| is_same(tenant, other)).map(|other| other.node);
    tenants.iter().map(|tenant| first(tenant).unwrap_or(tenant.node)).collect()
}

/// A question about the time, and its answer: microseconds since the same epoch, by two clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockReading {
    /// By the clock of the node that asks, before it asked.
    pub sent_us: i64,
    /// By the other's, when the question had arrived.
    pub began_us: i64,
    /// By the other's, when it answered.
    pub answered_us: i64,
    /// By the clock of the node that asks.
    pub received_us: i64,
}

/// How far another node's clock is ahead of this one's, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    pub offset_us: f64,
    /// The most that it may be wrong by.
    pub error_us: f64,
}

/// Returns the offset that fits all exchanges: each question arrived after it was sent, and each answer was received after
/// it was given (the bounds of Cristian's algorithm, Distributed Computing 3, 1989, page 146 ff., over
/// several exchanges). `None` without any.
pub fn clock_offset(exchanges: &[ClockReading]) -> Option<ClockOffset> {
    let low = exchanges.iter().map(|e| e.answered_us - e.received_us).max()?;
    let high = exchanges.iter().map(|e| e.began_us - e.sent_us).min()?;
    // A clock that is being set may leave no offset at all.
    Some(ClockOffset { offset_us: (low + high) as f64 / 2.0, error_us: (high - low).abs() as f64 / 2.0 })
}

/// How many microseconds before the start all nodes are called with its time: long enough for calls three times as slow as
/// the slowest so far, which took `slowest_us`.
pub fn start_margin_us(slowest_us: i64) -> i64 {
    const LEAST_US: i64 = 200_000;
    LEAST_US + 3 * slowest_us.max(0)
}
