//! Everything that is known of one experiment, a sweep or a comparison of runs: what its report shows and, written down as JSON,
//! the schema of `bench.sweep_report(sweep_id, 'json')` and `bench.compare_report(baseline, candidate, 'json')`. The crate
//! bench_questions plans experiments and draws their results.

use bench_base::number::mean;
use bench_base::words;
use bench_model::spec::Duel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::rehearsal::{Rehearsal, RehearsalLine};
use crate::{Document, Environment, Series, Severity, Topic, Unreplayed};

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given
/// another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// An experiment and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExperimentDocument {
    /// Version of this schema: 1.
    pub schema_version: u32,
    /// Arguments and status of the sweep. For a comparison of runs: what these have in common; its variants are `baseline` and
    /// `candidate`.
    pub sweep: Sweep,
    /// One for each rung, variant and round, in the order of their beginning; those not run come last. For a comparison: the
    /// runs of the baseline, then those of the candidate, in the order given.
    pub runs: Vec<ExperimentRun>,
    /// What the SQL of variants did to the database, each time that it was applied.
    pub changes: Vec<SweepChange>,
    /// Environment of the first completed run, as `environment` of a run's report; empty for a comparison.
    pub environment: Environment,
    /// What the runs of a capture leave out of it; null for others, and if nothing is left out.
    pub unreplayed: Option<Unreplayed>,
    /// Results of an ended search by `bench.capacity`, one for each objective; else empty.
    pub capacities: Vec<CapacityAnswer>,
    /// Effects of the settings of a screen, the largest first; else empty.
    pub screen: Vec<ScreenLine>,
    /// What indexes are worth, the one that earns most first; else empty.
    pub indexes: Vec<IndexLine>,
    /// What a change did to the load under which it was rehearsed, and its alternative; else empty.
    pub rehearsals: Vec<RehearsalLine>,
}

impl ExperimentDocument {
    /// (clients, TPS) of a variant's completed runs.
    pub fn points(&self, variant: &str) -> Vec<(f64, f64)> {
        let counts = |run: &&ExperimentRun| run.variant == variant && run.is_completed();
        self.runs
            .iter()
            .filter(counts)
            .filter_map(|run| Some((f64::from(run.clients), run.tps.filter(|tps| tps.is_finite())?)))
            .collect()
    }
}

/// What a sweep was asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepSetup {
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
    pub variants: Vec<Variant>,
    /// Seed of the order and of the runs' random numbers, given or drawn; signed.
    pub seed: i64,
    /// `simple`, `extended` or `prepared`, as pgbench's `-M`.
    pub query_mode: String,
    /// Other arguments of all runs, where they are not the defaults.
    pub run: Map<String, Value>,
    /// Script variables of all runs: name to value.
    pub variables: Map<String, Value>,
    /// Configuration parameters set for every client of all runs: name to value.
    pub settings: Map<String, Value>,
    /// The user's own labels, as given.
    pub tags: Map<String, Value>,
}

/// Arguments and status of a sweep, as in `bench.sweeps`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sweep {
    /// The sweep; null for a comparison of runs.
    pub sweep_id: Option<i64>,
    #[serde(flatten)]
    pub setup: SweepSetup,
    /// Steps before each run: `reload`, `truncate`, `vacuum`, `prewarm`, `checkpoint`.
    pub before: Vec<String>,
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
    pub search: Option<CapacitySearch>,
    /// For a sweep with `rounds => NULL`: half width of the widest 95 % interval of a mean, as a share.
    pub sure_within: Option<f64>,
}

