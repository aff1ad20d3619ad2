//! What every worker does first: signals, its hold on the segment, the connection.

use std::ffi::CStr;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::client::Consequence;
use pgrx::pg_sys;

use crate::error::OrRaise;
use crate::server::background_worker::{self, begin, connect};
use crate::server::guc::{self, own_settings};
use crate::server::process::{current_timestamp, my_pid};
use crate::server::roles::{current_role, is_session_of};
use crate::server::signals::{self, OnTerminate};
use crate::server::transaction::transaction;
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

/// Has pg_stat_statements, where it is loaded, not count the statements of this session: a worker's own ones.
fn leave_out_this_session() {
    if guc::current("pg_stat_statements.track").is_some() {
        guc::set_for_session(c"pg_stat_statements.track", c"none");
    }
}

/// Has this worker's session be one of the role that the worker was started as: ALTER DATABASE … SET role, which a database's
/// owner may do, applies to background workers as well.
///
/// # Errors
/// 42501 where it is another role's all the same.
fn remain(role: pg_sys::Oid) -> Result<(), UserError> {
    transaction(|| {
        guc::set_for_session(c"role", c"none");
        if is_session_of(role) {
            return Ok(());
        }
        let message = format!("a background worker has got a session of role \"{}\"", current_role());
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail("It must be of the role that the worker was started as.")
            .hint("RESET session_authorization by ALTER DATABASE and ALTER ROLE."))
    })
}

/// Has this project's own statements find the server's objects only, all rows, and no triggers but those that are always enabled,
/// whatever the database or the role has set.
fn isolate_statements() {
    own_settings().for_each(|(name, value)| guc::set_for_session(name, value));
    guc::set_for_session(c"search_path", guc::SAFE_PATH);
    guc::set_for_session(c"row_security", c"off");
    // Once for the whole session, as each change of it has all plans made anew.
    guc::set_for_session(c"session_replication_role", c"replica");
}

/// Gives a coordinator's session, or a link's, settings of its own in place of the database's and the role's.
pub fn isolate_session(application_name: &CStr) -> Result<(), UserError> {
    transaction(|| {
        isolate_statements();
        let own = [
            // A lock on the results' tables must not hold up a stop or a shutdown.
            (c"lock_timeout", c"1s"),
            // What was committed survives a crash of the server; no standby is waited for.
            (c"synchronous_commit", c"local"),
            (c"application_name", application_name),
        ];
        for (name, value) in own {
            guc::set_for_session(name, value);
        }
        Ok(())
    })
}
