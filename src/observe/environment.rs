//! What a run runs on: server, machine, kernel, file system.

use std::collections::BTreeMap;
use std::fs;

use bench_base::error::UserError;
use bench_model::spec::TargetSpec;
use bench_model::views::{SETTINGS_QUERY, SettingsAnswer};
use bench_results::{Environment, ServerSetting};

use super::{machine, probes};
use crate::error::internal;
use crate::server::process::processors;
use crate::server::spi::{fetch, in_session};
use crate::server::transaction::transaction;
use crate::server::{database, guc};

/// Kernel parameters that change what a database server can do.
const KERNEL_PARAMETERS: [&str; 17] = [
    "vm.swappiness",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.zone_reclaim_mode",
    "vm.nr_hugepages",
    "vm.min_free_kbytes",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.sem",
    "fs.file-max",
    "fs.aio-max-nr",
];

/// Configuration parameters that are not at their defaults in this session: JSON of [`ServerSetting`]s. Those that
/// only superusers may see, passwords in primary_conninfo among them, are left out whoever asks: reports are shown
/// to others.
pub fn settings_json() -> Result<String, UserError> {
    let json = transaction(|| in_session::fetch::<pgrx::Json>(SETTINGS_QUERY, &[]))?;
    let answer = json.map(|json| serde_json::from_value::<SettingsAnswer>(json.0));
    let answer = answer.transpose().map_err(|e| internal(e.to_string()))?;
    let settings = answer.and_then(|answer| answer.settings).unwrap_or_default();
    let shown: Vec<ServerSetting> =
        settings.into_iter().filter(|setting| !guc::is_for_superusers(&setting.name)).collect();
    serde_json::to_string(&shown).map_err(|e| internal(e.to_string()))
}

/// Everything that is known before the run; what cannot be read is left out. `settings` is what [`settings_json`] has found in a client's session.
pub fn read(settings: Option<String>, unsupported: &[&str]) -> Environment {
    let version = transaction(|| fetch::<String>("SELECT version()", &[])).ok().flatten();
    let server_settings: Vec<ServerSetting> =
        settings.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
    let mut environment = Environment {
        version,
        server_settings,
        data_checksums: Some(database::has_data_checksums()),
        processors: processors(),
        quota_processors: machine::quota_processors(),
        kernel_parameters: kernel_parameters(),
        transparent_huge_pages: transparent_huge_pages(),
        kernel: kernel(),
        clock_read_ns: Some(probes::clock_read_ns()),
        fsync_us: probes::fsync_us(),
        unsupported_settings: unsupported.iter().map(|&name| name.to_owned()).collect(),
        ..Environment::default()
    };
    of_linux(&mut environment);
    environment
}

/// What is known of the server that a run's connections lead to, where that is another one: nothing of its machine.
pub fn of_target(target: &TargetSpec) -> Environment {
    Environment {
        version: Some(target.version.clone()),
        server_settings: target.settings.clone(),
        ..Environment::default()
    }
}

fn line_of(file: &str) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn kernel() -> Option<String> {
    Some(format!("{} {}", line_of("/proc/sys/kernel/ostype")?, line_of("/proc/sys/kernel/osrelease")?))
}

fn kernel_parameters() -> BTreeMap<String, String> {
    let value = |name: &str| line_of(&format!("/proc/sys/{}", name.replace('.', "/")));
    KERNEL_PARAMETERS.iter().filter_map(|&name| Some((name.to_owned(), value(name)?))).collect()
}

/// The word in brackets is in force: "always [madvise] never".
fn transparent_huge_pages() -> Option<String> {
    let modes = line_of("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let chosen = modes.split_whitespace().find_map(|mode| mode.strip_prefix('[')?.strip_suffix(']'));
    chosen.map(str::to_owned)
}

#[cfg(not(target_os = "linux"))]
fn of_linux(_environment: &mut Environment) {}

/// Memory, limits and the data directory's file system.
#[cfg(target_os = "linux")]
fn of_linux(environment: &mut Environment) {
    use procfs::Current;
    use procfs::process::Process;

    if let Ok(memory) = procfs::Meminfo::current() {
        environment.memory_bytes = Some(memory.mem_total);
        environment.swap_bytes = Some(memory.swap_total);
    }
    environment.processor_model =
        procfs::CpuInfo::current().ok().and_then(|info| info.model_name(0).map(str::to_owned));
    let Ok(myself) = Process::myself() else { return };
    if let Ok(limits) = myself.limits() {
        let soft = |limit: procfs::process::Limit| match limit.soft_limit {
            procfs::process::LimitValue::Unlimited => "unlimited".to_owned(),
            procfs::process::LimitValue::Value(value) => value.to_string(),
        };
        environment.limits = [
            ("open files", limits.max_open_files),
            ("processes", limits.max_processes),
            ("locked memory", limits.max_locked_memory),
            ("stack size", limits.max_stack_size),
            ("address space", limits.max_address_space),
            ("core file size", limits.max_core_file_size),
        ]
        .into_iter()
        .map(|(name, limit)| (name.to_owned(), soft(limit)))
        .collect();
    }
    // A backend's working directory is the data directory.
    let (Ok(directory), Ok(mounts)) = (std::env::current_dir(), myself.mountinfo()) else { return };
    // Of two mounts in the same place the later one is in force.
    let mounted = mounts
        .into_iter()
        .filter(|mount| directory.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count());
    if let Some(mount) = mounted {
        let options = mount.mount_options.into_iter().chain(mount.super_options);
        let mut options: Vec<String> = options
            .map(|(name, value)| value.map_or(name.clone(), |value| format!("{name}={value}")))
            // Where the layers of a container's file system lie is nobody's business.
            .filter(|option| !option.contains('/'))
            .collect();
        options.sort();
        options.dedup();
        environment.filesystem = Some(mount.fs_type);
        environment.mount_options = Some(options.join(","));
    }
}
