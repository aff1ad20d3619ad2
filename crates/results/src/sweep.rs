//! Everything that is known of one sweep: what its report shows and, written down as JSON, the schema of
//! `bench.sweep_report(sweep_id, 'json')`.

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepDocument {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    pub sweep: Sweep,
    /// One for each rung, variant and round, in the order of their beginning; those that have not been run come last.
    pub runs: Vec<SweepRun>,
    /// What variants' statements did to the database, in their order.
    pub changes: Vec<SweepChange>,
    /// What the first completed run ran on.
    pub environment: Environment,
    /// What it leaves out of a capture; `None` of other runs, and where that is nothing.
    pub unreplayed: Option<Unreplayed>,
    /// Of a search for a capacity that has ended: the answer to each objective, the strictest first.
    pub capacities: Vec<CapacityAnswer>,
    /// Of a screen of settings: their effects, the largest first.
    pub screen: Vec<ScreenLine>,
    /// Of a sweep that looks at indexes: what they are worth, the one that earns most first.
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

/// How the sweep was asked for and how it ended; see the comments of `bench.sweeps`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sweep {
    pub sweep_id: i64,
    /// A workload's name or a mix, as given.
    pub workload: String,
    /// The rungs, as given.
    pub clients: Vec<u32>,
    /// Measured seconds of each run; `None`: so many transactions of each client, as `run` has it.
    pub secs: Option<f64>,
    /// Seconds before the measuring of each run; `None`: until throughput was steady.
    pub warmup: Option<f64>,
    /// Transactions per second of an open loop.
    pub rate: Option<f64>,
    pub rounds: u32,
    /// In their order; one without a name where no variants were asked for.
    pub variants: Vec<VariantDescription>,
    /// What was done before each run: reload, truncate, vacuum, prewarm, checkpoint.
    pub before: Vec<String>,
    pub seed: i64,
    pub query_mode: String,
    /// Arguments of bench.run that all runs have, where they are not the defaults.
    pub run: Map<String, Value>,
    /// Script variables of all runs.
    pub variables: Map<String, Value>,
    pub settings: Map<String, Value>,
    pub tags: Map<String, Value>,
    /// starting, running, completed, incomplete, canceled, failed, crashed
    pub status: String,
    /// ISO 8601.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub role: String,
    /// sqlstate, message, detail and hint of what kept it from completing.
    pub error: Option<Value>,
    pub server_version: String,
    pub extension_version: String,
    /// Of a search for a capacity: what was searched for.
    pub search: Option<SearchDescription>,
    /// Of a sweep with `rounds => NULL`: how far to either side, as a share, the 95 % interval of the least sure mean reaches.
    pub sure_within: Option<f64>,
}

/// What is searched for; see `CapacitySearch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchDescription {
    /// Ascending; empty: throughput alone counts.
    pub latency_limits_ms: Vec<f64>,
    pub percentile: f64,
    /// For each rate, at most.
    pub trials: u32,
    pub margin: f64,
    pub max_failed: f64,
    pub rounds: u32,
}

/// What a variant changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VariantDescription {
    /// Empty where there are no variants.
    pub name: String,
    /// Configuration parameters of the clients' sessions.
    pub settings: Map<String, Value>,
    /// Script variables.
    pub variables: Map<String, Value>,
    /// Rows and options of the fixture.
    pub load: Map<String, Value>,
    /// Configuration parameters of the server, set by ALTER SYSTEM while it runs.
    pub system: Map<String, Value>,
    /// Configuration parameters of the server that it was restarted with.
    pub restart: Map<String, Value>,
    /// Statements that change the database while it runs.
    pub sql: Option<AppliedSql>,
    /// Arguments of bench.run.
    pub run: Map<String, Value>,
}

/// Statements that change the database, and those that undo it. Each is a text as psql -c takes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppliedSql {
    pub apply: Vec<String>,
    pub revert: Vec<String>,
}

/// What a variant's statements did to the database in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepChange {
    /// From 1.
    pub round: u32,
    pub variant: String,
    /// Seconds that the statements took; `None`: they were not completed.
    pub apply_secs: Option<f64>,
    /// `None`: not undone.
    pub revert_secs: Option<f64>,
    /// Relations that they made or rewrote.
    pub made: Vec<String>,
    /// Their size.
    pub made_bytes: Option<i64>,
    /// Why it could not be applied, or undone.
    pub error: Option<String>,
}

/// A rung of a variant in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepRun {
    /// Its position in the order of the runs, from 1.
    pub place: u32,
    /// From 1.
    pub round: u32,
    /// The variant's name.
    pub variant: String,
    pub clients: u32,
    /// `None`: not run.
    pub run_id: Option<i64>,
    /// A run's status; `None`: not run.
    pub status: Option<String>,
    /// Why it could not run, or did not complete.
    pub error: Option<String>,
    pub tps: Option<f64>,
    /// The lowest TPS of the run's intervals.
    pub tps_min: Option<f64>,
    pub tps_max: Option<f64>,
    pub latency_avg_ms: Option<f64>,
    pub latency_p50_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    /// Share of all processors' time, mean over the run.
    pub cpu_idle: Option<f64>,
    /// As `Summary::server_cpu_us` of a run's document.
    pub server_cpu_us: Option<f64>,
    /// As `Summary::driver_cpu_us` of a run's document.
    pub driver_cpu_us: Option<f64>,
    /// As `Summary::connect_avg_ms` of a run's document.
    pub connect_avg_ms: Option<f64>,
    /// As `Summary::nopm` of a run's document.
    pub nopm: Option<f64>,
    /// Transactions given up.
    pub failed: u64,
    /// What there is to say of the run, the gravest first.
    pub findings: Vec<RunFinding>,
    /// Transactions per second that were to be started; `None`: a closed loop.
    pub rate: Option<f64>,
    /// Of a search: what the run was for.
    pub purpose: Option<Purpose>,
    /// Of a search: what it has shown.
    pub outcome: Option<TrialOutcome>,
}

/// A finding on a run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFinding {
    pub severity: Severity,
    /// One word for its kind, as `dip`.
    pub topic: Topic,
    pub finding: String,
}
