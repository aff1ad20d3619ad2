//! Runs as one document.

use std::panic::AssertUnwindSafe;

use bench_base::error::{UserError, sqlstate};
use bench_results::DocumentChunk;
use pgrx::PgTryBuilder;

use super::tables::{Column, FORMAT_VERSION, RESULT_TABLES, RUN_LOG, columns, key, qualified};
use crate::error::{from_caught, internal};
use crate::server::jsonb::StoredJsonb;
use crate::server::spi::fetch;
use crate::store::as_owner;

/// Everything that is kept of these runs, in their order.
///
/// One statement, and so one snapshot: a bench.prune meanwhile leaves no half of a run. The caller has made sure that
/// the runs may be seen and are over.
///
/// # Errors
/// 54000 when it is more than a jsonb can hold.
pub fn export(run_ids: &[i64]) -> Result<StoredJsonb, UserError> {
    export_piece(run_ids, None)
}

/// As [`export`], of one part of the document: with the rows of all runs, and of their results those in the part's windows.
///
/// # Errors
/// As [`export`].
pub fn export_piece(run_ids: &[i64], piece: Option<&DocumentChunk>) -> Result<StoredJsonb, UserError> {
    PgTryBuilder::new(AssertUnwindSafe(|| {
        as_owner(|| {
            let system_identifier = system_identifier()?;
            let document = fetch::<StoredJsonb>(
                &document_query(piece)?,
                &[run_ids.to_vec().into(), FORMAT_VERSION.into(), system_identifier.into()],
            )?;
            document.ok_or_else(|| internal("the query of an export has no row"))
        })
    }))
    .catch_others(|caught| Err(explain(from_caught(caught), piece)))
    .execute()
}

/// The identifier that initdb gave to this cluster; `None` where the extension's owner may not read it.
fn system_identifier() -> Result<Option<String>, UserError> {
    let may_read = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')";
    if fetch::<bool>(may_read, &[])? != Some(true) {
        return Ok(None);
    }
    fetch::<String>("SELECT system_identifier::text FROM pg_control_system()", &[])
}

/// All of it is put together as json, which is text, and parsed once: jsonb's functions take their arguments apart and
/// put them together again, at a hundred bytes for each value, at every level.
fn document_query(piece: Option<&DocumentChunk>) -> Result<String, UserError> {
    let mut lists = String::new();
    for table in RESULT_TABLES {
        let window = piece.map(|piece| piece.windows.get(table).copied());
        if window != Some(None) {
            lists += &format!(", '{table}', ({})", columns_query(table, window.flatten())?);
        }
    }
    let part = piece.map_or_else(String::new, |piece| {
        format!("'part', json_build_object('number', {}, 'of', {}),", piece.number, piece.of)
    });
    Ok(format!(
        "SELECT json_build_object( \
             'format_version', $2, {part} 'exported_at', now(), \
             'server', json_build_object( \
                 'system_identifier', $3, 'database', current_database(), \
                 'server_version', current_setting('server_version'), \
                 'extension_version', (SELECT extversion FROM pg_extension WHERE extname = 'pgbench_ext')), \
             '{RUN_LOG}', (SELECT json_agg( \
                     to_jsonb(r) - '{{segment,coordinator_pid,owner_oid}}'::text[] \
                     || jsonb_build_object('status', bench_internal.status_of(r.status, r.segment, r.run_id), \
                         'role', bench_internal.role_name(r.owner_oid, r.role)) \
                     ORDER BY array_position($1, r.run_id)) \
                 FROM bench_internal.{RUN_LOG} r WHERE r.run_id = ANY ($1)) \
             {lists})::jsonb"
    ))
}

/// A table's rows as an object of its columns, those without any value left out: a name beside each value would be
/// half of the document. `window`: only so many rows, after so many others.
fn columns_query(table: &str, window: Option<(i64, i64)>) -> Result<String, UserError> {
    let listed: Vec<String> = columns(table)?
        .iter()
        .map(|Column { name, .. }| {
            format!("CASE WHEN count(x.{name}) > 0 THEN json_agg(x.{name}) END AS {name}")
        })
        .collect();
    let rows = match table {
        // Which runs were in the way of an audit is known only here, beside them.
        "audit_log" => {
            "SELECT a.run_id, a.node, a.counter, a.harness, a.server, a.judged AND v.reason = a.reason AS judged, v.reason \
             FROM bench_internal.audit_log a JOIN bench.audits v USING (run_id, node, counter) WHERE v.run_id = ANY ($1)"
                .to_owned()
        }
        _ => format!("SELECT * FROM {}", qualified(table)),
    };
    let (order, window) = match window {
        // Each table's columns begin with its primary key, so rows compare by that.
        None => ("y".to_owned(), String::new()),
        // By its index, so that a part does not sort what all others have.
        Some((from, rows)) => (key(table)?, format!(" OFFSET {from} LIMIT {rows}")),
    };
    Ok(format!(
        "SELECT json_strip_nulls(to_json(c)) FROM (SELECT {} \
         FROM (SELECT y.* FROM ({rows}) y WHERE y.run_id = ANY ($1) ORDER BY {order}{window}) x) c",
        listed.join(", ")
    ))
}

/// The limits of jsonb are 256 MB of elements in an array or an object (JENTRY_OFFLENMASK, utils/jsonb.h), and a
/// palloc of 1 GB.
fn explain(error: UserError, piece: Option<&DocumentChunk>) -> UserError {
    let is_too_large = error.sqlstate == sqlstate::PROGRAM_LIMIT_EXCEEDED
        || error.message.contains("invalid memory alloc request size");
    if !is_too_large {
        return error;
    }
    let what = match piece {
        None => "the runs are".to_owned(),
        Some(piece) => format!("part {} of the runs is", piece.number),
    };
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, format!("{what} too large for a document"))
        .detail(error.message)
        .hint("Export fewer runs at once: each part has the rows of all of them in bench.runs.")
}
