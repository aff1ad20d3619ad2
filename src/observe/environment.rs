//! What a run runs on: server, machine, kernel and file system; and, for bench.preflight, how busy they are before it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_findings::preflight::{
    BlockingLock, Checkpoint, Holder, MachineState, ReplicationSlot, TableStatistics,
};
use bench_model::spec::TargetSpec;
use bench_model::views::{SETTINGS_QUERY, SettingsAnswer};
use bench_results::{Environment, ServerSetting};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use serde::de::DeserializeOwned;

use super::machine;
use crate::error::{internal, log};
use crate::server::database;
use crate::server::guc::{self, with_setting};
use crate::server::process::{self, forget_statistics, memory_bytes, my_pid, now_ns, processors};
use crate::server::spi::{fetch, in_session};
use crate::server::transaction::{rolled_back, transaction};

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
        clock_read_ns: Some(clock_read_ns()),
        fsync_us: fsync_us(),
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

// What two of the machine's services cost: a reading of the clock, and a flush to disk.

/// Readings of the clock that are timed.
const READINGS: i64 = 20_000;

/// Flushes that are timed, while there is time.
const FLUSHES: usize = 5;

/// How long the flushes may take together.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The server's block, which is written before each flush.
const BLOCK: [u8; 8192] = [0; 8192];

/// Nanoseconds of a reading of the clock that all times here are taken from, as pg_test_timing measures it.
fn clock_read_ns() -> f64 {
    let began_ns = now_ns();
    let mut last_ns = began_ns;
    for _ in 0..READINGS {
        last_ns = now_ns();
    }
    (last_ns - began_ns) as f64 / READINGS as f64
}

/// Microseconds that a block's write with fdatasync takes in pg_wal, the median of some; `None` where that fails.
fn fsync_us() -> Option<f64> {
    // A name that the server itself removes after a crash (RemoveTempXlogFiles in xlog.c). A backend's working
    // directory is the data directory.
    let name = format!("pg_wal/xlogtemp.{}", my_pid());
    let times = time_flushes(&name);
    // Where it could not be made there is nothing to remove.
    let _ = fs::remove_file(&name);
    let mut times = times.ok()?;
    times.sort_by(f64::total_cmp);
    Some(times[times.len() / 2])
}

