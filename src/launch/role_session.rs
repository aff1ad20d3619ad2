//! Questions to a session of a role: users' statements are analyzed and tried out only with that role's rights, settings and
//! search_path.
//!
//! The session is a background worker. Its transaction is read-only or rolled back, and it can start neither workers nor
//! connections. Question and answer are serialized in a segment each.

use std::cell::Cell;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::pg_sys;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::checks::check_session_of;
use crate::error::internal;
use crate::guard::session_role::{check_session, may_be_special};
use crate::server::background_worker::{self, WorkerKind};
use crate::server::database;
use crate::server::guc::{set_as_session, set_for_session};
use crate::server::process::{check_client_connection, is_backend, my_pid, nap, wake};
use crate::server::relations::is_blocked_by_me;
use crate::server::signals::OnTerminate;
use crate::server::transaction::{rolled_back, transaction};
use crate::shm::{Segment, SegmentShape};
use crate::worker::attach;
use crate::worker::workers::OneMore;

/// The longest question and the longest answer, in bytes.
const MAX_BYTES: usize = 1 << 30;

/// How long a session that has answered waits for the answer to be read, and the caller for that session's end.
const PATIENCE: Duration = Duration::from_secs(30);

thread_local! {
    /// The segment of the question that this session answers.
    static QUESTION: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Checks that this session may start workers and connections.
///
/// # Errors
/// 25006 in a session that answers questions.
pub fn check_may_start() -> Result<(), UserError> {
    if QUESTION.get().is_none() {
        return Ok(());
    }
    let message = "cannot start workers or connections while statements are tried out";
    Err(UserError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, message))
}

/// Returns the worker kind of sessions for questions, with this entry function and this title in pg_stat_activity.
pub const fn kind(entry: &'static CStr, title: &'static CStr) -> WorkerKind {
    WorkerKind { entry, title, noun: "session", connects: true, returns_after_crash: false }
}

/// An answer, with raw bytes that are not serialized.
pub type RoleAnswer<A> = (A, Vec<u8>);

/// A question, and the role of the session that answers it.
#[derive(Serialize, Deserialize)]
struct Asked<Q> {
    role: Role,
    may_be_special: bool,
    question: Q,
}

/// Called while a question is being answered, with the number of its parts answered so far.
pub type Watch<'a> = &'a mut dyn FnMut(u32);

/// Counts a part of the question as answered, for the caller's [`Watch`].
pub fn count_answered() {
    if let Some(question) = QUESTION.get() {
        Segment::peek(question, |segment| segment.header().answered.fetch_add(1, Relaxed));
    }
}

/// Asks a session of a role, and waits for its answer. Only the role that the caller has named in this call, `run_as`, and
/// superusers' client role may have special rights.
///
/// # Errors
/// The session's; those of [`check_session_of`]; 42501 for another role with special rights; 53400 without a worker slot; 57014.
pub fn ask<Q: Serialize, A: DeserializeOwned>(
    kind: WorkerKind,
    role: &Role,
    run_as: Option<&str>,
    question: &Q,
) -> Result<RoleAnswer<A>, UserError> {
    ask_and_watch(kind, role, run_as, question, &mut |_| ())
}

/// As [`ask`], and calls `watch` with the progress.
///
/// # Errors
/// As [`ask`].
pub fn ask_and_watch<Q: Serialize, A: DeserializeOwned>(
    kind: WorkerKind,
    role: &Role,
    run_as: Option<&str>,
    question: &Q,
    watch: Watch,
) -> Result<RoleAnswer<A>, UserError> {
    ask_with(kind, role, run_as, question, Fed::default(), watch)
}

/// The rows of feeders for a question.
#[derive(Clone, Copy, Default)]
pub struct Fed<'a> {
    pub bytes: &'a [u8],
    pub feeders: u32,
}

/// As [`ask_and_watch`], with the rows of feeders.
///
/// # Errors
/// As [`ask`].
pub fn ask_with<Q: Serialize, A: DeserializeOwned>(
    kind: WorkerKind,
    role: &Role,
    run_as: Option<&str>,
    question: &Q,
    fed: Fed,
    watch: Watch,
) -> Result<RoleAnswer<A>, UserError> {
    check_may_start()?;
    check_session_of(role)?;
    background_worker::check_slots(1, kind.noun)?;
    let may_be_special = may_be_special(role, run_as);
    let segment = segment_of(&Asked { role: role.clone(), may_be_special, question }, fed)?;
    segment.header().caller_pid.store(my_pid(), Relaxed);
    with_segment(segment, |asked| wait_for_answer(kind, role, asked, watch))
}

/// Runs `work` with a segment, which is detached on every way out, including a cancel.
///
/// # Errors
/// Those of `work`.
pub fn with_segment<T>(
    segment: Segment,
    work: impl FnOnce(&Segment) -> Result<T, UserError>,
) -> Result<T, UserError> {
    struct DetachOnDrop(Option<Segment>);
    impl Drop for DetachOnDrop {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(Segment::detach);
        }
    }
    let segment = DetachOnDrop(Some(segment));
    segment.0.as_ref().map_or_else(|| Err(internal("a call without a segment")), work)
}

