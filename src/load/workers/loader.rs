//! A loader: one session that takes shares of a fixture's rows until none is left, each in a transaction; and all of them as the
//! load's leader sees them.

use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_model::client::Consequence;
use bench_model::rows::Chunk;
use bench_model::spec::Results;
use bench_script::Prng;
use pgrx::pg_sys;

use crate::cluster::citus;
use crate::driver::session::{Session, StatementStats};
use crate::load::bulk::BulkRows;
use crate::load::fixture::{Fill, LoadSpec, insertion};
use crate::server::background_worker::{self, WorkerKind};
use crate::server::process::{is_backend, memory_bytes, my_pid, nap_until_canceled, random_seed, wake};
use crate::server::relations::is_blocked_by_me;
use crate::server::signals::OnTerminate;
use crate::server::transaction::transaction;
use crate::server::{guc, spi};
use crate::shm::{ClientState, CommandCounters, Counter, LoadPhase, RunState, Segment, StopReason, TotalsOf};
use crate::store::{self, staging_schema};
use crate::worker::{WorkerContext, attach, report_fatal_error, workers};

/// The kind of worker that a loader is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_loader_main",
    title: c"pgbench_ext loader",
    noun: "job",
    connects: true,
    returns_after_crash: false,
};

/// The server's entry into a loader.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_loader_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let slot = context.segment.slot(context.index);
    slot.pid.store(my_pid(), Release);
    report_fatal_error(&context);
    match work(&context) {
        Ok(()) => slot.set_state(ClientState::Done),
        Err(error) => {
            slot.count_error(&error, 0, Consequence::Failed);
            slot.set_state(ClientState::Aborted);
        }
    }
    wake(context.segment.header().coordinator_pid.load(Relaxed));
}

fn work(context: &WorkerContext) -> Result<(), SqlError> {
    let header = context.segment.header();
    let spec: LoadSpec = serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    spec.check_session()?;
    let mut session = Session::new(Results::Discard);
    session.set_own(c"pgbench_ext loader")?;
    session.set(c"search_path", &search_path(&spec, context.segment.load_id()))?;
    let phase = header.load.phase();
    if matches!(phase, LoadPhase::Indexes | LoadPhase::Vacuum) {
        return run_tasks(context, &spec, session, phase);
    }
    // One flush at the end is enough: until the leader commits, nothing of this counts.
    session.set(c"synchronous_commit", c"off")?;
    let load_id = context.segment.load_id();
    let by_insert = transaction(|| store::tables_for_insert(load_id))?;
    // Only distributed tables make use of it. A connection to each shard, opened anew for every share of the rows,
    // takes longer than the rows themselves.
    if !by_insert.is_empty() && transaction(citus::is_installed)? {
        session.set(c"citus.max_cached_conns_per_worker", c"64")?;
    }
    let mut targets = spec
        .fills
        .iter()
        .map(|fill| FilledTable::new(&staging_schema(load_id), fill, by_insert.contains(&fill.table)))
        .collect::<Result<Vec<_>, _>>()?;
    let mut random = Prng::from_seed(random_seed().cast_unsigned());
    let counters = &context.segment.commands(context.index)[0];
    let counted = &context.segment.slot(context.index).totals[TotalsOf::Measured as usize].committed;
    let uncounted = Counter::default();
    while header.stop() == StopReason::None {
        session.serve_interrupts()?;
        let Some(chunk) = spec.chunk(header.load.next_chunk.fetch_add(1, Relaxed)) else { break };
        let fill = &spec.fills[chunk.table];
        let done = if fill.counts { counted } else { &uncounted };
        targets[chunk.table].fill(&mut session, fill, chunk, &mut random, counters, done)?;
    }
    session.flush_wal()?;
    session.flush_statistics()
}

/// Runs the statements of a phase, the next one that nobody has taken, until none is left. Each commits by itself.
fn run_tasks(
    context: &WorkerContext,
    spec: &LoadSpec,
    mut session: Session,
    phase: LoadPhase,
) -> Result<(), SqlError> {
    let header = context.segment.header();
    set_up(&session, spec.jobs)?;
    set_default_tablespace(&session, &spec.index_tablespace)?;
    let statements = match phase {
        LoadPhase::Indexes => spec.indexes.clone(),
        _ => spec.vacuums(&staging_schema(context.segment.load_id())),
    };
    let counters = CommandCounters::default();
    while header.stop() == StopReason::None {
        session.serve_interrupts()?;
        let next = header.load.next_chunk.fetch_add(1, Relaxed);
        let Some(statement) = statements.get(next as usize) else { break };
        let statement = CString::new(statement.as_str()).map_err(|e| internal(e.to_string()))?;
        session.execute_simple(&statement, StatementStats { counters: &counters, plans: None })?;
    }
    session.flush_statistics()
}

/// The search_path of a load's sessions.
pub fn search_path(spec: &LoadSpec, load_id: i64) -> CString {
    let path = guc::search_path_with(&[&staging_schema(load_id)], &spec.search_path);
    CString::new(path).unwrap_or_default()
}

fn internal(message: String) -> SqlError {
    SqlError::new(sqlstate::INTERNAL_ERROR, message)
}

/// A table that is being filled.
struct FilledTable {
    schema: CString,
    name: CString,
    /// `INSERT INTO table SELECT …`.
    insert: CString,
    /// Whether only the INSERT itself can fill it.
    by_insert: bool,
}

