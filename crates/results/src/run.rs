//! How a run was asked for and how it ended; its figures, and those of its scripts and their commands.

use bench_base::error::UserError;
use bench_model::schedule::Rates;
use bench_stats::until_steady::LONGEST_SECS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Arguments and status of a run, as in `bench.runs`. Status `incomplete`: clients were lost, or some results could not
/// be written; `error` says which. `failed`: nothing was measured. `crashed`: the server or the run's coordinator
/// crashed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Run {
    /// The run.
    pub run_id: i64,
    /// Name of the workload, or the mix as given.
    pub workload: String,
    /// Fixture used; several are separated by commas.
    pub fixture: Option<String>,
    /// Rows loaded into each of these fixtures.
    pub fixture_rows: Option<Vec<i64>>,
    /// MD5 of the script as run: equal for runs of the same script.
    pub script_hash: String,
    /// Concurrent clients, on each node that clients ran on.
    pub clients: u32,
    /// Requested measured time, in seconds.
    pub secs: Option<f64>,
    /// Requested transactions per client.
    pub transactions: Option<u64>,
    /// Requested warm-up, in seconds; null: until throughput was steady.
    pub warmup: Option<f64>,
    /// Actual warm-up, in seconds; null if nothing was run.
    pub warmup_took: Option<f64>,
    /// Target transactions per second over all clients; null: each client starts a transaction when its previous one
    /// has ended.
    pub rate: Option<f64>,
    /// Rates that changed over the measured time, by the second from which on they were due; `rate` is then their mean.
    pub rates: Option<Value>,
    /// Latency above which a transaction is late, in milliseconds.
    pub latency_limit: Option<f64>,
    /// Tries per transaction at a serialization failure or deadlock; 0: no limit.
    pub max_tries: u32,
    /// Seed of the random numbers, given or drawn; signed.
    pub seed: i64,
    /// `engine` or `wire`.
    pub driver: String,
    /// `simple`, `extended` or `prepared`, as pgbench's `-M`.
    pub query_mode: String,
    /// With the wire driver: the foreign server that the connections went to; null: the server itself.
    pub target: Option<String>,
    /// With the wire driver: background workers that shared the connections.
    pub jobs: Option<u32>,
    /// With the wire driver: whether each transaction opened its own connection.
    pub reconnect: bool,
    /// With the wire driver: `end`: a client ended when its connection was lost; `reconnect`: it connected again.
    pub on_disconnect: String,
    /// `serialize`: rows are converted to text and dropped; `discard`: rows are dropped unread.
    pub results: String,
    /// Script variables given: name to value.
    pub variables: Map<String, Value>,
    /// Configuration parameters set for every client: name to value.
    pub settings: Map<String, Value>,
    /// Statements by which a sweep had changed the database for the run.
    pub applied: Vec<String>,
    /// The user's own labels, as given.
    pub tags: Map<String, Value>,
    /// Requested length of an interval, in seconds.
    pub sample_interval: f64,
    /// Share of the transactions to log in bench.transactions, from 0 to 1.
    pub log_rate: f64,
    /// Transactions logged; null without a log.
    pub logged: Option<u64>,
    /// Transactions lost from the log because they ended faster than they could be written; null without a log.
    pub log_lost: Option<u64>,
    /// `starting`, `running`, `completed`, `incomplete`, `canceled`, `failed` or `crashed`.
    pub status: String,
    /// When the clients began.
    pub started_at: Option<String>,
    /// When the results were written.
    pub finished_at: Option<String>,
    /// Calling role.
    pub role: String,
    /// Runs of the same database, of any role, that were measured at the same time.
    pub other_runs: Vec<i64>,
    /// Reason for not completing: `sqlstate`, `message`, `detail`, `hint`, and `context` where it is known.
    pub error: Option<Value>,
    /// Whether the waiting caller held back the xmin horizon, so that dead rows could not be pruned.
    pub horizon_held: bool,
    /// `server_version` of the server at that time.
    pub server_version: String,
    /// Version of the extension at that time.
    pub extension_version: String,
    /// For a run imported by `bench.import`: `run_id`, `role`, `database`, `system_identifier` and `started_at` on the
    /// original server, `exported_at`, `imported_at`.
    pub origin: Option<Value>,
}