/// What a variant changes. In SQL it is an object of configuration parameters, as `settings` of bench.run, in which
/// `variables`, `load`, `system`, `restart` and `sql` may be objects of their own: no parameter of the server has such a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Variant {
    /// Its name; empty if no variants were given.
    pub name: String,
    /// Configuration parameters set for every client: name to value.
    pub settings: Map<String, Value>,
    /// Script variables: name to value.
    pub variables: Map<String, Value>,
    /// Rows, jobs and options of its fixture's load.
    pub load: Map<String, Value>,
    /// Configuration parameters of the server, set by ALTER SYSTEM while it ran: name to value.
    pub system: Map<String, Value>,
    /// Configuration parameters that the server was restarted with.
    pub restart: Map<String, Value>,
    /// Statements that change the database for its runs.
    pub sql: Option<AppliedSql>,
    /// Schemas that a superuser's `bench.index_worth` makes for the role that executes these statements.
    pub schemas: Vec<String>,
    /// The arms that its runs alternate between, with `bench.screen` and `bench.index_worth`; null for others.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub duel: Option<Duel>,
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
    /// The run in which they were applied, with `bench.rehearse`; null for others.
    pub rehearsal: Option<Rehearsal>,
}

/// Figures of a run, or of the completed runs of a variant with a number of clients: means, where nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunFigures {
    /// Least TPS of its intervals; in `results`, over the runs or intervals that `range_of` names.
    pub tps_min: Option<f64>,
    /// Greatest TPS of its intervals; in `results`, over the runs or intervals that `range_of` names.
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
    /// Failed transactions; in `results`, of all runs.
    pub failed: u64,
}

/// A run of an experiment: a rung of a variant in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExperimentRun {
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
    #[serde(flatten)]
    pub figures: RunFigures,
    /// Name of the run's workload, or its mix as given.
    pub workload: String,
    /// When the clients began.
    pub started_at: Option<String>,
    /// `server_version` of the server at that time.
    pub server_version: String,
    /// Time measured, in seconds.
    pub secs: Option<f64>,
    /// Transactions committed.
    pub transactions: u64,
    /// Transactions skipped because they could no longer meet the `latency_limit`, with a rate.
    pub skipped: u64,
    /// Context switches of the clients' processes per transaction.
    pub server_context_switches: Option<f64>,
    /// Context switches of the jobs of the wire driver per transaction.
    pub driver_context_switches: Option<f64>,
    /// For a comparison and a rehearsal: the measured intervals, column by column; else empty.
    pub samples: RunSamples,
    /// Findings of the run, the most severe first; only for completed runs.
    pub findings: Vec<RunFinding>,
    /// Transactions per second to be started, over all clients; null: a closed loop.
    pub rate: Option<f64>,
    /// For a search: `estimate`, `trial`, `overload`, `return` or `operating`; null for other sweeps.
    pub purpose: Option<Purpose>,
    /// For a search: result of the run; null for other sweeps and before the run's end.
    pub outcome: Option<TrialOutcome>,
}

impl ExperimentRun {
    /// With what is known of the run by itself.
    pub fn with_figures(self, document: &Document) -> Self {
        let (run, summary, environment) = (&document.run, &document.summary, &document.environment);
        Self {
            clients: run.clients,
            run_id: Some(run.run_id),
            status: Some(run.status.clone()),
            tps: summary.tps,
            figures: RunFigures {
                tps_min: summary.tps_min,
                tps_max: summary.tps_max,
                latency_avg_ms: summary.latency_avg_ms,
                latency_p50_ms: summary.latency_p50_ms,
                latency_p95_ms: summary.latency_p95_ms,
                latency_p99_ms: summary.latency_p99_ms,
                cpu_idle: mean(&document.samples.cpu_idle),
                server_cpu_us: summary.server_cpu_us,
                driver_cpu_us: summary.driver_cpu_us,
                connect_avg_ms: summary.connect_avg_ms,
                nopm: summary.nopm,
                failed: summary.failed,
            },
            workload: run.workload.clone(),
            started_at: run.started_at.clone(),
            server_version: run.server_version.clone(),
            secs: summary.secs,
            transactions: summary.transactions,
            skipped: summary.skipped,
            server_context_switches: environment.server_context_switches,
            driver_context_switches: environment.driver_context_switches,
            rate: run.rate,
            ..self
        }
    }

    /// Whether its figures count.
    pub fn is_completed(&self) -> bool {
        self.status.as_deref() == Some("completed")
    }
}

