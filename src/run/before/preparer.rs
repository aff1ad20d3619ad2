//! A session of the role that keeps a run's tables, which brings about the state that a run begins with, before there are clients.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Results, RunSpec};
use pgrx::pg_sys;

use crate::driver::session::Session;
use crate::error::internal;
use crate::guard::client_role::keeper_of;
use crate::guard::session_role::check_session;
use crate::run::{before, connections};
use crate::server::background_worker::WorkerKind;
use crate::server::process::{my_pid, wake};
use crate::server::signals::OnTerminate;
use crate::server::transaction::transaction;
use crate::shm::{Segment, StopReason};
use crate::worker::{WorkerContext, attach, workers};

/// The kind of worker that a preparer is.
const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_preparer_main",
    title: c"pgbench_ext preparer",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// The server's entry into a preparer.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_preparer_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let header = context.segment.header();
    // In the first client's place, so that a caller in whose way this is finds it there. On several nodes there is none here.
    if let Some(slot) = context.segment.slots().next() {
        slot.pid.store(my_pid(), Release);
    }
    match work(&context) {
        Ok(()) => header.prepared.store(1, Release),
        Err(error) => header.fail(&error),
    }
    wake(header.coordinator_pid.load(Relaxed));
}

fn work(context: &WorkerContext) -> Result<(), UserError> {
    let spec: RunSpec = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    transaction(|| check_session(&keeper_of(&spec.own_role())?, spec.may_be_special))?;
    let mut session = Session::new(Results::Discard);
    session.set_own(KIND.title).map_err(UserError::from)?;
    let [secrets, _] = connections::secrets(context.segment.header())?;
    before::prepare(&mut session, &spec, &secrets, &spec.options.before)
}

/// Has the steps done, where there are any, and waits for their end.
///
/// # Errors
/// What one of them has met; the reason of a stop.
pub fn prepare(
    segment: &Segment,
    spec: &RunSpec,
    stop_error: impl Fn(StopReason) -> UserError,
) -> Result<(), UserError> {
    if spec.options.before.iter().all(|step| *step == before::BY_CALLER) {
        return Ok(());
    }
    let keeper = transaction(|| keeper_of(&spec.own_role()))?;
    let stopped = workers::run_one(KIND, segment, spec.database_oid, keeper.oid)?;
    let header = segment.header();
    match stopped {
        Some(reason) => Err(stop_error(reason)),
        None if header.prepared.load(Acquire) != 0 => Ok(()),
        None => Err(header.failure().or_else(|| segment.check_refusal().err()).unwrap_or_else(|| {
            UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                "the worker that prepares the run ended unexpectedly",
            )
            .hint("See the server log.")
        })),
    }
}
