//! How runs went, by their rows.

use bench_base::error::UserError;

use super::as_owner;
use super::extension_owner::read;
use crate::server::rows::select;

/// Buckets of a run's histogram as (low ms, high ms, count), in ascending order.
pub fn histogram(run_id: i64) -> Result<Vec<(f64, f64, u64)>, UserError> {
    as_owner(|| {
        select(
            "SELECT low_ms, high_ms, sum(count)::int8 FROM bench.latencies \
             WHERE run_id = $1 GROUP BY low_ms, high_ms ORDER BY low_ms",
            &[run_id.into()],
        )
    })
}

/// Transactions of a run that are in the sample of an earlier interval than their own, if there are any.
pub fn misplaced(run_id: i64) -> Result<Option<i64>, UserError> {
    let sql = "SELECT harness FROM bench_internal.audit_log WHERE run_id = $1 AND counter = 'misplaced' AND harness > 0";
    read(sql, &[run_id.into()])
}

/// Why a run did not complete, as a line.
pub fn error_line(run_id: i64) -> Result<Option<String>, UserError> {
    let sql = "SELECT error ->> 'message' || coalesce(' (' || (error ->> 'detail') || ')', '') \
               FROM bench_internal.run_log WHERE run_id = $1";
    read(sql, &[run_id.into()])
}

/// What to do about it, where that is known.
pub fn error_hint(run_id: i64) -> Result<Option<String>, UserError> {
    let sql = "SELECT error ->> 'hint' FROM bench_internal.run_log WHERE run_id = $1";
    read(sql, &[run_id.into()])
}

/// How many transactions of a run each SQLSTATE has failed, the most frequent first.
pub fn failures(run_id: i64) -> Result<Vec<(String, i64)>, UserError> {
    let sql = "SELECT sqlstate, sum(failed)::int8 AS failed FROM bench_internal.error_log \
               WHERE run_id = $1 AND failed > 0 GROUP BY sqlstate ORDER BY failed DESC, sqlstate";
    as_owner(|| select(sql, &[run_id.into()]))
}

/// Whether errors of a run's transactions have been kept.
pub fn has_errors(run_id: i64) -> Result<bool, UserError> {
    let sql = "SELECT true FROM bench_internal.error_log WHERE run_id = $1 LIMIT 1";
    Ok(read::<bool>(sql, &[run_id.into()])?.is_some())
}
