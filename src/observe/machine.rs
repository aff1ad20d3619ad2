//! The machine's processors, memory and disks, and the control group's quota, on platforms that provide them; and the same of a
//! node of a Citus cluster.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use bench_model::cluster::Limits;
use serde::{Deserialize, Serialize};

use crate::guard::extension::LIBRARY_VERSION;
use crate::server::guc::{current, initial};
use crate::server::process::{forget_statistics, processors};
use crate::server::rows::select_one;
use crate::server::spi::fetch;
use crate::server::{background_worker, database};

#[cfg(target_os = "linux")]
pub use linux::{identity, quota_processors, read};

/// Processor time of all processors since the machine started, in ticks; as /proc/stat (proc(5)).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CpuTicks {
    pub user: u64,
    pub system: u64,
    pub iowait: u64,
    pub steal: u64,
    pub idle: u64,
}

impl CpuTicks {
    /// What has happened since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        // iowait may go backwards (proc(5)).
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            iowait: self.iowait.saturating_sub(before.iowait),
            steal: self.steal.saturating_sub(before.steal),
            idle: self.idle.saturating_sub(before.idle),
        }
    }

    fn merge(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
        self.iowait += other.iowait;
        self.steal += other.steal;
        self.idle += other.idle;
    }

    /// All of them together.
    pub fn total(self) -> u64 {
        self.user + self.system + self.iowait + self.steal + self.idle
    }
}

/// One reading, or what lies between two.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineReading {
    pub cpu: Option<CpuTicks>,
    /// Free or to be had without swapping; of the later reading.
    pub memory_available_bytes: Option<u64>,
    /// Written to files and not yet to disk; of the later reading.
    pub memory_dirty_bytes: Option<u64>,
    pub disk_read_bytes: Option<u64>,
    pub disk_written_bytes: Option<u64>,
    /// Read from swap and written to it.
    pub swapped_bytes: Option<u64>,
    /// In swap; of the later reading.
    pub swap_used_bytes: Option<u64>,
    /// Microseconds for which a quota kept this process's control group off the processors.
    pub throttled_us: Option<u64>,
}

impl MachineReading {
    /// What has happened since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        let difference =
            |now: Option<u64>, then: Option<u64>| now.zip(then).map(|(now, then)| now.saturating_sub(then));
        Self {
            cpu: self.cpu.zip(before.cpu).map(|(now, then)| now.since(then)),
            disk_read_bytes: difference(self.disk_read_bytes, before.disk_read_bytes),
            disk_written_bytes: difference(self.disk_written_bytes, before.disk_written_bytes),
            swapped_bytes: difference(self.swapped_bytes, before.swapped_bytes),
            throttled_us: difference(self.throttled_us, before.throttled_us),
            ..self
        }
    }

    /// Adds what came after.
    pub fn merge(&mut self, later: Self) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or_default() + more);
            }
        };
        if let Some(more) = later.cpu {
            self.cpu.get_or_insert_default().merge(more);
        }
        add(&mut self.disk_read_bytes, later.disk_read_bytes);
        add(&mut self.disk_written_bytes, later.disk_written_bytes);
        add(&mut self.swapped_bytes, later.swapped_bytes);
        add(&mut self.throttled_us, later.throttled_us);
        self.swap_used_bytes = later.swap_used_bytes.or(self.swap_used_bytes);
        self.memory_available_bytes = later.memory_available_bytes.or(self.memory_available_bytes);
        self.memory_dirty_bytes = later.memory_dirty_bytes.or(self.memory_dirty_bytes);
    }
}

/// A reading of nothing: only Linux has these figures in this form.
#[cfg(not(target_os = "linux"))]
pub fn read() -> MachineReading {
    MachineReading::default()
}

/// What tells this machine from others is known on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn identity() -> Option<String> {
    None
}

