//! The background worker of bench.start_capture: a session of the calling role.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::launch::{FirstReading, keep, tell};
use super::spec::CaptureSpec;
use crate::catalog::{self, CaptureEnd, CapturedStatement};
use crate::error::internal;
use crate::launch::horizon::releasable_or_warn;
use crate::launch::launch_handle::LaunchHandle;
use crate::server::background_worker::WorkerKind;
use crate::server::process::{forget_cancel, my_pid, nap_until_canceled, wake};
use crate::server::roles::current_role_oid;
use crate::server::signals::OnTerminate;
use crate::server::transaction::transaction;
use crate::server::{database, worker_slots};
use crate::shm::{RunState, Segment, SegmentShape, StopReason};
use crate::worker::attach;

/// The kind of worker that captures.
const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_capture_main",
    title: c"pgbench_ext capture",
    noun: "capture",
    connects: true,
    returns_after_crash: false,
};

/// Starts the worker.
fn launch(spec: &CaptureSpec) -> Result<LaunchHandle, UserError> {
    worker_slots::check_slots(1, KIND.noun)?;
    let json = serde_json::to_string(spec).unwrap_or_default();
    let segment = Segment::create(SegmentShape::LEADER, &json, &[]);
    segment.header().caller_pid.store(my_pid(), Relaxed);
    LaunchHandle::start(segment, KIND, database::oid().to_u32(), current_role_oid().to_u32(), 0)
}

/// Captures, and waits for the end; the statements.
pub fn to_the_end(spec: &CaptureSpec) -> Result<Vec<CapturedStatement>, UserError> {
    let releasable = releasable_or_warn(
        "Meanwhile, dead rows cannot be removed. Call bench.capture as a separate top-level statement, or use bench.start_capture.",
    );
    let launched = launch(spec)?;
    launched.tie();
    let result = launched.wait(releasable, |_| false);
    launched.leave();
    result?;
    tell(spec)
}

/// Starts to capture, and returns when that has begun.
pub fn start(spec: &CaptureSpec) -> Result<(), UserError> {
    let launched = launch(spec)?;
    let result = launched.wait(None, |segment| segment.header().gate.load(Acquire) != 0);
    launched.segment.header().caller_pid.store(0, Relaxed);
    launched.leave();
    result
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_capture_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let header = context.segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    if let Err(error) = capture(&context.segment) {
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

fn capture(segment: &Segment) -> Result<(), UserError> {
    let spec: CaptureSpec = serde_json::from_str(segment.spec()).map_err(|e| internal(e.to_string()))?;
    let beginning = transaction(|| {
        let beginning = FirstReading::read(&spec)?;
        let CaptureSpec { name, options, secs, .. } = &spec;
        catalog::begin_capture(name, current_role_oid(), "statements", options, *secs, beginning.at)?;
        Ok(beginning)
    })?;
    segment.header().gate.store(1, Release);
    wake(segment.header().caller_pid.load(Relaxed));
    let outcome = wait(segment, spec.secs).and_then(|()| transaction(|| keep(&spec, &beginning)));
    let Err(error) = outcome else { return Ok(()) };
    forget_cancel();
    let status = if error.sqlstate == sqlstate::QUERY_CANCELED { "canceled" } else { "failed" };
    let end = CaptureEnd { status: status.to_owned(), error: Some(error.clone()), ..CaptureEnd::default() };
    transaction(|| catalog::end_capture(&spec.name, &end))?;
    Err(error)
}

/// Outside of a transaction: nothing is held back.
fn wait(segment: &Segment, secs: f64) -> Result<(), UserError> {
    let until = Instant::now() + Duration::from_secs_f64(secs);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if segment.header().stop() != StopReason::None {
            return Err(UserError::new(sqlstate::QUERY_CANCELED, "canceled with the call to bench.capture"));
        }
        nap_until_canceled((left.as_millis() as i64 + 1).min(200))?;
    }
    Ok(())
}
