//! The nodes of a Citus cluster that a run had to do with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::samples::Series;

/// The curves of a node, column by column, with a value for each interval. In a run of more than 360 intervals, each
/// value covers several consecutive intervals, so that there are at most 360 values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeSamples {
    /// The node, as in `nodes`.
    pub node: i32,
    /// End of the interval, seconds since the measurement began.
    pub elapsed: Series,
    /// Its length.
    pub secs: Series,
    /// Transactions committed / secs.
    pub tps: Series,
    /// 99th percentile; the highest of the covered intervals.
    pub latency_p99_ms: Series,
}

/// A node of a Citus cluster and its part in the run, as in `bench.nodes`. For a node without clients, which only
/// served other nodes' statements, `status`, the start, counts, latencies and connections are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Node {
    /// Citus' id of the node; 0: the only one that clients ran on.
    pub node: i32,
    /// Host and port, as other nodes reach it.
    pub name: String,
    /// Whether it is Citus' coordinator.
    pub is_coordinator: bool,
    /// Clients that ran on it; 0 if it only served other nodes' statements.
    pub clients: u32,
    /// Status of its part, as the `status` of `run`.
    pub status: Option<String>,
    /// Reason why its part did not complete: `sqlstate`, `message`, `detail`, `hint`, and `context` where it is known.
    pub error: Option<Value>,
    /// Delay of its clients' start, by the clock of the calling node, in milliseconds.
    pub start_offset_ms: Option<f64>,
    /// Its clock minus the calling node's clock, in milliseconds.
    pub clock_offset_ms: Option<f64>,
    /// Maximum error of this difference, in milliseconds.
    pub clock_error_ms: Option<f64>,
    /// Time measured, in seconds.
    pub secs: Option<f64>,
    /// Transactions committed.
    pub transactions: Option<u64>,
    /// Transactions that failed with a serialization failure or deadlock after `max_tries`.
    pub failed: Option<u64>,
    /// Clients ended by another error.
    pub aborted: Option<u64>,
    /// Transactions with more than one try.
    pub retried: Option<u64>,
    /// `transactions` / `secs`.
    pub tps: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub latency_p99_ms: Option<f64>,
    /// Greatest latency in milliseconds.
    pub latency_max_ms: Option<f64>,
    /// Processor time of its clients' processes per committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Processors online.
    pub processors: Option<u32>,
    /// `node` of the first node on the same machine: nodes with the same value share its processors.
    pub machine: Option<i32>,
    /// Share of all its processors' time in user mode, over the whole run, like the other four.
    pub cpu_user: Option<f64>,
    /// Share in the kernel, interrupts included.
    pub cpu_system: Option<f64>,
    /// Share idle while something waited for a disk.
    pub cpu_iowait: Option<f64>,
    /// Share that the hypervisor gave to others.
    pub cpu_steal: Option<f64>,
    /// Share idle.
    pub cpu_idle: Option<f64>,
    /// Transactions that it prepared on other nodes for two-phase commits, one for each connection.
    pub prepared: Option<u64>,
    /// Connections that its sessions opened to other nodes for a statement; null before Citus 13.1.
    pub connections_opened: Option<u64>,
    /// Connections that they reused; null before Citus 13.1.
    pub connections_reused: Option<u64>,
    /// Prepared transactions of Citus that remained on it after the run.
    pub prepared_left: Option<u64>,
    /// Process ids of its clients that could not be ended; empty if all ended.
    pub clients_stuck: Vec<i32>,
    /// Parameter of Citus that affects the measurement, to its value as shown by SHOW.
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
