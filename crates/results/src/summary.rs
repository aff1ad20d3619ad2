//! The figures of a run, of its scripts and of their commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of the whole run, as in `bench.summary`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Summary {
    /// Time measured, in seconds.
    pub secs: Option<f64>,
    /// Transactions committed.
    pub transactions: u64,
    /// Transactions that failed with a serialization failure or deadlock after `max_tries`.
    pub failed: u64,
    /// Clients ended by another error.
    pub aborted: Option<u64>,
    /// Transactions with more than one try.
    pub retried: u64,
    /// Transactions skipped because they could no longer meet the `latency_limit`, with a rate.
    pub skipped: u64,
    /// Committed transactions above the `latency_limit`.
    pub late: u64,
    /// TPS of the whole: `transactions` / `secs`.
    pub tps: Option<f64>,
    /// Mean of the samples' TPS.
    pub tps_avg: Option<f64>,
    /// Least of the samples' TPS.
    pub tps_min: Option<f64>,
    /// Greatest of the samples' TPS.
    pub tps_max: Option<f64>,
    /// Standard deviation of the samples' TPS.
    pub tps_stddev: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// Standard deviation of the latency in milliseconds.
    pub latency_stddev_ms: Option<f64>,
    /// Median latency in milliseconds; null, like the other percentiles, until the run has ended.
    pub latency_p50_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub latency_p99_ms: Option<f64>,
    /// 99.9th percentile of the latency in milliseconds; null below 10,000 transactions.
    pub latency_p999_ms: Option<f64>,
    /// Greatest latency in milliseconds.
    pub latency_max_ms: Option<f64>,
    /// With a rate: mean delay between due time and start, in milliseconds; part of the latency.
    pub lag_avg_ms: Option<f64>,
    /// With a rate: longest such delay in milliseconds; null until the run has ended.
    pub lag_max_ms: Option<f64>,
    /// With a rate: transactions due before the end that were neither started nor skipped.
    pub backlog: Option<u64>,
    /// Processor time of the clients' processes per committed transaction, in microseconds; null until the run has
    /// ended, and if the platform does not provide it.
    pub server_cpu_us: Option<f64>,
    /// Processor time of the wire driver's jobs per committed transaction, in microseconds: of all that they did for the run,
    /// which for short runs is more than what was measured; null with the engine.
    pub driver_cpu_us: Option<f64>,
    /// Mean time in milliseconds to open a connection during the measurement; null without `reconnect`.
    pub connect_avg_ms: Option<f64>,
    /// Median of these times.
    pub connect_p50_ms: Option<f64>,
    /// 95th percentile of these times.
    pub connect_p95_ms: Option<f64>,
    /// 99th percentile of these times.
    pub connect_p99_ms: Option<f64>,
    /// Greatest of these times.
    pub connect_max_ms: Option<f64>,
    /// With `on_disconnect => 'reconnect'`: transactions in doubt: their connection was lost when they may have been
    /// committed; null otherwise.
    pub unknown: Option<u64>,
    /// New orders per minute of workload orders, derived from TPC-C and not comparable with published TPC results; null
    /// for other workloads.
    pub nopm: Option<f64>,
}

/// A bucket of the histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Lower bound of the bucket in milliseconds, inclusive.
    pub low_ms: f64,
    /// Upper bound of the bucket in milliseconds, exclusive; from a microsecond on at most 1 % above the lower one.
    pub high_ms: f64,
    /// Committed transactions with a latency in it.
    pub count: u64,
}

/// A script of the run's mix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScriptSummary {
    /// Index of the script in the mix, from 0.
    pub script: u32,
    /// Name of the workload.
    pub workload: String,
    /// Its share of the transactions, relative to the other weights.
    pub weight: u32,
    /// Transactions committed.
    pub transactions: u64,
    /// TPS of this script.
    pub tps: Option<f64>,
    /// Transactions that failed with a serialization failure or deadlock after `max_tries`.
    pub failed: u64,
    /// Clients ended by another error.
    pub aborted: Option<u64>,
    /// Transactions with more than one try.
    pub retried: u64,
    /// Transactions skipped because they could no longer meet the `latency_limit`, with a rate.
    pub skipped: u64,
    /// Committed transactions above the `latency_limit`.
    pub late: u64,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// Median latency in milliseconds.
    pub latency_p50_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub latency_p99_ms: Option<f64>,
    /// Greatest latency in milliseconds.
    pub latency_max_ms: Option<f64>,
}

/// A command of a script, meta commands too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandSummary {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// Index of its script in the mix, from 0.
    pub script: u32,
    /// Its place in the script, from 1.
    pub command: u32,
    /// Line of the script that it begins at, from 1.
    pub line: u32,
    /// The command as written.
    pub statement: String,
    /// Executions without an error, including those in repeated tries.
    pub count: u64,
    /// Transactions that failed at this command, or ended there with their client.
    pub failed: u64,
    /// Tries that failed at this command and were followed by another try.
    pub retried: u64,
    /// Mean time of an execution in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// 95th percentile of the time of an execution in milliseconds, within 2 % from a microsecond on.
    pub latency_p95_ms: Option<f64>,
    /// Plan as executed, in the form of EXPLAIN, under a line that says whether it was generic or custom; a plan
    /// that changed shows each version under a separate line. Null for commands without a plan: meta commands, utility commands, several
    /// statements at once.
    pub plan: Option<String>,
    /// Executions by a generic plan, all phases.
    pub generic_plans: u64,
    /// Executions by a plan made for the parameters' values, all phases.
    pub custom_plans: u64,
    /// Number of times a client's plan changed its shape, not counting the switch from custom to generic.
    pub plan_changes: u64,
    /// Parallel workers planned, all phases.
    pub workers_planned: u64,
    /// Parallel workers launched, all phases.
    pub workers_launched: u64,
    /// Rows returned, inserted, updated, deleted or merged, all phases; null for meta commands.
    pub rows: Option<u64>,
    /// Executions of INSERT, UPDATE, DELETE or MERGE, all phases; null if there was none.
    pub writes: Option<u64>,
    /// Number of these that affected no row.
    pub empty_writes: Option<u64>,
}

impl CommandSummary {
    /// Rows of an execution; `None` of meta commands, and where executions were not counted.
    pub fn rows_per_execution(&self) -> Option<f64> {
        let executions = self.generic_plans.saturating_add(self.custom_plans);
        self.rows.filter(|_| executions > 0).map(|rows| rows as f64 / executions as f64)
    }
}
