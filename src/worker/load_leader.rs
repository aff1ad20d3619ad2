//! The leader of a load: makes the tables in a schema of their own, has them filled by loaders, builds their
//! indexes, and puts them in the fixture's place in one transaction. It is a session of the calling role.

use std::cell::Cell;
use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::caller::is_blocked_by_me;
use super::{
    OnTerminate, Post, at_exit, crew, is_backend, loader, nap_until_canceled, now_ns, report_for_duty,
    time_limit, wake,
};
use crate::catalog::{self, Load, LoadFigures};
use crate::engine::{Book, Session, SqlError};
use crate::error::internal;
use crate::fixture::{self, LoadSpec};
use crate::settings::{self, quote_identifier};
use crate::shm::{ClientState, CommandCounters, LoadPhase, RunState, Segment, StopReason, TotalsOf};

/// The kind of worker that a load's leader is.
pub const KIND: super::Kind = super::Kind {
    entry: c"pgbench_ext_load_main",
    title: c"pgbench_ext load",
    noun: "job",
    returns_after_crash: false,
};

/// The server's entry into a load's leader.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_load_main(segment: pg_sys::Datum) {
    let Some(post) = report_for_duty(segment, OnTerminate::Die) else { return };
    let header = post.segment.header();
    // SAFETY: this process's own pid.
    header.coordinator_pid.store(unsafe { pg_sys::MyProcPid }, Release);
    header.load.began_ns.store(now_ns(), Relaxed);
    post.segment.on_detach(stop_loaders);
    if let Err(error) = load(&post) {
        // A cancel by the caller stands for its reason.
        let error = check_stop(&post.segment).err().unwrap_or(error);
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn stop_loaders(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    // SAFETY: called by the server with the segment that the callback was registered on.
    unsafe { Segment::header_in_callback(segment) }.request_stop(StopReason::Abandoned);
    crew::terminate();
}

/// An error of the engine's as the user's.
pub fn user_error(error: SqlError) -> UserError {
    let sqlstate = crate::error::unpack(error.sqlstate);
    UserError { sqlstate, message: error.message, detail: error.detail, hint: error.hint }
}

thread_local! {
    /// The load that is to be undone if this process ends before it.
    static UNFINISHED: Cell<Option<Load>> = const { Cell::new(None) };
}

/// As the server removes the temporary tables of a session that is terminated (RemoveTempRelationsCallback in
/// catalog/namespace.c). By now the loaders have been told to end: the crew's callback comes before this one.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn undo_unfinished(_code: i32, _argument: pg_sys::Datum) {
    if let Some(load) = UNFINISHED.get() {
        let undone = at_exit::put_in_order(|| {
            catalog::abandon(load, Duration::from_secs(2));
            Ok(())
        });
        if undone.is_ok() {
            UNFINISHED.set(None);
        }
    }
}

/// Called after the one above, also where that did not come to its end.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn tell_unfinished(_code: i32, _argument: pg_sys::Datum) {
    if let Some(load) = UNFINISHED.take() {
        catalog::tell_left_over(load, None);
    }
}

