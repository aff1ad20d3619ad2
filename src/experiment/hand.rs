//! The hand of a sweep: a session that executes a variant's statements as their writer's role, and reverts them.
//!
//! Each change has a hand as long as it is in force, which reverts it even if the sweep's leader dies, or if the hand itself is
//! terminated, for example by a fast shutdown. The change is recorded before its first statement, so that another hand can
//! revert it after a crash of the server. It is unknown then which statements were executed, and those that find nothing to
//! revert are passed over.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Results, Role, RunOptions};
use bench_questions::sweep::{Question, SweepOptions, Variant};
use bench_results::rehearsal::Rehearsal;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::parameters::fixtures_of;
use super::stops::{interruptibly, stop_error};
use crate::driver::session::Session;
use crate::error::internal;
use crate::guard::session_role::{check_session, client_role, keeper_of, session_of};
use crate::launch::checks::check_session_of;
use crate::launch::handle::LaunchHandle;
use crate::load::fixture;
use crate::run::before::execute;
use crate::server::background_worker::WorkerKind;
use crate::server::guc::is_own;
use crate::server::jsonb::json_of;
use crate::server::own_locks::OwnLocks;
use crate::server::process::{
    NS_PER_SEC, Usage, forget_cancel, is_backend, my_pid, nap_until_canceled, now_ns, report_idle, terminate,
    wait_for_latch, wake,
};
use crate::server::roles::{self, superuser};
use crate::server::rows::select;
use crate::server::signals::{self, OnTerminate};
use crate::server::spi::{self, fetch, quote_identifier};
use crate::server::transaction::{durable_transaction, transaction};
use crate::server::{database, query, relations};
use crate::shm::{Header, RunState, Segment, SegmentShape, StopReason};
use crate::store;
use crate::worker::{WorkerContext, attach};

/// The worker kind of hands.
const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_hand_main",
    title: c"pgbench_ext hand",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// lock_timeout of a revert that nothing stops.
const LOCK_TIMEOUT: &CStr = c"10s";

/// As above, if the sweep's leader is gone.
const LOCK_TIMEOUT_ALONE: &CStr = c"2s";

/// The task of a hand.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub sweep_id: i64,
    pub round: u32,
    /// The variant's name.
    pub variant: String,
    pub role: Role,
    /// Whether that role may have special rights.
    pub may_be_special: bool,
    /// The settings of the variant's clients.
    pub settings: Vec<(String, String)>,
    /// Schemas to create for the role first, which may not create them itself.
    pub schemas: Vec<String>,
    /// `None`: the change has been made, and is only reverted.
    pub apply: Option<Vec<String>>,
    pub revert: Vec<String>,
    /// Whether all statements of such a change are known to have been executed.
    pub is_complete: bool,
    pub part: HandPart,
    pub patience: Patience,
}

/// What a hand is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HandPart {
    /// The change of a variant, made before its runs.
    Variant,
    /// The change of a rehearsal, made in the middle of its run.
    Change,
    /// The blocker of a rehearsal, a transaction that stays open and is then rolled back.
    Blocker,
}

/// How statements of a change wait for locks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Patience {
    /// Their lock_timeout in milliseconds; `None`: that of the session.
    pub lock_timeout_ms: Option<i64>,
    /// Tries of each statement that ends with 55P03.
    pub tries: u32,
    /// Time between two tries.
    pub pause_ms: i64,
}

impl Patience {
    /// Waits as a session of psql does.
    pub const OF_SESSION: Self = Self { lock_timeout_ms: None, tries: 1, pause_ms: 0 };
}

/// The way in which a hand reverts its change; the value of its segment's gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Revert {
    /// Without a time limit, unless the sweep is stopped.
    Patiently = 1,
    /// Even if the sweep is stopped, without waiting long for locks.
    Certainly = 2,
}

thread_local! {
    /// In the leader: the segment of the current hand.
    static ON_DUTY: Cell<u32> = const { Cell::new(0) };
    /// In a hand: the change to revert if this process ends early.
    static UNFINISHED: Cell<Option<&'static Task>> = const { Cell::new(None) };
}

/// Starts a hand, in a transaction of the sweep's leader.
///
/// # Errors
/// Those of [`check_session_of`]; 53400 without a worker slot.
pub(super) fn start(task: &Task) -> Result<LaunchHandle, UserError> {
    let hand = start_session(task)?;
    ON_DUTY.set(hand.segment.handle());
    Ok(hand)
}

