//! The state that a preflight reads before a run. `None` stands for an unknown value: the platform does not provide it,
//! or the role may not see it. The server returns its part as JSON. And a [`Risk`], which is derived from it.

use std::collections::BTreeMap;

use bench_base::words;
use bench_model::spec::{Before, Extent, RunOptions};
use bench_results::Severity;
use bench_stats::until_steady::LONGEST_SECS;
use serde::Deserialize;

/// Seconds from which on more is announced before a run: a shorter one is a trial.
const LONG_SECS: f64 = 10.0;

/// Milliseconds of a look at other work, before a long run or by itself.
pub const LOOK_MS: u64 = 250;

/// The run that is to start, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedRun {
    /// Seconds that its clients run, the warm-up included; `None`: until their transactions are done.
    pub secs: Option<f64>,
    /// Seconds that a warm-up whose length is not given may take at most.
    pub further_secs: f64,
    /// Whether a statement of it may write.
    pub writes: bool,
    /// What it does before it starts.
    pub before: Vec<Before>,
    /// Configuration parameters of its sessions.
    pub settings: Vec<(String, String)>,
    /// The foreign server that its connections lead to.
    pub target: Option<String>,
    /// Whether other nodes of a Citus cluster have clients of it, or may have.
    pub has_other_nodes: bool,
    /// What the nodes of a Citus cluster have answered, where it has to do with one.
    pub nodes: Option<NodesSeen>,
    /// Fixtures that it has to load first, with their rows.
    pub missing: Vec<(String, i64)>,
}

impl PlannedRun {
    /// Of a run with these options, whose scripts may write or do not.
    pub fn new(options: &RunOptions, writes: bool) -> Self {
        let secs = match options.extent {
            Extent::Secs(secs) => Some(options.warmup_secs.unwrap_or_default() + secs),
            Extent::Transactions(_) => None,
        };
        Self {
            secs,
            further_secs: if options.warmup_secs.is_none() { LONGEST_SECS } else { 0.0 },
            writes,
            before: options.before.clone(),
            settings: options.settings.clone(),
            target: options.target.clone(),
            has_other_nodes: options.nodes != bench_model::cluster::Nodes::Local,
            nodes: None,
            missing: Vec::new(),
        }
    }

    /// Whether it takes so long that somebody may want to see its figures again.
    pub(crate) fn is_long(&self) -> bool {
        self.secs.is_some_and(|secs| secs >= LONG_SECS)
    }

    /// For how many milliseconds others' work is looked at before it: long enough for processors' ticks, of a hundredth of a
    /// second each. `None` for a run that would take no longer than that, or may not.
    pub fn look_ms(&self) -> Option<u64> {
        let shortest = self.secs.filter(|&secs| secs >= 1.0)?;
        Some(if shortest >= LONG_SECS { LOOK_MS } else { 150 })
    }

    /// Whether the run does this before it starts.
    pub(crate) fn does(&self, step: Before) -> bool {
        self.before.contains(&step)
    }
}

/// What the nodes of a Citus cluster have answered before a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodesSeen {
    /// All active nodes.
    pub nodes: u32,
    /// Those of them that are to have clients.
    pub with_clients: u32,
    /// How long they took for their answers, in milliseconds.
    pub took_ms: f64,
    pub failures: Vec<NodeFailure>,
}

/// A node that has not answered, or does not reach another one.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFailure {
    /// What is wrong, as the message of an error.
    pub message: String,
    pub hint: String,
    /// The run needs it, and does not start without.
    pub is_needed: bool,
}

/// All that was looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Situation {
    pub plan: PlannedRun,
    pub server: ServerState,
    pub machine: MachineState,
}

/// What the server says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerState {
    /// Sessions of others that execute a statement, those of other runs among them.
    pub active: Option<i64>,
    /// Other runs under way, in whichever database.
    pub runs: Option<i64>,
    /// statement_timeout of the session that waits for the run, in seconds.
    pub statement_timeout_secs: Option<f64>,
    pub checkpoint: Option<Checkpoint>,
    /// Locks of others on the run's tables that vacuums and changes of tables take.
    pub locks: Option<Vec<BlockingLock>>,
    /// The run's tables; partitions, and no partitioned tables.
    pub tables: Option<Vec<TableStatistics>>,
    /// The run's fixtures, as they are and as they were loaded.
    pub fixtures: Option<Vec<FixtureState>>,
    /// Who holds back the xmin horizon, as every transaction does for a moment.
    pub holders: Option<Vec<Holder>>,
    pub slots: Option<Vec<ReplicationSlot>>,
    /// Parameters, by name: their values in a new session, in the units of pg_settings.
    pub settings: Option<BTreeMap<String, String>>,
}

/// Checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    pub is_under_way: bool,
    /// Seconds since the last one began, or since the server started.
    pub since_secs: f64,
    /// checkpoint_timeout in seconds.
    pub timeout_secs: f64,
    /// Bytes of WAL since the last one began.
    pub wal_bytes: f64,
    /// max_wal_size in bytes.
    pub max_wal_bytes: f64,
    /// checkpoint_completion_target.
    pub completion_target: f64,
}

/// A lock of another session on one of the run's tables.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct BlockingLock {
    pub relation: String,
    /// As in pg_locks, `ShareUpdateExclusiveLock`.
    pub mode: String,
    pub pid: i32,
    /// The command that reports its progress: VACUUM, ANALYZE, CREATE INDEX, CLUSTER.
    pub command: Option<String>,
    pub is_autovacuum: Option<bool>,
    /// Seconds since its transaction began.
    pub secs: Option<f64>,
}

/// A table's statistics.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TableStatistics {
    pub relation: String,
    /// Rows, by the cumulative statistics.
    pub live: f64,
    pub dead: f64,
    /// Rows changed since the last ANALYZE.
    pub modified: f64,
    /// Rows inserted since the last VACUUM.
    pub inserted: f64,
    /// Rows by the last VACUUM or ANALYZE; -1 where there was none.
    pub reltuples: f64,
    /// Transactions since its oldest row version that is not frozen.
    pub xid_age: f64,
    /// Storage parameters, by name.
    pub options: Option<BTreeMap<String, String>>,
}

/// A loaded fixture.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct FixtureState {
    pub name: String,
    /// As it was loaded.
    pub rows: f64,
    /// Bytes of its tables, without indexes, as it was loaded.
    pub loaded_bytes: Option<f64>,
    pub bytes: Option<f64>,
    /// Rows now, by the cumulative statistics.
    pub live: Option<f64>,
}

/// What holds back the xmin horizon.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// `session`, `prepared transaction` or `replication slot`.
    pub kind: String,
    /// Its process id, or its name.
    pub name: String,
    /// A session's, as in pg_stat_activity; `inactive` for a slot without a consumer.
    pub state: Option<String>,
    /// Transactions since the one that it holds.
    pub age: f64,
    /// Seconds since the transaction began.
    pub secs: Option<f64>,
}

/// A replication slot.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicationSlot {
    pub name: String,
    pub active: bool,
    /// Bytes of WAL that it retains.
    pub wal_bytes: f64,
}

/// The machine that the server runs on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineState {
    /// Share of the processors' time that others used during the look, and that the hypervisor withheld.
    pub busy: Option<f64>,
    pub steal: Option<f64>,
    pub processors: Option<u32>,
    /// Frequency governors, each with the number of its processors.
    pub governors: BTreeMap<String, u32>,
    /// Bytes read from and written to swap per second of the look.
    pub swapped_per_sec: Option<f64>,
    pub swap_used_bytes: Option<f64>,
    pub memory_bytes: Option<f64>,
}

words! {
    /// What a risk is about.
    pub enum RiskTopic {
        Autovacuum = "autovacuum",
        Bloat = "bloat",
        Checkpoint = "checkpoint",
        Dead = "dead",
        Fixture = "fixture",
        Governor = "governor",
        Horizon = "horizon",
        Load = "load",
        Lock = "lock",
        Nodes = "nodes",
        Safety = "safety",
        Slot = "slot",
        Statistics = "statistics",
        Swap = "swap",
        Target = "target",
        Timeout = "timeout",
        Vacuum = "vacuum",
    }
}

/// What would spoil a run, in a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    pub severity: Severity,
    pub topic: RiskTopic,
    pub finding: String,
    /// What to do.
    pub advice: String,
    /// Whether a run raises a NOTICE of it before it starts.
    pub announced: Announced,
}

/// Before which runs a risk is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// It is certain and this server's own.
    Always,
    /// Those whose figures somebody may want to see again: see [`LONG_SECS`](LONG_SECS).
    InLongRuns,
    Never,
}

impl Announced {
    /// Always or never.
    pub(crate) fn if_so(is_announced: bool) -> Self {
        if is_announced { Self::Always } else { Self::Never }
    }
}

impl Risk {
    /// The finding as the message of a NOTICE: without a capital and a full stop.
    pub fn message(&self) -> String {
        let text = self.finding.strip_suffix('.').unwrap_or(&self.finding);
        let mut characters = text.chars();
        characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
    }
}

/// A risk that does not keep figures from being right, and that no run tells.
pub fn notice(topic: RiskTopic, finding: String, advice: impl Into<String>) -> Risk {
    Risk { severity: Severity::Notice, topic, finding, advice: advice.into(), announced: Announced::Never }
}

/// A risk of figures that are not the same tomorrow.
pub fn warning(topic: RiskTopic, finding: String, advice: impl Into<String>, announced: Announced) -> Risk {
    Risk { severity: Severity::Warning, topic, finding, advice: advice.into(), announced }
}
