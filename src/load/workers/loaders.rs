//! The loaders, as the load's leader sees them.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};

use super::loader;
use crate::load::fixture::LoadSpec;
use crate::server::background_worker;
use crate::server::process::{is_backend, nap_until_canceled};
use crate::server::relations::is_blocked_by_me;
use crate::shm::{ClientState, RunState, Segment, StopReason};
use crate::worker::{WorkerContext, workers};

/// Has loaders do the tasks of the phase that the load is in, each of them one at a time: an index or a VACUUM for each
/// processor is sooner done than one after the other with parallel workers. False, with nothing done, where there is nothing
/// to share.
///
/// # Errors
/// As [`run`].
pub fn share(context: &WorkerContext, spec: &LoadSpec, tasks: usize) -> Result<bool, UserError> {
    let jobs = spec.jobs.min(tasks as u32);
    if jobs < 2 || !spec.is_shared() {
        return Ok(false);
    }
    // Those of the phase before have done their work, and end.
    while !workers::all_stopped() {
        check_stop(&context.segment)?;
        nap_until_canceled(2)?;
    }
    workers::forget();
    if background_worker::free_slots() < u64::from(jobs) {
        return Ok(false);
    }
    context.segment.slots().for_each(|slot| slot.set_state(ClientState::Starting));
    context.segment.header().load.next_chunk.store(0, Release);
    run(context, spec, jobs, false).map(|()| true)
}

/// Launches loaders for the phase that the load is in, and waits for them: with `is_locking`, in a transaction with locks on the
/// tables.
///
/// # Errors
/// Those of the loaders; 53400 without worker slots.
pub fn run(context: &WorkerContext, spec: &LoadSpec, jobs: u32, is_locking: bool) -> Result<(), UserError> {
    let segment = &context.segment;
    workers::launch(loader::KIND, segment.handle(), jobs, spec.database_oid, spec.role_oid)?;
    segment.header().set_state(RunState::Running);
    let mut looked = Instant::now();
    loop {
        check_stop(segment)?;
        let mut done = 0;
        for (index, slot) in segment.slots().enumerate().take(jobs as usize) {
            let stopped = workers::has_stopped(index as u32);
            match slot.state() {
                ClientState::Done => done += 1,
                ClientState::Aborted => return Err(loader_error(segment, index as u32)),
                _ if stopped => {
                    segment.check_refusal()?;
                    if slot.told_fatal.load(Acquire) != 0 {
                        return Err(loader_error(segment, index as u32));
                    }
                    return Err(UserError::new(
                        sqlstate::ADMIN_SHUTDOWN,
                        format!("loader {index} ended unexpectedly"),
                    )
                    .hint("See the server log."));
                }
                _ => {}
            }
        }
        if done == jobs {
            return Ok(());
        }
        if is_locking && looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            check_way_is_free(segment)?;
        }
        nap_until_canceled(100)?;
    }
}

/// How often the leader looks whether somebody stands between it and the loaders.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A session that wants a stronger lock on a table than the loaders have waits for the leader's own, and the loaders'
/// next share waits behind it. The server sees no deadlock: the leader waits for no lock.
///
/// # Errors
/// 40P01.
fn check_way_is_free(segment: &Segment) -> Result<(), UserError> {
    let is_stuck = |pid: i32| pid != 0 && is_backend(pid) && is_blocked_by_me(pid);
    if segment.slots().any(|slot| is_stuck(slot.pid.load(Relaxed))) {
        return Err(UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "another session waits for a lock on a table that is being loaded, and the load waits for that session",
        )
        .hint("Do not use the tables of a load before it has ended."));
    }
    Ok(())
}

fn loader_error(segment: &Segment, index: u32) -> UserError {
    let entry = &segment.slot(index).errors[0];
    let sqlstate = bench_base::error::unpack(entry.sqlstate.load(Acquire));
    let message = entry.message.get().unwrap_or_else(|| "the loader failed".to_owned());
    let (detail, hint, context) = (entry.detail.get(), entry.hint.get(), entry.context.get());
    UserError { sqlstate, message, detail, hint, context }
}

/// Whether the load is to go on.
///
/// # Errors
/// 57014, and 40P01 where the caller is in the way.
pub fn check_stop(segment: &Segment) -> Result<(), UserError> {
    match segment.header().stop() {
        StopReason::None => Ok(()),
        StopReason::BlockedByCaller => Err(UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "the load waits for a lock of the session that waits for the load",
        )
        .hint("Commit before calling it.")),
        _ => Err(UserError::new(sqlstate::QUERY_CANCELED, "the load was canceled")),
    }
}
