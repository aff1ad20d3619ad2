//! What servers did during a run, and what they ran on: the environment, and the nodes of a Citus cluster.

use std::collections::BTreeMap;

use bench_model::views::ServerSetting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::samples::Series;

/// A wait event's share of the clients' measured time. Waits are sampled 100 times a second; up to 400 times with few
/// clients, less often with more than 64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Node of the row, as in `nodes`; 0: the only one.
    #[serde(default)]
    pub node: i32,
    /// As in pg_stat_activity; or `CPU`, `Runnable` or `Unobserved`, as in the samples.
    pub wait_event_type: String,
    /// As in pg_stat_activity; the same word again for those three.
    pub wait_event: String,
    /// Share of the time of all clients of the node; the shares of a node add up to 1.
    pub share: f64,
}

/// Something that went on in the server for a while. For a vacuum shorter than an interval, `started` is its end; for a
/// checkpoint begun before the run, it is the time of the first observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Event {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// As in `bench.events`.
    pub kind: String,
    /// The table, of what is done to a table.
    pub relation: Option<String>,
    /// Of a checkpoint: `timed` or `requested`, where that is known, or `begun before the run`.
    pub detail: Option<String>,
    /// Seconds since the start of the measurement; negative before it.
    pub started: f64,
    /// Seconds since the start of the measurement; null if it ended after the run.
    pub ended: Option<f64>,
}

/// A table or index of the run's fixtures, before and after the run, from the server's statistics. Counts cover all
/// phases of the run, and include use by other sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Relation {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// The table or index.
    pub relation: String,
    /// `table` or `index`.
    pub kind: String,
    /// Size before the run in bytes, for a table including its maps and TOAST; null if a lock prevented reading it.
    pub bytes_before: Option<i64>,
    /// Size after the run in bytes.
    pub bytes_after: Option<i64>,
    /// Live rows before, an estimate.
    pub live_before: Option<i64>,
    /// Live rows after, an estimate.
    pub live: Option<i64>,
    /// Dead rows before, an estimate.
    pub dead_before: Option<i64>,
    /// Dead rows after, an estimate.
    pub dead: Option<i64>,
    /// Rows inserted.
    pub inserted: Option<i64>,
    /// Rows updated, HOT updates included.
    pub updated: Option<i64>,
    /// Rows updated without new index entries.
    pub hot_updated: Option<i64>,
    /// Rows deleted.
    pub deleted: Option<i64>,
    /// Rows changed since the last ANALYZE, after the run.
    pub mod_since_analyze: Option<i64>,
    /// Sequential scans.
    pub seq_scan: Option<i64>,
    /// Live rows read by them.
    pub seq_tup_read: Option<i64>,
    /// Index scans; for a table, of all its indexes.
    pub idx_scan: Option<i64>,
    /// Manual vacuums that ended during the run.
    pub vacuums: Option<i64>,
    /// Autovacuums that ended during the run.
    pub autovacuums: Option<i64>,
    /// Manual analyzes that ended during the run.
    pub analyzes: Option<i64>,
    /// Analyzes by autovacuum that ended during the run.
    pub autoanalyzes: Option<i64>,
    /// End of the last manual vacuum; null, like the others, for never.
    pub last_vacuum: Option<String>,
    /// End of the last autovacuum.
    pub last_autovacuum: Option<String>,
    /// End of the last manual analyze.
    pub last_analyze: Option<String>,
    /// End of the last analyze by autovacuum.
    pub last_autoanalyze: Option<String>,
}

/// Errors of one SQLSTATE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ErrorLine {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// SQLSTATE, five characters.
    pub sqlstate: String,
    /// Message of the first such error.
    pub message: String,
    /// Place of the first such error in the script, and the server's detail.
    pub detail: Option<String>,
    /// Errors, all phases.
    pub count: u64,
    /// Number of these that were followed by another try.
    pub retried: u64,
    /// Number of these that failed a transaction, or ended it with its client.
    pub failed: u64,
}

/// A count of the clients compared with the server's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditLine {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// Name of the server's counter.
    pub counter: String,
    /// The clients' count, all phases.
    pub harness: Option<i64>,
    /// Increase of the server's counter.
    pub server: Option<i64>,
    /// Whether the two are equal; null if they need not be equal.
    pub ok: Option<bool>,
    /// Description of the count, or why it is not judged.
    pub reason: String,
}

