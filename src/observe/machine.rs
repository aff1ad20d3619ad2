//! The machine's processors, memory and disks, and the control group's quota, on platforms that provide them.

use serde::{Deserialize, Serialize};

use crate::server::process::processors;

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

#[cfg(target_os = "linux")]
pub use linux::{identity, quota_processors, read};

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
