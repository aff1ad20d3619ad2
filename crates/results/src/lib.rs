//! Everything that is known of one run, apart from where it is stored: findings are drawn from it, every report shows
//! it, and written down as JSON it is the schema of `bench.report(run_id, 'json')`. [`sweep`] has the document of a sweep.

#![forbid(unsafe_code)]

pub mod capacity;
pub mod chunks;
mod duel;
mod environment;
mod fidelity;
mod finding;
pub mod index_worth;
mod merged;
mod node;
mod samples;
pub mod screen;
pub mod sweep;
pub mod unwritten_parts;

use bench_model::rates::Rates;
use bench_stats::until_steady::LONGEST_SECS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use bench_model::views::ServerSetting;
pub use duel::{Duel, DuelBatch, DuelCommand, DuelLine, DuelMeasured, DuelStatement, DuelWait};
pub use environment::Environment;
pub use fidelity::{FidelityPart, whole};
pub use finding::{Finding, Severity, Topic};
pub use merged::weighted_mean;
pub use node::{Node, NodeSamples};
pub use samples::{Samples, Series, bins};

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

impl Run {
    /// Its rates, where they changed over the measured time.
    pub fn changing_rates(&self) -> Option<Rates> {
        Rates::parse(self.rates.as_ref()?).ok()
    }
}

/// What of a capture is not replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unreplayed {
    /// Statements, or kinds of transactions of a capture from the log.
    pub statements: u64,
    /// Of the captured execution time, as a fraction.
    pub share: f64,
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
}

/// How the run was asked for and how it ended; see the comments of `bench.runs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub run_id: i64,
    pub workload: String,
    pub fixture: Option<String>,
    /// Rows that each of the fixtures was loaded with.
    pub fixture_rows: Option<Vec<i64>>,
    /// MD5 of the script as run and of its feeders, in hexadecimal: whether two runs ran the same.
    pub script_hash: String,
    /// On each node that clients ran on.
    pub clients: u32,
    /// Measured seconds asked for.
    pub secs: Option<f64>,
    /// Transactions per client asked for.
    pub transactions: Option<u64>,
    /// Seconds asked for; `None`: until throughput was steady.
    pub warmup: Option<f64>,
    /// Seconds that the warm-up took; `None` where nothing was run.
    pub warmup_took: Option<f64>,
    /// Transactions per second of an open loop.
    pub rate: Option<f64>,
    /// Where it changed over the measured time; then `rate` is its mean.
    pub rates: Option<Value>,
    /// Milliseconds.
    pub latency_limit: Option<f64>,
    pub max_tries: u32,
    pub seed: i64,
    /// Empty in documents without it.
    pub driver: String,
    pub query_mode: String,
    /// With the wire driver: the foreign server that was connected to; `None`: this server.
    pub target: Option<String>,
    /// With the wire driver: workers that shared the connections.
    pub jobs: Option<u32>,
    /// Whether each transaction had a connection of its own.
    pub reconnect: bool,
    /// `end` or `reconnect`: what clients did that lost their connections.
    pub on_disconnect: String,
    pub results: String,
    pub variables: Map<String, Value>,
    pub settings: Map<String, Value>,
    /// Statements by which its sweep had changed the database for it.
    pub applied: Vec<String>,
    pub tags: Map<String, Value>,
    /// Seconds.
    pub sample_interval: f64,
    /// Share of the transactions that were to be logged.
    pub log_rate: f64,
    /// Lines of bench.transactions; `None` without a log.
    pub logged: Option<u64>,
    /// Lines that there was no room for.
    pub log_lost: Option<u64>,
    pub status: String,
    /// ISO 8601, as PostgreSQL writes a timestamptz into JSON.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub role: String,
    /// Runs of this database that were measured at the same time, of whatever role.
    pub other_runs: Vec<i64>,
    /// sqlstate, message, detail and hint of what kept it from completing.
    pub error: Option<Value>,
    /// Whether the waiting caller held back the xmin horizon.
    pub horizon_held: bool,
    pub server_version: String,
    pub extension_version: String,
    /// Where an imported run ran; `None` for a run made here.
    pub origin: Option<Value>,
}