/// As [`start`], for a blocker, which has nothing to revert.
///
/// # Errors
/// As [`start`].
pub(super) fn start_session(task: &Task) -> Result<LaunchHandle, UserError> {
    check_session_of(&task.role)?;
    let json = serde_json::to_string(task).map_err(|e| internal(e.to_string()))?;
    let segment = Segment::create(SegmentShape::LEADER, &json, &[]);
    segment.header().caller_pid.store(my_pid(), Relaxed);
    let hand = LaunchHandle::start(segment, KIND, database::oid().to_u32(), task.role.oid, 1)?;
    hand.segment.pin();
    hand.tie();
    Ok(hand)
}

/// Makes a hand revert its change and end.
pub(super) fn order(hand: &LaunchHandle, how: Revert) {
    let header = hand.segment.header();
    header.gate.store(how as u32, Release);
    wake(header.coordinator_pid.load(Acquire));
}

/// Detaches from a hand that has ended, or that will end without the leader.
pub(super) fn leave(hand: LaunchHandle) {
    ON_DUTY.set(0);
    hand.leave();
}

/// How long a terminated leader waits for its hand, whose own limit is shorter.
const PATIENCE: Duration = Duration::from_secs(7);

/// Terminates the current hand at the exit of the leader, and waits until it has reverted its change or failed to.
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

/// The entry function of a hand.
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
        // After a failure, bench.sweep_changes shows what has not been reverted.
        let _ = signals::put_in_order(|| revert(&mut Session::new(Results::Discard), task, &UNDONE, &mut 0));
    }
});

