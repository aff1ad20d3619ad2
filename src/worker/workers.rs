//! The workers that one worker has launched: all gone when it is gone, however it goes.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use bench_base::error::UserError;

use super::drop_extension;
use crate::server::background_worker::{Worker, WorkerKind, no_slots};
use crate::server::process::nap;
use crate::server::signals::{self, termination_requested};
use crate::shm::{Header, Segment, StopReason};

thread_local! {
    /// Kept here for the callback at this process's exit.
    static WORKERS: RefCell<Vec<Worker>> = const { RefCell::new(Vec::new()) };
    static REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Launches `count` workers of a kind for a segment.
///
/// # Errors
/// 53400 when the worker slots run out; those launched before are told to end.
pub fn launch(kind: WorkerKind, segment: u32, count: u32, database: u32, role: u32) -> Result<(), UserError> {
    launch_more(kind, segment, 0..count, database, role)
}

/// Launches workers of a kind for a segment, beside others that may be there: those with these indexes.
///
/// # Errors
/// As [`launch`].
pub fn launch_more(
    kind: WorkerKind,
    segment: u32,
    indexes: Range<u32>,
    database: u32,
    role: u32,
) -> Result<(), UserError> {
    terminate_at_exit();
    let count = indexes.end;
    for index in indexes {
        match Worker::register(kind, segment, index, database, role) {
            Some(worker) => WORKERS.with_borrow_mut(|workers| workers.push(worker)),
            None => {
                terminate();
                return Err(no_slots(u64::from(count) + 1, kind.noun));
            }
        }
    }
    Ok(())
}

/// The server keeps a few callbacks of a process and no more.
fn terminate_at_exit() {
    if !REGISTERED.replace(true) {
        signals::register(&TERMINATE);
    }
}

/// A worker beside those that this process has, which go on: it is told to end when this is dropped.
pub struct OneMore {
    place: usize,
}

impl OneMore {
    /// Launches it.
    ///
    /// # Errors
    /// 53400 when there is no worker slot for it.
    pub fn launch(kind: WorkerKind, segment: u32, database: u32, role: u32) -> Result<Self, UserError> {
        terminate_at_exit();
        let worker =
            Worker::register(kind, segment, 0, database, role).ok_or_else(|| no_slots(1, kind.noun))?;
        WORKERS.with_borrow_mut(|workers| {
            workers.push(worker);
            Ok(Self { place: workers.len() - 1 })
        })
    }

    /// Whether it has ended.
    pub fn has_stopped(&self) -> bool {
        WORKERS.with_borrow(|workers| workers.get(self.place).is_none_or(Worker::has_stopped))
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        WORKERS.with_borrow_mut(|workers| {
            // Those that were launched after it have gone before it.
            workers.drain(self.place.min(workers.len())..).for_each(|worker| worker.terminate());
        });
    }
}

/// Launches one worker and waits for its end; the reason of a stop that has ended it.
///
/// # Errors
/// 53400 when there is no worker slot for it.
pub fn run_one(
    kind: WorkerKind,
    segment: &Segment,
    database: u32,
    role: u32,
) -> Result<Option<StopReason>, UserError> {
    launch(kind, segment.handle(), 1, database, role)?;
    let mut stopped = None;
    // In this order: the worker says how it went before it ends.
    while !all_stopped() {
        if stopped.is_none()
            && let Some(reason) = stop_reason(segment.header())
        {
            stopped = Some(reason);
            terminate();
        }
        nap(if stopped.is_some() { 10 } else { 100 });
    }
    forget();
    Ok(stopped)
}

/// Whether the worker with this index has ended.
pub fn has_stopped(index: u32) -> bool {
    WORKERS.with_borrow(|workers| workers.get(index as usize).is_none_or(Worker::has_stopped))
}

/// Whether every worker has ended.
pub fn all_stopped() -> bool {
    WORKERS.with_borrow(|workers| workers.iter().all(Worker::has_stopped))
}

/// Forgets workers that have ended, so that others can be launched, or that end by themselves.
pub fn forget() {
    WORKERS.with_borrow_mut(Vec::clear);
}

/// Breaks the connections to other servers of those that have been told to end and have not.
pub fn sever() {
    WORKERS.with_borrow(|workers| workers.iter().for_each(Worker::sever));
}

/// Tells every worker to end.
pub fn terminate() {
    WORKERS.with_borrow(|workers| workers.iter().for_each(Worker::terminate));
}

/// Called at the exit of this process.
static TERMINATE: signals::Callback = signals::Callback(terminate);

/// Why a coordinator is to end its run early.
pub fn stop_reason(header: &Header) -> Option<StopReason> {
    if termination_requested() {
        return Some(StopReason::Requested);
    }
    match header.stop() {
        StopReason::None | StopReason::Abandoned if drop_extension::is_coming() => {
            header.request_stop(StopReason::Dropped);
            Some(StopReason::Dropped)
        }
        StopReason::None | StopReason::Abandoned => None,
        reason => Some(reason),
    }
}
