//! A loader: one session that writes its share of a fixture's rows, in transactions of a chunk.

use std::sync::atomic::Ordering::*;

use bench_core::script::{Symbols, Value, Variables};
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::{OnTerminate, Post, report_for_duty, wake};
use crate::engine::{Session, SqlError};
use crate::fixture::LoadSpec;
use crate::shm::{ClientState, Consequence, StopReason, TotalsOf};

/// Rows of one transaction: seldom enough to cost nothing, often enough to show progress.
const CHUNK: i64 = 50_000;

/// The kind of worker that a loader is.
pub const KIND: super::Kind = super::Kind { entry: c"pgbench_ext_loader_main", title: c"pgbench_ext loader" };

/// The server's entry into a loader.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_loader_main(segment: pg_sys::Datum) {
    let post = report_for_duty(segment, OnTerminate::Die);
    let slot = post.segment.slot(post.index);
    // SAFETY: this process's own pid.
    slot.pid.store(unsafe { pg_sys::MyProcPid }, Release);
    match work(&post) {
        Ok(()) => slot.set_state(ClientState::Done),
        Err(error) => {
            slot.count_error(&error, 0, Consequence::Failed);
            slot.set_state(ClientState::Aborted);
        }
    }
    wake(post.segment.header().coordinator_pid.load(Relaxed));
}

fn work(post: &Post) -> Result<(), SqlError> {
    let internal = |message: String| SqlError::new(pgrx::PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message);
    let spec: LoadSpec = serde_json::from_str(post.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let mut session = Session::new(Results::Discard);
    session.set(c"application_name", c"pgbench_ext loader")?;
    session.set(c"search_path", c"pg_catalog, pg_temp")?;
    let mut symbols = Symbols::new();
    let (first, last) = (symbols.intern("first"), symbols.intern("last"));
    let text = spec.rows_sql().map_err(|e| internal(e.message))?;
    let mut statement = session.prepare_text(&text, &[first, last])?;
    let mut variables = Variables::new(symbols.len());
    let counters = &post.segment.commands(post.index)[0];
    let rows = &post.segment.slot(post.index).totals[TotalsOf::Measured as usize].committed;
    let (mut next, end) = share(spec.rows, post.index, spec.jobs);
    while next <= end && post.segment.header().stop() == StopReason::None {
        session.serve_interrupts()?;
        let chunk_end = end.min(next + CHUNK - 1);
        variables.set(first, Value::Integer(next));
        variables.set(last, Value::Integer(chunk_end));
        session.execute(&mut statement, &variables, counters)?;
        rows.add((chunk_end - next + 1).unsigned_abs());
        next = chunk_end + 1;
    }
    session.flush_statistics()
}

/// The ids of one loader out of `jobs`: first and last, counted from 1.
fn share(rows: i64, index: u32, jobs: u32) -> (i64, i64) {
    let bound = |k: u32| (i128::from(rows) * i128::from(k) / i128::from(jobs)) as i64;
    (bound(index) + 1, bound(index + 1))
}
