//! The statements of a run, and nothing else of it.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use bench_questions::statements::{PerCall, StatementsOfRun};
use bench_results::{CommandSummary, Document, ScriptSummary};

use super::as_owner;
use super::work::check_visible;
use crate::server::rows::{select, select_one};
use crate::server::spi::fetch;

/// A run's scripts.
pub fn scripts(run_id: i64) -> Result<Vec<ScriptSummary>, UserError> {
    lines("SELECT jsonb_strip_nulls(jsonb_agg(x)) FROM bench.scripts x WHERE x.run_id = $1", run_id)
}

/// The commands of its scripts, on each node that clients ran on.
pub fn commands(run_id: i64) -> Result<Vec<CommandSummary>, UserError> {
    lines("SELECT jsonb_strip_nulls(jsonb_agg(x)) FROM bench.statements x WHERE x.run_id = $1", run_id)
}

/// A run's rows of a view whose columns are the fields of a document's lines; none where there is no row.
fn lines<T: serde::de::DeserializeOwned>(sql: &str, run_id: i64) -> Result<Vec<T>, UserError> {
    let found = select_one::<(Option<Vec<T>>,)>(sql, &[run_id.into()])?;
    Ok(found.and_then(|(lines,)| lines).unwrap_or_default())
}

/// What is compared of a run's statements.
///
/// # Errors
/// As [`check_visible`].
pub fn statements_of(run_id: i64) -> Result<StatementsOfRun, UserError> {
    check_visible(run_id)?;
    as_owner(|| {
        let sql = "SELECT transactions FROM bench.summary WHERE run_id = $1";
        let transactions = fetch::<i64>(sql, &[run_id.into()])?.unwrap_or_default().unsigned_abs();
        // Of all nodes together.
        let document = Document { statements: commands(run_id)?, ..Document::default() };
        Ok(StatementsOfRun {
            transactions,
            scripts: scripts(run_id)?,
            statements: document.merged_statements(),
            calls: calls_per_script(run_id)?,
        })
    })
}

/// What calls of each script's statements did, as far as pg_stat_statements counted them.
///
/// # Errors
/// The server's.
pub fn calls_per_script(run_id: i64) -> Result<BTreeMap<u32, PerCall>, UserError> {
    let sql = "SELECT script, coalesce(sum(rows)::float8 / sum(calls)::float8, 0), \
                   coalesce(sum(shared_blks_hit + shared_blks_read)::float8 / sum(calls)::float8, 0) \
               FROM bench_internal.call_log WHERE run_id = $1 GROUP BY script HAVING sum(calls) > 0";
    let found = as_owner(|| select::<(u32, f64, f64)>(sql, &[run_id.into()]))?;
    Ok(found.into_iter().map(|(script, rows, blocks)| (script, PerCall { rows, blocks })).collect())
}