/// Microseconds of each flush, at least one.
fn time_flushes(name: &str) -> io::Result<Vec<f64>> {
    let file = OpenOptions::new().write(true).create_new(true).open(name)?;
    // As in a WAL segment, which is recycled: the blocks are there already.
    file.write_all_at(&BLOCK, 0)?;
    file.sync_all()?;
    let began = Instant::now();
    let mut times = Vec::with_capacity(FLUSHES);
    while times.is_empty() || (times.len() < FLUSHES && began.elapsed() < TIMEOUT) {
        let start = Instant::now();
        file.write_all_at(&BLOCK, 0)?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// One question, whose answer is JSON. `None`: the role may not ask it, or somebody's lock is in the way.
pub fn known<T>(ask: impl FnOnce() -> Result<Option<T>, UserError>) -> Result<Option<T>, UserError> {
    // An error of the question's rolls back no more than the question.
    let answer = rolled_back(|| {
        // A size needs a lock, which somebody's LOCK TABLE may keep for long.
        with_setting(c"lock_timeout", c"50ms", ask)
    });
    match answer {
        Err(e)
            if [sqlstate::INSUFFICIENT_PRIVILEGE, sqlstate::LOCK_NOT_AVAILABLE].contains(&&*e.sqlstate) =>
        {
            Ok(None)
        }
        answer => answer,
    }
}

fn ask<T: DeserializeOwned>(sql: &str, arguments: &[DatumWithOid]) -> Result<Option<T>, UserError> {
    known(|| {
        let Some(json) = fetch::<String>(sql, arguments)? else { return Ok(None) };
        // No run is refused for an answer that a later version of the server words in another way.
        let answer = serde_json::from_str(&json);
        answer.map(Some).or_else(|e| {
            log(internal(format!("a look before a run was not understood: {e}: {json}")));
            Ok(None)
        })
    })
}

/// Sessions of others that execute a statement now, clients of runs among them.
pub fn active() -> Result<Option<i64>, UserError> {
    forget_statistics();
    ask(
        "SELECT count(*)::text FROM pg_stat_activity a \
         WHERE a.state = 'active' AND a.pid <> pg_backend_pid() \
           AND a.backend_type IN ('client backend', 'pgbench_ext client')",
        &[],
    )
}

/// Runs under way, of whatever database and role: a run that is to start has no coordinator yet, and that of one that has
/// ended is idle.
pub fn runs() -> Result<Option<i64>, UserError> {
    ask(
        "SELECT count(*)::text FROM pg_stat_activity a \
         WHERE a.backend_type = 'pgbench_ext coordinator' AND a.state IS DISTINCT FROM 'idle'",
        &[],
    )
}

/// Checkpoints: the last one, the one under way, and what the next one waits for.
pub fn checkpoint() -> Result<Option<Checkpoint>, UserError> {
    // Before the control file is read, which the end of a checkpoint writes: a checkpoint under way is one whose
    // beginning is known to the server and not yet to the file.
    let redo = database::redo_pointer();
    let lsn = format!("{:X}/{:X}", redo >> 32, redo & 0xFFFF_FFFF);
    ask(
        "SELECT json_build_object( \
             'is_under_way', c.redo_lsn < $1::pg_lsn, \
             'since_secs', date_part('epoch', clock_timestamp() \
                 - greatest(c.checkpoint_time, pg_postmaster_start_time())), \
             'timeout_secs', (SELECT s.setting::float8 FROM pg_settings s WHERE s.name = 'checkpoint_timeout'), \
             'wal_bytes', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), c.redo_lsn), \
             'max_wal_bytes', pg_size_bytes(current_setting('max_wal_size')), \
             'completion_target', current_setting('checkpoint_completion_target')::float8)::text \
         FROM pg_control_checkpoint() c",
        &[lsn.as_str().into()],
    )
}

/// Locks of others on tables that vacuums and changes of tables take, with the command where it reports its progress.
pub fn locks(tables: &[pg_sys::Oid]) -> Result<Option<Vec<BlockingLock>>, UserError> {
    ask(
        "SELECT coalesce(json_agg(json_build_object( \
             'relation', l.relation::regclass::text, 'mode', l.mode, 'pid', l.pid, \
             'command', CASE \
                 WHEN EXISTS (SELECT FROM pg_stat_progress_vacuum p WHERE p.pid = l.pid) THEN 'VACUUM' \
                 WHEN EXISTS (SELECT FROM pg_stat_progress_analyze p WHERE p.pid = l.pid) THEN 'ANALYZE' \
                 WHEN EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.pid = l.pid) THEN 'CREATE INDEX' \
             END, \
             'is_autovacuum', a.backend_type = 'autovacuum worker', \
             'secs', date_part('epoch', clock_timestamp() - a.xact_start)) ORDER BY l.pid, l.relation), '[]')::text \
         FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid \
         WHERE l.locktype = 'relation' AND l.granted AND l.relation = ANY ($1) AND l.pid <> pg_backend_pid() \
           AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) \
           AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')",
        &[tables.to_vec().into()],
    )
}

/// Statistics of tables.
pub fn tables(tables: &[pg_sys::Oid]) -> Result<Option<Vec<TableStatistics>>, UserError> {
    ask(
        "SELECT coalesce(json_agg(json_build_object( \
             'relation', c.oid::regclass::text, 'live', pg_stat_get_live_tuples(c.oid), \
             'dead', pg_stat_get_dead_tuples(c.oid), 'modified', pg_stat_get_mod_since_analyze(c.oid), \
             'inserted', pg_stat_get_ins_since_vacuum(c.oid), 'reltuples', c.reltuples, \
             'xid_age', age(c.relfrozenxid), \
             'options', (SELECT json_object_agg(o.option_name, o.option_value) \
                         FROM pg_options_to_table(c.reloptions) o)) ORDER BY c.oid), '[]')::text \
         FROM pg_class c WHERE c.oid = ANY ($1) AND c.relkind = 'r'",
        &[tables.to_vec().into()],
    )
}

/// Who holds back the xmin horizon of this database, as every transaction does for a moment; a vacuum does not
/// (PROC_IN_VACUUM in ComputeXidHorizons, procarray.c), and autovacuum's ANALYZE ends by itself.
pub fn holders() -> Result<Option<Vec<Holder>>, UserError> {
    ask(
        "SELECT coalesce(json_agg(json_build_object( \
             'kind', h.kind, 'name', h.name, 'state', h.state, 'age', h.age, 'secs', h.secs)), '[]')::text \
         FROM ( \
             SELECT 'session' AS kind, a.pid::text AS name, a.state, \
                    greatest(age(a.backend_xmin), age(a.backend_xid)) AS age, \
                    date_part('epoch', clock_timestamp() - a.xact_start) AS secs \
             FROM pg_stat_activity a \
             WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) \
               AND (a.datname = current_database() OR a.datname IS NULL) AND a.pid <> pg_backend_pid() \
               AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid) \
               AND a.backend_type IS DISTINCT FROM 'autovacuum worker' \
             UNION ALL \
             SELECT 'prepared transaction', p.gid, NULL, age(p.transaction), \
                    date_part('epoch', clock_timestamp() - p.prepared) \
             FROM pg_prepared_xacts p WHERE p.database = current_database() \
             UNION ALL \
             SELECT 'replication slot', s.slot_name::text, CASE WHEN s.active THEN 'active' ELSE 'inactive' END, \
                    age(s.xmin), NULL \
             FROM pg_replication_slots s WHERE s.xmin IS NOT NULL) AS h",
        &[],
    )
}

/// Replication slots, and how much WAL each retains.
pub fn slots() -> Result<Option<Vec<ReplicationSlot>>, UserError> {
    ask(
        "SELECT coalesce(json_agg(json_build_object('name', s.slot_name, 'active', s.active, \
             'wal_bytes', pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn))), '[]')::text \
         FROM pg_replication_slots s WHERE s.restart_lsn IS NOT NULL",
        &[],
    )
}

/// Parameters of safety and of autovacuum as a new session has them.
pub fn settings() -> Result<Option<BTreeMap<String, String>>, UserError> {
    ask(
        "SELECT json_object_agg(s.name, s.reset_val)::text FROM pg_settings s \
         WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'track_counts') OR s.name LIKE 'autovacuum%'",
        &[],
    )
}

/// A look at the machine that takes a while.
pub struct MachineLook {
    before: machine::MachineReading,
    began: std::time::Instant,
}

impl MachineLook {
    /// Begins.
    pub fn begin() -> Self {
        Self { before: machine::read(), began: std::time::Instant::now() }
    }

    /// Waits until it has taken so many milliseconds, and ends it.
    pub fn end(self, milliseconds: u64) -> MachineState {
        loop {
            let left = u128::from(milliseconds).saturating_sub(self.began.elapsed().as_millis());
            if left == 0 {
                break;
            }
            process::wait_idle(left as i64);
            pgrx::check_for_interrupts!();
        }
        let secs = self.began.elapsed().as_secs_f64();
        let seen = machine::read().since(self.before);
        let share =
            |ticks: u64, of: machine::CpuTicks| (of.total() > 0).then(|| ticks as f64 / of.total() as f64);
        MachineState {
            busy: seen.cpu.and_then(|cpu| share(cpu.user + cpu.system, cpu)),
            steal: seen.cpu.and_then(|cpu| share(cpu.steal, cpu)),
            processors: processors(),
            governors: governors(),
            swapped_per_sec: seen.swapped_bytes.map(|bytes| bytes as f64 / secs),
            swap_used_bytes: seen.swap_used_bytes.map(|bytes| bytes as f64),
            memory_bytes: Some(memory_bytes() as f64).filter(|&bytes| bytes > 0.0),
        }
    }
}

/// The frequency governors with the number of their processors, where the kernel has any: virtual machines have none.
fn governors() -> BTreeMap<String, u32> {
    let mut governors = BTreeMap::new();
    for folder in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        if let Ok(name) = fs::read_to_string(folder.path().join("cpufreq/scaling_governor")) {
            *governors.entry(name.trim().to_owned()).or_default() += 1;
        }
    }
    governors
}
