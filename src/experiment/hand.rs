//! The hand of a sweep: a session of the role whose statements they are, which changes the database for the runs of a variant, and
//! undoes that.
//!
//! There is one for each change, as long as it is in force. So it undoes its change also where the sweep's leader has gone, or where
//! it is itself terminated, as every process is by a fast shutdown. That the change is to be undone is written down before its first
//! statement: after a crash of the server another hand undoes it. What of it had been done is not known then, and a statement that
//! finds nothing to undo has nothing left to do.

use std::cell::Cell;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::UserError;
use bench_model::spec::{Results, Role};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::statements::{UNDONE, execute_all, files, made_since};
use super::stops::{interruptibly, stop_error};
use crate::driver::session::Session;
use crate::error::internal;
use crate::guard::session_role::check_session;
use crate::launch::checks::check_session_of;
use crate::launch::handle::LaunchHandle;
use crate::server::background_worker::WorkerKind;
use crate::server::database;
use crate::server::process::{
    forget_cancel, is_backend, my_pid, nap_until_canceled, report_idle, terminate, wait_for_latch, wake,
};
use crate::server::signals::{self, OnTerminate};
use crate::server::spi::{self, quote_identifier};
use crate::server::transaction::{durable_transaction, transaction};
use crate::shm::{Header, RunState, Segment, SegmentShape, StopReason};
use crate::store;
use crate::worker::{WorkerContext, attach};

/// The kind of worker that a hand is.
const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_hand_main",
    title: c"pgbench_ext hand",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// How long a lock is waited for where nothing else ends the wait.
const LOCK_TIMEOUT: &CStr = c"10s";

/// The same where the sweep's leader has gone.
const LOCK_TIMEOUT_ALONE: &CStr = c"2s";

/// What a hand is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub sweep_id: i64,
    pub round: u32,
    /// The variant's name.
    pub variant: String,
    pub role: Role,
    /// Whether that role may have special rights.
    pub may_be_special: bool,
    /// Of the variant's clients.
    pub settings: Vec<(String, String)>,
    /// Schemas that are made for the role first, which it may not make itself.
    pub schemas: Vec<String>,
    /// `None`: the change is there, and left to be undone.
    pub apply: Option<Vec<String>>,
    pub revert: Vec<String>,
    /// All of a change that is left is done for certain.
    pub is_complete: bool,
}

/// How a hand undoes its change, once it is told to. In its segment's gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Revert {
    /// As long as it takes, unless the sweep is stopped.
    Patiently = 1,
    /// Whatever stops the sweep, without waiting long for a lock.
    Certainly = 2,
}

thread_local! {
    /// In the leader: the segment of the hand on duty.
    static ON_DUTY: Cell<u32> = const { Cell::new(0) };
    /// In a hand: what is to be undone if this process ends before.
    static UNFINISHED: Cell<Option<&'static Task>> = const { Cell::new(None) };
}

/// Starts a hand, in a transaction of the sweep's leader.
///
/// # Errors
/// 28000 and 42501 for a role that cannot have a session here; 53400 without a worker slot.
pub(super) fn start(task: &Task) -> Result<LaunchHandle, UserError> {
    check_session_of(&task.role)?;
    let json = serde_json::to_string(task).map_err(|e| internal(e.to_string()))?;
    let segment = Segment::create(SegmentShape::LEADER, &json, &[]);
    segment.header().caller_pid.store(my_pid(), Relaxed);
    let hand = LaunchHandle::start(segment, KIND, database::oid().to_u32(), task.role.oid, 1)?;
    hand.segment.pin();
    hand.tie();
    ON_DUTY.set(hand.segment.handle());
    Ok(hand)
}

/// Tells a hand to undo its change and to end.
pub(super) fn order(hand: &LaunchHandle, how: Revert) {
    let header = hand.segment.header();
    header.gate.store(how as u32, Release);
    wake(header.coordinator_pid.load(Acquire));
}

/// Lets go of a hand that has ended, or that is to end without the leader.
pub(super) fn leave(hand: LaunchHandle) {
    ON_DUTY.set(0);
    hand.leave();
}

/// How long a leader that is terminated waits for its hand, which has a limit of its own.
const PATIENCE: Duration = Duration::from_secs(7);

/// Ends the hand on duty, at the exit of the leader, and waits until it has undone its change, or given up.
pub(super) fn dismiss() {
    let handle = ON_DUTY.take();
    let pid = if handle == 0 {
        None
    } else {
        Segment::peek(handle, |hand| hand.header().coordinator_pid.load(Acquire))
    };
    let Some(pid) = pid.filter(|pid| terminate(*pid)) else { return };
    let began = Instant::now();
    while is_backend(pid) && began.elapsed() < PATIENCE {
        wait_for_latch(20, pg_sys::PG_WAIT_EXTENSION);
    }
}