impl Run {
    /// Seconds that it ran before the measurement, as far as they are known.
    pub fn warmed_up_secs(&self) -> f64 {
        self.warmup_took.or(self.warmup).unwrap_or_default()
    }

    /// Whether the warm-up was to last until throughput was steady, and ended because that took too long.
    pub fn is_unsteady(&self) -> bool {
        self.warmup.is_none() && self.warmup_took.is_some_and(|secs| secs >= LONGEST_SECS)
    }
}

/// The figures of the whole; see the comments of `bench.summary`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Seconds measured.
    pub secs: Option<f64>,
    pub transactions: u64,
    pub failed: u64,
    /// `None` in documents without it, whose `failed` has them.
    pub aborted: Option<u64>,
    pub retried: u64,
    pub skipped: u64,
    pub late: u64,
    pub tps: Option<f64>,
    pub tps_avg: Option<f64>,
    pub tps_min: Option<f64>,
    pub tps_max: Option<f64>,
    pub tps_stddev: Option<f64>,
    pub latency_avg_ms: Option<f64>,
    pub latency_stddev_ms: Option<f64>,
    pub latency_p50_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    /// `None` below 10,000 transactions: it would be noise.
    pub latency_p999_ms: Option<f64>,
    pub latency_max_ms: Option<f64>,
    pub lag_avg_ms: Option<f64>,
    pub lag_max_ms: Option<f64>,
    /// Under a rate: transactions due before the end that were neither started nor skipped.
    pub backlog: Option<u64>,
    /// Processor time of the clients' processes for each committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Processor time of the wire driver's jobs for each committed transaction, in microseconds: of all that they did for the
    /// run, which for short runs is more than what was measured.
    pub driver_cpu_us: Option<f64>,
    /// Milliseconds to open a connection, in a run with reconnect.
    pub connect_avg_ms: Option<f64>,
    pub connect_p50_ms: Option<f64>,
    pub connect_p95_ms: Option<f64>,
    pub connect_p99_ms: Option<f64>,
    pub connect_max_ms: Option<f64>,
    /// Transactions whose connection was lost when they may have been committed; `None` without on_disconnect.
    pub unknown: Option<u64>,
    /// New orders per minute; `None` for other workloads than orders.
    pub nopm: Option<f64>,
}

/// A bucket of the histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Inclusive.
    pub low_ms: f64,
    /// Exclusive.
    pub high_ms: f64,
    pub count: u64,
}

/// A script of the run's mix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScriptSummary {
    /// From 0.
    pub script: u32,
    pub workload: String,
    pub weight: u32,
    pub transactions: u64,
    pub tps: Option<f64>,
    pub failed: u64,
    /// As [`Summary::aborted`].
    pub aborted: Option<u64>,
    pub retried: u64,
    pub skipped: u64,
    pub late: u64,
    pub latency_avg_ms: Option<f64>,
    pub latency_p50_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    pub latency_max_ms: Option<f64>,
}

/// A command of a script, meta commands too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandSummary {
    /// As [`Node::node`]; 0: the only one.
    pub node: i32,
    pub script: u32,
    /// Its place in the script, from 1.
    pub command: u32,
    /// Line of the script, from 1.
    pub line: u32,
    pub statement: String,
    pub count: u64,
    pub failed: u64,
    pub retried: u64,
    pub latency_avg_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    /// As executed, in the form of EXPLAIN under a line that says whether it was generic or custom; a plan that
    /// changed has each of its forms under a line of its own.
    pub plan: Option<String>,
    /// Executions by a generic plan, in all phases.
    pub generic_plans: u64,
    /// Executions by a plan made for the parameters' values, in all phases.
    pub custom_plans: u64,
    /// How often a client had a plan of another form than the time before, the step from custom to generic apart.
    pub plan_changes: u64,
    /// Parallel workers that its plans asked for, in all phases.
    pub workers_planned: u64,
    /// Parallel workers that were launched, in all phases.
    pub workers_launched: u64,
    /// Rows returned, inserted, updated, deleted or merged, in all phases; `None` of meta commands.
    pub rows: Option<u64>,
    /// Executions that were to insert, update, delete or merge rows, in all phases; `None` where none was.
    pub writes: Option<u64>,
    /// Executions among [`CommandSummary::writes`] that affected no row.
    pub empty_writes: Option<u64>,
}