/// No quota is known elsewhere than on Linux.
#[cfg(not(target_os = "linux"))]
pub fn quota_processors() -> Option<f64> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};

    use procfs::{Current, CurrentSI};

    use super::{CpuTicks, MachineReading};

    /// Reads all there is.
    pub fn read() -> MachineReading {
        let cpu = procfs::KernelStats::current().ok().map(|stats| {
            let total = stats.total;
            CpuTicks {
                // Guests' time is part of user and nice (proc(5)).
                user: total.user + total.nice,
                system: total.system + total.irq.unwrap_or_default() + total.softirq.unwrap_or_default(),
                iowait: total.iowait.unwrap_or_default(),
                steal: total.steal.unwrap_or_default(),
                idle: total.idle,
            }
        });
        let memory = procfs::Meminfo::current().ok();
        // Kilobytes between the page cache and block devices, each counted once however devices are stacked.
        let paging = procfs::vmstat().ok();
        let counted = |name: &str| u64::try_from(*paging.as_ref()?.get(name)?).ok();
        let paged = |name: &str| Some(counted(name)? * 1024);
        let pages = counted("pswpin").zip(counted("pswpout")).map(|(read, written)| read + written);
        MachineReading {
            cpu,
            memory_available_bytes: memory.as_ref().and_then(|memory| memory.mem_available),
            memory_dirty_bytes: memory.as_ref().map(|memory| memory.dirty + memory.writeback),
            disk_read_bytes: paged("pgpgin"),
            disk_written_bytes: paged("pgpgout"),
            swapped_bytes: pages.map(|pages| pages * procfs::page_size()),
            swap_used_bytes: memory.as_ref().map(|memory| memory.swap_total.saturating_sub(memory.swap_free)),
            throttled_us: throttled_us(),
        }
    }

    /// Folders of this process's control group and of those above it: a quota of any of them counts.
    /// (cgroups(7): a line of /proc/PID/cgroup is number:controllers:path; version 2 has no controllers there.)
    fn cpu_groups() -> Vec<PathBuf> {
        let groups = procfs::process::Process::myself().and_then(|myself| myself.cgroups());
        let mut folders = Vec::new();
        for group in groups.into_iter().flatten() {
            let root = if group.controllers.iter().any(|controller| controller == "cpu") {
                "/sys/fs/cgroup/cpu"
            } else if group.hierarchy == 0 {
                "/sys/fs/cgroup"
            } else {
                continue;
            };
            let path = group.pathname.trim_start_matches('/');
            // In a container the path may be that of the host, and the root the container's own.
            folders.extend(Path::new(path).ancestors().map(|part| Path::new(root).join(part)));
        }
        folders
    }

    fn number_in(file: &Path, name: &str) -> Option<u64> {
        let text = std::fs::read_to_string(file).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// The longest that any of the groups was throttled, in version 2 (cpu.stat) or 1.
    fn throttled_us() -> Option<u64> {
        cpu_groups()
            .iter()
            .filter_map(|folder| {
                let file = folder.join("cpu.stat");
                number_in(&file, "throttled_usec ")
                    .or_else(|| number_in(&file, "throttled_time ").map(|nanoseconds| nanoseconds / 1000))
            })
            .max()
    }

    /// What tells this machine from others: a number that the kernel draws when it starts (random(4)), and that all containers
    /// on it have in common, as they have its processors.
    pub fn identity() -> Option<String> {
        let drawn = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(drawn.trim().to_owned()).filter(|drawn| !drawn.is_empty())
    }

    /// Processors' worth of time that the tightest quota allows; `None` without one.
    pub fn quota_processors() -> Option<f64> {
        cpu_groups().iter().filter_map(|folder| quota_of(folder)).reduce(f64::min)
    }

    fn quota_of(folder: &Path) -> Option<f64> {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let (quota, period) = match read("cpu.max") {
            Some(text) => {
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
            None => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
        };
        // "max" in version 2 and -1 in version 1 stand for no quota.
        let quota: f64 = quota.trim().parse().ok().filter(|&quota| quota > 0.0)?;
        let period: f64 = period.trim().parse().ok().filter(|&period| period > 0.0)?;
        Some(quota / period)
    }
}

/// Processors that this process may use: those of the machine, or what its control group's quota grants; at least 1.
pub fn processors_granted() -> u32 {
    let all = processors().unwrap_or(1);
    quota_processors().map_or(all, |quota| (quota.floor() as u32).clamp(1, all))
}

/// One reading. Counters only ever grow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeState {
    pub processors: Option<u32>,
    /// What tells the machine, whose processors these are, from others; `None` where the platform has no such thing.
    pub machine: Option<String>,
    pub cpu: Option<CpuTicks>,
    /// Which of the tables' shards are on which nodes, as a hash.
    pub placements: String,
    /// Rows written to those of the tables' shards on this node whose other copies, if there are any, are not counted.
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    /// Transactions that this node, as the one that coordinates, has had others prepare.
    pub prepared: u64,
    /// Citus' prepared transactions that are there now.
    pub prepared_left: u64,
    /// Connections to other nodes, where Citus counts them.
    pub connections_opened: Option<u64>,
    pub connections_reused: Option<u64>,
    pub limits: Limits,
    /// Of this extension, as it is installed on the node.
    pub extension_version: String,
    /// Whether the role that asks may start runs on it.
    pub may_run: bool,
    pub settings: BTreeMap<String, String>,
}