/// Server and machine that the run ran on; of several nodes, those of the calling one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Environment {
    /// Result of version() on the server, including the compiler.
    pub version: Option<String>,
    /// Configuration parameters not at their defaults for a client, without those that only superusers may see.
    pub server_settings: Vec<ServerSetting>,
    /// Whether pages have checksums.
    pub data_checksums: Option<bool>,
    /// Processors online.
    pub processors: Option<u32>,
    /// Their model.
    pub processor_model: Option<String>,
    /// Processors' worth of time that the control group may use; null without a quota.
    pub quota_processors: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space in bytes.
    pub swap_bytes: Option<u64>,
    /// Name and release of the kernel.
    pub kernel: Option<String>,
    /// Mode in force, as `madvise`.
    pub transparent_huge_pages: Option<String>,
    /// Kernel parameter (`vm.swappiness`) to its value as a string, in the kernel's unit.
    pub kernel_parameters: BTreeMap<String, String>,
    /// Soft limit of the server's processes (`open files`) to a number as a string, or `unlimited`; sizes in bytes.
    pub limits: BTreeMap<String, String>,
    /// Type of the file system of the data directory.
    pub filesystem: Option<String>,
    /// Its mount options, separated by commas.
    pub mount_options: Option<String>,
    /// Cost of a clock reading, in nanoseconds.
    pub clock_read_ns: Option<f64>,
    /// Median time of a write of 8 kB with its flush to the WAL's disk, in microseconds.
    pub fsync_us: Option<f64>,
    /// Parameters that were on but have no effect on a run's clients.
    pub unsupported_settings: Vec<String>,
    /// Processor time of the run's coordinator, in seconds.
    pub coordinator_cpu_secs: Option<f64>,
    /// Processor time of the wire driver's jobs, in seconds.
    pub driver_cpu_secs: Option<f64>,
    /// Share of the time in which the busiest job of the wire driver used a processor.
    pub driver_busy: Option<f64>,
    /// Mean time that ready connections waited for their job, over the measured time, in microseconds.
    pub driver_wait_avg_us: Option<f64>,
    /// The longest such wait, in milliseconds.
    pub driver_wait_max_ms: Option<f64>,
    /// Longest time between two checks of a job for ready connections, in milliseconds.
    pub driver_round_max_ms: Option<f64>,
    /// Context switches of the clients' processes per transaction, voluntary or not.
    pub server_context_switches: Option<f64>,
    /// Context switches of the jobs of the wire driver per transaction.
    pub driver_context_switches: Option<f64>,
    /// Transaction ids used by the cluster between the run's begin and end.
    pub xids_used: Option<i64>,
    /// Age(datfrozenxid) of the oldest database at the run's end, in transactions.
    pub xid_age: Option<i64>,
    /// Tables of the run's fixtures that are unlogged.
    pub unlogged_tables: Vec<String>,
    /// Holder of the xmin horizon, other than the caller, from before the run's begin to its end.
    pub horizon_holder: Option<String>,
}

/// The curves of a node, column by column, with a value for each interval. In a run of more than 360 intervals, each
/// value covers several consecutive intervals, so that there are at most 360 values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeSamples {
    /// The node, as in `nodes`.
    pub node: i32,
    /// End of the interval, seconds since the measurement began.
    pub elapsed: Series,
    /// Its length.
    pub secs: Series,
    /// Transactions committed / secs.
    pub tps: Series,
    /// 99th percentile; the highest of the covered intervals.
    pub latency_p99_ms: Series,
}

/// A node of a Citus cluster and its part in the run, as in `bench.nodes`. For a node without clients, which only
/// served other nodes' statements, `status`, the start, counts, latencies and connections are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Node {
    /// Citus' id of the node; 0: the only one that clients ran on.
    pub node: i32,
    /// Host and port, as other nodes reach it.
    pub name: String,
    /// Whether it is Citus' coordinator.
    pub is_coordinator: bool,
    /// Clients that ran on it; 0 if it only served other nodes' statements.
    pub clients: u32,
    /// Status of its part, as the `status` of `run`.
    pub status: Option<String>,
    /// Reason why its part did not complete: `sqlstate`, `message`, `detail`, `hint`, and `context` where it is known.
    pub error: Option<Value>,
    /// Delay of its clients' start, by the clock of the calling node, in milliseconds.
    pub start_offset_ms: Option<f64>,
    /// Its clock minus the calling node's clock, in milliseconds.
    pub clock_offset_ms: Option<f64>,
    /// Maximum error of this difference, in milliseconds.
    pub clock_error_ms: Option<f64>,
    /// Time measured, in seconds.
    pub secs: Option<f64>,
    /// Transactions committed.
    pub transactions: Option<u64>,
    /// Transactions that failed with a serialization failure or deadlock after `max_tries`.
    pub failed: Option<u64>,
    /// Clients ended by another error.
    pub aborted: Option<u64>,
    /// Transactions with more than one try.
    pub retried: Option<u64>,
    /// `transactions` / `secs`.
    pub tps: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub latency_p99_ms: Option<f64>,
    /// Greatest latency in milliseconds.
    pub latency_max_ms: Option<f64>,
    /// Processor time of its clients' processes per committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Processors online.
    pub processors: Option<u32>,
    /// `node` of the first node on the same machine: nodes with the same value share its processors.
    pub machine: Option<i32>,
    /// Share of all its processors' time in user mode, over the whole run, like the other four.
    pub cpu_user: Option<f64>,
    /// Share in the kernel, interrupts included.
    pub cpu_system: Option<f64>,
    /// Share idle while something waited for a disk.
    pub cpu_iowait: Option<f64>,
    /// Share that the hypervisor gave to others.
    pub cpu_steal: Option<f64>,
    /// Share idle.
    pub cpu_idle: Option<f64>,
    /// Transactions that it prepared on other nodes for two-phase commits, one for each connection.
    pub prepared: Option<u64>,
    /// Connections that its sessions opened to other nodes for a statement; null before Citus 13.1.
    pub connections_opened: Option<u64>,
    /// Connections that they reused; null before Citus 13.1.
    pub connections_reused: Option<u64>,
    /// Prepared transactions of Citus that remained on it after the run.
    pub prepared_left: Option<u64>,
    /// Process ids of its clients that could not be ended; empty if all ended.
    pub clients_stuck: Vec<i32>,
    /// Parameter of Citus that affects the measurement, to its value as shown by SHOW.
    pub settings: BTreeMap<String, String>,
}

impl Node {
    /// What to call it.
    pub fn label(&self) -> String {
        if self.name.is_empty() { format!("node {}", self.node) } else { self.name.clone() }
    }

    /// How its part ended, where that is not as it should.
    pub fn lost_status(&self) -> Option<&str> {
        let status = self.status.as_deref().filter(|_| self.clients > 0);
        status.filter(|status| matches!(*status, "incomplete" | "failed" | "crashed"))
    }
}
