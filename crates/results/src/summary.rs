//! The figures of a run, of its scripts and of their commands.

use serde::{Deserialize, Serialize};

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
    /// As [`crate::Node::node`]; 0: the only one.
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
