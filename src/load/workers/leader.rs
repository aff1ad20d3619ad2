//! The leader of a load: makes the tables in a schema of their own, has them filled by loaders, builds their
//! indexes, and puts them in the fixture's place in one transaction. It is a session of the calling role.

use std::cell::Cell;
use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Results;
use pgrx::pg_sys;

use super::loader::{self, check_stop};
use super::tables::{create_tables, largest_key, make_schema, put_in_place, replaceable_tables, tables_made};
use crate::cluster::citus;
use crate::driver::session::{Session, StatementStats};
use crate::error::internal;
use crate::load::fixture::{LoadSpec, OWN_PATH};
use crate::server::background_worker::WorkerKind;
use crate::server::pages::set_up_new_pages;
use crate::server::process::{forget_cancel, my_pid, nap_until_canceled, now_ns, wake};
use crate::server::signals::{self, OnTerminate};
use crate::server::spi::quote_identifier;
use crate::server::transaction::{locked, transaction};
use crate::server::{guc, relations};
use crate::shm::{CommandCounters, DetachCallback, LoadPhase, RunState, StopReason, Work};
use crate::store::{self, LoadEnd, LoadFigures, OwnLoad};
use crate::worker::{WorkerContext, attach, drop_extension, workers};

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
        header.fail(&reason(&context, error));
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
    static UNFINISHED: Cell<Option<OwnLoad>> = const { Cell::new(None) };
}

/// As the server removes the temporary tables of a session that is terminated (RemoveTempRelationsCallback in
/// catalog/namespace.c). By now the loaders have been told to end: that callback of theirs comes before this one.
static UNDO_UNFINISHED: signals::Callback = signals::Callback(|| {
    if let Some(load) = UNFINISHED.take() {
        // Where that fails, the server's log says what is left.
        let _ = signals::put_in_order(|| {
            let message = "the load's leader was terminated by an administrator's command";
            let error = UserError::new(sqlstate::ADMIN_SHUTDOWN, message);
            store::abandon(load, Duration::from_secs(2), 1, LoadEnd::Failed(&error));
            Ok(())
        });
    }
});

fn load(context: &WorkerContext) -> Result<(), UserError> {
    let spec: LoadSpec = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    spec.check_session()?;
    let mut session = Session::new(Results::Discard);
    session.set_own(c"pgbench_ext load").map_err(UserError::from)?;
    // Names in the statements below are the server's own.
    session.set(c"search_path", guc::SAFE_PATH).map_err(UserError::from)?;
    // Tables that are moved to a schema that Citus distributes stay local: schemas that a load makes are not such.
    if guc::current("citus.enable_schema_based_sharding").is_some() {
        session.set(c"citus.enable_schema_based_sharding", c"off").map_err(UserError::from)?;
    }
    let segment = std::panic::AssertUnwindSafe(&context.segment);
    store::remove_dead_loads()?;
    let load = transaction(|| {
        // A DROP EXTENSION waits for the load's end.
        drop_extension::hold()?;
        replaceable_tables(&spec, spec.relations.iter().map(String::as_str))?;
        store::begin_load(&spec.name, &spec.schema, spec.role_oid.into(), &segment)
    })
    .map_err(|error| with_hint_on_names(&spec, error))?;
    signals::register(&UNDO_UNFINISHED);
    UNFINISHED.set(Some(load));
    context.segment.announce(Work::Load(load.load_id));
    wake(context.segment.header().caller_pid.load(Relaxed));
    let result = fill(context, &spec, load, &mut session)
        .map_err(|error| reason(context, with_hint_on_names(&spec, error)));
    if let Err(error) = &result {
        workers::terminate();
        forget_cancel();
        let header = context.segment.header();
        if header.caller_pid.load(Relaxed) == 0 || header.stop() == StopReason::CallerGone {
            // The rollback has let in a DROP EXTENSION, which would meet the removal half-way. It waits for no caller of ours.
            let _ = transaction(drop_extension::let_pass);
        }
        store::abandon(load, Duration::from_secs(10), 3, LoadEnd::Failed(error));
    }
    UNFINISHED.set(None);
    result
}

/// A cancel by the caller stands for its reason.
fn reason(context: &WorkerContext, error: UserError) -> UserError {
    check_stop(&context.segment).err().unwrap_or(error)
}

/// What to do where a built-in fixture's load does not find something: its own statements find all that they name.
fn with_hint_on_names(spec: &LoadSpec, error: UserError) -> UserError {
    let is_of_name =
        [sqlstate::UNDEFINED_TABLE, sqlstate::UNDEFINED_FUNCTION].contains(&error.sqlstate.as_str());
    if spec.search_path != OWN_PATH || !is_of_name || error.hint.is_some() {
        return error;
    }
    error.hint(
        "A function that the load has called, of an event trigger in most cases, names it without its schema: loads run with \
         search_path = pg_catalog, pg_temp. Qualify the name there, or use ALTER FUNCTION … SET search_path.",
    )
}

