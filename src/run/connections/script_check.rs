//! A session of the run's role inside the server that looks at the scripts before clients connect: what can be found wrong
//! with a statement is found before the run, and what its statements do is known to the audit, as with the engine.

use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, UserError};
use bench_model::client::Consequence;
use bench_model::spec::{Results, RunSpec};
use pgrx::pg_sys;

use crate::driver::session::Session;
use crate::run::client;
use crate::run::coordinator::run_status;
use crate::server::background_worker::WorkerKind;
use crate::server::process::{current_timestamp, my_pid, wake};
use crate::server::signals::OnTerminate;
use crate::shm::{ClientState, Segment, StopReason};
use crate::worker::{WorkerContext, attach_client, workers};

/// The kind of worker that an examiner is.
const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_examiner_main",
    title: c"pgbench_ext examiner",
    noun: "job",
    connects: true,
    returns_after_crash: false,
};

/// The server's entry into an examiner.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_examiner_main(segment: pg_sys::Datum) {
    let Some(context) = attach_client(segment, OnTerminate::AtInterrupt) else { return };
    // In the first job's place, so that a caller in whose way this is finds it there.
    let slot = context.segment.slot(0);
    slot.pid.store(my_pid(), Release);
    match work(&context) {
        Ok(()) => context.segment.header().examined.store(1, Release),
        Err(error) => slot.count_error(&error, current_timestamp(), Consequence::Uncounted),
    }
    wake(context.segment.header().coordinator_pid.load(Relaxed));
}

fn work(context: &WorkerContext) -> Result<(), SqlError> {
    let spec: RunSpec = serde_json::from_str(context.segment.spec()).map_err(client::internal)?;
    client::check_rights(&spec, 0)?;
    let session = Session::new(Results::Discard);
    if let Some(path) = client::prepare_session(&session, &spec)? {
        context.segment.header().search_path.set(&path);
    }
    client::describe(context.segment.header());
    let counters = context.segment.commands(0);
    client::examine(&spec, session, counters)
}

/// Has the scripts looked at.
///
/// # Errors
/// What is wrong with them; the reason of a stop.
pub fn examine(
    segment: &Segment,
    spec: &RunSpec,
    stop_error: impl Fn(StopReason) -> UserError,
) -> Result<(), UserError> {
    let stopped = workers::run_one(KIND, segment, spec.database_oid, spec.role_oid)?;
    match stopped {
        Some(reason) => Err(stop_error(reason)),
        None if segment.header().examined.load(Acquire) != 0 => Ok(()),
        None => {
            segment.slot(0).set_state(ClientState::Aborted);
            Err(run_status::start_error(segment, spec, 0))
        }
    }
}
