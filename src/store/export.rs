//! Runs as one document, and the document in parts.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

use bench_base::error::{UserError, sqlstate};
use bench_results::{DocumentChunk, RowRange};
use pgrx::PgTryBuilder;

use super::as_owner;
use crate::error::{from_caught, internal};
use crate::server::jsonb::StoredJsonb;
use crate::server::spi::{fetch, fetch_all};

// The tables that a run's results are in, with their columns as the catalog has them, and the version of the document that
// has these tables.

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

/// A column of a table of results.
pub struct Column {
    /// Quoted where it has to be.
    pub name: String,
    /// As SQL writes it.
    pub sql_type: String,
    /// The expression of its default.
    pub default: Option<String>,
}

impl Column {
    /// The value in a row `x` of texts, as [`rows_of_lists`] has them: arrays are lists of JSON.
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

/// A table's columns, in their order.
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

/// What there is of each column, with commas between.
pub fn joined(columns: &[Column], piece: impl Fn(&Column) -> String) -> String {
    columns.iter().map(piece).collect::<Vec<_>>().join(", ")
}

/// The rows `x` of a document's table, an object `d.t` with a list for each column, as texts: an item of FROM.
pub fn rows_of_lists(columns: &[Column]) -> String {
    let lists = joined(columns, |c| format!("jsonb_array_elements_text(d.t -> '{}')", c.name));
    format!("ROWS FROM ({lists}) AS x ({})", joined(columns, |c| c.name.clone()))
}

/// The columns of a table's primary key, in their order, as ORDER BY takes them.
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

// A document in parts, each far below the limits of jsonb.

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
