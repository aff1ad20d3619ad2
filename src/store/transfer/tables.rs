//! The tables that a run's results are in, and the version of the document that has them.

/// The version of the document that bench.export makes and bench.import reads. Tables and columns may be added within
/// a version: readers pass over what they do not know, and what is missing is NULL or has its default.
pub const FORMAT_VERSION: i32 = 1;

/// The table with one row per run. Its `segment`, `coordinator_pid`, `role` and `sweep_id` are this server's own.
pub const RUN_LOG: &str = "run_log";

/// A table of results with its schema: what only views show is internal.
pub fn qualified(table: &str) -> String {
    let schema = if table.ends_with("_log") { "bench_internal" } else { "bench" };
    format!("{schema}.{table}")
}

/// The other tables with rows of a run, by the column run_id: what is kept of a run is in these and in [`RUN_LOG`], and goes with it.
/// A document has an object for each, under its name, with a list for each column.
pub const RESULT_TABLES: [&str; 17] = [
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