/// A run's throughput over time, column by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunSamples {
    /// End of the interval, in seconds since measuring began.
    pub elapsed: Series,
    /// TPS of the interval.
    pub tps: Series,
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

/// Arguments of a search by `bench.capacity`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapacitySearch {
    /// Objectives, ascending, in milliseconds at the percentile; empty: throughput alone.
    pub latency_limits_ms: Vec<f64>,
    /// Percentile of the latency, a share.
    pub percentile: f64,
    /// Maximum number of trials per rate.
    pub trials: u32,
    /// Maximum gap between the answer and a failing rate, as a share.
    pub margin: f64,
    /// Share of the transactions that may fail.
    pub max_failed: f64,
    /// Repeated searches, each from the beginning.
    pub rounds: u32,
}

impl CapacitySearch {
    /// The objectives, the strictest first.
    pub fn objectives(&self) -> Vec<Option<f64>> {
        match self.latency_limits_ms.as_slice() {
            [] => vec![None],
            limits => limits.iter().copied().map(Some).collect(),
        }
    }
}

/// What a run of a search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A closed loop: what the clients can do at most. It warms up as well.
    Estimate,
    /// Whether a rate passes.
    Trial,
    /// More than the clients can do, so that what comes after it follows an overload.
    Overload,
    /// Whether a rate that passed still does, after an overload.
    Return,
    /// The operating rate, over a checkpoint where the role may make one.
    Operating,
}

words! {
    /// What keeps a rate from being sustained.
    #[derive(JsonSchema)]
    pub enum Limit {
        /// The percentile is beyond the objective.
        Latency = "latency",
        /// Transactions were not done, or ever later.
        Throughput = "throughput",
        /// More failed than may.
        Errors = "errors",
        /// All clients were busy while the server was not: with more of them it could do more.
        Clients = "clients",
    }
}

/// The figures of a trial that count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrialOutcome {
    /// Committed transactions per second.
    pub tps: f64,
    /// Latency at the search's percentile, from when a transaction was due, in milliseconds.
    pub latency_ms: Option<f64>,
    /// Transactions due in the measured time.
    pub due: u64,
    /// Committed transactions among these.
    pub done: u64,
    /// Failed or in-doubt transactions among these.
    pub failed: u64,
    /// Growth of the lag, in seconds per second; null: it did not grow.
    pub lag_growth: Option<f64>,
    /// Mean time from a transaction's start to its end, in milliseconds.
    pub service_ms: Option<f64>,
    /// Share of the clients' time within transactions.
    pub busy: Option<f64>,
    /// Share of all processors' time idle.
    pub cpu_idle: Option<f64>,
    /// Checkpoints during the run, as far as known.
    pub checkpoints: u32,
    /// Whether errors ended clients; the rate then failed.
    pub ended_early: bool,
}

/// The answer to one objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapacityAnswer {
    /// The objective: milliseconds allowed at the percentile; null: throughput alone.
    pub latency_limit_ms: Option<f64>,
    /// Percentile of the latency, a share.
    pub percentile: f64,
    /// Transactions per second sustained; null: in at least one round, no rate passed.
    pub rate: Option<f64>,
    /// With one round `rate`; with several the lower bound of its 95 % interval.
    pub rate_low: Option<f64>,
    /// With one round the lowest rate that failed; with several the upper bound of the 95 % interval.
    pub rate_high: Option<f64>,
    /// 70 % of the rate, if a longer run sustained it.
    pub operating_rate: Option<f64>,
    /// Checkpoints during that run, as far as known; null: there was none.
    pub checkpoints: Option<u32>,
    /// `latency`, `throughput`, `errors` or `clients`; null: no rate failed.
    pub limited_by: Option<Limit>,
    /// Whether, after an overload, a rate no longer passed that had passed before in the last round; null: not tried.
    pub hysteresis: Option<bool>,
    /// Trials of the search, all rounds.
    pub trials: u32,
    /// Places of the failed trials at the lowest rate that failed, of all rounds.
    pub failing: Vec<u32>,
    /// Rounds of the search.
    pub rounds: u32,
    /// Rounds in which no rate passed.
    pub rounds_without: u32,
    /// Smallest number of transactions above the percentile, over the trials at the answer and at the lowest failing
    /// rate; null: throughput alone.
    pub above: Option<u64>,
}

