//! The export of runs as a document, whole or in parts.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

use bench_base::error::{UserError, sqlstate};
use bench_results::{DocumentChunk, RowRange};
use pgrx::PgTryBuilder;

use super::as_owner;
use crate::error::{from_caught, internal};
use crate::server::jsonb::StoredJsonb;
use crate::server::spi::{fetch, fetch_all};

/// The version of the document that bench.export makes and bench.import reads. Tables and columns may be added within a version:
/// readers ignore unknown ones, and missing ones are NULL or have their default.
pub const FORMAT_VERSION: i32 = 1;

/// The table with one row per run. Its `segment`, `coordinator_pid`, `role` and `sweep_id` are meaningful only on this server.
pub const RUN_LOG: &str = "run_log";

/// Returns the qualified name of a table of results. Tables shown by views only are in bench_internal.
pub fn qualified(table: &str) -> String {
    let schema = if table.ends_with("_log") { "bench_internal" } else { "bench" };
    format!("{schema}.{table}")
}

/// The other tables with rows of a run, by the column run_id, which are deleted with the run. A document has an object for each
/// table, under its name, with a list for each column.
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

/// A column of a table of results.
pub struct Column {
    /// The name, quoted if necessary.
    pub name: String,
    pub sql_type: String,
    /// The expression of its default.
    pub default: Option<String>,
}

impl Column {
    /// Returns the expression for the column's value in a row `x` of texts from [`rows_of_lists`], where arrays are JSON.
    pub fn read(&self) -> String {
        let Self { name, sql_type, .. } = self;
        match sql_type.strip_suffix("[]") {
            None => format!("x.{name}::{sql_type}"),
            Some(sql_type) => format!(
                "CASE WHEN x.{name} IS NOT NULL THEN ARRAY(SELECT e.e::{sql_type} FROM \
                     jsonb_array_elements_text(x.{name}::jsonb) WITH ORDINALITY AS e (e, place) ORDER BY e.place) END"
            ),
        }
    }
}

/// Reads a table's columns, in their order.
pub fn columns(table: &str) -> Result<Vec<Column>, UserError> {
    fetch_all(
        "SELECT quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), \
                pg_get_expr(d.adbin, d.adrelid) \
         FROM pg_attribute a \
         LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
         WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped \
         ORDER BY a.attnum",
        &[qualified(table).into()],
        |row| {
            Ok(Column {
                name: row.get::<String>(1)?.unwrap_or_default(),
                sql_type: row.get::<String>(2)?.unwrap_or_default(),
                default: row.get::<String>(3)?,
            })
        },
    )
}

/// Joins a text for each column with commas.
pub fn joined(columns: &[Column], piece: impl Fn(&Column) -> String) -> String {
    columns.iter().map(piece).collect::<Vec<_>>().join(", ")
}

/// Returns an item of FROM with the rows `x`, as texts, of a document's table, which is the object `d.t` with a list for each
/// column.
pub fn rows_of_lists(columns: &[Column]) -> String {
    let lists = joined(columns, |c| format!("jsonb_array_elements_text(d.t -> '{}')", c.name));
    format!("ROWS FROM ({lists}) AS x ({})", joined(columns, |c| c.name.clone()))
}

/// Returns the columns of a table's primary key for ORDER BY.
pub fn key(table: &str) -> Result<String, UserError> {
    let key = fetch::<String>(
        "SELECT string_agg('y.' || quote_ident(a.attname), ', ' ORDER BY k.place) \
         FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place), \
             pg_attribute a \
         WHERE i.indrelid = $1::regclass AND i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.attnum",
        &[qualified(table).into()],
    )?;
    Ok(key.unwrap_or_else(|| "y".to_owned()))
}

/// Exports all rows of these runs, in their order. The caller has checked that the runs are visible and have ended.
///
/// Uses a single statement, and so a single snapshot: a concurrent bench.prune does not split a run.
///
/// # Errors
/// 54000 for more than a jsonb can hold.
pub fn export(run_ids: &[i64]) -> Result<StoredJsonb, UserError> {
    export_piece(run_ids, None)
}

/// As [`export`], for one part of the document: with all rows of `run_log`, and the rows of other tables in the part's windows.
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