impl Run {
    /// Its rates, where they changed over the measured time.
    pub fn changing_rates(&self) -> Option<Rates> {
        Rates::parse(self.rates.as_ref()?).ok()
    }

    /// Seconds that it ran before the measurement, as far as they are known.
    pub fn warmed_up_secs(&self) -> f64 {
        self.warmup_took.or(self.warmup).unwrap_or_default()
    }

    /// Whether the warm-up was to last until throughput was steady, and ended because that took too long.
    pub fn is_unsteady(&self) -> bool {
        self.warmup.is_none() && self.warmup_took.is_some_and(|secs| secs >= LONGEST_SECS)
    }
}

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

/// Parts that could not be written, by the names that users read them under, each with the reason.
#[derive(Clone, Debug, Default)]
pub struct UnwrittenParts {
    parts: Vec<(&'static str, UserError)>,
}

impl UnwrittenParts {
    /// Adds a part; the first reason of each stays.
    pub fn add(&mut self, part: &'static str, reason: UserError) {
        if !self.parts.iter().any(|(name, _)| *name == part) {
            self.parts.push((part, reason));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The error to keep with the run: its own `error`, or else the first reason, and in the detail the parts that are
    /// missing, those with another reason than the error's with theirs.
    pub fn told_with(&self, error: Option<UserError>) -> Option<UserError> {
        let Some((_, first)) = self.parts.first() else { return error };
        let mut error = error.unwrap_or_else(|| first.clone());
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|(part, reason)| match reason.message == error.message {
                true => (*part).to_owned(),
                false => format!("{part} ({})", reason.message),
            })
            .collect();
        let missing = format!("Not written: {}.", parts.join(", "));
        error.detail = Some(match error.detail.take() {
            Some(detail) => format!("{detail}\n{missing}"),
            None => missing,
        });
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use bench_base::error::UserError;

    use super::*;

    fn full(disk: &str) -> UserError {
        UserError::new("53100", format!("could not extend file {disk}")).hint("Check free disk space.")
    }

    #[test]
    fn nothing_missing_leaves_the_error_alone() {
        let missing = UnwrittenParts::default();
        assert!(missing.is_empty());
        assert_eq!(missing.told_with(None), None);
        assert_eq!(missing.told_with(Some(full("a"))), Some(full("a")));
    }

    #[test]
    fn the_first_reason_becomes_the_error_and_all_parts_are_named() {
        let mut missing = UnwrittenParts::default();
        missing.add("bench.latencies", full("a"));
        missing.add("bench.waits", full("b"));
        missing.add("bench.audit", full("a"));
        missing.add("bench.waits", full("c"));
        let error = missing.told_with(None).unwrap();
        assert_eq!(error.sqlstate, "53100");
        assert_eq!(error.message, "could not extend file a");
        assert_eq!(error.hint.as_deref(), Some("Check free disk space."));
        let detail = "Not written: bench.latencies, bench.waits (could not extend file b), bench.audit.";
        assert_eq!(error.detail.as_deref(), Some(detail));
    }

    #[test]
    fn an_error_of_the_run_keeps_its_words() {
        let mut missing = UnwrittenParts::default();
        missing.add("bench.latencies", full("a"));
        let own = UserError::new("57P01", "terminated").detail("1 of 2 clients ended early.");
        let error = missing.told_with(Some(own)).unwrap();
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("57P01", "terminated"));
        let detail = "1 of 2 clients ended early.\nNot written: bench.latencies (could not extend file a).";
        assert_eq!(error.detail.as_deref(), Some(detail));
    }
}
