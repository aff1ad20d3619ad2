//! The document of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duel::Duel;
use crate::environment::Environment;
use crate::fidelity::{FidelityPart, Unreplayed};
use crate::finding::Finding;
use crate::node::{Node, NodeSamples};
use crate::run::Run;
use crate::samples::Samples;
use crate::server::{AuditLine, ErrorLine, Event, Relation, Wait};
use crate::summary::{Bucket, CommandSummary, ScriptSummary, Summary};

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given
/// another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// A run and all that was measured of it, as `bench.report(run_id, 'json')` returns it. Every key is always present;
/// unknown values are null or missing from a list. Readers should ignore keys that they do not know. A timestamp is a
/// string in ISO 8601 with its offset from UTC, a share is a number from 0 to 1, TPS is committed transactions per
/// second, and latency is the time from a transaction's start (with a `rate`, from its due time) to its end, retries
/// included. A buffer is a block of the server, of 8192 bytes unless it was built otherwise. Counts and times cover the
/// measured time, without the warm-up, unless the description says "all phases".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Document {
    /// Version of this schema: 1. Within a version, keys may be added, but none is renamed, removed or given another
    /// unit.
    pub schema_version: u32,
    /// Arguments and status of the run.
    pub run: Run,
    /// Figures of the whole run.
    pub summary: Summary,
    /// The measured intervals, column by column.
    pub samples: Samples,
    /// The intervals of the warm-up; arrays are empty without a warm-up.
    pub warmup_samples: Samples,
    /// Histogram of the latencies of all scripts, those under way at the end included, ascending; empty buckets are
    /// left out.
    pub latencies: Vec<Bucket>,
    /// Scripts of the mix, in its order.
    pub scripts: Vec<ScriptSummary>,
    /// Commands of the scripts, in the order of both, on each node that clients ran on; meta commands too.
    pub statements: Vec<CommandSummary>,
    /// Wait events of the clients on each node, the largest share first.
    pub waits: Vec<Wait>,
    /// Checkpoints, what was done to the run's tables, and others that `bench.events` has, in the order of their begin.
    pub events: Vec<Event>,
    /// The run's tables, then their indexes, before and after it.
    pub relations: Vec<Relation>,
    /// Errors by SQLSTATE, the most frequent first.
    pub errors: Vec<ErrorLine>,
    /// The clients' counts compared with the server's.
    pub audit: Vec<AuditLine>,
    /// How the run of a capture resembles what was captured; empty for other runs.
    pub fidelity: Vec<FidelityPart>,
    /// What the run of a capture leaves out of it; null for other runs, and if nothing is left out.
    pub unreplayed: Option<Unreplayed>,
    /// The arms of a duel; null for other runs.
    pub duel: Option<Duel>,
    /// Nodes of the Citus cluster, in the order of their ids, including nodes without clients; empty if Citus is not in
    /// use.
    pub nodes: Vec<Node>,
    /// Curves of each node, in the order of their ids; empty if clients ran on only one node.
    pub node_samples: Vec<NodeSamples>,
    /// Server, machine and settings.
    pub environment: Environment,
    /// Findings of the run, the most severe first; empty for a clean run.
    pub findings: Vec<Finding>,
}

impl Document {
    /// Transactions that were due within the measured time, whatever became of them.
    pub fn due(&self) -> u64 {
        let summary = &self.summary;
        let [aborted, unknown, backlog] =
            [summary.aborted, summary.unknown, summary.backlog].map(Option::unwrap_or_default);
        let parts = [summary.transactions, summary.failed, aborted, unknown, summary.skipped, backlog];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The listed nodes that clients ran on.
    pub fn nodes_with_clients(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.clients > 0)
    }

    /// How many nodes clients ran on; 1 where none is listed.
    pub fn client_nodes(&self) -> usize {
        self.nodes_with_clients().count().max(1)
    }

    /// The clients of all nodes.
    pub fn all_clients(&self) -> u64 {
        match self.nodes_with_clients().map(|node| u64::from(node.clients)).sum() {
            0 => u64::from(self.run.clients),
            listed => listed,
        }
    }

    /// The processors of all machines that clients ran on; `None` where those of one are not known.
    pub fn all_processors(&self) -> Option<u64> {
        if self.client_nodes() == 1 {
            return self.environment.processors.map(u64::from);
        }
        let mut machines: BTreeMap<i32, u64> = BTreeMap::new();
        for node in self.nodes_with_clients() {
            let processors = machines.entry(node.machine.unwrap_or(node.node)).or_default();
            *processors = u64::from(node.processors?).max(*processors);
        }
        Some(machines.into_values().sum())
    }

    /// The name of a row's node; `None` of the only one, which nobody has to tell from others.
    pub fn node_name(&self, node: i32) -> Option<String> {
        if node == 0 {
            return None;
        }
        let listed = self.nodes.iter().find(|listed| listed.node == node);
        Some(listed.map_or_else(|| format!("node {node}"), Node::label))
    }

    /// The name of a row's node behind " on ", for use in a sentence; empty for the only node.
    pub fn on_node(&self, node: i32) -> String {
        self.node_name(node).map_or(String::new(), |name| format!(" on {name}"))
    }
}
