//! The document of a run.

use std::collections::BTreeMap;

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

/// A run and all that was measured of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    pub run: Run,
    pub summary: Summary,
    /// The measured intervals, in their order.
    pub samples: Samples,
    /// The intervals of the warm-up: `elapsed` counts from its begin.
    pub warmup_samples: Samples,
    /// The histogram of all scripts' latencies, in ascending order, empty buckets left out.
    pub latencies: Vec<Bucket>,
    pub scripts: Vec<ScriptSummary>,
    /// In the order of the scripts and of their commands, for each node that clients ran on.
    pub statements: Vec<CommandSummary>,
    /// Shares of the measured time of a node's clients, the greatest first; the shares of a node add up to 1.
    pub waits: Vec<Wait>,
    /// In the order of their begin.
    pub events: Vec<Event>,
    pub relations: Vec<Relation>,
    pub errors: Vec<ErrorLine>,
    pub audit: Vec<AuditLine>,
    /// How a replay resembles what was captured; empty for other runs.
    pub fidelity: Vec<FidelityPart>,
    /// What the run of a capture leaves out of it; `None` for other runs, and where that is nothing.
    pub unreplayed: Option<Unreplayed>,
    /// The arms of a duel; `None` for other runs.
    pub duel: Option<Duel>,
    /// The nodes of the Citus cluster, those that only served others' statements among them, in the order of their
    /// ids; empty for a run that had nothing to do with Citus.
    pub nodes: Vec<Node>,
    /// The curves of each node, where clients ran on several.
    pub node_samples: Vec<NodeSamples>,
    pub environment: Environment,
    /// The findings drawn from all this, the most severe first.
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