/// The server's entry into a hand.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_hand_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let header = context.segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    signals::register(&REVERT_UNFINISHED);
    if let Err(error) = work(&context) {
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

static REVERT_UNFINISHED: signals::Callback = signals::Callback(|| {
    if let Some(task) = UNFINISHED.take() {
        // Where that fails, bench.sweep_changes says what is left.
        let _ = signals::put_in_order(|| revert(&mut Session::new(Results::Discard), task, &UNDONE, &mut 0));
    }
});

fn work(context: &WorkerContext) -> Result<(), UserError> {
    let header = context.segment.header();
    let task: Task = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    // What is done at the exit of this process needs it as well.
    let task: &'static Task = Box::leak(Box::new(task));
    transaction(|| check_session(&task.role, task.may_be_special))?;
    let mut session = Session::new(Results::Discard);
    session.set_own(KIND.title).map_err(UserError::from)?;
    if let Some(error) = stop_error(header) {
        return Err(error);
    }
    let mut is_complete = task.is_complete;
    if let Some(texts) = &task.apply {
        durable_transaction(|| store::begin_sweep_change(task.sweep_id, task.round, &task.variant))?;
        UNFINISHED.set(Some(task));
        let applied = interruptibly(header, || apply(&mut session, task, texts));
        if let Err(error) = applied {
            // As far as it went. Where that fails, the leader has it tried again.
            let _ = revert_now(header, &mut session, task, &UNDONE);
            return Err(error);
        }
        is_complete = true;
        report_idle();
        header.set_state(RunState::Running);
        wake(header.caller_pid.load(Relaxed));
        while header.gate.load(Acquire) == 0 && header.stop() < StopReason::CallerGone {
            // A cancel of a session that does nothing cancels nothing.
            let _ = nap_until_canceled(200);
        }
    } else {
        UNFINISHED.set(Some(task));
    }
    let passes: &[&str] = if is_complete { &[] } else { &UNDONE };
    if header.gate.load(Acquire) == Revert::Patiently as u32 {
        let mut done = 0;
        let reverted = interruptibly(header, || revert(&mut session, task, passes, &mut done));
        header.sweep.done.store(done, Release);
        return finished(reverted);
    }
    revert_now(header, &mut session, task, passes)
}

/// Undoes the change, whatever stops the sweep, without waiting long for a lock.
fn revert_now(header: &Header, session: &mut Session, task: &Task, passes: &[&str]) -> Result<(), UserError> {
    // A cancel must not come between.
    forget_cancel();
    let is_alone = header.stop() >= StopReason::CallerGone;
    let timeout = if is_alone { LOCK_TIMEOUT_ALONE } else { LOCK_TIMEOUT };
    session.set(c"lock_timeout", timeout).map_err(UserError::from)?;
    let mut done = 0;
    let reverted = revert(session, task, passes, &mut done);
    header.sweep.done.store(done, Release);
    finished(reverted)
}

/// After a try to undo the change: there is none at the exit of this process.
fn finished(reverted: Result<(), UserError>) -> Result<(), UserError> {
    UNFINISHED.set(None);
    reverted
}

/// Changes the database as the variant has it.
fn apply(session: &mut Session, task: &Task, texts: &[String]) -> Result<(), UserError> {
    let before = transaction(files)?;
    let began = Instant::now();
    let applied = transaction(|| make_schemas(task))
        .and_then(|()| execute_all(session, &task.settings, texts, &[], &mut 0));
    let secs = began.elapsed().as_secs_f64();
    let noted = match &applied {
        Ok(()) => {
            let (made, bytes) = transaction(|| made_since(&before))?;
            json!({"apply_secs": secs, "made": made, "made_bytes": bytes})
        }
        Err(error) => json!({"error": error.message}),
    };
    durable_transaction(|| store::note_sweep_change(task.sweep_id, &noted))?;
    applied
}

fn make_schemas(task: &Task) -> Result<(), UserError> {
    if task.schemas.is_empty() {
        return Ok(());
    }
    let owner = quote_identifier(&task.role.name);
    store::as_owner(|| {
        task.schemas.iter().try_for_each(|schema| {
            let sql = format!("CREATE SCHEMA {} AUTHORIZATION {owner}", quote_identifier(schema));
            spi::run(&sql, &[]).map(drop)
        })
    })
}

/// Undoes the change; an error with one of these codes is passed over. Counts the statements that are done.
fn revert(session: &mut Session, task: &Task, passes: &[&str], done: &mut u32) -> Result<(), UserError> {
    let began = Instant::now();
    let reverted = execute_all(session, &task.settings, &task.revert, passes, done);
    let noted = match &reverted {
        Ok(()) => json!({"revert_secs": began.elapsed().as_secs_f64()}),
        Err(error) => json!({"error": error.message}),
    };
    let noted = AssertUnwindSafe(noted);
    durable_transaction(|| store::note_sweep_change(task.sweep_id, &noted))?;
    reverted
}