/// Parameters that decide what is measured; that of the connections' TLS is told apart from it.
const SETTINGS: [&str; 8] = [
    "citus.max_cached_conns_per_worker",
    "citus.max_cached_connection_lifetime",
    "citus.max_adaptive_executor_pool_size",
    "citus.executor_slow_start_interval",
    "citus.max_shared_pool_size",
    "citus.local_shared_pool_size",
    "citus.enable_local_execution",
    "max_connections",
];

/// What the connections between nodes are made with; of it only sslmode is anybody's business.
const CONNINFO: &str = "citus.node_conninfo";

/// Reads the state of this node, with the counters of the shards of these tables, given by qualified names, and with the limits
/// for a role that is a superuser or none.
pub fn read_node(tables: &[String], is_superuser: bool) -> Result<NodeState, UserError> {
    forget_statistics();
    let LocalShards { placements, tuples: [inserted, updated, deleted] } = shards(tables)?;
    let (connections_opened, connections_reused) = connections()?.unzip();
    Ok(NodeState {
        processors: processors(),
        machine: identity(),
        placements,
        cpu: read().cpu,
        inserted,
        updated,
        deleted,
        prepared: count("SELECT pg_stat_get_tuples_inserted('pg_dist_transaction'::regclass)")?,
        prepared_left: count(
            "SELECT count(*) FROM pg_prepared_xacts \
             WHERE database = current_database() AND starts_with(gid, 'citus_')",
        )?,
        connections_opened,
        connections_reused,
        limits: limits(is_superuser)?,
        extension_version: LIBRARY_VERSION.to_owned(),
        may_run: true,
        settings: settings(),
    })
}

fn count(sql: &str) -> Result<u64, UserError> {
    Ok(fetch::<i64>(sql, &[])?.unwrap_or_default().unsigned_abs())
}

/// What this node knows of the shards of tables.
#[derive(Default)]
struct LocalShards {
    placements: String,
    /// Rows inserted, updated and deleted.
    tuples: [u64; 3],
}