impl FilledTable {
    /// Of a table that there is. In no transaction.
    fn new(schema: &str, fill: &Fill, by_insert: bool) -> Result<Self, SqlError> {
        let text = |text: String| CString::new(text).map_err(|e| internal(e.to_string()));
        let insert = transaction(|| insertion(schema, &fill.table, &fill.query))?;
        Ok(Self {
            schema: text(schema.to_owned())?,
            name: text(fill.table.clone())?,
            insert: text(insert)?,
            by_insert,
        })
    }

    /// Writes a share of the rows in the fastest way that the table allows.
    fn fill(
        &mut self,
        session: &mut Session,
        fill: &Fill,
        chunk: Chunk,
        random: &mut Prng,
        counters: &CommandCounters,
        done: &Counter,
    ) -> Result<(), SqlError> {
        let Chunk { first_id, last_id, .. } = chunk;
        let rows = BulkRows {
            schema: &self.schema,
            table: &self.name,
            source: &self.insert,
            first_id,
            last_id,
            done,
        };
        if let Some(columns) = &fill.columns
            && !self.by_insert
            && session.insert_produced(&rows, &fill.keys, columns, random, counters)?
        {
            return Ok(());
        }
        if !self.by_insert && session.insert_selected(&rows, counters)? {
            return Ok(());
        }
        self.by_insert = true;
        let insert = self.insert.to_string_lossy();
        let inserted = transaction(|| spi::in_session::run(&insert, &[first_id.into(), last_id.into()]))?;
        done.add(inserted as u64);
        Ok(())
    }
}

/// Has loaders do the tasks of the phase that the load is in, each of them one at a time: an index or a VACUUM for each
/// processor is sooner done than one after the other with parallel workers. False, with nothing done, where there is nothing
/// to share.
///
/// # Errors
/// As [`run`].
pub fn share(context: &WorkerContext, spec: &LoadSpec, tasks: usize) -> Result<bool, UserError> {
    let jobs = spec.jobs.min(tasks as u32);
    if jobs < 2 || !spec.is_shared() {
        return Ok(false);
    }
    // Those of the phase before have done their work, and end.
    while !workers::all_stopped() {
        check_stop(&context.segment)?;
        nap_until_canceled(2)?;
    }
    workers::forget();
    if background_worker::free_slots() < u64::from(jobs) {
        return Ok(false);
    }
    context.segment.slots().for_each(|slot| slot.set_state(ClientState::Starting));
    context.segment.header().load.next_chunk.store(0, Release);
    run(context, spec, jobs, false).map(|()| true)
}

/// Launches loaders for the phase that the load is in, and waits for them: with `is_locking`, in a transaction with locks on the
/// tables.
///
/// # Errors
/// Those of the loaders; 53400 without worker slots.
pub fn run(context: &WorkerContext, spec: &LoadSpec, jobs: u32, is_locking: bool) -> Result<(), UserError> {
    let segment = &context.segment;
    workers::launch(KIND, segment.handle(), jobs, spec.database_oid, spec.role_oid)?;
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
        if is_locking && looked.elapsed() >= LOOK_EVERY {
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
    let sqlstate = bench_base::error::unpack(entry.sqlstate.load(Acquire));
    let message = entry.message.get().unwrap_or_else(|| "the loader failed".to_owned());
    let (detail, hint, context) = (entry.detail.get(), entry.hint.get(), entry.context.get());
    UserError { sqlstate, message, detail, hint, context }
}

/// Whether the load is to go on.
///
/// # Errors
/// 57014, and 40P01 where the caller is in the way.
pub fn check_stop(segment: &Segment) -> Result<(), UserError> {
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

/// Settings of a session that builds indexes, or of so many that do so side by side.
pub fn set_up(session: &Session, sessions: u32) -> Result<(), SqlError> {
    let set = |name, value: &str| session.set(name, &CString::new(value).unwrap_or_default());
    // What bench.load returns is there after a crash.
    if guc::current("synchronous_commit").as_deref() == Some("off") {
        set(c"synchronous_commit", "local")?;
    }
    // Indexes are built with what is to be had: the sessions themselves and a worker for each other processor.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let others = (processors as u64).saturating_sub(sessions.into()).min(background_worker::free_slots());
    let workers = (others / u64::from(sessions)).min(MAX_INDEX_WORKERS);
    set(c"max_parallel_maintenance_workers", &workers.to_string())?;
    let sensible_kb = sensible_index_memory_kb() / i64::from(sessions);
    set(c"maintenance_work_mem", &guc::maintenance_work_mem_kb().max(sensible_kb).to_string())
}

/// More than this many do not make a B-tree's build any faster.
const MAX_INDEX_WORKERS: u64 = 7;

/// An eighth of the machine's memory, and no more than a sort of hundreds of millions of keys can use.
fn sensible_index_memory_kb() -> i64 {
    const MOST_KB: i64 = 1 << 20;
    (memory_bytes() / 8 / 1024).clamp(0, MOST_KB)
}

/// Where what is made next goes to: without a name, where the database is.
pub fn set_default_tablespace(session: &Session, tablespace: &Option<String>) -> Result<(), SqlError> {
    let name = CString::new(tablespace.as_deref().unwrap_or_default()).unwrap_or_default();
    session.set(c"default_tablespace", &name)
}
