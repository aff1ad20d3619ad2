//! Runs as documents, and their end: bench.export, bench.import, bench.prune and bench.delete_run.

mod chunks;
mod columns;
mod deletion;
mod export;
mod import;
mod part;
mod prune;
mod ranges;

pub use chunks::{chunk, chunks};
pub use deletion::{delete_runs, forget_runs};
pub use export::{export, export_piece};
pub use import::{Imported, import};
pub use part::{samples_after, take_part, take_samples};
pub use prune::prune;

/// The version of the document that bench.export makes and bench.import reads. Tables and columns may be added within
/// a version: readers pass over what they do not know, and what is missing is NULL or has its default.
const FORMAT_VERSION: i32 = 1;

/// The table with one row per run. Its `segment`, `coordinator_pid`, `role` and `sweep_id` are this server's own.
const RUN_LOG: &str = "run_log";

/// A table of results with its schema: what only views show is internal.
fn qualified(table: &str) -> String {
    let schema = if table.ends_with("_log") { "bench_internal" } else { "bench" };
    format!("{schema}.{table}")
}

/// The other tables with rows of a run, by the column run_id: what is kept of a run is in these and in [`RUN_LOG`], and goes with it.
/// A document has an object for each, under its name, with a list for each column.
const RESULT_TABLES: [&str; 17] = [
    "samples",
    "warmup_samples",
    "latencies",
    "transactions",
    "standbys",
    "error_log",
    "script_log",
    "statement_log",
    "wait_log",
    "event_log",
    "relation_log",
    "audit_log",
    "call_log",
    "duel_log",
    "duel_statement_log",
    "duel_wait_log",
    "node_log",
];
