//! The server and the machine that a run ran on.

use std::collections::BTreeMap;

use bench_model::views::ServerSetting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
