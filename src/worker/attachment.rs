//! What every worker does first: signals, its hold on the segment, the connection.

use std::sync::atomic::Ordering::*;

use bench_model::client::Consequence;
use pgrx::pg_sys;

use super::session_settings::{isolate_statements, leave_out_this_session, remain};
use crate::error::OrRaise;
use crate::server::background_worker::{self, begin, connect};
use crate::server::process::{current_timestamp, my_pid};
use crate::server::signals::{self, OnTerminate};
use crate::shm::{DetachCallback, Segment, build};

/// What a worker has once it is connected.
pub struct WorkerContext {
    /// This process's hold on the segment, until the process ends.
    pub segment: Segment,
    /// Its place in the segment.
    pub index: u32,
}

/// What every worker does first: signals, the segment, the connection to its database as its role. `None` when the
/// segment is gone: then nobody waits for it any more. One of another build of this library is refused by an error, and so is
/// a session that has become another role's.
pub fn attach(segment: pg_sys::Datum, on_terminate: OnTerminate) -> Option<WorkerContext> {
    let context = attach_unconnected(segment, on_terminate)?;
    let role = connect();
    leave_out_this_session();
    remain(role).inspect_err(|error| context.segment.header().fail(error)).or_raise();
    Some(context)
}

/// The connection of a worker that has returned after a crash of the server, whose segment is gone, as the bootstrap superuser.
pub fn connect_after_crash() {
    let role = background_worker::connect_after_crash();
    leave_out_this_session();
    remain(role).or_raise();
    isolate_statements();
}

/// As [`attach`], for a session with a client's settings: pg_stat_statements counts its statements.
pub fn attach_client(segment: pg_sys::Datum, on_terminate: OnTerminate) -> Option<WorkerContext> {
    let context = attach_unconnected(segment, on_terminate)?;
    connect();
    Some(context)
}

/// As [`attach`], without a connection.
pub fn attach_unconnected(segment: pg_sys::Datum, on_terminate: OnTerminate) -> Option<WorkerContext> {
    let index = begin(on_terminate);
    let handle = segment.value() as u32;
    let Some(segment) = Segment::attach(handle) else {
        build::refuse(handle).or_raise();
        return None;
    };
    segment.pin();
    // Called after what a worker registers later, and before its process has gone.
    segment.on_detach(&FORGET_ME);
    Some(WorkerContext { segment, index })
}

/// Takes this process's id out of the segment, however the process ends: it may soon be another's.
static FORGET_ME: DetachCallback = DetachCallback(|segment| {
    let mine = my_pid();
    let leader = [&segment.header().coordinator_pid].into_iter();
    let pids =
        leader.chain(segment.slots().map(|slot| &slot.pid)).chain(segment.nodes().map(|node| &node.pid));
    for pid in pids.filter(|pid| pid.load(Relaxed) == mine) {
        pid.store(0, Release);
    }
});

/// Has a client or a loader leave the FATAL error that ends it in its slot, which has its pid.
pub fn report_fatal_error(context: &WorkerContext) {
    signals::listen();
    context.segment.on_detach(&LEAVE_LAST_WORDS);
}

static LEAVE_LAST_WORDS: DetachCallback = DetachCallback(|segment| {
    let mine = my_pid();
    if let Some(slot) = segment.slots().find(|slot| slot.pid.load(Relaxed) == mine)
        && let Some(error) = signals::fatal_error()
    {
        slot.count_error(&error, current_timestamp(), Consequence::Uncounted);
        slot.told_fatal.store(1, Release);
    }
});