fn load(post: &Post) -> Result<(), UserError> {
    let spec: LoadSpec = serde_json::from_str(post.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let mut session = Session::new(Results::Discard);
    session.set(c"application_name", c"pgbench_ext load").map_err(user_error)?;
    time_limit::lift(&session).map_err(user_error)?;
    // Names in the statements below are the server's own.
    session.set(c"search_path", c"pg_catalog, pg_temp").map_err(user_error)?;
    // SAFETY: the callbacks are functions of this library, which stays loaded.
    unsafe {
        pg_sys::before_shmem_exit(Some(tell_unfinished), pg_sys::Datum::from(0));
        pg_sys::before_shmem_exit(Some(undo_unfinished), pg_sys::Datum::from(0));
    }
    let segment = std::panic::AssertUnwindSafe(&post.segment);
    catalog::remove_dead_loads()?;
    let load = catalog::transaction(|| {
        replaceable_tables(&spec, spec.relations.iter().map(String::as_str))?;
        catalog::begin_load(&spec, &segment)
    })?;
    UNFINISHED.set(Some(load));
    let result = fill(post, &spec, load, &mut session);
    if result.is_err() {
        crew::terminate();
        // SAFETY: a flag of this process's: a cancel that has done its work must not hit what
        // follows.
        unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
        catalog::abandon(load, Duration::from_secs(10));
    }
    UNFINISHED.set(None);
    result
}

fn fill(post: &Post, spec: &LoadSpec, load: Load, session: &mut Session) -> Result<(), UserError> {
    let load_id = load.load_id;
    let progress = &post.segment.header().load;
    let mut figures = LoadFigures::default();
    session.set(c"search_path", &loader::search_path(spec, load_id)).map_err(user_error)?;
    set_up_for_loading(session)?;
    set_default_tablespace(session, &spec.tablespace)?;
    catalog::transaction(|| create_tables(spec, load_id))?;
    set_default_tablespace(session, &spec.index_tablespace)?;
    let build_indexes = |session: &mut Session| {
        progress.enter(LoadPhase::Indexes, now_ns());
        timed(|| run_each(post, session, &spec.indexes))
    };
    if spec.index_before {
        figures.index_secs = build_indexes(session)?;
    }
    if spec.fills.iter().any(|fill| fill.ids > 0) {
        progress.enter(LoadPhase::Rows, now_ns());
        figures.load_secs = timed(|| write_rows(post, spec, load_id))?;
    }
    figures.rows = rows_written(&post.segment).cast_signed();
    if !spec.distribute.is_empty() {
        progress.enter(LoadPhase::Distribution, now_ns());
        figures.load_secs += timed(|| run_each(post, session, &spec.distribute))?;
    }
    if !spec.index_before {
        figures.index_secs = build_indexes(session)?;
    }
    run_each(post, session, &spec.after)?;
    progress.enter(LoadPhase::Vacuum, now_ns());
    let tables = catalog::transaction(|| tables_made(spec, load_id))?;
    figures.vacuum_secs = timed(|| vacuum(post, session, &tables))?;
    let oids: Vec<pg_sys::Oid> = tables.iter().map(|(table, _)| *table).collect();
    // Before the tables are moved: other nodes are asked in sessions of their own.
    figures.bytes = catalog::transaction(|| catalog::sizes(&oids))?;
    let is_local = catalog::transaction(|| Ok(catalog::distributed(&oids)?.is_empty()))?;
    if !is_local {
        // Sessions on other nodes see what is committed.
        catalog::transaction(|| make_schema(spec))?;
    }
    catalog::transaction(|| {
        let (index_levels, key_correlation) = largest_key(&oids)?;
        put_in_place(spec, load, is_local, &LoadFigures { index_levels, key_correlation, ..figures })
    })?;
    if !is_local {
        catalog::abandon(load, Duration::from_secs(10));
    }
    Ok(())
}

/// Leaves the tables as a benchmark begins with: analyzed, and all pages all-visible.
fn vacuum(post: &Post, session: &mut Session, tables: &[(pg_sys::Oid, String)]) -> Result<(), UserError> {
    /// What holds back the horizon is in most cases over in a moment, as an ANALYZE of autovacuum's is.
    const PATIENCE: Duration = Duration::from_millis(500);
    let began = Instant::now();
    let schema = catalog::staging_schema(post.segment.load_id());
    let qualified = |name| format!("{}.{}", quote_identifier(&schema), quote_identifier(name));
    let names: Vec<String> = tables.iter().map(|(_, name)| qualified(name)).collect();
    let names = names.join(", ");
    let oids: Vec<pg_sys::Oid> = tables.iter().map(|(table, _)| *table).collect();
    let loaded = catalog::transaction(catalog::next_transaction_id)?;
    run_each(post, session, &[format!("VACUUM (FREEZE, ANALYZE) {names}")])?;
    // Beside pages whose rows somebody may not see yet there may be some that are new and empty.
    while catalog::transaction(|| catalog::has_invisible_pages(&catalog::with_partitions(&oids)?))? {
        let holder = catalog::transaction(|| catalog::horizon_holder(&loaded))?;
        let is_over = holder.is_none();
        if !is_over && began.elapsed() >= PATIENCE {
            post.segment.header().load.horizon_holder.set(&holder.unwrap_or_default());
            break;
        }
        if !is_over {
            nap_until_canceled(50)?;
        }
        run_each(post, session, &[format!("VACUUM (FREEZE, ANALYZE) {names}")])?;
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

/// Rows that count as the fixture's and are in its tables.
pub fn rows_written(segment: &Segment) -> u64 {
    segment.slots().map(|slot| slot.totals[TotalsOf::Measured as usize].committed.get()).sum()
}

/// Runs texts of one or more statements, each of which commits by itself.
fn run_each(post: &Post, session: &mut Session, texts: &[String]) -> Result<(), UserError> {
    for text in texts {
        check_stop(&post.segment)?;
        let text = CString::new(text.as_str()).map_err(|e| internal(e.to_string()))?;
        let counters = CommandCounters::default();
        session.execute_simple(&text, Book { counters: &counters, plans: None }).map_err(user_error)?;
    }
    check_stop(&post.segment)
}

/// Settings of the leader's session.
fn set_up_for_loading(session: &Session) -> Result<(), UserError> {
    let set =
        |name, value: &str| session.set(name, &CString::new(value).unwrap_or_default()).map_err(user_error);
    // What bench.load returns is there after a crash.
    if settings::current("synchronous_commit").as_deref() == Some("off") {
        set(c"synchronous_commit", "local")?;
    }
    // Indexes are built with what is to be had: the leader itself and a worker for each other processor.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = (processors as u64 - 1).min(crew::free_slots()).min(MAX_INDEX_WORKERS);
    set(c"max_parallel_maintenance_workers", &workers.to_string())?;
    // SAFETY: a configuration variable of the server's, in kB.
    let given = i64::from(unsafe { pg_sys::maintenance_work_mem });
    set(c"maintenance_work_mem", &given.max(sensible_index_memory_kb()).to_string())
}

/// More than this many do not make a B-tree's build any faster.
const MAX_INDEX_WORKERS: u64 = 7;

/// An eighth of the machine's memory, and no more than a sort of hundreds of millions of keys can use.
fn sensible_index_memory_kb() -> i64 {
    const MOST_KB: i64 = 1 << 20;
    // SAFETY: asks the C library for two constants of the machine.
    let bytes =
        unsafe { libc::sysconf(libc::_SC_PHYS_PAGES).saturating_mul(libc::sysconf(libc::_SC_PAGESIZE)) };
    (bytes / 8 / 1024).clamp(0, MOST_KB)
}

/// Where what is made next goes to: without a name, where the database is.
fn set_default_tablespace(session: &Session, tablespace: &Option<String>) -> Result<(), UserError> {
    let name = CString::new(tablespace.as_deref().unwrap_or_default()).unwrap_or_default();
    session.set(c"default_tablespace", &name).map_err(user_error)
}

/// Makes the tables, and sees that they are what a load can put in its place.
fn create_tables(spec: &LoadSpec, load_id: i64) -> Result<(), UserError> {
    for sql in &spec.create {
        catalog::run(sql, &[])?;
    }
    fixture::check_made(&spec.name, &catalog::staging_schema(load_id))?;
    let made = tables_made(spec, load_id)?;
    // What stands in the way of any of them is told now, and not when all are full.
    replaceable_tables(spec, made.iter().map(|(_, name)| name.as_str()))?;
    alter_tables(spec, &made)
}

/// Puts the options into effect that the statements do not know of; only partitions have storage.
fn alter_tables(spec: &LoadSpec, made: &[(pg_sys::Oid, String)]) -> Result<(), UserError> {
    if spec.alter.is_empty() {
        return Ok(());
    }
    let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
    let statements = catalog::fetch::<Vec<String>>(
        "SELECT pg_catalog.array_agg(pg_catalog.format('ALTER TABLE %s %s', c.oid::pg_catalog.regclass, a.action)) \
         FROM pg_catalog.pg_class c CROSS JOIN pg_catalog.unnest($2) AS a (action) \
         WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1) AND c.relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\"",
        &[catalog::with_partitions(&tables)?.into(), spec.alter.clone().into()],
    )?;
    statements.unwrap_or_default().iter().try_for_each(|sql| catalog::run(sql, &[]).map(drop))
}

/// The tables that the load has made, without partitions, in the fixture's order.
///
/// # Errors
/// 42P01 when one that is to be filled is not among them.
fn tables_made(spec: &LoadSpec, load_id: i64) -> Result<Vec<(pg_sys::Oid, String)>, UserError> {
    let made = catalog::fetch_all(
        "SELECT c.oid, c.relname::pg_catalog.text FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
         WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text AND NOT c.relispartition \
           AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p}'::pg_catalog.\"char\"[]) \
         ORDER BY pg_catalog.array_position($2, c.relname::pg_catalog.text), c.oid",
        &[catalog::staging_schema(load_id).into(), spec.relations.clone().into()],
        |row| {
            let table = row.get::<pg_sys::Oid>(1)?.unwrap_or(pg_sys::InvalidOid);
            Ok((table, row.get::<String>(2)?.unwrap_or_default()))
        },
    )?;
    match spec.fills.iter().find(|fill| !made.iter().any(|(_, name)| *name == fill.table)) {
        Some(fill) => Err(fixture::does_not_make(&spec.name, &fill.table)),
        None => Ok(made),
    }
}

/// The relation of that name, if there is one.
fn relation(name: &str) -> Result<Option<pg_sys::Oid>, UserError> {
    catalog::fetch::<pg_sys::Oid>("SELECT pg_catalog.to_regclass($1)::pg_catalog.oid", &[name.into()])
}

fn in_the_way(relation: &str) -> UserError {
    UserError::new(sqlstate::WRONG_OBJECT_TYPE, format!("relation {relation} exists and is not a fixture"))
        .hint("Drop it, or choose another schema: options => '{\"schema\": \"…\"}'.")
}

/// Has the tables filled, with as many loaders as they bear.
fn write_rows(post: &Post, spec: &LoadSpec, load_id: i64) -> Result<(), UserError> {
    let by_insert = catalog::transaction(|| catalog::tables_for_insert(load_id))?;
    let (tables, is_alone) = catalog::transaction(|| {
        let made = tables_made(spec, load_id)?;
        let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
        // Side by side, INSERTs have the server make more pages than they fill; other nodes take rows by COPY.
        let local = catalog::local(&tables)?;
        let is_alone = made.iter().any(|(table, name)| local.contains(table) && by_insert.contains(name));
        Ok((catalog::with_partitions(&tables)?, is_alone))
    })?;
    let jobs = if is_alone { 1 } else { spec.jobs };
    // A VACUUM of half a table is of no use, and the loaders count on there being none.
    let mode = pg_sys::ShareUpdateExclusiveLock as i32;
    catalog::locked(&tables, mode, || insert_rows(post, spec, jobs))
}

/// Launches the loaders and waits for them.
fn insert_rows(post: &Post, spec: &LoadSpec, jobs: u32) -> Result<(), UserError> {
    let segment = &post.segment;
    segment.header().load.ids.set(spec.counted_ids().unsigned_abs());
    crew::launch(loader::KIND, segment.handle(), jobs, spec.database_oid, spec.role_oid)?;
    segment.header().set_state(RunState::Running);
    let mut looked = Instant::now();
    loop {
        check_stop(segment)?;
        let mut done = 0;
        for (index, slot) in segment.slots().enumerate().take(jobs as usize) {
            let stopped = crew::has_stopped(index as u32);
            match slot.state() {
                ClientState::Done => done += 1,
                ClientState::Aborted => return Err(loader_error(segment, index as u32)),
                _ if stopped => {
                    segment.check_refusal()?;
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
    let sqlstate = crate::error::unpack(entry.sqlstate.load(Acquire));
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

/// The fixture's tables that are still there, which the load replaces.
///
/// # Errors
/// 42501 when they are not this role's to replace, 42809 when a relation that is none of them has the name.
fn replaceable_tables<'a>(
    spec: &LoadSpec,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<pg_sys::Oid>, UserError> {
    let tables = spec.replaced()?.map(|f| f.tables).unwrap_or_default();
    let own = catalog::with_partitions(&tables)?;
    for name in names.map(|name| spec.qualified(name)) {
        if relation(&name)?.is_some_and(|there| !own.contains(&there)) {
            return Err(in_the_way(&name));
        }
    }
    Ok(tables)
}

/// Makes the fixture's schema if it is not there.
fn make_schema(spec: &LoadSpec) -> Result<(), UserError> {
    if catalog::schema_exists(&spec.schema)? {
        return Ok(());
    }
    catalog::run(&format!("CREATE SCHEMA {}", quote_identifier(&spec.schema)), &[]).map(drop)
}

/// Drops what the fixture had, moves the new tables to its schema, and registers them. With local tables the load is
/// over with that; others leave the schema behind that they were made in.
fn put_in_place(spec: &LoadSpec, load: Load, is_local: bool, figures: &LoadFigures) -> Result<(), UserError> {
    fixture::check_made(&spec.name, &catalog::staging_schema(load.load_id))?;
    let made = tables_made(spec, load.load_id)?;
    let replaced = replaceable_tables(spec, made.iter().map(|(_, name)| name.as_str()))?;
    catalog::check_unused(&spec.name, &replaced)?;
    if !is_local {
        catalog::go_in_sequence();
    }
    catalog::drop_tables(&replaced)?;
    make_schema(spec)?;
    let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
    // Indexes and owned sequences go with their tables; partitions do not.
    let moves = catalog::fetch::<Vec<String>>(
        "SELECT pg_catalog.array_agg(pg_catalog.format('ALTER TABLE %s SET SCHEMA %s', t::pg_catalog.regclass, $2)) \
         FROM pg_catalog.unnest($1) AS t",
        &[catalog::with_partitions(&tables)?.into(), quote_identifier(&spec.schema).into()],
    )?;
    for sql in moves.unwrap_or_default() {
        catalog::run(&sql, &[])?;
    }
    catalog::put_fixture(spec, &tables, figures)?;
    // To other nodes that schema's owner has a session of its own, which does not see yet that the tables have left.
    if is_local { catalog::end_load(load) } else { Ok(()) }
}

/// The largest local table's primary key: how many levels it has, and its correlation with the table.
fn largest_key(tables: &[pg_sys::Oid]) -> Result<(Option<i32>, Option<f32>), UserError> {
    let tables = catalog::with_partitions(&catalog::local(tables)?)?;
    let keys = catalog::fetch_all(
        "SELECT i.indexrelid, s.correlation FROM pg_catalog.pg_index i \
         JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.indrelid \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
         JOIN pg_catalog.pg_attribute a \
             ON a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.=) i.indkey[0] \
         LEFT JOIN pg_catalog.pg_stats s \
             ON s.schemaname OPERATOR(pg_catalog.=) n.nspname AND s.tablename OPERATOR(pg_catalog.=) c.relname \
            AND s.attname OPERATOR(pg_catalog.=) a.attname AND NOT s.inherited \
         WHERE i.indisprimary AND c.relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" \
           AND c.oid OPERATOR(pg_catalog.=) ANY ($1) \
         ORDER BY c.relpages DESC, c.oid LIMIT 1",
        &[tables.into()],
        |row| Ok((row.get::<pg_sys::Oid>(1)?.unwrap_or(pg_sys::InvalidOid), row.get::<f32>(2)?)),
    )?;
    let key = keys.first();
    Ok(key.map_or((None, None), |&(index, correlation)| (fixture::btree_levels(index), correlation)))
}
