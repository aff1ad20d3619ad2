//! The server and the machine that a run ran on.

use std::collections::BTreeMap;

use bench_model::views::ServerSetting;
use serde::{Deserialize, Serialize};

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
    /// The file system of the data directory; [`Environment::mount_options`] are its options.
    pub filesystem: Option<String>,
    pub mount_options: Option<String>,
    /// Nanoseconds that a reading of the clock takes.
    pub clock_read_ns: Option<f64>,
    /// Microseconds that an 8 kB write takes with its flush to disk, where the WAL is: the median of some.
    pub fsync_us: Option<f64>,
    /// Parameters that were on and that the engine's sessions do not honour.
    pub unsupported_settings: Vec<String>,
    /// Processor seconds that the coordinator took.
    pub coordinator_cpu_secs: Option<f64>,
    /// Processor seconds that the jobs of the wire driver took.
    pub driver_cpu_secs: Option<f64>,
    /// Share of its time for which the busiest job of the wire driver used a processor.
    pub driver_busy: Option<f64>,
    /// How long connections that were ready waited for their job, in microseconds: the mean.
    pub driver_wait_avg_us: Option<f64>,
    /// And at most, in milliseconds.
    pub driver_wait_max_ms: Option<f64>,
    /// The longest time between two looks of a job at what is ready, in milliseconds.
    pub driver_round_max_ms: Option<f64>,
    /// Context switches of the clients' processes for each transaction.
    pub server_context_switches: Option<f64>,
    /// Context switches of the jobs of the wire driver for each transaction.
    pub driver_context_switches: Option<f64>,
    /// Transaction ids that the cluster used up between the run's begin and its end.
    pub xids_used: Option<i64>,
    /// age(datfrozenxid) of the oldest database at the run's end.
    pub xid_age: Option<i64>,
    /// Tables of the run's fixtures that are unlogged.
    pub unlogged_tables: Vec<String>,
    /// Whoever, other than the caller, held back the xmin horizon from before the run's begin to its end.
    pub horizon_holder: Option<String>,
}
