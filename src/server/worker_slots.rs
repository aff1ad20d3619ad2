//! Slots of background workers: how many there are, and how many are taken.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

/// max_worker_processes.
fn configured() -> u64 {
    // SAFETY: a configuration variable of the server's, fixed at its start.
    (unsafe { pg_sys::max_worker_processes }).unsigned_abs().into()
}

/// The error for exhausted worker slots.
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

/// Checks before anything is launched; the launch itself is what decides.
pub fn check_slots(needed: u64, noun: &str) -> Result<(), UserError> {
    if needed + workers_in_use() > configured() { Err(no_slots(needed, noun)) } else { Ok(()) }
}

/// Checks that there can ever be as many, whatever is in use now.
pub fn check_configured(needed: u64, noun: &str) -> Result<(), UserError> {
    if needed > configured() { Err(no_slots(needed, noun)) } else { Ok(()) }
}

/// Worker slots that seem to be free.
pub fn free_slots() -> u64 {
    configured().saturating_sub(workers_in_use())
}

/// Background workers that pg_stat_activity knows: those without a status entry are not seen.
pub fn workers_in_use() -> u64 {
    count_workers(|_| true)
}

/// Those of them that are this extension's and sessions of a role: in other databases, and in this one those that are no
/// run's.
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