fn work(context: &WorkerContext) -> Result<(), UserError> {
    let header = context.segment.header();
    let task: Task = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    // Leaked, because the exit callback needs it as well.
    let task: &'static Task = Box::leak(Box::new(task));
    transaction(|| check_session(&task.role, task.may_be_special))?;
    let mut session = Session::new(Results::Discard);
    session.set_own(KIND.title).map_err(UserError::from)?;
    if let Some(error) = stop_error(header) {
        return Err(error);
    }
    if task.part == HandPart::Blocker {
        return block(header, &mut session, task);
    }
    let mut is_complete = task.is_complete;
    if let Some(texts) = &task.apply {
        durable_transaction(|| store::begin_sweep_change(task.sweep_id, task.round, &task.variant))?;
        UNFINISHED.set(Some(task));
        let applied = interruptibly(header, || apply(header, &mut session, task, texts));
        if let Err(error) = applied {
            // Revert the executed part. After a failure, the leader tries again.
            let _ = revert_now(header, &mut session, task, &UNDONE);
            return Err(error);
        }
        is_complete = true;
        report_idle();
        header.set_state(RunState::Running);
        wake(header.caller_pid.load(Relaxed));
        while header.gate.load(Acquire) == 0 && header.stop() < StopReason::CallerGone {
            // A cancel of an idle session has no effect.
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

/// Reverts the change even if the sweep is stopped, without waiting long for locks.
fn revert_now(header: &Header, session: &mut Session, task: &Task, passes: &[&str]) -> Result<(), UserError> {
    // An earlier cancel must not interrupt the revert.
    forget_cancel();
    let is_alone = header.stop() >= StopReason::CallerGone;
    let timeout = if is_alone { LOCK_TIMEOUT_ALONE } else { LOCK_TIMEOUT };
    session.set(c"lock_timeout", timeout).map_err(UserError::from)?;
    let mut done = 0;
    let reverted = revert(session, task, passes, &mut done);
    header.sweep.done.store(done, Release);
    finished(reverted)
}

/// Unregisters the change after an attempt to revert it, so that there is none at the exit of this process.
fn finished(reverted: Result<(), UserError>) -> Result<(), UserError> {
    UNFINISHED.set(None);
    reverted
}

/// Executes a blocker's text in a transaction, which stays open until the leader stops this session.
fn block(header: &Header, session: &mut Session, task: &Task) -> Result<(), UserError> {
    let texts = task.apply.iter().flatten();
    let result = interruptibly(header, || {
        transaction(|| set(&task.settings))?;
        execute(session, "BEGIN")?;
        texts.clone().try_for_each(|text| execute(session, text))?;
        header.set_state(RunState::Running);
        while header.stop() == StopReason::None {
            nap_until_canceled(200)?;
        }
        Ok(())
    });
    session.abort().map_err(UserError::from)?;
    match result {
        Err(error) if error.sqlstate != sqlstate::QUERY_CANCELED => Err(error),
        _ => Ok(()),
    }
}

/// Makes the variant's change and records it.
fn apply(header: &Header, session: &mut Session, task: &Task, texts: &[String]) -> Result<(), UserError> {
    let before = transaction(files)?;
    let invalid_before = transaction(invalid_indexes)?;
    let relations_before = transaction(all_relations)?;
    let set_lock_timeout = |session: &Session, ms: i64| {
        let value = CString::new(ms.to_string()).map_err(|e| internal(e.to_string()))?;
        session.set(c"lock_timeout", &value).map_err(UserError::from)
    };
    if let Some(ms) = task.patience.lock_timeout_ms {
        set_lock_timeout(session, ms)?;
    }
    let mut tries = 1;
    transaction(|| make_schemas(task))?;
    let own_locks = OwnLocks::watch();
    let wal_bytes_before = Usage::of_session().wal_bytes;
    let began_ns = now_ns();
    header.sweep.began_ns.store(began_ns, Release);
    let applied = execute_all(session, &task.settings, texts, &mut |session, text| {
        execute_with_patience(session, text, &task.patience, &mut tries)
    });
    let ended_ns = now_ns();
    header.sweep.ended_ns.store(ended_ns, Release);
    if task.patience.lock_timeout_ms.is_some() {
        set_lock_timeout(session, 0)?;
    }
    let wal_bytes = Usage::of_session().wal_bytes - wal_bytes_before;
    let lock = own_locks.strongest(&relations_before);
    let mut noted = match &applied {
        Ok(()) => {
            let (made, bytes) = transaction(|| made_since(&before))?;
            let secs = (ended_ns - began_ns) as f64 / NS_PER_SEC;
            json!({"apply_secs": secs, "made": made, "made_bytes": bytes})
        }
        Err(error) => {
            // After a failure, the index stays, and its drop among the statements to revert may succeed.
            let _ = drop_invalid_indexes(session, &invalid_before);
            json!({"error": error.message})
        }
    };
    if task.part == HandPart::Change {
        let rehearsal = Rehearsal {
            tries,
            wal_bytes: i64::try_from(wal_bytes).ok(),
            lock_mode: lock.map(|lock| lock.mode_name()),
            locked: lock.map(|lock| transaction(|| Ok(lock.shown_name()))).transpose()?,
            ..Rehearsal::default()
        };
        noted["rehearsal"] = json_of(&rehearsal);
    }
    let noted = AssertUnwindSafe(noted);
    durable_transaction(|| store::note_sweep_change(task.sweep_id, &noted))?;
    applied
}

/// Returns all relations.
fn all_relations() -> Result<HashSet<pg_sys::Oid>, UserError> {
    Ok(select::<(pg_sys::Oid,)>("SELECT oid FROM pg_class", &[])?.into_iter().map(|(oid,)| oid).collect())
}

/// Returns the indexes that are not valid.
fn invalid_indexes() -> Result<HashSet<pg_sys::Oid>, UserError> {
    let sql = "SELECT indexrelid FROM pg_index WHERE NOT indisvalid";
    Ok(select::<(pg_sys::Oid,)>(sql, &[])?.into_iter().map(|(index,)| index).collect())
}

/// Drops indexes that a failed CREATE INDEX CONCURRENTLY left.
fn drop_invalid_indexes(session: &mut Session, before: &HashSet<pg_sys::Oid>) -> Result<(), UserError> {
    session.set(c"lock_timeout", LOCK_TIMEOUT).map_err(UserError::from)?;
    let left: Vec<pg_sys::Oid> = transaction(invalid_indexes)?.difference(before).copied().collect();
    for index in left {
        let name = transaction(|| fetch::<String>("SELECT $1::regclass::text", &[index.into()]))?;
        name.map_or(Ok(()), |name| execute(session, &format!("DROP INDEX {name}")))?;
    }
    Ok(())
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

/// Reverts the change and records that. Errors with a SQLSTATE in `passes` are ignored. Counts the executed statements in `done`.
fn revert(session: &mut Session, task: &Task, passes: &[&str], done: &mut u32) -> Result<(), UserError> {
    let began = Instant::now();
    let reverted =
        execute_all(session, &task.settings, &task.revert, &mut |session, text| match execute_one(
            session, text,
        ) {
            Err(error) if !passes.contains(&error.sqlstate.as_str()) => Err(error),
            _ => {
                *done += 1;
                Ok(())
            }
        });
    let noted = match &reverted {
        Ok(()) => json!({"revert_secs": began.elapsed().as_secs_f64()}),
        Err(error) => json!({"error": error.message}),
    };
    let noted = AssertUnwindSafe(noted);
    durable_transaction(|| store::note_sweep_change(task.sweep_id, &noted))?;
    reverted
}

/// The role of a hand.
#[derive(Clone, Debug)]
pub(super) struct HandRole {
    pub role: Role,
    /// Whether the caller or a superuser's parameter has named the role.
    pub may_be_special: bool,
}

/// Returns the role of a variant's hand in a call of the current role, which wrote the statements: `run_as`, or else the current
/// role. A superuser's statements are executed as the owner of the sweep's tables.
///
/// # Errors
/// 42704 for a role that does not exist, 42501 for one that the caller cannot SET ROLE to.
pub(super) fn hand_role(
    options: &SweepOptions,
    variant: &Variant,
    is_resumed: bool,
) -> Result<HandRole, UserError> {
    let arguments = options.run_of(variant);
    let run_as = arguments.run_as.clone();
    let hand = role_for(run_as.as_deref(), || match table_of(options, variant) {
        Some(table) => owner_of_table(table),
        None => fixtures_of(arguments)?.first().map_or(Ok(None), |name| fixture::owner_of(name)),
    })?;
    // The role was named by the sweep's first call, not by the one that resumes it.
    Ok(HandRole { may_be_special: hand.may_be_special && !(is_resumed && run_as.is_some()), ..hand })
}

/// As [`hand_role`]; `owner` returns the owner of the tables in a superuser's call.
///
/// # Errors
/// As [`hand_role`], and those of `owner`.
pub(super) fn role_for(
    run_as: Option<&str>,
    owner: impl FnOnce() -> Result<Option<Role>, UserError>,
) -> Result<HandRole, UserError> {
    if let Some(name) = run_as {
        let role = roles::named(name)?;
        roles::check_may_become(&role)?;
        return Ok(HandRole { role, may_be_special: true });
    }
    let caller = roles::current();
    if !superuser() {
        return Ok(HandRole { role: session_of(&caller, &caller, None)?, may_be_special: false });
    }
    let role = keeper_of(&session_of(&caller, &caller, owner()?)?)?;
    let may_be_special = role.oid == client_role()?.oid;
    Ok(HandRole { role, may_be_special })
}

/// Returns the table whose copies a variant uses.
fn table_of<'a>(options: &'a SweepOptions, variant: &Variant) -> Option<&'a str> {
    let Some(Question::IndexWorth(asked)) = &options.question else { return None };
    let index = asked.indexes.iter().find(|index| [&index.reads, &index.writes].contains(&&variant.name));
    index.map(|index| index.table.as_str())
}

/// Returns the owner of a table; `None` if the table does not exist.
///
/// # Errors
/// The server's.
pub(super) fn owner_of_table(table: &str) -> Result<Option<Role>, UserError> {
    let sql = "SELECT relowner FROM pg_class WHERE oid = to_regclass($1)";
    let owner = fetch::<pg_sys::Oid>(sql, &[table.into()])?;
    owner.map(|owner| roles::existing(owner, &format!("with OID {}", owner.to_u32()))).transpose()
}

/// The SQLSTATEs of statements that find nothing to revert: undefined and duplicate objects of all kinds.
const UNDONE: [&str; 10] =
    ["42704", "42703", "42P01", "42883", "3F000", "42710", "42701", "42P06", "42P07", "42723"];

/// The prefix of the detail of a statement's error without a detail of its own.
pub(super) const STATEMENT: &str = "Statement: ";

/// Checks a variant's statements before the first run.
///
/// # Errors
/// 0A000 for runs on other servers; the parser's are raised.
pub(super) fn check(options: &SweepOptions, variant: &Variant) -> Result<(), UserError> {
    let Some(sql) = &variant.sql else { return Ok(()) };
    if options.run_of(variant).target.is_some() {
        let message = format!("sql of variant \"{}\" cannot be applied on a target", variant.name);
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .hint("Apply it there between two runs, and compare them with bench.compare."));
    }
    for text in sql.apply.iter().chain(&sql.revert) {
        query::parse(&CString::new(text.as_str()).map_err(|e| internal(e.to_string()))?);
    }
    Ok(())
}

/// Returns the settings of a variant's clients.
///
/// # Errors
/// Those of the arguments of its runs.
pub(super) fn settings_of(
    options: &SweepOptions,
    variant: &Variant,
) -> Result<Vec<(String, String)>, UserError> {
    Ok(RunOptions::new(options.run_of(variant))?.settings)
}

/// Executes texts by `execute_text` as a client's session with these settings would, except for timeouts, and restores this
/// session's role and settings.
///
/// # Errors
/// Those of `execute_text`, with the statement.
fn execute_all(
    session: &mut Session,
    settings: &[(String, String)],
    texts: &[String],
    execute_text: &mut dyn FnMut(&mut Session, &str) -> Result<(), UserError>,
) -> Result<(), UserError> {
    let result = transaction(|| set(settings)).and_then(|()| {
        texts.iter().try_for_each(|text| {
            execute_text(session, text).map_err(|error| {
                let detail = error.detail.clone().unwrap_or_else(|| format!("{STATEMENT}{text}"));
                error.detail(detail)
            })
        })
    });
    // The role first: another role might not be allowed to reset all parameters.
    for statement in ["RESET SESSION AUTHORIZATION", "RESET ALL"] {
        execute(session, statement)?;
    }
    result
}

fn execute_one(session: &mut Session, text: &str) -> Result<(), UserError> {
    execute(session, text)?;
    if !session.in_block() {
        return Ok(());
    }
    session.abort().map_err(UserError::from)?;
    Err(UserError::new(sqlstate::ACTIVE_SQL_TRANSACTION, "the statements leave a transaction open"))
}

/// Executes a text, and tries it again while it does not get its locks. Raises `most_tries` to the number of tries.
fn execute_with_patience(
    session: &mut Session,
    text: &str,
    patience: &Patience,
    most_tries: &mut u32,
) -> Result<(), UserError> {
    for tries in 1.. {
        *most_tries = tries.max(*most_tries);
        match execute_one(session, text) {
            Err(error) if error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE && tries < patience.tries => {}
            result => return result,
        }
        let pause_ends_ns = now_ns() + patience.pause_ms * 1_000_000;
        while now_ns() < pause_ends_ns {
            nap_until_canceled((pause_ends_ns - now_ns()) / 1_000_000 + 1)?;
        }
    }
    Ok(())
}

/// Sets parameters for the session, until RESET ALL.
fn set(settings: &[(String, String)]) -> Result<(), UserError> {
    for (name, value) in settings.iter().filter(|(name, _)| !is_own(&name.to_ascii_lowercase())) {
        spi::in_session::run(
            "SELECT pg_catalog.set_config($1, $2, false)",
            &[name.as_str().into(), value.as_str().into()],
        )?;
    }
    Ok(())
}

/// Returns the OIDs and files of all relations except temporary ones.
pub(super) fn files() -> Result<HashSet<(pg_sys::Oid, pg_sys::Oid)>, UserError> {
    let sql = "SELECT oid, relfilenode FROM pg_class WHERE relfilenode <> 0::oid AND relpersistence <> 't'::\"char\"";
    Ok(select(sql, &[])?.into_iter().collect())
}

/// Returns the relations with new files, without TOAST tables, and the total size in bytes of all new files.
fn made_since(before: &HashSet<(pg_sys::Oid, pg_sys::Oid)>) -> Result<(Vec<String>, i64), UserError> {
    let made: Vec<pg_sys::Oid> = files()?.difference(before).map(|(oid, _)| *oid).collect();
    let rows = select::<(Option<pg_sys::Oid>, Option<i64>)>(
        "SELECT CASE WHEN relkind <> 't' AND relnamespace <> 99 THEN oid END, pg_relation_size(oid) \
         FROM pg_class WHERE oid = ANY ($1) ORDER BY oid",
        &[made.into()],
    )?;
    let bytes = rows.iter().filter_map(|(_, bytes)| *bytes).fold(0, i64::saturating_add);
    Ok((rows.into_iter().filter_map(|(table, _)| table).map(relations::shown_name).collect(), bytes))
}
