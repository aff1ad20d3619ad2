//! A document in parts, each far below the limits of jsonb.

use std::collections::BTreeMap;

use bench_core::error::{UserError, sqlstate};

use super::RESULT_TABLES;
use crate::catalog::as_owner;
use crate::server::spi::fetch;

/// As many bytes as a part has, roughly: a quarter of what a connection to another node takes at once.
const PART_BYTES: i64 = 16 << 20;

/// Bytes that a row of a table takes as JSON, on the large side: those of statements have plans.
fn row_bytes(table: &str) -> i64 {
    match table {
        "samples" | "warmup_samples" => 1000,
        "statement_log" | "error_log" | "relation_log" | "node_log" => 8000,
        "transactions" => 200,
        _ => 100,
    }
}

/// A part of a document: of each table in it the rows that come after so many others, and how many.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// From 1 on.
    pub number: i32,
    pub of: i32,
    pub windows: BTreeMap<&'static str, (i64, i64)>,
}

/// The parts of a document of these runs; at least one. They are the same as long as the runs are.
///
/// # Errors
/// Those of the queries.
pub fn pieces(run_ids: &[i64]) -> Result<Vec<Piece>, UserError> {
    as_owner(|| {
        let mut pieces = vec![Piece::default()];
        let mut room = PART_BYTES;
        for table in RESULT_TABLES {
            let count = format!("SELECT pg_catalog.count(*) FROM bench.{table} WHERE run_id = ANY ($1)");
            let rows = fetch::<i64>(&count, &[run_ids.to_vec().into()])?.unwrap_or_default();
            let mut from = 0;
            while from < rows {
                let fits = (room / row_bytes(table)).min(rows - from);
                if fits == 0 {
                    pieces.push(Piece::default());
                    room = PART_BYTES;
                    continue;
                }
                if let Some(piece) = pieces.last_mut() {
                    piece.windows.insert(table, (from, fits));
                }
                room -= fits * row_bytes(table);
                from += fits;
            }
        }
        let of = i32::try_from(pieces.len()).unwrap_or(i32::MAX);
        for (number, piece) in (1..).zip(&mut pieces) {
            (piece.number, piece.of) = (number, of);
        }
        Ok(pieces)
    })
}

/// One of the parts.
///
/// # Errors
/// 22023 for a number that is none of a part.
pub fn piece(run_ids: &[i64], number: i32) -> Result<Piece, UserError> {
    let pieces = pieces(run_ids)?;
    let of = pieces.len();
    pieces.into_iter().find(|piece| piece.number == number).ok_or_else(|| {
        UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            format!("part must be between 1 and {of}, not {number}"),
        )
    })
}
