//! The background worker of bench.start_capture: a session of the calling role, which may have special rights. It reads
//! pg_stat_statements, statistics and the server's log, and writes our own tables; what is users' is left to sessions of roles
//! without such rights ([`super::sessions`]).

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Activity;
use bench_capture::options::LogOptions;
use bench_model::spec::Results;
use pgrx::pg_sys;

use super::activity::{self, ActivityMoment, CaptureReporter, WaitWatch, sessions_at_work};
use super::launch::{FirstReading, Window, keep, tell};
use super::log::sampling::{self, LogSampling};
use super::spec::CaptureSpec;
use crate::driver::session::Session;
use crate::error::internal;
use crate::guard::session_role::check_session;
use crate::launch::handle::{LaunchHandle, releasable_or_warn};
use crate::run::server_parameters;
use crate::server::background_worker::{self, WorkerKind, may_return_after_crash, return_only_after_crash};
use crate::server::process::{forget_cancel, my_pid, nap_until_canceled, wake};
use crate::server::roles::{current_role_oid, superuser};
use crate::server::signals::OnTerminate;
use crate::server::transaction::transaction;
use crate::server::{database, guc};
use crate::shm::{CapturePhase, RunState, Segment, SegmentShape, StopReason};
use crate::store::{self, CaptureEnd, CapturedStatement};
use crate::worker::{attach, connect_after_crash, drop_extension};

/// The kind of worker that captures.
const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_capture_main",
    title: c"pgbench_ext capture",
    noun: "capture",
    connects: true,
    returns_after_crash: true,
};

/// Starts the worker.
fn launch(spec: &CaptureSpec) -> Result<LaunchHandle, UserError> {
    background_worker::check_slots(1, KIND.noun)?;
    let json = serde_json::to_string(spec).unwrap_or_default();
    let segment = Segment::create(SegmentShape::LEADER, &json, &[]);
    segment.header().caller_pid.store(my_pid(), Relaxed);
    segment.header().interruptible.store(1, Relaxed);
    LaunchHandle::start(segment, KIND, database::oid().to_u32(), current_role_oid().to_u32(), 0)
}

