//! The nodes of a Citus cluster that a run had to do with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::samples::Series;

/// The curves of a node that clients ran on, where they ran on several: a value for each interval, or for several of them in
/// a long run. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSamples {
    /// As in `Node::node`.
    pub node: i32,
    /// As in `Samples`: the end in seconds, and the length.
    pub elapsed: Series,
    pub secs: Series,
    pub tps: Series,
    /// Milliseconds; of several intervals the highest.
    pub latency_p99_ms: Series,
}

/// A node of a Citus cluster and its part in the run; see the comments of `bench.nodes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// As Citus numbers them; 0: the only one that clients ran on.
    pub node: i32,
    /// Host and port, as other nodes reach it.
    pub name: String,
    /// Whether it is Citus' coordinator.
    pub is_coordinator: bool,
    /// Clients that ran on it; 0 where it only served others' statements.
    pub clients: u32,
    /// How its part ended, as a run's status; `None` without clients.
    pub status: Option<String>,
    /// sqlstate, message, detail and hint of what kept its part from completing.
    pub error: Option<Value>,
    /// By how many milliseconds its clients were let loose after the agreed instant, by the clock of the node that asked.
    pub start_offset_ms: Option<f64>,
    /// Its clock less that of the node that asked, in milliseconds, and the most that this may be wrong by.
    pub clock_offset_ms: Option<f64>,
    pub clock_error_ms: Option<f64>,
    /// Seconds measured.
    pub secs: Option<f64>,
    pub transactions: Option<u64>,
    pub failed: Option<u64>,
    /// As `Summary::aborted`.
    pub aborted: Option<u64>,
    pub retried: Option<u64>,
    pub tps: Option<f64>,
    pub latency_avg_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    pub latency_max_ms: Option<f64>,
    /// As `Summary::server_cpu_us`, of its clients.
    pub server_cpu_us: Option<f64>,
    pub processors: Option<u32>,
    /// The first node on the same machine, which shares its processors with it; `None` where nobody has told.
    pub machine: Option<i32>,
    /// Shares of all its processors' time, as those of `bench.samples`, over the whole run.
    pub cpu_user: Option<f64>,
    pub cpu_system: Option<f64>,
    pub cpu_iowait: Option<f64>,
    pub cpu_steal: Option<f64>,
    pub cpu_idle: Option<f64>,
    /// Transactions that it has had other nodes prepare for a two-phase commit, one for each connection.
    pub prepared: Option<u64>,
    /// Connections that its sessions have opened to other nodes, and found open, for a statement; `None` where Citus
    /// does not count them (before 13.1).
    pub connections_opened: Option<u64>,
    pub connections_reused: Option<u64>,
    /// Prepared transactions of Citus' that were left on it when the run had ended.
    pub prepared_left: Option<u64>,
    /// Processes of its clients that could not be ended; they end when what they wait for answers.
    pub clients_stuck: Vec<i32>,
    /// Parameters of Citus' that decide what is measured, by name, as SHOW shows them.
    pub settings: BTreeMap<String, String>,
}

impl Node {
    /// What to call it.
    pub fn label(&self) -> String {
        if self.name.is_empty() { format!("node {}", self.node) } else { self.name.clone() }
    }

    /// How its part ended, where that is not as it should.
    pub fn lost_status(&self) -> Option<&str> {
        let status = self.status.as_deref().filter(|_| self.clients > 0);
        status.filter(|status| matches!(*status, "incomplete" | "failed" | "crashed"))
    }
}
