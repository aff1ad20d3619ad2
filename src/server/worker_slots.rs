//! Slots of background workers: how many there are, and how many are taken.

use bench_core::error::{UserError, sqlstate};
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
    // SAFETY: the snapshot of the status array is local to this backend and lasts until it is
    // cleared; entries are numbered from 1.
    unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        (1..=pg_sys::pgstat_fetch_stat_numbackends())
            .filter(|&number| {
                #[cfg(feature = "pg15")]
                let entry = pg_sys::pgstat_fetch_stat_local_beentry(number);
                #[cfg(not(feature = "pg15"))]
                let entry = pg_sys::pgstat_get_local_beentry_by_index(number);
                !entry.is_null() && {
                    let kind = status_of(entry).st_backendType;
                    // The logical replication launcher holds a slot as well and says so.
                    kind == pg_sys::BackendType::B_BG_WORKER
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
