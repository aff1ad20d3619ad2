//! Everything that is known of one sweep: what its report shows and, written down as JSON, the schema of
//! `bench.sweep_report(sweep_id, 'json')`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::capacity::{CapacityAnswer, Purpose, TrialOutcome};
use super::index_worth::IndexLine;
use super::screen::ScreenLine;
use super::{Environment, Severity, Topic, Unreplayed};

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given
/// another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// A sweep and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepDocument {
    /// Version of this schema: 1.
    pub schema_version: u32,
    /// Arguments and status of the sweep.
    pub sweep: Sweep,
    /// One for each rung, variant and round, in the order of their beginning; those not run come last.
    pub runs: Vec<SweepRun>,
    /// What the SQL of variants did to the database, each time that it was applied.
    pub changes: Vec<SweepChange>,
    /// Environment of the first completed run, as `environment` of a run's report.
    pub environment: Environment,
    /// What a sweep of a capture leaves out of it; null for other sweeps, and if nothing is left out.
    pub unreplayed: Option<Unreplayed>,
    /// Results of an ended search by `bench.capacity`, one for each objective; else empty.
    pub capacities: Vec<CapacityAnswer>,
    /// Effects of the settings of a screen, the largest first; else empty.
    pub screen: Vec<ScreenLine>,
    /// What indexes are worth, the one that earns most first; else empty.
    pub indexes: Vec<IndexLine>,
}

impl SweepDocument {
    /// (clients, TPS) of a variant's completed runs.
    pub fn points(&self, variant: &str) -> Vec<(f64, f64)> {
        let counts = |run: &&SweepRun| run.variant == variant && run.status.as_deref() == Some("completed");
        self.runs
            .iter()
            .filter(counts)
            .filter_map(|run| Some((f64::from(run.clients), run.tps.filter(|tps| tps.is_finite())?)))
            .collect()
    }
}

/// Arguments and status of a sweep, as in `bench.sweeps`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sweep {
    /// The sweep.
    pub sweep_id: i64,
    /// Name of the workload, or the mix as given.
    pub workload: String,
    /// The rungs, as given.
    pub clients: Vec<u32>,
    /// Measured time of each run, in seconds; null: `transactions` of each client, as in `run`.
    pub secs: Option<f64>,
    /// Warm-up before the measurement of each run, in seconds; null: until its throughput was steady.
    pub warmup: Option<f64>,
    /// Transactions per second to be started, over all clients; null: each client starts one when its last has ended.
    pub rate: Option<f64>,
    /// Runs of each rung and variant.
    pub rounds: u32,
    /// The variants, in order; one without a name if none were given.
    pub variants: Vec<VariantDescription>,
    /// Steps before each run: `reload`, `truncate`, `vacuum`, `prewarm`, `checkpoint`.
    pub before: Vec<String>,
    /// Seed of the order and of the runs' random numbers, given or drawn; signed.
    pub seed: i64,
    /// `simple`, `extended` or `prepared`, as pgbench's `-M`.
    pub query_mode: String,
    /// `driver`, `target`, `jobs` and `reconnect` of all runs, where they are not the defaults.
    pub run: Map<String, Value>,
    /// Script variables of all runs: name to value.
    pub variables: Map<String, Value>,
    /// Configuration parameters set for every client of all runs: name to value.
    pub settings: Map<String, Value>,
    /// The user's own labels, as given.
    pub tags: Map<String, Value>,
    /// `running`, `waiting for restart`, `completed`, `incomplete`, `canceled`, `failed`, `revert failed` or `crashed`.
    pub status: String,
    /// When it began.
    pub started_at: Option<String>,
    /// When it ended.
    pub finished_at: Option<String>,
    /// Role that called, and that the clients ran as.
    pub role: String,
    /// Reason for not completing: `sqlstate`, `message`, `detail`, `hint`.
    pub error: Option<Value>,
    /// `server_version` of the server at that time.
    pub server_version: String,
    /// Version of the extension at that time.
    pub extension_version: String,
    /// Arguments of a search by `bench.capacity`; null for other sweeps.
    pub search: Option<SearchDescription>,
    /// For a sweep with `rounds => NULL`: half width of the widest 95 % interval of a mean, as a share.
    pub sure_within: Option<f64>,
}

