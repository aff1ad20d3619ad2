//! The leader of a load: makes the tables in a schema of their own, has them filled by loaders, builds their
//! indexes, and puts them in the fixture's place in one transaction. It is a session of the calling role.

use std::cell::Cell;
use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::loader;
use super::tables::{create_tables, largest_key, make_schema, put_in_place, replaceable_tables, tables_made};
use crate::catalog::{self, Load, LoadFigures};
use crate::engine::{Book, Session};
use crate::error::internal;
use crate::fixture::LoadSpec;
use crate::integration::distributed;
use crate::server::background_worker::WorkerKind;
use crate::server::locks::is_blocked_by_me;
use crate::server::new_pages::set_up_new_pages;
use crate::server::process::{
    forget_cancel, is_backend, memory_bytes, my_pid, nap_until_canceled, now_ns, wake,
};
use crate::server::signals::OnTerminate;
use crate::server::spi::quote_identifier;
use crate::server::transaction::{locked, transaction};
use crate::server::{at_exit, guc, relations, worker_slots};
use crate::shm::{ClientState, CommandCounters, DetachCallback, LoadPhase, RunState, Segment, StopReason};
use crate::worker::{WorkerContext, attach, workers};

/// The kind of worker that a load's leader is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_load_main",
    title: c"pgbench_ext load",
    noun: "job",
    connects: true,
    returns_after_crash: false,
};

