//! Everything that is known of one run, apart from where it is stored: what findings are drawn from, what every
//! report shows, and, written down as JSON, the schema of `bench.report(run_id, 'json')`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::findings::Finding;

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given
/// another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// One value for each interval; `None` where the platform or the server's version has none.
pub type Series = Vec<Option<f64>>;

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
    /// Those of the warm-up: `elapsed` counts from its begin.
    pub warmup_samples: Samples,
    /// The histogram of all scripts' latencies, in ascending order, empty buckets left out.
    pub latencies: Vec<Bucket>,
    pub scripts: Vec<Script>,
    /// In the order of the scripts and of their commands, for each node that clients ran on.
    pub statements: Vec<Statement>,
    /// Of the measured time of a node's clients, the greatest share first; the shares of a node add up to 1.
    pub waits: Vec<Wait>,
    /// In the order of their begin.
    pub events: Vec<Event>,
    pub relations: Vec<Relation>,
    pub errors: Vec<ErrorLine>,
    pub audit: Vec<AuditLine>,
    /// The nodes of the Citus cluster, those that only served others' statements among them, in the order of their
    /// ids; empty for a run that had nothing to do with Citus.
    pub nodes: Vec<Node>,
    pub environment: Environment,
    /// What [`crate::findings::findings`] says of all this, the gravest first.
    pub findings: Vec<Finding>,
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
    /// MD5 of the script as run, in hexadecimal: whether two runs ran the same.
    pub script_hash: String,
    /// On each node that clients ran on.
    pub clients: u32,
    /// Measured seconds asked for.
    pub secs: Option<f64>,
    /// Transactions per client asked for.
    pub transactions: Option<u64>,
    /// Seconds.
    pub warmup: f64,
    /// Transactions per second of an open loop.
    pub rate: Option<f64>,
    /// Milliseconds.
    pub latency_limit: Option<f64>,
    pub max_tries: u32,
    pub seed: i64,
    pub query_mode: String,
    pub results: String,
    pub variables: Map<String, Value>,
    pub settings: Map<String, Value>,
    pub tags: Map<String, Value>,
    /// Seconds.
    pub sample_interval: f64,
    pub status: String,
    /// ISO 8601, as PostgreSQL writes a timestamptz into JSON.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub role: String,
    /// sqlstate, message, detail and hint of what kept it from completing.
    pub error: Option<Value>,
    /// Whether the waiting caller held back the xmin horizon.
    pub horizon_held: bool,
    pub server_version: String,
    pub extension_version: String,
    /// Of a run that was imported: where it ran.
    pub origin: Option<Value>,
}

/// The figures of the whole; see the comments of `bench.summary`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Seconds measured.
    pub secs: Option<f64>,
    pub transactions: u64,
    pub failed: u64,
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
}

macro_rules! samples {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Intervals, column by column: a soak of hours has tens of thousands of them. All columns have the
        /// same length.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Samples {
            $($(#[$doc])* pub $name: Series,)*
            /// Share of the clients' time for each wait event (`IO:WALSync`), for `CPU` (running on a processor)
            /// and for `Runnable` (waiting for one); 0 where an interval has none.
            pub waits: BTreeMap<String, Vec<f64>>,
        }

        impl Samples {
            /// Names of the columns, which are those of `bench.samples`.
            pub const COLUMNS: &[&str] = &[$(stringify!($name),)*];

            /// The columns, in the order of their names.
            pub fn columns_mut(&mut self) -> Vec<&mut Series> {
                vec![$(&mut self.$name,)*]
            }
        }
    };
}

samples! {
    /// The interval's end, in seconds since the phase began.
    elapsed,
    /// Its true length in seconds.
    secs,
    /// Clients at work.
    clients,
    /// Committed in the interval.
    transactions,
    /// transactions / secs.
    tps,
    failed,
    retried,
    skipped,
    late,
    latency_avg_ms,
    latency_stddev_ms,
    latency_p50_ms,
    latency_p95_ms,
    latency_p99_ms,
    latency_max_ms,
    lag_avg_ms,
    /// WAL generated by the whole server; backends report theirs at most once a second.
    wal_bytes,
    wal_records,
    /// Full-page images.
    wal_fpi,
    /// Times that WAL had to be written because its buffers were full.
    wal_buffers_full,
    /// Checkpoints that began in the interval.
    checkpoints,
    /// Buffers written by the checkpointer.
    buffers_checkpoint,
    /// Buffers written by the background writer.
    buffers_clean,
    /// Buffers written by backends themselves.
    buffers_backend,
    /// Buffers of this database found in shared buffers.
    blks_hit,
    /// Those that were not.
    blks_read,
    temp_files,
    temp_bytes,
    /// Share of all processors' time, as the other four.
    cpu_user,
    cpu_system,
    cpu_iowait,
    /// Taken by the hypervisor for others.
    cpu_steal,
    cpu_idle,
    /// Free or to be had without swapping, at the interval's end.
    memory_available_bytes,
    /// Written to files and not yet to disk, at the interval's end.
    memory_dirty_bytes,
    disk_read_bytes,
    disk_written_bytes,
    /// Seconds for which the control group's quota kept its processes off the processors.
    throttled_secs,
}

