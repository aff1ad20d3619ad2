//! Dynamic background workers: slots, registration, and the start of a worker's process.

use std::ffi::{CStr, c_char, c_int};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::process::my_pid;
use super::signals::{self, OnTerminate};

/// The data in bgw_extra, which a worker needs before it can read the segment.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extra {
    index: u32,
    database: u32,
    /// 0: the bootstrap superuser.
    role: u32,
}

/// A kind of worker.
#[derive(Clone, Copy)]
pub struct WorkerKind {
    /// The function that the server calls.
    pub entry: &'static CStr,
    /// The backend_type in pg_stat_activity.
    pub title: &'static CStr,
    /// The noun in messages for the worker or for the workers that it leads.
    pub noun: &'static str,
    /// Whether it connects to a database.
    pub connects: bool,
    /// Whether the server starts it again after a crash, to clean up.
    pub returns_after_crash: bool,
}

/// A registered worker.
pub struct Worker {
    handle: *mut pg_sys::BackgroundWorkerHandle,
}

impl Worker {
    /// Registers a worker that starts as soon as the postmaster gets to it; `None` when all slots
    /// are taken. The calling process's latch is set when it starts and when it ends.
    pub fn register(kind: WorkerKind, segment: u32, index: u32, database: u32, role: u32) -> Option<Self> {
        // SAFETY: all zeroes are valid in this plain struct; the texts fit their fields, which
        // `put` makes sure of; the extra data is plain bytes smaller than the field; the handle
        // is palloc'd in a context that lasts as long as the process.
        unsafe {
            let mut worker: pg_sys::BackgroundWorker = std::mem::zeroed();
            put(&mut worker.bgw_name, kind.title);
            put(&mut worker.bgw_type, kind.title);
            put(&mut worker.bgw_library_name, c"$libdir/pgbench_ext");
            put(&mut worker.bgw_function_name, kind.entry);
            let connection = if kind.connects { pg_sys::BGWORKER_BACKEND_DATABASE_CONNECTION } else { 0 };
            worker.bgw_flags = (pg_sys::BGWORKER_SHMEM_ACCESS | connection) as c_int;
            worker.bgw_start_time = pg_sys::BgWorkerStartTime::BgWorkerStart_RecoveryFinished;
            worker.bgw_restart_time =
                if kind.returns_after_crash { 1 } else { pg_sys::BGW_NEVER_RESTART as c_int };
            worker.bgw_main_arg = pg_sys::Datum::from(segment);
            worker.bgw_notify_pid = my_pid();
            let extra = Extra { index, database, role };
            std::ptr::copy_nonoverlapping(
                (&raw const extra).cast::<c_char>(),
                worker.bgw_extra.as_mut_ptr(),
                std::mem::size_of::<Extra>(),
            );
            let mut handle = std::ptr::null_mut();
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
            let registered = pg_sys::RegisterDynamicBackgroundWorker(&raw mut worker, &raw mut handle);
            pg_sys::CurrentMemoryContext = context;
            registered.then_some(Self { handle })
        }
    }

    /// Whether the worker has ended or will never start.
    pub fn has_stopped(&self) -> bool {
        let mut pid = 0;
        // SAFETY: the handle came from the server and is never freed.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.handle, &raw mut pid) };
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED
            || status == pg_sys::BgwHandleStatus::BGWH_POSTMASTER_DIED
    }

    /// Breaks the connections of a terminated worker that does not end (`signals::sever`).
    pub fn sever(&self) {
        let mut pid = 0;
        // SAFETY: as above; a signal to a worker of this library, which has a handler for it or ignores it.
        unsafe {
            let status = pg_sys::GetBackgroundWorkerPid(self.handle, &raw mut pid);
            if status == pg_sys::BgwHandleStatus::BGWH_STARTED && pid > 0 {
                libc::kill(pid, libc::SIGUSR2);
            }
        }
    }

    /// Asks the postmaster to terminate it, whether it has started or not.
    pub fn terminate(&self) {
        // SAFETY: as above.
        unsafe { pg_sys::TerminateBackgroundWorker(self.handle) }
    }
}

fn put<const N: usize>(field: &mut [c_char; N], text: &CStr) {
    let bytes = text.to_bytes_with_nul();
    assert!(bytes.len() <= N);
    for (to, from) in field.iter_mut().zip(bytes) {
        *to = *from as c_char;
    }
}

/// Returns the data that `Worker::register` has passed to this worker.
fn extra() -> Extra {
    // SAFETY: called in workers of this library only, whose bgw_extra was written by `Worker::register` as an Extra; it is
    // read unaligned.
    unsafe { (&raw const (*pg_sys::MyBgworkerEntry).bgw_extra).cast::<Extra>().read_unaligned() }
}

/// Starts a worker's process: installs its signal handlers, and creates a resource owner, which dsm_attach needs, as in the server's
/// parallel workers (ParallelWorkerMain). Returns its index among the workers of its kind.
pub fn begin(on_terminate: OnTerminate) -> u32 {
    signals::install(on_terminate);
    // SAFETY: on the process's main thread, before anything else has set an owner.
    unsafe {
        pg_sys::CurrentResourceOwner =
            pg_sys::ResourceOwnerCreate(std::ptr::null_mut(), c"pgbench_ext".as_ptr());
    }
    extra().index
}

/// Connects a worker to its database as its role, and returns that role. Call it once in a process.
pub fn connect() -> pg_sys::Oid {
    let Extra { database, role, .. } = extra();
    connect_as(database, role)
}

