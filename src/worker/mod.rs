//! What every background worker begins with: the segment, the connection to its database as its role, and the settings of a
//! session that does this project's own work.

pub mod drop_extension;
pub mod workers;

use std::ffi::CStr;
use std::sync::atomic::Ordering::*;

use bench_base::error::UserError;
use bench_model::client::Consequence;
use bench_model::spec::{Extent, RunOptions};
use bench_model::timeline::Timeline;
use bench_stats::until_steady::LONGEST_SECS;
use pgrx::pg_sys;

use crate::error::OrRaise;
use crate::server::background_worker::{begin, connect};
use crate::server::own_settings::own_settings;
use crate::server::process::{NS_PER_SEC, current_timestamp, my_pid};
use crate::server::signals::{OnTerminate, termination_requested};
use crate::server::transaction::transaction;
use crate::server::{fatal_error_log, guc};
use crate::shm::{DetachCallback, Header, Segment, StopReason, build};

/// What a worker has once it is connected.
pub struct WorkerContext {
    /// This process's hold on the segment, until the process ends.
    pub segment: Segment,
    /// Its place in the segment.
    pub index: u32,
}

/// What every worker does first: signals, the segment, the connection to its database as its role. `None` when the
/// segment is gone: then nobody waits for it any more. One of another build of this library is refused by an error.
pub fn attach(segment: pg_sys::Datum, on_terminate: OnTerminate) -> Option<WorkerContext> {
    let context = attach_client(segment, on_terminate)?;
    leave_out_this_session();
    Some(context)
}

/// Has pg_stat_statements, where it is loaded, not count the statements of this session: a worker's own ones.
fn leave_out_this_session() {
    if guc::current("pg_stat_statements.track").is_some() {
        guc::set_for_session(c"pg_stat_statements.track", c"none");
    }
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
    fatal_error_log::listen();
    context.segment.on_detach(&LEAVE_LAST_WORDS);
}

static LEAVE_LAST_WORDS: DetachCallback = DetachCallback(|segment| {
    let mine = my_pid();
    if let Some(slot) = segment.slots().find(|slot| slot.pid.load(Relaxed) == mine)
        && let Some(error) = fatal_error_log::fatal_error()
    {
        slot.count_error(&error, current_timestamp(), Consequence::Uncounted);
        slot.told_fatal.store(1, Release);
    }
});

/// The time line of a run whose first interval begins at `begins_ns`, by CLOCK_MONOTONIC. A warm-up whose end is not given
/// has its longest length.
pub fn timeline(options: &RunOptions, begins_ns: i64) -> Timeline {
    let ns = |secs: f64| (secs * NS_PER_SEC) as i64;
    let measure_ns = match options.extent {
        Extent::Secs(secs) => Some(ns(secs)),
        Extent::Transactions(_) => None,
    };
    let warmup_ns = ns(options.warmup_secs.unwrap_or(LONGEST_SECS));
    let (of_warmup, interval) = (options.warmup_interval_secs(), options.sample_interval_secs);
    Timeline::with_warmup(begins_ns, warmup_ns, ns(of_warmup), measure_ns, ns(interval))
}

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

/// Gives a coordinator's session, or a link's, settings of its own in place of the database's and the role's.
pub fn isolate_session(application_name: &CStr) -> Result<(), UserError> {
    transaction(|| {
        let own = [
            (c"search_path", c"pg_catalog, pg_temp"),
            // A lock on the results' tables must not hold up a stop or a shutdown.
            (c"lock_timeout", c"1s"),
            // What was committed survives a crash of the server; no standby is waited for.
            (c"synchronous_commit", c"local"),
            (c"row_security", c"off"),
            (c"application_name", application_name),
        ];
        own_settings().for_each(|(name, value)| guc::set_for_session(name, value));
        for (name, value) in own {
            guc::set_for_session(name, value);
        }
        Ok(())
    })
}