impl Samples {
    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.elapsed.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.elapsed.is_empty()
    }
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
pub struct Script {
    /// From 0.
    pub script: u32,
    pub workload: String,
    pub weight: u32,
    pub transactions: u64,
    pub tps: Option<f64>,
    pub failed: u64,
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
pub struct Statement {
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
    /// Those that there were.
    pub workers_launched: u64,
    /// Rows returned, inserted, updated, deleted or merged, in all phases; `None` of meta commands.
    pub rows: Option<u64>,
    /// Executions that were to insert, update, delete or merge rows, in all phases; `None` where none was.
    pub writes: Option<u64>,
    /// Those of them that affected no row.
    pub empty_writes: Option<u64>,
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
    /// Of 1.
    pub share: f64,
}

/// Something that went on in the server for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// As [`Node::node`]; 0: the only one.
    pub node: i32,
    /// `checkpoint`, `vacuum` or `autovacuum`.
    pub kind: String,
    /// The table that was vacuumed.
    pub relation: Option<String>,
    /// Of a checkpoint: `timed` or `requested`, where that is known, or `begun before the run`.
    pub detail: Option<String>,
    /// Seconds since measuring began; negative before.
    pub started: f64,
    /// The same; `None` when it had not ended with the run.
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

/// A node of a Citus cluster and its part in the run; see the comments of `bench.nodes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// As Citus numbers them; 0: the only one that clients ran on.
    pub node: i32,
    /// Host and port, as other nodes reach it.
    pub name: String,
    /// Whether it is Citus' coordinator.
    pub is_coordinator: bool,
    /// Clients that ran on it; 0 where it only served others' statements.
    pub clients: u32,
    /// How its part ended, as a run's status; `None` without clients.
    pub status: Option<String>,
    /// sqlstate, message, detail and hint of what kept its part from completing.
    pub error: Option<Value>,
    /// By how many milliseconds its clients were let loose after the agreed instant, by the clock of the node that asked.
    pub start_offset_ms: Option<f64>,
    /// Its clock less that of the node that asked, in milliseconds, and the most that this may be wrong by.
    pub clock_offset_ms: Option<f64>,
    pub clock_error_ms: Option<f64>,
    /// Seconds measured.
    pub secs: Option<f64>,
    pub transactions: Option<u64>,
    pub failed: Option<u64>,
    pub retried: Option<u64>,
    pub tps: Option<f64>,
    pub latency_avg_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    pub latency_p99_ms: Option<f64>,
    pub latency_max_ms: Option<f64>,
    pub processors: Option<u32>,
    /// Shares of all its processors' time, as those of `bench.samples`, over the whole run.
    pub cpu_user: Option<f64>,
    pub cpu_system: Option<f64>,
    pub cpu_iowait: Option<f64>,
    pub cpu_steal: Option<f64>,
    pub cpu_idle: Option<f64>,
    /// Transactions that it has had other nodes prepare for a two-phase commit, one for each connection.
    pub prepared: Option<u64>,
    /// Connections that its sessions have opened to other nodes, and found open, for a statement; `None` where Citus
    /// does not count them (before 13.1).
    pub connections_opened: Option<u64>,
    pub connections_reused: Option<u64>,
    /// Prepared transactions of Citus' that were left on it when the run had ended.
    pub prepared_left: Option<u64>,
    /// Parameters of Citus' that decide what is measured, by name, as SHOW shows them.
    pub settings: BTreeMap<String, String>,
}

/// What the run ran on. What is not known is `None`, or missing from a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// As version() tells it, compiler included.
    pub version: Option<String>,
    /// Configuration parameters that are not at their defaults in a client's session, without those that only
    /// superusers may see.
    pub server_settings: Vec<ServerSetting>,
    /// Whether pages have checksums.
    pub data_checksums: Option<bool>,
    pub processors: Option<u32>,
    pub processor_model: Option<String>,
    /// Processors' worth of time that the control group may use; `None` without a quota.
    pub quota_processors: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
    pub kernel: Option<String>,
    /// The mode in force, as `madvise`.
    pub transparent_huge_pages: Option<String>,
    /// Kernel parameters, as `vm.swappiness`.
    pub kernel_parameters: BTreeMap<String, String>,
    /// Soft limits of the server's processes, as `open files`; a number, or `unlimited`.
    pub limits: BTreeMap<String, String>,
    /// Of the data directory, as its mount options.
    pub filesystem: Option<String>,
    pub mount_options: Option<String>,
    /// Nanoseconds that a reading of the clock takes.
    pub clock_read_ns: Option<f64>,
    /// Microseconds that an 8 kB write takes with its flush to disk, where the WAL is: the median of some.
    pub fsync_us: Option<f64>,
    /// Parameters that were on and that the engine's sessions do not honour.
    pub unserved_defaults: Vec<String>,
    /// Processor seconds that the coordinator took.
    pub coordinator_cpu_secs: Option<f64>,
    /// Transaction ids that the cluster used up between the run's begin and its end.
    pub xids_used: Option<i64>,
    /// age(datfrozenxid) of the oldest database at the run's end.
    pub xid_age: Option<i64>,
    /// Whoever, other than the caller, held back the xmin horizon from before the run's begin to its end.
    pub horizon_holder: Option<String>,
}

/// A configuration parameter that is not at its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSetting {
    pub name: String,
    /// As SHOW shows it.
    pub setting: String,
    /// As pg_settings.source.
    pub source: String,
}