/// Returns the system identifier of this database cluster; `None` if the extension's owner may not read it.
fn system_identifier() -> Result<Option<String>, UserError> {
    let may_read = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')";
    if fetch::<bool>(may_read, &[])? != Some(true) {
        return Ok(None);
    }
    fetch::<String>("SELECT system_identifier::text FROM pg_control_system()", &[])
}

/// Returns the query for a document. It builds json, a text, which is parsed once: functions of jsonb would rebuild their
/// arguments at every level, with about 100 bytes of memory for each value.
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

/// Returns the query for a table's rows as an object with a list for each column that has values: an object for each row would
/// double the document with names. `window` is the first row and the number of rows.
fn columns_query(table: &str, window: Option<(i64, i64)>) -> Result<String, UserError> {
    let listed: Vec<String> = columns(table)?
        .iter()
        .map(|Column { name, .. }| {
            format!("CASE WHEN count(x.{name}) > 0 THEN json_agg(x.{name}) END AS {name}")
        })
        .collect();
    let rows = match table {
        // The reason can depend on other runs, which exist only on this server, so the view's result is exported.
        "audit_log" => {
            "SELECT a.run_id, a.node, a.counter, a.harness, a.server, a.judged AND v.reason = a.reason AS judged, v.reason \
             FROM bench_internal.audit_log a JOIN bench.audits v USING (run_id, node, counter) WHERE v.run_id = ANY ($1)"
                .to_owned()
        }
        _ => format!("SELECT * FROM {}", qualified(table)),
    };
    let (order, window) = match window {
        // Each table's columns begin with its primary key, so that rows are sorted by it.
        None => ("y".to_owned(), String::new()),
        // By the key's index, so that a part does not sort the rows of all others.
        Some((from, rows)) => (key(table)?, format!(" OFFSET {from} LIMIT {rows}")),
    };
    Ok(format!(
        "SELECT json_strip_nulls(to_json(c)) FROM (SELECT {} \
         FROM (SELECT y.* FROM ({rows}) y WHERE y.run_id = ANY ($1) ORDER BY {order}{window}) x) c",
        listed.join(", ")
    ))
}

/// Replaces the server's errors about the limits of jsonb: 256 MB of elements in an array or an object (JENTRY_OFFLENMASK,
/// utils/jsonb.h), and a palloc of 1 GB.
fn explain(error: UserError, piece: Option<&DocumentChunk>) -> UserError {
    let is_too_large = error.sqlstate == sqlstate::PROGRAM_LIMIT_EXCEEDED
        || error.message.contains("invalid memory alloc request size");
    if !is_too_large {
        return error;
    }
    let subject = match piece {
        None => "the runs are".to_owned(),
        Some(piece) => format!("part {} of the runs is", piece.number),
    };
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, format!("{subject} too large for a document"))
        .detail(error.message)
        .hint("Export fewer runs at once: each part has the rows of all of them in bench.runs.")
}

// A document in parts, each far below the limits of jsonb.

/// The approximate size of a part: a quarter of the longest answer that a connection to another node takes.
const PART_BYTES: i64 = 16 << 20;

/// Returns an upper estimate of a row's size as JSON, in bytes; `None` for tables with texts of any length, such as plans.
fn row_bytes(table: &str) -> Option<i64> {
    match table {
        "statement_log" | "error_log" | "event_log" | "relation_log" | "node_log" => None,
        "samples" | "warmup_samples" => Some(1000),
        "transactions" => Some(200),
        _ => Some(100),
    }
}

/// Returns the sizes of a table's rows of these runs, in the order of an export.
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
    /// The parts that this session has planned last, behind the runs.
    static PLANNED: RefCell<(Vec<i64>, Vec<DocumentChunk>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Plans the parts of a document of these runs; at least one.
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

/// Returns one of the parts as planned by this session's last call of [`chunks`] for these runs, or plans them. The plan stays
/// valid, because rows of ended runs do not change.
///
/// # Errors
/// 22023 for a number of no part; those of the queries.
pub fn chunk(run_ids: &[i64], number: i32) -> Result<DocumentChunk, UserError> {
    let planned = PLANNED.with_borrow(|(runs, chunks)| (runs == run_ids).then(|| chunks.clone()));
    let chunks = planned.map_or_else(|| chunks(run_ids), Ok)?;
    let count = chunks.len();
    chunks
        .into_iter()
        .find(|chunk| chunk.number == number)
        .ok_or_else(|| UserError::invalid(format!("part must be between 1 and {count}, not {number}")))
}