/// Connects a worker that was started again after a crash to its database as the bootstrap superuser, and returns that role. Call it
/// once in a process.
pub fn connect_after_crash() -> pg_sys::Oid {
    connect_as(extra().database, 0)
}

fn connect_as(database: u32, role: u32) -> pg_sys::Oid {
    // SAFETY: in a worker that has asked for a connection; the server refuses a second one by an error.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(database.into(), role.into(), 0) };
    if role == 0 { pg_sys::BOOTSTRAP_SUPERUSERID.into() } else { role.into() }
}

/// Prevents a worker of a kind that [`WorkerKind::returns_after_crash`] from being started again after other ends than crashes: the
/// server does so for exit codes other than 0, as after a FATAL error or SIGTERM. Call it first in the process.
pub fn return_only_after_crash() {
    unsafe extern "C-unwind" {
        fn on_proc_exit(callback: Option<extern "C" fn(c_int, pg_sys::Datum)>, argument: pg_sys::Datum);
    }
    extern "C" fn end(_code: c_int, _argument: pg_sys::Datum) {
        // SAFETY: the callback that was registered first is called last, when all is in order.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: the callback is a function of this library, which stays loaded.
    unsafe { on_proc_exit(Some(end), pg_sys::Datum::from(0)) };
}

/// Whether this worker is of a kind that [`WorkerKind::returns_after_crash`].
pub fn may_return_after_crash() -> bool {
    // SAFETY: set by the server before it calls a worker's entry.
    unsafe { (*pg_sys::MyBgworkerEntry).bgw_restart_time != pg_sys::BGW_NEVER_RESTART as c_int }
}

/// Returns max_worker_processes.
fn configured() -> u64 {
    // SAFETY: a configuration variable of the server's, fixed at its start.
    (unsafe { pg_sys::max_worker_processes }).unsigned_abs().into()
}

/// Returns the error for too few worker slots.
pub fn no_slots(needed: u64, noun: &str) -> UserError {
    let configured = configured();
    let in_use = workers_in_use();
    UserError::new(
        sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
        "not enough background worker slots",
    )
    .detail(format!(
        "Needed: {needed} (one per {noun} and one to lead them); configured: {configured}; in use: {in_use}."
    ))
    .hint(format!(
        "Set max_worker_processes to at least {} and restart the server, or use fewer {noun}s.",
        needed + in_use
    ))
}

/// Checks that worker slots are free. The launch itself may fail nevertheless.
pub fn check_slots(needed: u64, noun: &str) -> Result<(), UserError> {
    if needed + workers_in_use() > configured() { Err(no_slots(needed, noun)) } else { Ok(()) }
}

/// Checks that the server is configured with enough worker slots, regardless of those in use.
pub fn check_configured(needed: u64, noun: &str) -> Result<(), UserError> {
    if needed > configured() { Err(no_slots(needed, noun)) } else { Ok(()) }
}

/// Estimates the number of free worker slots.
pub fn free_slots() -> u64 {
    configured().saturating_sub(workers_in_use())
}

/// Counts the background workers in pg_stat_activity, which does not show workers without a status entry.
pub fn workers_in_use() -> u64 {
    count_workers(|_| true)
}

/// Counts this extension's workers that are sessions of a role: all in other databases, and those of this database that do not belong
/// to runs.
pub fn workers_of_role(role: pg_sys::Oid) -> (u64, u64) {
    let is_ours = |worker: &pg_sys::PgBackendStatus, accept: &dyn Fn(&[u8]) -> bool| {
        // SAFETY: returns NULL or a text in static memory, which is looked at before the next call.
        let title = unsafe {
            let title = pg_sys::GetBackgroundWorkerTypeByPid(worker.st_procpid);
            if title.is_null() { c"" } else { std::ffi::CStr::from_ptr(title) }
        };
        worker.st_userid == role && title.to_bytes().strip_prefix(b"pgbench_ext ").is_some_and(accept)
    };
    // SAFETY: a variable of the process's.
    let here = unsafe { pg_sys::MyDatabaseId };
    let other_databases = count_workers(|worker| worker.st_databaseid != here && is_ours(worker, &|_| true));
    let is_no_runs = |kind: &[u8]| !matches!(kind, b"client" | b"job" | b"examiner" | b"preparer" | b"link");
    let others = count_workers(|worker| worker.st_databaseid == here && is_ours(worker, &is_no_runs));
    (other_databases, others)
}

fn count_workers(accept: impl Fn(&pg_sys::PgBackendStatus) -> bool) -> u64 {
    // SAFETY: the snapshot of the status array is local to this backend and lasts until it is
    // cleared; entries are numbered from 1.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        (1..=pg_sys::pgstat_fetch_stat_numbackends())
            .filter(|&number| {
                #[cfg(not(since_16))]
                let entry = pg_sys::pgstat_fetch_stat_local_beentry(number);
                #[cfg(since_16)]
                let entry = pg_sys::pgstat_get_local_beentry_by_index(number);
                !entry.is_null() && {
                    let status = status_of(entry);
                    // The logical replication launcher holds a slot as well and says so.
                    status.st_backendType == pg_sys::BackendType::B_BG_WORKER && accept(status)
                }
            })
            .count() as u64
    }
}

/// # Safety
/// A live entry of the local snapshot.
unsafe fn status_of<'a>(entry: *mut pg_sys::LocalPgBackendStatus) -> &'a pg_sys::PgBackendStatus {
    // SAFETY: by the caller.
    unsafe { &(*entry).backendStatus }
}