/// The server's entry into a load's leader.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_load_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let header = context.segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    header.load.began_ns.store(now_ns(), Relaxed);
    context.segment.on_detach(&STOP_LOADERS);
    if let Err(error) = load(&context) {
        // A cancel by the caller stands for its reason.
        let error = check_stop(&context.segment).err().unwrap_or(error);
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

static STOP_LOADERS: DetachCallback = DetachCallback(|segment| {
    segment.header().request_stop(StopReason::Abandoned);
    workers::terminate();
});

thread_local! {
    /// The load that is to be undone if this process ends before it.
    static UNFINISHED: Cell<Option<Load>> = const { Cell::new(None) };
}

/// As the server removes the temporary tables of a session that is terminated (RemoveTempRelationsCallback in
/// catalog/namespace.c). By now the loaders have been told to end: that callback of theirs comes before this one.
static UNDO_UNFINISHED: at_exit::Callback = at_exit::Callback(|| {
    if let Some(load) = UNFINISHED.get() {
        let undone = at_exit::put_in_order(|| {
            catalog::abandon(load, Duration::from_secs(2));
            Ok(())
        });
        if undone.is_ok() {
            UNFINISHED.set(None);
        }
    }
});

/// Called after [`UNDO_UNFINISHED`], also where that did not come to its end.
static TELL_UNFINISHED: at_exit::Callback = at_exit::Callback(|| {
    if let Some(load) = UNFINISHED.take() {
        catalog::tell_left_over(load, None);
    }
});

fn load(context: &WorkerContext) -> Result<(), UserError> {
    let spec: LoadSpec = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let mut session = Session::new(Results::Discard);
    session.set_own(c"pgbench_ext load").map_err(UserError::from)?;
    // Names in the statements below are the server's own.
    session.set(c"search_path", c"pg_catalog, pg_temp").map_err(UserError::from)?;
    // Tables that are moved to a schema that Citus distributes stay local: schemas that a load makes are not such.
    if guc::current("citus.enable_schema_based_sharding").is_some() {
        session.set(c"citus.enable_schema_based_sharding", c"off").map_err(UserError::from)?;
    }
    at_exit::register(&TELL_UNFINISHED);
    at_exit::register(&UNDO_UNFINISHED);
    let segment = std::panic::AssertUnwindSafe(&context.segment);
    catalog::remove_dead_loads()?;
    let load = transaction(|| {
        replaceable_tables(&spec, spec.relations.iter().map(String::as_str))?;
        catalog::begin_load(&spec.name, &spec.schema, &spec.role, &segment)
    })?;
    UNFINISHED.set(Some(load));
    let result = fill(context, &spec, load, &mut session);
    if result.is_err() {
        workers::terminate();
        forget_cancel();
        catalog::abandon(load, Duration::from_secs(10));
    }
    UNFINISHED.set(None);
    result
}

fn fill(
    context: &WorkerContext,
    spec: &LoadSpec,
    load: Load,
    session: &mut Session,
) -> Result<(), UserError> {
    let load_id = load.load_id;
    let progress = &context.segment.header().load;
    let mut figures = LoadFigures::default();
    session.set(c"search_path", &loader::search_path(spec, load_id)).map_err(UserError::from)?;
    set_up_for_loading(session)?;
    set_default_tablespace(session, &spec.tablespace)?;
    transaction(|| create_tables(spec, load_id))?;
    set_default_tablespace(session, &spec.index_tablespace)?;
    let build_indexes = |session: &mut Session| {
        progress.enter(LoadPhase::Indexes, now_ns());
        timed(|| run_each(context, session, &spec.indexes))
    };
    if spec.index_before {
        figures.index_secs = build_indexes(session)?;
    }
    if spec.fills.iter().any(|fill| fill.ids > 0) {
        progress.enter(LoadPhase::Rows, now_ns());
        figures.load_secs = timed(|| write_rows(context, spec, load_id))?;
    }
    figures.rows = context.segment.rows_written().cast_signed();
    if !spec.distribute.is_empty() {
        progress.enter(LoadPhase::Distribution, now_ns());
        figures.load_secs += timed(|| run_each(context, session, &spec.distribute))?;
    }
    if !spec.index_before {
        figures.index_secs = build_indexes(session)?;
    }
    run_each(context, session, &spec.after)?;
    progress.enter(LoadPhase::Vacuum, now_ns());
    let tables = transaction(|| tables_made(spec, load_id))?;
    figures.vacuum_secs = timed(|| vacuum(context, session, &tables))?;
    let oids: Vec<pg_sys::Oid> = tables.iter().map(|(table, _)| *table).collect();
    // Before the tables are moved: other nodes are asked in sessions of their own.
    figures.bytes = transaction(|| distributed::sizes(&oids))?;
    let is_local = transaction(|| Ok(distributed::distributed(&oids)?.is_empty()))?;
    if !is_local {
        // Sessions on other nodes see what is committed.
        transaction(|| make_schema(spec))?;
    }
    transaction(|| {
        let (index_levels, key_correlation) = largest_key(&oids)?;
        put_in_place(spec, load, is_local, &LoadFigures { index_levels, key_correlation, ..figures })
    })?;
    if !is_local {
        catalog::abandon(load, Duration::from_secs(10));
    }
    Ok(())
}

/// Leaves the tables as a benchmark begins with: analyzed, and all pages all-visible.
fn vacuum(
    context: &WorkerContext,
    session: &mut Session,
    tables: &[(pg_sys::Oid, String)],
) -> Result<(), UserError> {
    /// What holds back the horizon is in most cases over in a moment, as an ANALYZE of autovacuum's is.
    const PATIENCE: Duration = Duration::from_millis(500);
    let began = Instant::now();
    let schema = catalog::staging_schema(context.segment.load_id());
    let qualified = |name| format!("{}.{}", quote_identifier(&schema), quote_identifier(name));
    let names: Vec<String> = tables.iter().map(|(_, name)| qualified(name)).collect();
    let names = names.join(", ");
    let oids: Vec<pg_sys::Oid> = tables.iter().map(|(table, _)| *table).collect();
    let loaded = transaction(catalog::next_transaction_id)?;
    let vacuum = [format!("VACUUM (FREEZE, ANALYZE) {names}")];
    run_each(context, session, &vacuum)?;
    let tables = transaction(|| relations::with_partitions(&oids))?;
    // Beside pages whose rows somebody may not see yet there may be some that the server has made and nobody has filled.
    while transaction(|| catalog::has_invisible_pages(&tables))? {
        if transaction(|| Ok(tables.iter().map(|&table| set_up_new_pages(table)).sum::<u32>()))? > 0 {
            run_each(context, session, &vacuum)?;
            continue;
        }
        let holder = transaction(|| catalog::horizon_holder(&loaded))?;
        let is_over = holder.is_none();
        if !is_over && began.elapsed() >= PATIENCE {
            context.segment.header().load.horizon_holder.set(&holder.unwrap_or_default());
            break;
        }
        if !is_over {
            nap_until_canceled(50)?;
        }
        run_each(context, session, &[format!("VACUUM (FREEZE, ANALYZE) {names}")])?;
        if is_over {
            break;
        }
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<(), UserError>) -> Result<f64, UserError> {
    let began = Instant::now();
    work().map(|()| began.elapsed().as_secs_f64())
}

/// Runs texts of one or more statements, each of which commits by itself.
fn run_each(context: &WorkerContext, session: &mut Session, texts: &[String]) -> Result<(), UserError> {
    for text in texts {
        check_stop(&context.segment)?;
        let text = CString::new(text.as_str()).map_err(|e| internal(e.to_string()))?;
        let counters = CommandCounters::default();
        session.execute_simple(&text, Book { counters: &counters, plans: None }).map_err(UserError::from)?;
    }
    check_stop(&context.segment)
}

/// Settings of the leader's session.
fn set_up_for_loading(session: &Session) -> Result<(), UserError> {
    let set = |name, value: &str| {
        session.set(name, &CString::new(value).unwrap_or_default()).map_err(UserError::from)
    };
    // What bench.load returns is there after a crash.
    if guc::current("synchronous_commit").as_deref() == Some("off") {
        set(c"synchronous_commit", "local")?;
    }
    // Indexes are built with what is to be had: the leader itself and a worker for each other processor.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = (processors as u64 - 1).min(worker_slots::free_slots()).min(MAX_INDEX_WORKERS);
    set(c"max_parallel_maintenance_workers", &workers.to_string())?;
    set(c"maintenance_work_mem", &guc::maintenance_work_mem_kb().max(sensible_index_memory_kb()).to_string())
}

/// More than this many do not make a B-tree's build any faster.
const MAX_INDEX_WORKERS: u64 = 7;

/// An eighth of the machine's memory, and no more than a sort of hundreds of millions of keys can use.
fn sensible_index_memory_kb() -> i64 {
    const MOST_KB: i64 = 1 << 20;
    (memory_bytes() / 8 / 1024).clamp(0, MOST_KB)
}

/// Where what is made next goes to: without a name, where the database is.
fn set_default_tablespace(session: &Session, tablespace: &Option<String>) -> Result<(), UserError> {
    let name = CString::new(tablespace.as_deref().unwrap_or_default()).unwrap_or_default();
    session.set(c"default_tablespace", &name).map_err(UserError::from)
}

/// Has the tables filled, with as many loaders as help.
fn write_rows(context: &WorkerContext, spec: &LoadSpec, load_id: i64) -> Result<(), UserError> {
    let by_insert = transaction(|| catalog::tables_for_insert(load_id))?;
    let (tables, is_alone) = transaction(|| {
        let made = tables_made(spec, load_id)?;
        let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
        // Side by side, INSERTs have the server make more pages than they fill; other nodes take rows by COPY.
        let local = distributed::local(&tables)?;
        let is_alone = made.iter().any(|(table, name)| local.contains(table) && by_insert.contains(name));
        Ok((relations::with_partitions(&tables)?, is_alone))
    })?;
    let jobs = if is_alone { 1 } else { spec.jobs };
    // A VACUUM of half a table is of no use, and the loaders count on there being none.
    let mode = pg_sys::ShareUpdateExclusiveLock as i32;
    locked(&tables, mode, || insert_rows(context, spec, jobs))
}

/// Launches the loaders and waits for them.
fn insert_rows(context: &WorkerContext, spec: &LoadSpec, jobs: u32) -> Result<(), UserError> {
    let segment = &context.segment;
    segment.header().load.ids.set(spec.counted_ids().unsigned_abs());
    workers::launch(loader::KIND, segment.handle(), jobs, spec.database_oid, spec.role_oid)?;
    segment.header().set_state(RunState::Running);
    let mut looked = Instant::now();
    loop {
        check_stop(segment)?;
        let mut done = 0;
        for (index, slot) in segment.slots().enumerate().take(jobs as usize) {
            let stopped = workers::has_stopped(index as u32);
            match slot.state() {
                ClientState::Done => done += 1,
                ClientState::Aborted => return Err(loader_error(segment, index as u32)),
                _ if stopped => {
                    segment.check_refusal()?;
                    if slot.told_fatal.load(Acquire) != 0 {
                        return Err(loader_error(segment, index as u32));
                    }
                    return Err(UserError::new(
                        sqlstate::ADMIN_SHUTDOWN,
                        format!("loader {index} ended unexpectedly"),
                    )
                    .hint("See the server log."));
                }
                _ => {}
            }
        }
        if done == jobs {
            return Ok(());
        }
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            check_way_is_free(segment)?;
        }
        nap_until_canceled(100)?;
    }
}

/// How often the leader looks whether somebody stands between it and the loaders.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A session that wants a stronger lock on a table than the loaders have waits for the leader's own, and the loaders'
/// next share waits behind it. The server sees no deadlock: the leader waits for no lock.
///
/// # Errors
/// 40P01.
fn check_way_is_free(segment: &Segment) -> Result<(), UserError> {
    let is_stuck = |pid: i32| pid != 0 && is_backend(pid) && is_blocked_by_me(pid);
    if segment.slots().any(|slot| is_stuck(slot.pid.load(Relaxed))) {
        return Err(UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "another session waits for a lock on a table that is being loaded, and the load waits for that session",
        )
        .hint("Do not use the tables of a load before it has ended."));
    }
    Ok(())
}

fn loader_error(segment: &Segment, index: u32) -> UserError {
    let entry = &segment.slot(index).errors[0];
    let sqlstate = bench_core::error::unpack(entry.sqlstate.load(Acquire));
    let message = entry.message.get().unwrap_or_else(|| "the loader failed".to_owned());
    UserError { sqlstate, message, detail: entry.detail.get(), hint: entry.hint.get() }
}

fn check_stop(segment: &Segment) -> Result<(), UserError> {
    match segment.header().stop() {
        StopReason::None => Ok(()),
        StopReason::BlockedByCaller => Err(UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "the load waits for a lock of the session that waits for the load",
        )
        .hint("Commit before calling it.")),
        _ => Err(UserError::new(sqlstate::QUERY_CANCELED, "the load was canceled")),
    }
}
