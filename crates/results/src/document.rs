//! The document of a run: what was measured on several nodes merged into one run's rows, and the parts that a large one is written
//! in.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duel::Duel;
use crate::finding::Finding;
use crate::run::{Bucket, CommandSummary, Run, ScriptSummary, Summary};
use crate::samples::Samples;
use crate::server::{AuditLine, Environment, ErrorLine, Event, Node, NodeSamples, Relation, Wait};

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

    /// The name of a row's node; `None` for the only node.
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

/// One aspect of the run of a whole capture, as in `bench.fidelity_parts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FidelityPart {
    /// Aspect that is compared, such as `statements` or `WAL flushes`.
    pub part: String,
    /// Value of the application, per transaction.
    pub captured: Option<f64>,
    /// Value of the run.
    pub replayed: Option<f64>,
    /// 0 to 1, 1 if both are equal; null if they are not judged.
    pub score: Option<f64>,
    /// Cause of a low score, or of its absence.
    pub reason: Option<String>,
}

/// The score of the whole, which is that of the worst part, and what is wrong with the worst three.
pub fn whole(parts: &[FidelityPart]) -> Option<(f64, Option<String>)> {
    let mut judged: Vec<(f64, &FidelityPart)> =
        parts.iter().filter_map(|part| Some((part.score?, part))).collect();
    judged.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let reasons: Vec<&str> = judged.iter().filter_map(|(_, part)| part.reason.as_deref()).take(3).collect();
    judged.first().map(|(score, _)| (*score, (!reasons.is_empty()).then(|| reasons.join("; "))))
}

/// What of a capture is not replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unreplayed {
    /// Number of statements that are not replayed, or of kinds of transactions of a capture from the log.
    pub statements: u64,
    /// Their fraction of the captured execution time.
    pub share: f64,
    /// The first of them; none for readers who may not see the capture.
    pub listed: Vec<UnreplayedStatement>,
}

/// A statement of a capture, or a kind of transactions, that is not replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnreplayedStatement {
    /// Its text, without constants; null where the capture does not know it.
    pub query: Option<String>,
    /// Why it is not replayed.
    pub reason: Option<String>,
    /// Its fraction of the captured execution time.
    pub share: f64,
}

impl Document {
    /// The statements of all nodes, a row for each command: counts are added up, the mean latency is that of all
    /// executions, the 95th percentile the greatest of the nodes', the plan that of the first node that has one.
    pub fn merged_statements(&self) -> Vec<CommandSummary> {
        let statements = &self.statements;
        if is_of_one_node(statements.iter().map(|statement| statement.node)) {
            return statements.clone();
        }
        let mut together: BTreeMap<(u32, u32), CommandSummary> = BTreeMap::new();
        for statement in statements {
            together
                .entry((statement.script, statement.command))
                .and_modify(|sum| add_statement(sum, statement))
                .or_insert_with(|| statement.clone());
        }
        together.into_values().collect()
    }

