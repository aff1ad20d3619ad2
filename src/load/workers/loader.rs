//! A loader: one session that takes shares of a fixture's rows until none is left, each in a transaction.

use std::ffi::CString;
use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, sqlstate};
use bench_model::client::Consequence;
use bench_model::rows::Chunk;
use bench_model::spec::Results;
use bench_script::Prng;
use pgrx::pg_sys;

use super::settings;
use crate::cluster::citus;
use crate::driver::session::{Session, StatementStats};
use crate::load::bulk::BulkRows;
use crate::load::fixture::{Fill, LoadSpec, insertion};
use crate::server::background_worker::WorkerKind;
use crate::server::process::{my_pid, random_seed, wake};
use crate::server::signals::OnTerminate;
use crate::server::transaction::transaction;
use crate::server::{guc, spi};
use crate::shm::{ClientState, CommandCounters, Counter, LoadPhase, StopReason, TotalsOf};
use crate::store;
use crate::store::staging_schema;
use crate::worker::{WorkerContext, attach, report_fatal_error};

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
    settings::set_up(&session, spec.jobs)?;
    settings::set_default_tablespace(&session, &spec.index_tablespace)?;
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