/// Arguments of a search by `bench.capacity`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SearchDescription {
    /// Objectives, ascending, in milliseconds; empty: throughput alone.
    pub latency_limits_ms: Vec<f64>,
    /// Percentile of the latency, a share.
    pub percentile: f64,
    /// Maximum number of trials per rate.
    pub trials: u32,
    /// Maximum gap between the answer and a failing rate, as a share.
    pub margin: f64,
    /// Share of the transactions that may fail.
    pub max_failed: f64,
    /// Repeated searches.
    pub rounds: u32,
}

/// What a variant changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VariantDescription {
    /// Its name; empty if no variants were given.
    pub name: String,
    /// Configuration parameters set for every client: name to value.
    pub settings: Map<String, Value>,
    /// Script variables: name to value.
    pub variables: Map<String, Value>,
    /// Rows and options of its fixture's load.
    pub load: Map<String, Value>,
    /// Configuration parameters of the server, set by ALTER SYSTEM while it ran: name to value.
    pub system: Map<String, Value>,
    /// Configuration parameters that the server was restarted with.
    pub restart: Map<String, Value>,
    /// Statements that change the database for its runs.
    pub sql: Option<AppliedSql>,
    /// Arguments of `bench.run`: `driver`, `query_mode`, `target`, `jobs`, `reconnect`, `on_disconnect`.
    pub run: Map<String, Value>,
}

/// Statements that change the database, and those that undo it. Each is a text as psql -c takes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AppliedSql {
    /// Statements before its runs.
    pub apply: Vec<String>,
    /// Statements that undo them.
    pub revert: Vec<String>,
}

/// What a variant's statements did to the database in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepChange {
    /// From 1.
    pub round: u32,
    /// The variant whose statements were applied.
    pub variant: String,
    /// Seconds that they took; null: they were not completed.
    pub apply_secs: Option<f64>,
    /// Seconds that it took to undo them; null: not undone.
    pub revert_secs: Option<f64>,
    /// Relations that were created or rewritten meanwhile.
    pub made: Vec<String>,
    /// Their size in bytes, with that of TOAST tables.
    pub made_bytes: Option<i64>,
    /// Reason why they could not be applied or undone.
    pub error: Option<String>,
}

/// A rung of a variant in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepRun {
    /// Position in the order of the runs, from 1.
    pub place: u32,
    /// From 1.
    pub round: u32,
    /// The variant's name.
    pub variant: String,
    /// The rung.
    pub clients: u32,
    /// The run; null if it has not run.
    pub run_id: Option<i64>,
    /// The run's status; null if it has not run.
    pub status: Option<String>,
    /// Reason why it could not run or did not complete.
    pub error: Option<String>,
    /// TPS of the whole run.
    pub tps: Option<f64>,
    /// Least TPS of its intervals.
    pub tps_min: Option<f64>,
    /// Greatest TPS of its intervals.
    pub tps_max: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// Median latency in milliseconds.
    pub latency_p50_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub latency_p99_ms: Option<f64>,
    /// Share of all processors' time idle, mean over the run.
    pub cpu_idle: Option<f64>,
    /// Processor time of the clients' processes per committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Processor time of the wire driver's jobs per committed transaction, in microseconds; null with the engine.
    pub driver_cpu_us: Option<f64>,
    /// Mean time in milliseconds to open a connection; null without `reconnect`.
    pub connect_avg_ms: Option<f64>,
    /// New orders per minute of workload orders, as in a run's report; null for other workloads.
    pub nopm: Option<f64>,
    /// Failed transactions.
    pub failed: u64,
    /// Findings of the run, the most severe first; only for completed runs.
    pub findings: Vec<RunFinding>,
    /// Transactions per second to be started, over all clients; null: a closed loop.
    pub rate: Option<f64>,
    /// For a search: `estimate`, `trial`, `overload`, `return` or `operating`; null for other sweeps.
    pub purpose: Option<Purpose>,
    /// For a search: result of the run; null for other sweeps and before the run's end.
    pub outcome: Option<TrialOutcome>,
}

/// A finding on a run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFinding {
    /// `critical`, `warning` or `notice`.
    pub severity: Severity,
    /// One word for its kind, as `dip`.
    pub topic: Topic,
    /// The sentence.
    pub finding: String,
}
