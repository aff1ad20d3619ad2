//! The nodes of a run, its clients' places on them, and how many samples they leave.

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};

use crate::spec::words;

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

/// What a run has to know of the cluster.
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

/// Seconds between samples on so many nodes: `wanted`, or as many tenths more as keep the samples of all nodes within what can
/// be fetched and read. `secs`: how long the run is to take, where that is known.
pub fn sample_interval_secs(wanted: f64, nodes: u32, secs: Option<f64>) -> f64 {
    let nodes = f64::from(nodes);
    let needed = (nodes / SAMPLES_PER_SEC).max(nodes * secs.unwrap_or_default() / SAMPLES);
    // A hair less, lest a rounding error make a tenth more.
    if needed <= wanted { wanted } else { ((needed * 10.0 - 1e-9).ceil() / 10.0).min(3600.0) }
}