/// Of shards that several nodes have, as those of reference tables, the copy in the lowest group of nodes is counted. A shard
/// is called as its table with its number (AppendShardIdToName), and hidden from some applications' look at pg_class, not
/// from to_regclass.
fn shards(tables: &[String]) -> Result<LocalShards, UserError> {
    if tables.is_empty() {
        return Ok(LocalShards::default());
    }
    let read = select_one::<(Option<i64>, Option<i64>, Option<i64>, Option<String>)>(
        "WITH placed AS ( \
             SELECT n.nspname, c.relname, s.shardid, p.placementid, p.groupid, \
                    row_number() OVER (PARTITION BY s.shardid ORDER BY p.groupid, p.placementid) AS copy \
             FROM unnest($1) AS t (name) \
             JOIN pg_class c ON c.oid = to_regclass(t.name) \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_dist_shard s ON s.logicalrelid = c.oid \
             JOIN pg_dist_placement p ON p.shardid = s.shardid), \
         here AS ( \
             SELECT to_regclass(format('%I.%I', nspname, concat(relname, '_', shardid))) AS shard \
             FROM placed JOIN pg_dist_local_group g ON g.groupid = placed.groupid \
             WHERE copy = 1) \
         SELECT sum(pg_stat_get_tuples_inserted(shard))::int8, \
                sum(pg_stat_get_tuples_updated(shard))::int8, \
                sum(pg_stat_get_tuples_deleted(shard))::int8, \
                (SELECT md5(string_agg(concat_ws(' ', shardid, placementid, groupid), ',' \
                                                             ORDER BY shardid, placementid)) FROM placed) \
         FROM here",
        &[tables.to_vec().into()],
    )?;
    let (inserted, updated, deleted, placements) = read.unwrap_or_default();
    let tuples = [inserted, updated, deleted].map(|sum| sum.unwrap_or_default().unsigned_abs());
    Ok(LocalShards { placements: placements.unwrap_or_default(), tuples })
}

/// What citus_stat_counters (13.1 on) has counted, where it counts.
fn connections() -> Result<Option<(u64, u64)>, UserError> {
    let is_there = "SELECT true FROM pg_proc WHERE proname = 'citus_stat_counters'::name \
                    AND pronamespace = 'pg_catalog'::regnamespace";
    if current("citus.enable_stat_counters").as_deref() != Some("on")
        || fetch::<bool>(is_there, &[])?.is_none()
    {
        return Ok(None);
    }
    let database = database::oid();
    let sql = "SELECT connection_establishment_succeeded, connection_reused FROM citus_stat_counters($1)";
    Ok(Some(select_one(sql, &[database.into()])?.unwrap_or_default()))
}

/// What this node has to give to a role that is a superuser or none.
pub fn limits(is_superuser: bool) -> Result<Limits, UserError> {
    let number = |name: &str| current(name).and_then(|value| value.parse::<i32>().ok()).unwrap_or_default();
    // What this session has SET does not count for the clients'.
    let of_new_session = |name: &str| initial(name).and_then(|value| value.parse().ok()).unwrap_or(1);
    // reserved_connections is from PostgreSQL 16 on.
    let reserved = number("superuser_reserved_connections") + number("reserved_connections");
    Ok(Limits {
        max_connections: number("max_connections").unsigned_abs(),
        reserved: reserved.unsigned_abs(),
        in_use: count("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")? as u32,
        max_worker_processes: number("max_worker_processes").unsigned_abs(),
        workers_in_use: background_worker::workers_in_use() as u32,
        max_shared_pool_size: number("citus.max_shared_pool_size"),
        // From Citus 11.0 on; it does not count for superusers.
        max_client_connections: if is_superuser {
            -1
        } else {
            current("citus.max_client_connections").and_then(|value| value.parse().ok()).unwrap_or(-1)
        },
        cached_connections: of_new_session("citus.max_cached_conns_per_worker"),
        executor_pool: of_new_session("citus.max_adaptive_executor_pool_size"),
    })
}

fn settings() -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> =
        SETTINGS.iter().filter_map(|&name| Some((name.to_owned(), current(name)?))).collect();
    let sslmode = current(CONNINFO).and_then(|conninfo| {
        conninfo.split_whitespace().find_map(|pair| pair.strip_prefix("sslmode=").map(str::to_owned))
    });
    settings.extend(sslmode.map(|sslmode| (format!("{CONNINFO} sslmode"), sslmode)));
    settings
}
