//! The steps before a run: truncate, vacuum, prewarm and checkpoint, on the run's tables and as its role.

mod remote;

use std::ffi::CString;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Before, FixtureSpec, Results, Role, RunSpec};
use bench_protocol::foreign_server::Secrets;
use pgrx::pg_sys;

use super::connections;
use crate::cluster::citus;
use crate::driver::session::{Session, StatementStats};
use crate::error::internal;
use crate::guard::session_role::{check_session, keeper_of};
use crate::guard::switch_role::as_session_of;
use crate::server::background_worker::WorkerKind;
use crate::server::pages::{check_may_read, prewarm};
use crate::server::process::{my_pid, request_checkpoint, wake};
use crate::server::signals::OnTerminate;
use crate::server::transaction::{locked, transaction};
use crate::server::{relations, roles, spi};
use crate::shm::{CommandCounters, Segment, StopReason};
use crate::worker::{WorkerContext, attach, workers};
use remote::has_rows;

pub use remote::refuse_load;

/// The step that a run's caller does itself: a load has workers of its own.
const BY_CALLER: Before = Before::Reload;

/// Runs a statement as a session that is sent it: VACUUM, CHECKPOINT and ALTER SYSTEM stand in no transaction.
pub fn execute(session: &mut Session, statement: &str) -> Result<(), UserError> {
    let text = CString::new(statement).map_err(|e| internal(e.to_string()))?;
    let counters = CommandCounters::default();
    session
        .execute_simple(&text, StatementStats { counters: &counters, plans: None })
        .map_err(UserError::from)
}

/// Does the steps, but for loads; over a connection, let in by `secrets`, where the run's lead to another server.
pub fn prepare(
    session: &mut Session,
    run: &RunSpec,
    secrets: &Secrets,
    steps: &[Before],
) -> Result<(), UserError> {
    if let Some(target) = &run.target {
        return remote::prepare(target, run, secrets, steps);
    }
    let tables: Vec<pg_sys::Oid> = run.tables().map(pg_sys::Oid::from).collect();
    for step in steps {
        match step {
            Before::Reload => {}
            Before::Truncate => truncate(run)?,
            Before::Vacuum if !tables.is_empty() => {
                let names = transaction(|| names(&tables))?.join(", ");
                execute(session, &format!("VACUUM (ANALYZE) {names}"))?;
            }
            Before::Vacuum => {}
            Before::Prewarm => read(&tables)?,
            Before::Checkpoint if run.cluster.is_some() => transaction(citus::checkpoint)?,
            Before::Checkpoint => request_checkpoint(),
        }
    }
    Ok(())
}

/// The lock that a step takes on which of the run's tables, where it takes one that a reader would wait for or hold up.
///
/// # Errors
/// As [`emptied`].
pub fn locks_of(step: Before, run: &RunSpec) -> Result<(Vec<pg_sys::Oid>, i32), UserError> {
    let all = || run.tables().map(pg_sys::Oid::from).collect();
    Ok(match step {
        Before::Truncate => {
            let of_each = run.fixtures.iter().map(emptied).collect::<Result<Vec<_>, _>>()?;
            (of_each.concat(), pg_sys::AccessExclusiveLock as i32)
        }
        Before::Vacuum => (all(), pg_sys::ShareUpdateExclusiveLock as i32),
        Before::Prewarm => (all(), pg_sys::AccessShareLock as i32),
        Before::Reload | Before::Checkpoint => (Vec::new(), pg_sys::NoLock as i32),
    })
}

/// Empties the tables that runs fill.
fn truncate(run: &RunSpec) -> Result<(), UserError> {
    for fixture in &run.fixtures {
        let fixture = std::panic::AssertUnwindSafe(fixture);
        transaction(|| {
            let tables = emptied(&fixture)?;
            spi::in_session::run(&format!("TRUNCATE {}", names(&tables)?.join(", ")), &[]).map(drop)
        })?;
    }
    Ok(())
}

/// Tables of a fixture that TRUNCATE is for, because runs fill them: of one that was loaded without rows all, of pgbench's
/// the one that pgbench empties itself.
///
/// # Errors
/// 55000 where there are none.
fn emptied(fixture: &FixtureSpec) -> Result<Vec<pg_sys::Oid>, UserError> {
    let tables: Vec<pg_sys::Oid> = fixture.tables.iter().map(|&table| table.into()).collect();
    if fixture.name == "tpcb" {
        let sql = "SELECT array_agg(oid) FROM pg_class \
                   WHERE oid = ANY ($1) AND relname = 'pgbench_history'::name";
        return Ok(spi::fetch::<Vec<pg_sys::Oid>>(sql, &[tables.into()])?.unwrap_or_default());
    }
    if fixture.rows == 0 && fixture.schema.is_some() {
        return Ok(tables);
    }
    Err(has_rows(&fixture.name).hint("Use before => 'reload'."))
}