/// What is tried; travels as JSON and is kept with the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Screen {
    pub factors: Vec<Factor>,
    /// Effects within this share are none.
    pub margin: f64,
}

/// A setting with two levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Factor {
    /// Name of the parameter.
    pub name: String,
    pub a: Value,
    pub b: Value,
    pub kind: FactorKind,
}

/// When a setting can be changed, which says how its effect is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactorKind {
    /// In a session: a duel of its own.
    #[default]
    Session,
    /// In the whole server: with all others of the server, by runs of combinations.
    System,
    /// So, with a restart.
    Restart,
}

impl Screen {
    /// The factors that runs of combinations are for, in their order.
    pub fn combined(&self) -> impl Iterator<Item = &Factor> {
        self.factors.iter().filter(|factor| factor.kind != FactorKind::Session)
    }
}

/// What a setting does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScreenLine {
    /// `tps`, or `latency_avg_ms` under a rate.
    pub metric: String,
    /// The setting.
    pub factor: String,
    /// Its first value, which the other is compared with.
    pub a: String,
    /// Its second value.
    pub b: String,
    /// Change of the metric from `a` to `b`, as a share.
    pub effect: Option<f64>,
    /// Effects within this share count as none.
    pub margin: f64,
    /// Lower bound of its interval; all intervals of the screen hold together with 95 %.
    pub effect_low: Option<f64>,
    /// Upper bound of that interval.
    pub effect_high: Option<f64>,
    /// `faster`, `slower` or `same` with `b`, `inconclusive`, or `fails`: a value does not work.
    pub verdict: String,
    /// Interactions that the effect cannot be told from.
    pub aliases: Option<String>,
    /// Why a value does not work.
    pub error: Option<String>,
}

/// What is asked; travels as JSON and is kept with the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexWorth {
    pub indexes: Vec<AskedIndex>,
    /// Differences within this share of a transaction's time are none.
    pub margin: f64,
}

/// An index, or one that might be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedIndex {
    /// With its schema, where it is there.
    pub name: String,
    /// As CREATE INDEX.
    pub definition: String,
    /// `None`: it is not there.
    pub bytes: Option<i64>,
    /// The table, with its schema.
    pub table: String,
    /// The variant whose duels are with it and without it in the eyes of the planner.
    pub reads: String,
    /// The variant whose duels are on copies of the table with it and without it, both times unseen by the planner.
    pub writes: String,
    /// Why there is no such variant.
    pub unmeasured: Option<String>,
}

/// What an index is worth, times in microseconds of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IndexLine {
    /// Name of the index.
    pub index: String,
    /// The index as CREATE INDEX.
    pub definition: String,
    /// Its size in bytes; null: it is not there.
    pub bytes: Option<i64>,
    /// Microseconds that a transaction would take longer if the planner did not see it.
    pub saved_us: Option<f64>,
    /// Lower bound of its interval; all intervals of all indexes hold together with 95 %.
    pub saved_low: Option<f64>,
    /// Upper bound of that interval.
    pub saved_high: Option<f64>,
    /// Microseconds that a transaction takes longer because it is maintained.
    pub cost_us: Option<f64>,
    /// Lower bound of its interval.
    pub cost_low: Option<f64>,
    /// Upper bound of that interval.
    pub cost_high: Option<f64>,
    /// `latency_avg_ms` or `server_cpu_us`: what the times are of.
    pub metric: String,
    /// `earns`, `costs`, `same`, `inconclusive`, or `not measured`: `saved_us` or `cost_us` is missing.
    pub verdict: String,
    /// The duel that says what is saved.
    pub reads_run_id: Option<i64>,
    /// The duel that says what it costs.
    pub writes_run_id: Option<i64>,
    /// Why one of the two could not be found.
    pub error: Option<String>,
}