fn wait_for_answer<A: DeserializeOwned>(
    kind: WorkerKind,
    role: &Role,
    asked: &Segment,
    watch: Watch,
) -> Result<RoleAnswer<A>, UserError> {
    let session = OneMore::launch(kind, asked.handle(), database::oid().to_u32(), role.oid)?;
    let header = asked.header();
    loop {
        let has_ended = session.has_stopped();
        if let Some(error) = header.failure() {
            return Err(error);
        }
        if let Some(answer) = Segment::attach(header.answer.load(Acquire)).filter(|_| !has_ended) {
            let parsed = serde_json::from_str(answer.spec()).map_err(|error| internal(error.to_string()));
            let bytes = answer.fed().to_vec();
            answer.detach();
            header.gate.store(1, Release);
            wake(header.coordinator_pid.load(Relaxed));
            // Wait for the session's end, so that its worker slot is free after this call.
            let began = Instant::now();
            while !session.has_stopped() && began.elapsed() < PATIENCE {
                nap(20);
            }
            return parsed.map(|answer| (answer, bytes));
        }
        if has_ended {
            asked.check_refusal()?;
            let message = format!("the session of role \"{}\" ended unexpectedly", role.name);
            return Err(
                UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint("See the server log.")
            );
        }
        watch(header.answered.load(Relaxed));
        check_client_connection();
        let session_pid = header.coordinator_pid.load(Relaxed);
        if session_pid != 0 && is_blocked_by_me(session_pid) {
            let message = format!("the session of role \"{}\" waits for a lock of this session", role.name);
            return Err(UserError::new(sqlstate::DEADLOCK_DETECTED, message)
                .hint("Commit or roll back before the call."));
        }
        nap(200);
    }
}

/// Creates a segment with a serialized message and raw bytes.
///
/// # Errors
/// 54000.
pub fn segment_of<T: Serialize>(message: &T, Fed { bytes, feeders }: Fed) -> Result<Segment, UserError> {
    let json = serde_json::to_string(message).map_err(|error| internal(error.to_string()))?;
    let length = json.len() + bytes.len();
    if length > MAX_BYTES {
        let message = format!("a role's statements and values must not be longer than {MAX_BYTES} bytes");
        return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
            .detail(format!("They have {length} bytes.")));
    }
    Ok(Segment::create(SegmentShape { feeders, ..SegmentShape::LEADER }, &json, bytes))
}

/// Makes the transaction of a session that answers a question read-only.
///
/// # Errors
/// The server's.
pub fn read_only() -> Result<(), UserError> {
    set_as_session("transaction_read_only", "on")
}

/// Serves a question in a background worker: `find` finds the answer in a transaction, which it makes [`read_only`] before it
/// touches users' objects.
pub fn answer<Q: DeserializeOwned, A: Serialize>(
    segment: pg_sys::Datum,
    find: impl FnOnce(Q) -> Result<RoleAnswer<A>, UserError>,
) {
    serve(segment, |Asked { role, may_be_special, question }, _| {
        transaction(AssertUnwindSafe(|| {
            check_session(&role, may_be_special)?;
            find(question)
        }))
    });
}

/// As [`answer`], with a `find` that executes statements as a client does: in transactions that it opens itself, and with the
/// rows of feeders in the segment.
pub fn answer_as_client<Q: DeserializeOwned, A: Serialize>(
    segment: pg_sys::Datum,
    find: impl FnOnce(Q, &Segment) -> Result<A, UserError>,
) {
    serve(segment, |Asked { role, may_be_special, question }, segment| {
        transaction(AssertUnwindSafe(|| check_session(&role, may_be_special)))?;
        Ok((find(question, segment)?, Vec::new()))
    });
}

fn serve<Q: DeserializeOwned, A: Serialize>(
    segment: pg_sys::Datum,
    find: impl FnOnce(Asked<Q>, &Segment) -> Result<RoleAnswer<A>, UserError>,
) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let header = context.segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    QUESTION.set(Some(context.segment.handle()));
    set_for_session(c"application_name", c"pgbench_ext");
    let asked: Result<Asked<Q>, UserError> =
        serde_json::from_str(context.segment.spec()).map_err(|error| internal(error.to_string()));
    let result = asked.and_then(|asked| find(asked, &context.segment));
    // The answer's segment lasts as long as this process, which waits until the caller has read it.
    match result.and_then(|(answer, bytes)| segment_of(&answer, Fed { bytes: &bytes, feeders: 0 })) {
        Err(error) => header.fail(&error),
        Ok(answer) => {
            header.answer.store(answer.handle(), Release);
            let caller = header.caller_pid.load(Relaxed);
            wake(caller);
            let began = Instant::now();
            while header.gate.load(Acquire) == 0 && is_backend(caller) && began.elapsed() < PATIENCE {
                nap(100);
            }
        }
    }
    wake(header.caller_pid.load(Relaxed));
}

/// As [`answer`], with a `find` that writes: its transaction is rolled back.
pub fn answer_and_roll_back<Q: DeserializeOwned, A: Serialize>(
    segment: pg_sys::Datum,
    find: impl FnOnce(Q) -> Result<RoleAnswer<A>, UserError>,
) {
    answer(segment, |question| {
        // As in loads, default_transaction_read_only of the role or the database does not apply.
        set_as_session("transaction_read_only", "off")?;
        rolled_back(|| find(question))
    });
}