impl CommandSummary {
    /// Rows of an execution; `None` of meta commands, and where executions were not counted.
    pub fn rows_per_execution(&self) -> Option<f64> {
        let executions = self.generic_plans.saturating_add(self.custom_plans);
        self.rows.filter(|_| executions > 0).map(|rows| rows as f64 / executions as f64)
    }
}

/// A share of the clients' measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// As [`Node::node`]; 0: the only one.
    #[serde(default)]
    pub node: i32,
    /// As in pg_stat_activity; `CPU` and `Runnable` where a client waits for nothing.
    pub wait_event_type: String,
    pub wait_event: String,
    /// A fraction of 1.
    pub share: f64,
}

/// Something that went on in the server for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// As [`Node::node`]; 0: the only one.
    pub node: i32,
    /// `checkpoint`, `vacuum`, `autovacuum`, `analyze`, `autoanalyze`, `create index`, `reindex`, `cluster`, `vacuum full`,
    /// `backup`, `standby` or `reload`.
    pub kind: String,
    /// The table, of what is done to a table.
    pub relation: Option<String>,
    /// For a checkpoint: `timed` or `requested`, where that is known, or `begun before the run`.
    pub detail: Option<String>,
    /// Seconds since measuring began; negative before.
    pub started: f64,
    /// Seconds since measuring began; `None` when it had not ended with the run.
    pub ended: Option<f64>,
}

/// A table or index of the run's fixture, before and after. Counts are of the run, all phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relation {
    /// As [`Node::node`]; 0: the only one.
    pub node: i32,
    pub relation: String,
    /// `table` or `index`.
    pub kind: String,
    pub bytes_before: Option<i64>,
    pub bytes_after: Option<i64>,
    /// Rows, by the server's estimate, before and after.
    pub live_before: Option<i64>,
    pub live: Option<i64>,
    pub dead_before: Option<i64>,
    pub dead: Option<i64>,
    pub inserted: Option<i64>,
    pub updated: Option<i64>,
    pub hot_updated: Option<i64>,
    pub deleted: Option<i64>,
    pub mod_since_analyze: Option<i64>,
    pub seq_scan: Option<i64>,
    /// Rows that the sequential scans read.
    pub seq_tup_read: Option<i64>,
    pub idx_scan: Option<i64>,
    pub vacuums: Option<i64>,
    pub autovacuums: Option<i64>,
    pub analyzes: Option<i64>,
    pub autoanalyzes: Option<i64>,
    /// Timestamps; `None` for never.
    pub last_vacuum: Option<String>,
    pub last_autovacuum: Option<String>,
    pub last_analyze: Option<String>,
    pub last_autoanalyze: Option<String>,
}

/// Errors of one SQLSTATE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorLine {
    /// As [`Node::node`]; 0: the only one.
    pub node: i32,
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub count: u64,
    pub retried: u64,
    pub failed: u64,
}

/// What the harness counted against what the server did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditLine {
    /// As [`Node::node`]; 0: the only one.
    pub node: i32,
    pub counter: String,
    pub harness: Option<i64>,
    pub server: Option<i64>,
    /// `None` where the two need not be equal.
    pub ok: Option<bool>,
    pub reason: String,
}