fn fill(
    context: &WorkerContext,
    spec: &LoadSpec,
    load: OwnLoad,
    session: &mut Session,
) -> Result<(), UserError> {
    let load_id = load.load_id;
    let progress = &context.segment.header().load;
    let mut figures = LoadFigures::default();
    session.set(c"search_path", &loader::search_path(spec, load_id)).map_err(UserError::from)?;
    loader::set_up(session, 1).map_err(UserError::from)?;
    loader::set_default_tablespace(session, &spec.tablespace).map_err(UserError::from)?;
    transaction(|| create_tables(spec, load_id))?;
    loader::set_default_tablespace(session, &spec.index_tablespace).map_err(UserError::from)?;
    let build_indexes = |session: &mut Session| {
        progress.enter(LoadPhase::Indexes, now_ns());
        timed(|| {
            // Of empty tables there is nothing to share.
            let is_shared = !spec.index_before && loader::share(context, spec, spec.indexes.len())?;
            if is_shared { Ok(()) } else { run_each(context, session, &spec.indexes) }
        })
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
    figures.vacuum_secs = timed(|| {
        let is_shared = loader::share(context, spec, spec.largest_first.len())?;
        vacuum(context, session, &tables, is_shared)
    })?;
    let oids: Vec<pg_sys::Oid> = tables.iter().map(|(table, _)| *table).collect();
    // Before the tables are moved: other nodes are asked in sessions of their own.
    figures.bytes = transaction(|| citus::sizes(&oids))?;
    let is_local = transaction(|| Ok(citus::distributed(&oids)?.is_empty()))?;
    if !is_local {
        // Sessions on other nodes see what is committed.
        transaction(|| make_schema(spec))?;
    }
    transaction(|| {
        let (index_levels, key_correlation) = largest_key(&oids)?;
        put_in_place(spec, load, is_local, &LoadFigures { index_levels, key_correlation, ..figures })
    })?;
    if !is_local {
        store::abandon(load, Duration::from_secs(10), 3, LoadEnd::Completed);
    }
    Ok(())
}

/// Leaves the tables as a benchmark begins with: analyzed, and all pages all-visible. `is_vacuumed`: loaders have vacuumed them
/// once.
fn vacuum(
    context: &WorkerContext,
    session: &mut Session,
    tables: &[(pg_sys::Oid, String)],
    is_vacuumed: bool,
) -> Result<(), UserError> {
    /// What holds back the horizon is in most cases over in a moment, as an ANALYZE of autovacuum's is.
    const HORIZON_TIMEOUT: Duration = Duration::from_millis(500);
    let began = Instant::now();
    let schema = store::staging_schema(context.segment.load_id());
    let qualified = |name| format!("{}.{}", quote_identifier(&schema), quote_identifier(name));
    let names: Vec<String> = tables.iter().map(|(_, name)| qualified(name)).collect();
    let names = names.join(", ");
    let oids: Vec<pg_sys::Oid> = tables.iter().map(|(table, _)| *table).collect();
    let loaded = transaction(store::next_transaction_id)?;
    let vacuum = [format!("VACUUM (FREEZE, ANALYZE) {names}")];
    if !is_vacuumed {
        run_each(context, session, &vacuum)?;
    }
    let tables = transaction(|| relations::with_partitions(&oids))?;
    // Beside pages whose rows somebody may not see yet there may be some that the server has made and nobody has filled.
    while transaction(|| store::has_invisible_pages(&tables))? {
        if transaction(|| Ok(tables.iter().map(|&table| set_up_new_pages(table)).sum::<u32>()))? > 0 {
            run_each(context, session, &vacuum)?;
            continue;
        }
        let holder = transaction(|| store::horizon_holder(&loaded))?;
        let is_over = holder.is_none();
        if !is_over && began.elapsed() >= HORIZON_TIMEOUT {
            context.segment.header().load.horizon_holder.set(&holder.unwrap_or_default());
            break;
        }
        if !is_over {
            nap_until_canceled(50)?;
        }
        run_each(context, session, &vacuum)?;
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
        session
            .execute_simple(&text, StatementStats { counters: &counters, plans: None })
            .map_err(UserError::from)?;
    }
    check_stop(&context.segment)
}

/// Has the tables filled, with as many loaders as help.
fn write_rows(context: &WorkerContext, spec: &LoadSpec, load_id: i64) -> Result<(), UserError> {
    let by_insert = transaction(|| store::tables_for_insert(load_id))?;
    let (tables, is_alone) = transaction(|| {
        let made = tables_made(spec, load_id)?;
        let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
        // Side by side, INSERTs have the server make more pages than they fill; other nodes take rows by COPY.
        let local = citus::local(&tables)?;
        let is_alone = made.iter().any(|(table, name)| local.contains(table) && by_insert.contains(name));
        Ok((relations::with_partitions(&tables)?, is_alone))
    })?;
    let jobs = if is_alone { 1 } else { spec.jobs };
    // A VACUUM of half a table is of no use, and the loaders count on there being none.
    let mode = pg_sys::ShareUpdateExclusiveLock as i32;
    context.segment.header().load.ids.set(spec.counted_ids().unsigned_abs());
    locked(&tables, mode, || loader::run(context, spec, jobs, true))
}
