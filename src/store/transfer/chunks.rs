//! A document in parts, each far below the limits of jsonb.

use std::cell::RefCell;

use bench_base::error::UserError;
use bench_results::{DocumentChunk, RowRange};

use super::tables::{RESULT_TABLES, key, qualified};
use crate::server::spi::fetch;
use crate::store::as_owner;

/// As many bytes as a part has, roughly: a quarter of what a connection to another node takes at once.
const PART_BYTES: i64 = 16 << 20;

/// Bytes that a row of a table takes as JSON, on the large side; `None` where its texts can be of any length, as plans are.
fn row_bytes(table: &str) -> Option<i64> {
    match table {
        "statement_log" | "error_log" | "event_log" | "relation_log" | "node_log" => None,
        "samples" | "warmup_samples" => Some(1000),
        "transactions" => Some(200),
        _ => Some(100),
    }
}

/// A table's rows of these runs with their sizes, in the order of an export.
fn stretches(table: &str, run_ids: &[i64]) -> Result<Vec<RowRange>, UserError> {
    let (runs, relation) = (run_ids.to_vec(), qualified(table));
    let Some(bytes) = row_bytes(table) else {
        let sizes = format!(
            "SELECT array_agg(octet_length(y::text)::int8 ORDER BY {}) \
             FROM {relation} y WHERE run_id = ANY ($1)",
            key(table)?
        );
        let sizes = fetch::<Vec<i64>>(&sizes, &[runs.into()])?.unwrap_or_default();
        return Ok(sizes.into_iter().map(|bytes| RowRange { rows: 1, bytes }).collect());
    };
    let count = format!("SELECT count(*) FROM {relation} WHERE run_id = ANY ($1)");
    Ok(vec![RowRange { rows: fetch::<i64>(&count, &[runs.into()])?.unwrap_or_default(), bytes }])
}

thread_local! {
    /// The parts that this session has planned last, and of which runs.
    static PLANNED: RefCell<(Vec<i64>, Vec<DocumentChunk>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// The parts of a document of these runs; at least one.
///
/// # Errors
/// Those of the queries.
pub fn chunks(run_ids: &[i64]) -> Result<Vec<DocumentChunk>, UserError> {
    let chunks = as_owner(|| {
        let tables = RESULT_TABLES.map(|table| Ok((table, stretches(table, run_ids)?)));
        let tables = tables.into_iter().collect::<Result<Vec<_>, UserError>>()?;
        Ok::<_, UserError>(bench_results::chunks(&tables, PART_BYTES))
    })?;
    PLANNED.set((run_ids.to_vec(), chunks.clone()));
    Ok(chunks)
}

/// One of the parts, as they were planned when this session last asked for these runs' [`chunks`]: whoever reads all parts does
/// that first, and rows of a run that is over stay as they are.
///
/// # Errors
/// 22023 for a number that is none of a part; those of the queries.
pub fn chunk(run_ids: &[i64], number: i32) -> Result<DocumentChunk, UserError> {
    let planned = PLANNED.with_borrow(|(of, chunks)| (of == run_ids).then(|| chunks.clone()));
    let chunks = planned.map_or_else(|| chunks(run_ids), Ok)?;
    let of = chunks.len();
    chunks
        .into_iter()
        .find(|chunk| chunk.number == number)
        .ok_or_else(|| UserError::invalid(format!("part must be between 1 and {of}, not {number}")))
}