/// In a transaction for each table, without a snapshot that would hold back the horizon.
fn read(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let (local, distributed) = transaction(|| Ok((citus::local(tables)?, citus::distributed(tables)?)))?;
    for table in distributed {
        transaction(|| citus::prewarm_shards(table))?;
    }
    for table in local {
        locked(&[], pg_sys::NoLock as i32, || prewarm(table))?;
    }
    Ok(())
}

/// Qualified and quoted names of tables.
fn names(tables: &[pg_sys::Oid]) -> Result<Vec<String>, UserError> {
    let sql = "SELECT array_agg(format('%I.%I', n.nspname, c.relname) ORDER BY c.oid) \
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.oid = ANY ($1)";
    Ok(spi::fetch::<Vec<String>>(sql, &[tables.to_vec().into()])?.unwrap_or_default())
}

/// What the run's role needs for the steps on a run's tables, and what its fixtures must be like, found out before any.
///
/// # Errors
/// 42501 and 55000; 0A000 for what cannot be done on another server.
pub fn check_run(steps: &[Before], run: &RunSpec, secrets: &Secrets) -> Result<(), UserError> {
    if let Some(target) = &run.target {
        return remote::check(target, run, secrets, steps);
    }
    check(steps, &run.owner())?;
    as_session_of(&keeper_of(&run.own_role())?, || {
        if steps.contains(&Before::Vacuum) {
            let tables: Vec<pg_sys::Oid> = run.tables().map(pg_sys::Oid::from).collect();
            check_may_vacuum(&tables)?;
        }
        if steps.contains(&Before::Prewarm) {
            run.tables().try_for_each(|table| check_may_read(table.into()))?;
        }
        if steps.contains(&Before::Truncate) {
            let emptied = run.fixtures.iter().map(emptied).collect::<Result<Vec<_>, _>>()?;
            check_may_truncate(&emptied.concat())?;
        }
        Ok(())
    })
}

fn check_may_truncate(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let sql = "SELECT c.oid FROM pg_class c \
               WHERE c.oid = ANY ($1) AND NOT has_table_privilege(c.oid, 'TRUNCATE') \
               ORDER BY c.oid LIMIT 1";
    match spi::fetch::<pg_sys::Oid>(sql, &[tables.to_vec().into()])? {
        None => Ok(()),
        Some(table) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to truncate {}", relations::shown_name(table)),
        )
        .hint(OWN_FIXTURE)),
    }
}

const OWN_FIXTURE: &str = "Load your own fixture into another schema: options => '{\"schema\": \"…\"}'.";

/// Privileges beside ownership that a VACUUM asks for (vacuum_is_permitted_for_relation in commands/vacuum.c): what is
/// wanting there is only a WARNING.
#[cfg(not(since_17))]
const MAY_MAINTAIN: &str = "false";
#[cfg(since_17)]
const MAY_MAINTAIN: &str = "has_table_privilege(c.oid, 'MAINTAIN')";

fn check_may_vacuum(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let sql = format!(
        "SELECT c.oid FROM pg_class c \
         WHERE c.oid = ANY ($1) AND NOT (pg_has_role(c.relowner, 'USAGE') OR {MAY_MAINTAIN} \
             OR (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database d \
                 WHERE d.datname = current_database())) \
         ORDER BY c.oid LIMIT 1"
    );
    match spi::fetch::<pg_sys::Oid>(&sql, &[tables.to_vec().into()])? {
        None => Ok(()),
        Some(table) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to vacuum {}", relations::shown_name(table)),
        )
        .hint(OWN_FIXTURE)),
    }
}

/// Makes a checkpoint on each server that has a part in a run, where its role may; whether it was made.
///
/// # Errors
/// Those of the servers.
pub fn checkpoint(session: &mut Session, run: &RunSpec, secrets: &Secrets) -> Result<bool, UserError> {
    let may = match &run.target {
        Some(target) => remote::may_checkpoint(target, run, secrets)?,
        None => transaction(|| Ok(may_checkpoint(&run.owner())))?,
    };
    if may {
        prepare(session, run, secrets, &[Before::Checkpoint])?;
    }
    Ok(may)
}

/// Whether a role may have a checkpoint made: the one that calls, whosever sessions the clients are.
fn may_checkpoint(caller: &Role) -> bool {
    roles::has_privileges_of(caller.oid.into(), roles::CHECKPOINT)
}

/// What the steps need of the role that calls, found out before any.
///
/// # Errors
/// 42501.
pub fn check(steps: &[Before], caller: &Role) -> Result<(), UserError> {
    if !steps.contains(&Before::Checkpoint) || may_checkpoint(caller) {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        "before => 'checkpoint' is for superusers and members of pg_checkpoint",
    ))
}

// A session of the role that keeps a run's tables, which brings about the state that a run begins with, before there are clients.

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
    prepare(&mut session, &spec, &secrets, &spec.options.before)
}

/// Has the steps done, where there are any, and waits for their end.
///
/// # Errors
/// What one of them has met; the reason of a stop.
pub fn prepare_run(
    segment: &Segment,
    spec: &RunSpec,
    stop_error: impl Fn(StopReason) -> UserError,
) -> Result<(), UserError> {
    if spec.options.before.iter().all(|step| *step == BY_CALLER) {
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