    /// The waits of all nodes' clients, a row for each event, the greatest share first: each node's shares count as much
    /// as it had clients.
    pub fn merged_waits(&self) -> Vec<Wait> {
        if is_of_one_node(self.waits.iter().map(|wait| wait.node)) {
            return self.waits.clone();
        }
        let clients = |node: i32| {
            let listed = self.nodes.iter().find(|listed| listed.node == node);
            f64::from(listed.map_or(self.run.clients, |listed| listed.clients))
        };
        let mut nodes: Vec<i32> = self.waits.iter().map(|wait| wait.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let all_clients: f64 = nodes.into_iter().map(clients).sum();
        let mut together: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for wait in &self.waits {
            *together.entry((&wait.wait_event_type, &wait.wait_event)).or_default() +=
                wait.share * clients(wait.node) / all_clients;
        }
        let wait = |((class, event), share): ((&str, &str), f64)| Wait {
            wait_event_type: class.to_owned(),
            wait_event: event.to_owned(),
            share,
            ..Wait::default()
        };
        let mut waits: Vec<Wait> = together.into_iter().map(wait).collect();
        waits.sort_by(|one, other| other.share.total_cmp(&one.share));
        waits
    }
}

fn add_statement(sum: &mut CommandSummary, other: &CommandSummary) {
    let latencies = [(sum.latency_avg_ms, sum.count), (other.latency_avg_ms, other.count)];
    sum.latency_avg_ms = weighted_mean(&latencies.map(|(value, count)| (value, count as f64)));
    sum.latency_p95_ms = sum.latency_p95_ms.into_iter().chain(other.latency_p95_ms).reduce(f64::max);
    if sum.plan.is_none() {
        sum.plan.clone_from(&other.plan);
    }
    for (sum, other) in [
        (&mut sum.count, other.count),
        (&mut sum.failed, other.failed),
        (&mut sum.retried, other.retried),
        (&mut sum.generic_plans, other.generic_plans),
        (&mut sum.custom_plans, other.custom_plans),
        (&mut sum.plan_changes, other.plan_changes),
        (&mut sum.workers_planned, other.workers_planned),
        (&mut sum.workers_launched, other.workers_launched),
    ] {
        *sum = sum.saturating_add(other);
    }
    for (sum, other) in [
        (&mut sum.rows, other.rows),
        (&mut sum.writes, other.writes),
        (&mut sum.empty_writes, other.empty_writes),
    ] {
        *sum = sum.iter().copied().chain(other).reduce(u64::saturating_add);
    }
}

/// The mean of those values that are known, each with its weight.
fn weighted_mean(values: &[(Option<f64>, f64)]) -> Option<f64> {
    let known = || values.iter().filter_map(|(value, weight)| Some(((*value)?, *weight)));
    let all: f64 = known().map(|(_, weight)| weight).sum();
    (all > 0.0).then(|| known().map(|(value, weight)| value * weight / all).sum())
}

/// Whether all rows are of the same node.
fn is_of_one_node(mut nodes: impl Iterator<Item = i32>) -> bool {
    let first = nodes.next();
    nodes.all(|node| Some(node) == first)
}

/// Rows of a table that follow each other and have about the same size as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    pub rows: i64,
    /// Of each row.
    pub bytes: i64,
}

/// A part of a document: of each table in it the number of rows before this part's, and the number of its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentChunk {
    /// From 1 on.
    pub number: i32,
    pub of: i32,
    pub windows: BTreeMap<&'static str, (i64, i64)>,
}

/// The parts of a document with these tables, none larger than `part_bytes` but those that have a single row; at least one.
pub fn chunks(tables: &[(&'static str, Vec<RowRange>)], part_bytes: i64) -> Vec<DocumentChunk> {
    let mut chunks = vec![DocumentChunk::default()];
    let mut free_bytes = part_bytes;
    for (table, stretches) in tables {
        let mut from = 0;
        for stretch in stretches {
            let bytes = stretch.bytes.max(1);
            let mut left = stretch.rows;
            while left > 0 {
                let is_empty = chunks.last().is_some_and(|chunk| chunk.windows.is_empty());
                let fits = (free_bytes / bytes).max(i64::from(is_empty)).min(left);
                if fits <= 0 {
                    chunks.push(DocumentChunk::default());
                    free_bytes = part_bytes;
                    continue;
                }
                if let Some(chunk) = chunks.last_mut() {
                    chunk.windows.entry(table).or_insert((from, 0)).1 += fits;
                }
                free_bytes -= fits * bytes;
                from += fits;
                left -= fits;
            }
        }
    }
    let of = i32::try_from(chunks.len()).unwrap_or(i32::MAX);
    for (number, chunk) in (1..).zip(&mut chunks) {
        (chunk.number, chunk.of) = (number, of);
    }
    chunks
}