/// Captures, and waits for the end; the statements.
pub fn to_the_end(spec: &CaptureSpec) -> Result<Vec<CapturedStatement>, UserError> {
    let releasable = releasable_or_warn(
        "Meanwhile, dead rows cannot be removed. Call bench.capture as a separate top-level statement, or use bench.start_capture.",
    );
    let launched = launch(spec)?;
    launched.tie();
    let mut reporter = CaptureReporter::new(&spec.name);
    let result = launched.wait(releasable, |segment| {
        reporter.report(segment);
        false
    });
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
    return_only_after_crash();
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return follow_crash() };
    let header = context.segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    if let Err(error) = capture(&context.segment) {
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

/// What there is to do for a process without a segment: either its caller has given up before it came, or a crash of the server
/// has ended it before. The postmaster, which survives crashes, may then still have what was set for the log.
fn follow_crash() {
    if may_return_after_crash() {
        connect_after_crash();
        server_parameters::put_back_or_warn(&mut Session::new(Results::Discard), None);
        guc::reload();
    }
}

fn capture(segment: &Segment) -> Result<(), UserError> {
    let spec: CaptureSpec = serde_json::from_str(segment.spec()).map_err(|e| internal(e.to_string()))?;
    let is_superuser = transaction(AssertUnwindSafe(|| {
        check_session(&spec.role, true)?;
        Ok(superuser())
    }))?;
    if is_superuser {
        server_parameters::put_back_or_warn(&mut Session::new(Results::Discard), None);
    }
    let (began, beginning) = transaction(|| {
        let beginning = FirstReading::read(&spec)?;
        let CaptureSpec { name, options, secs, .. } = &spec;
        store::begin_capture(name, current_role_oid(), "statements", options, *secs, beginning.at)?;
        Ok((ActivityMoment::now(), beginning))
    })?;
    segment.header().gate.store(1, Release);
    wake(segment.header().caller_pid.load(Relaxed));
    activity::report_to(segment);
    let outcome = match spec.secs > 0.0 {
        false => transaction(|| Ok(Window { entries: beginning.entries_since()?, ..Window::default() })),
        true => watch(segment, &spec, &beginning, began),
    };
    let outcome = outcome.and_then(|window| {
        check_stop(segment)?;
        transaction(AssertUnwindSafe(|| keep(&spec, &beginning, window)))
    });
    let Err(error) = outcome else { return Ok(()) };
    forget_cancel();
    let status = if error.sqlstate == sqlstate::QUERY_CANCELED { "canceled" } else { "failed" };
    let end = CaptureEnd { status: status.to_owned(), error: Some(error.clone()), ..CaptureEnd::default() };
    transaction(|| store::end_capture(&spec.name, &end))?;
    Err(error)
}

/// How long the application is looked at before its transactions are logged: how much that will be has to be known.
const LOOK_SECS: f64 = 1.0;

/// Watches the application for as long as the capture lasts.
fn watch(
    segment: &Segment,
    spec: &CaptureSpec,
    beginning: &FirstReading,
    mut begin: ActivityMoment,
) -> Result<Window, UserError> {
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(spec.secs);
    let look = Duration::from_secs_f64(LOOK_SECS.min(spec.secs / 4.0));
    let mut waits = WaitWatch::default();
    let mut sampling = Err(None);
    transaction(drop_extension::hold)?;
    activity::enter(CapturePhase::Observation, spec.secs.ceil() as u64);
    // An application may come to its transactions late.
    while until.saturating_duration_since(Instant::now()) > look && matches!(sampling, Err(None)) {
        wait(segment, began, Instant::now() + look, &mut begin, Some(&mut waits), None)?;
        sampling = begin_sampling(spec, beginning, &waits, began)?;
    }
    let is_early = !wait(segment, began, until, &mut begin, Some(&mut waits), sampling.as_ref().ok())?;
    let mut end = ActivityMoment::now();
    let (entries, clients) =
        transaction(|| Ok((beginning.entries_since()?, sessions_at_work(beginning.at)?)))?;
    if let Ok(sampling) = &mut sampling {
        sampling.stop()?;
    }
    end.open();
    wait(segment, began, Instant::now() + ActivityMoment::READ_FOR, &mut end, None, None)?;
    let logged = match sampling {
        Err(why) => Err(why),
        Ok(sampling) => {
            let options = spec.checked_options()?;
            let mut options = LogOptions::of_capture(transaction(database::name)?, &options);
            options.take_roles(&spec.role.name);
            match sampling.read(options) {
                Ok(logged) => Ok(logged),
                Err(error) if may_do_without(spec, &error)? => Err(Some(error.message)),
                Err(error) => return Err(error),
            }
        }
    };
    let activity = Activity {
        sessions: Some(clients.cast_signed()),
        idle_in_transaction: waits.idle_in_transaction,
        waits: waits.waits,
        ..end.since(&begin)
    };
    Ok(Window { entries, activity: Some(activity), logged, clients, is_early })
}

/// Has transactions logged where that is possible and the application has such of several statements.
///
/// # Errors
/// Where they were asked for and cannot be had. Inside: why they are not logged, if that needs a word.
fn begin_sampling(
    spec: &CaptureSpec,
    beginning: &FirstReading,
    waits: &WaitWatch,
    began: Instant,
) -> Result<Result<LogSampling, Option<String>>, UserError> {
    let options = spec.checked_options()?;
    let seen = transaction(AssertUnwindSafe(|| beginning.executions()))?;
    let why_not = match options.transactions {
        Some(false) => Some(None),
        Some(true) => None,
        // An application that commits each of its statements has no transactions to take.
        None if seen.blocks == 0 && waits.idle_in_transaction == 0 => Some(None),
        None => match options.of_statements() {
            Some(option) => Some(Some(format!("option \"{option}\" is about single statements"))),
            None => transaction(sampling::obstacle)?.map(Some),
        },
    };
    if let Some(why_not) = why_not {
        return Ok(Err(why_not));
    }
    let looked_secs = began.elapsed().as_secs_f64();
    let left_secs = spec.secs - looked_secs;
    match LogSampling::begin(&spec.name, seen.executions as f64 / looked_secs, left_secs) {
        Ok(sampling) => Ok(Ok(sampling)),
        Err(error) if may_do_without(spec, &error)? => Ok(Err(Some(error.message))),
        Err(error) => Err(error),
    }
}

/// Whether statements are captured instead, where this keeps transactions from it.
fn may_do_without(spec: &CaptureSpec, error: &UserError) -> Result<bool, UserError> {
    let is_left_open = spec.checked_options()?.transactions.is_none();
    Ok(is_left_open && error.sqlstate != sqlstate::QUERY_CANCELED && !drop_extension::is_coming())
}

/// # Errors
/// 57014 where the caller has gone or does not want the capture any more; those of the extension's drop.
fn check_stop(segment: &Segment) -> Result<(), UserError> {
    if segment.header().stop() != StopReason::None {
        return Err(UserError::new(sqlstate::QUERY_CANCELED, "canceled with the call to bench.capture"));
    }
    if drop_extension::is_coming() { Err(drop_extension::error()) } else { Ok(()) }
}

/// Waits outside of a transaction, so that nothing is held back, and looks at the counters and at what sessions do. False where
/// it has ended early because enough has been logged.
fn wait(
    segment: &Segment,
    began: Instant,
    until: Instant,
    moment: &mut ActivityMoment,
    mut waits: Option<&mut WaitWatch>,
    sampling: Option<&LogSampling>,
) -> Result<bool, UserError> {
    let mut looks = 0;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        check_stop(segment)?;
        activity::set_done(began.elapsed().as_secs());
        nap_until_canceled((left.as_millis() as i64 + 1).min(100))?;
        if moment.is_open() {
            moment.read()?;
        }
        if let Some(waits) = &mut waits {
            waits.look()?;
        }
        looks += 1;
        if looks % 10 == 0 && sampling.is_some_and(|sampling| sampling.is_full().unwrap_or(true)) {
            return Ok(false);
        }
    }
    Ok(true)
}
