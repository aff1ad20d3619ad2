//! The workers that one worker has launched: all gone when it is gone, however it goes.

use std::cell::RefCell;

use pgrx::pg_sys;

use super::{Kind, Worker};
use bench_core::error::{UserError, sqlstate};

thread_local! {
    /// For [`terminate_crew`], which the server calls without context.
    static CREW: RefCell<Vec<Worker>> = const { RefCell::new(Vec::new()) };
}

/// Launches `count` workers of a kind for a segment.
///
/// # Errors
/// 53400 when the worker slots run out; those launched before are told to end.
pub fn launch(kind: Kind, segment: u32, count: u32, database: u32, role: u32) -> Result<(), UserError> {
    // SAFETY: the callback is a function of this library, which stays loaded.
    unsafe { pg_sys::before_shmem_exit(Some(terminate_crew), pg_sys::Datum::from(0)) };
    for index in 0..count {
        match Worker::register(kind, segment, index, database, role) {
            Some(worker) => CREW.with_borrow_mut(|crew| crew.push(worker)),
            None => {
                terminate();
                return Err(no_slots(u64::from(count) + 1, kind.noun));
            }
        }
    }
    Ok(())
}

/// Whether the worker with this index has ended.
pub fn has_stopped(index: u32) -> bool {
    CREW.with_borrow(|crew| crew.get(index as usize).is_none_or(Worker::has_stopped))
}

/// Whether every worker has ended.
pub fn all_stopped() -> bool {
    CREW.with_borrow(|crew| crew.iter().all(Worker::has_stopped))
}

/// Tells every worker to end.
pub fn terminate() {
    CREW.with_borrow(|crew| crew.iter().for_each(Worker::terminate));
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn terminate_crew(_code: i32, _argument: pg_sys::Datum) {
    terminate();
}

/// The error for exhausted worker slots.
pub fn no_slots(needed: u64, noun: &str) -> UserError {
    // SAFETY: a configuration variable of the server's, fixed at its start.
    let configured = unsafe { pg_sys::max_worker_processes };
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
    // SAFETY: as in `no_slots`.
    let configured = unsafe { pg_sys::max_worker_processes } as u64;
    if needed + workers_in_use() > configured { Err(no_slots(needed, noun)) } else { Ok(()) }
}

/// Checks that there can ever be as many, whatever is in use now.
pub fn check_configured(needed: u64, noun: &str) -> Result<(), UserError> {
    // SAFETY: as in `no_slots`.
    let configured = unsafe { pg_sys::max_worker_processes } as u64;
    if needed > configured { Err(no_slots(needed, noun)) } else { Ok(()) }
}

/// Worker slots that seem to be free.
pub fn free_slots() -> u64 {
    // SAFETY: as in `no_slots`.
    (unsafe { pg_sys::max_worker_processes } as u64).saturating_sub(workers_in_use())
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
