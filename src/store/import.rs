//! The import of a document's runs as runs of the caller.
//!
//! The document is not trusted: its ids are not used as this server's, each value passes through the column's type, and values
//! that the recorder would not have written are refused.

use std::cell::Cell;

use bench_base::error::{UserError, sqlstate};
use pgrx::{JsonB, pg_sys};
use serde_json::Value;

use super::as_owner;
use super::export::{
    Column, FORMAT_VERSION, RESULT_TABLES, RUN_LOG, columns, joined, qualified, rows_of_lists,
};
use crate::error::internal;
use crate::server::jsonb::StoredJsonb;
use crate::server::roles::{current_role_oid, name_of};
use crate::server::spi::{fetch, fetch_all, locked_rows, run};
use crate::server::transaction::all_or_nothing;

/// The statuses of imported runs.
const FINAL_STATUSES: [&str; 5] = ["completed", "incomplete", "canceled", "failed", "crashed"];

/// The ids of an imported run: in the document and on this server.
pub struct Imported {
    pub id_in_document: i64,
    pub run_id: i64,
}

/// Writes the document's runs, in its order.
///
/// # Errors
/// 0A000 for a document of a later version, 23505 for a run that the role has imported already, 22xxx and 23xxx for a text that
/// is no document of bench.export.
pub fn import(document: StoredJsonb) -> Result<Vec<Imported>, UserError> {
    let role = current_role_oid();
    let place = Cell::new(None);
    // The outer result has the server's errors, the inner one those of this module.
    let result = all_or_nothing(|| {
        Ok(as_owner(|| {
            check_format(document)?;
            place.set(Some(RUN_LOG));
            let runs = runs_of(document, role)?;
            for table in RESULT_TABLES {
                place.set(Some(table));
                insert_results(document, table, &runs, None)?;
            }
            Ok(runs)
        }))
    });
    result.map_err(|error| match place.get() {
        Some(table) => explained(error, document, table),
        None => error,
    })?
}

/// Adds to the server's error about a value the table of the document, or the value that is out of range.
fn explained(error: UserError, document: StoredJsonb, table: &str) -> UserError {
    if error.sqlstate == sqlstate::CHECK_VIOLATION
        && let Ok(Some(range_error)) = as_owner(|| out_of_range(document, table))
    {
        return range_error;
    }
    if !error.sqlstate.starts_with("22") && !error.sqlstate.starts_with("23") {
        return error;
    }
    UserError { message: format!("invalid \"{table}\" in the document: {}", error.message), ..error }
}

fn check_format(document: StoredJsonb) -> Result<(), UserError> {
    let version = fetch::<String>(
        "SELECT ($1 -> 'format_version')::text WHERE jsonb_typeof($1 -> 'format_version') = 'number' \
             AND jsonb_typeof($1 -> 'run_log') = 'array'",
        &[document.into()],
    )?;
    let Some(version) = version else {
        return Err(UserError::invalid("document was not made by bench.export")
            .hint("Pass the complete result of bench.export."));
    };
    let number = version.parse::<f64>().unwrap_or(f64::INFINITY);
    if number > f64::from(FORMAT_VERSION) {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!(
                "the document has format version {version}, but this extension reads versions up to {FORMAT_VERSION}"
            ),
        )
        .hint("Update pgbench_ext on this server."));
    }
    if number < f64::from(FORMAT_VERSION) {
        return Err(UserError::invalid(format!("the document has unknown format version {version}")));
    }
    Ok(())
}

/// Returns the document's runs: new ones, or those that another part of the same document has imported.
fn runs_of(document: StoredJsonb, role: pg_sys::Oid) -> Result<Vec<Imported>, UserError> {
    let part = part_of(document)?;
    if let Some(part) = &part {
        let known = runs_of_other_parts(document, role, part)?;
        if !known.is_empty() {
            return Ok(known);
        }
    }
    let runs = new_ids(document)?;
    insert_runs(document, &runs, role)?;
    if let Some(part) = &part {
        note_part(&runs, part)?;
    }
    Ok(runs)
}

/// A part of a document: its number, and the number of parts.
struct PartOfDocument {
    number: i32,
    of: i32,
}

/// Reads which part of a whole a document is; `None` if it is the whole.
///
/// # Errors
/// 22023 for an invalid part.
fn part_of(document: StoredJsonb) -> Result<Option<PartOfDocument>, UserError> {
    let integer = |name: &str| {
        let member = format!("SELECT $1 #>> '{{part,{name}}}'");
        Ok::<_, UserError>(
            fetch::<String>(&member, &[document.into()])?.and_then(|text| text.parse::<i32>().ok()),
        )
    };
    let is_part = fetch::<bool>("SELECT $1 ? 'part'", &[document.into()])? == Some(true);
    match (is_part, integer("number")?, integer("of")?) {
        (false, ..) | (_, _, Some(1)) => Ok(None),
        (_, Some(number), Some(of)) if (1..=of).contains(&number) => Ok(Some(PartOfDocument { number, of })),
        _ => Err(UserError::invalid("the part of the document has no number")),
    }
}

/// Returns the runs that other parts of the document have imported, and records this part; none if it is the first.
///
/// # Errors
/// 23505 for a part that has been imported already.
fn runs_of_other_parts(
    document: StoredJsonb,
    role: pg_sys::Oid,
    part: &PartOfDocument,
) -> Result<Vec<Imported>, UserError> {
    let rows = locked_rows(
        &format!(
            "WITH d AS MATERIALIZED (SELECT $1 AS d) \
             SELECT x.run_id, r.run_id, r.origin #> '{{parts,have}}' @> to_jsonb($3) \
             FROM d, jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, d.d -> '{RUN_LOG}') WITH ORDINALITY AS x, \
                 bench_internal.{RUN_LOG} r \
             WHERE r.owner_oid = $2 AND r.origin IS NOT NULL AND r.origin #> '{{parts,of}}' = to_jsonb($4) \
               AND r.origin @> ({ORIGIN} - 'exported_at') \
             ORDER BY x.ordinality FOR UPDATE OF r"
        ),
        &[document.into(), role.into(), part.number.into(), part.of.into()],
        |row| {
            let id = |place| row.get::<i64>(place).map(Option::unwrap_or_default);
            Ok((Imported { id_in_document: id(1)?, run_id: id(2)? }, row.get::<bool>(3)? == Some(true)))
        },
    )?;
    if let Some((run, _)) = rows.iter().find(|(_, has_part)| *has_part) {
        let message = format!("part {} of run {} has already been imported", part.number, run.id_in_document);
        return Err(UserError::new(sqlstate::UNIQUE_VIOLATION, message)
            .hint("Column origin of bench.runs shows which parts are there."));
    }
    let runs: Vec<Imported> = rows.into_iter().map(|(run, _)| run).collect();
    if !runs.is_empty() {
        note_part(&runs, part)?;
    }
    Ok(runs)
}

/// Records that a part was imported; removes the record when all parts were.
fn note_part(runs: &[Imported], part: &PartOfDocument) -> Result<(), UserError> {
    run(
        &format!(
            "UPDATE bench_internal.{RUN_LOG} r SET origin = CASE \
                 WHEN jsonb_array_length(p.have) = $3 THEN r.origin - 'parts' \
                 ELSE r.origin || jsonb_build_object('parts', jsonb_build_object('of', $3, 'have', p.have)) END \
             FROM (SELECT s.run_id, coalesce(s.origin #> '{{parts,have}}', '[]') || to_jsonb($2) AS have \
                   FROM bench_internal.{RUN_LOG} s WHERE s.run_id = ANY ($1)) p \
             WHERE r.run_id = p.run_id"
        ),
        &[ids_of(runs).1.into(), part.number.into(), part.of.into()],
    )
    .map(drop)
}

/// The expression for the origin of a run `x` of a document `d`. A run that was imported before it was exported keeps its first
/// origin.
const ORIGIN: &str = "coalesce(x.origin, jsonb_build_object('run_id', x.run_id, 'role', x.role, 'started_at', x.started_at, \
     'system_identifier', d.d #> '{server,system_identifier}', 'database', d.d #> '{server,database}', \
     'exported_at', d.d -> 'exported_at'))";

/// Checks the runs of the document, and gives them ids of this server.
fn new_ids(document: StoredJsonb) -> Result<Vec<Imported>, UserError> {
    let sql = format!(
        "SELECT x.run_id, x.status, count(*) OVER (PARTITION BY x.run_id), jsonb_typeof(x.origin) \
         FROM ROWS FROM (jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}')) WITH ORDINALITY AS x \
         ORDER BY x.ordinality"
    );
    let rows = fetch_all(&sql, &[document.into()], |row| {
        let status = row.get::<String>(2)?.unwrap_or_default();
        Ok((row.get::<i64>(1)?, status, row.get::<i64>(3)?, row.get::<String>(4)?))
    })?;
    let mut runs = Vec::with_capacity(rows.len());
    for (id, status, count, origin) in rows {
        let id_in_document = id.ok_or_else(|| UserError::invalid("a run of the document has no run_id"))?;
        if count != Some(1) {
            return Err(UserError::invalid(format!(
                "run {id_in_document} is in the document more than once"
            )));
        }
        if !FINAL_STATUSES.contains(&&*status) {
            return Err(UserError::invalid(format!(
                "run {id_in_document} of the document has status \"{status}\""
            ))
            .hint(format!("The status of an ended run is {}.", FINAL_STATUSES.join(", "))));
        }
        if origin.is_some_and(|kind| kind != "object") {
            return Err(UserError::invalid(format!(
                "run {id_in_document} of the document has an origin that is not an object"
            )));
        }
        let run_id = fetch::<i64>("SELECT nextval('bench_internal.run_id_seq')", &[])?.unwrap_or_default();
        runs.push(Imported { id_in_document, run_id });
    }
    Ok(runs)
}

fn ids_of(runs: &[Imported]) -> (Vec<i64>, Vec<i64>) {
    runs.iter().map(|run| (run.id_in_document, run.run_id)).unzip()
}

/// Returns the expression for a column: the value, or else its default.
fn value_of(Column { name, default, .. }: &Column, value: &str) -> String {
    match default {
        // The default is this server's version, not that of the run.
        Some(default) if name != "server_version" => format!("coalesce({value}, {default})"),
        _ => value.to_owned(),
    }
}

/// Writes the runs' rows.
fn insert_runs(document: StoredJsonb, runs: &[Imported], role: pg_sys::Oid) -> Result<(), UserError> {
    let mut listed = columns(RUN_LOG)?;
    listed.retain(|c| {
        !["run_id", "sweep_id", "role", "owner_oid", "segment", "coordinator_pid", "origin"]
            .contains(&&*c.name)
    });
    let names = joined(&listed, |c| c.name.clone());
    let values = joined(&listed, |c| value_of(c, &format!("x.{}", c.name)));
    let sql = format!(
        "WITH d AS MATERIALIZED (SELECT $1 AS d) \
         INSERT INTO bench_internal.{RUN_LOG} (run_id, role, owner_oid, segment, coordinator_pid, origin, {names}) \
         SELECT ids.run_id, $4, $5, 0, 0, \
             {ORIGIN} || jsonb_build_object('imported_at', now()), {values} \
         FROM d, jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, d.d -> '{RUN_LOG}') x \
         JOIN ROWS FROM (unnest($2), unnest($3)) AS ids (old, run_id) ON ids.old = x.run_id \
         ON CONFLICT (owner_oid, (origin -> 'system_identifier'), (origin -> 'database'), (origin -> 'run_id'), (origin -> 'started_at')) \
             WHERE origin IS NOT NULL AND owner_oid <> 0 DO NOTHING"
    );
    let (old, new) = ids_of(runs);
    let name = name_of(role).unwrap_or_default();
    let arguments = [document.into(), old.into(), new.clone().into(), name.as_str().into(), role.into()];
    let written = run(&sql, &arguments)?;
    if written < runs.len() {
        let imported = fetch::<Vec<i64>>(
            "SELECT array_agg(run_id) FROM bench_internal.run_log WHERE run_id = ANY ($1)",
            &[new.into()],
        )?
        .unwrap_or_default();
        let missing =
            runs.iter().find(|run| !imported.contains(&run.run_id)).map_or(0, |run| run.id_in_document);
        return Err(UserError::new(
            sqlstate::UNIQUE_VIOLATION,
            format!("role \"{name}\" has already imported run {missing} of the document"),
        )
        .hint("Column origin of bench.runs shows where each run comes from."));
    }
    Ok(())
}

/// Writes the runs' rows of another table, as those of `node` if given. The query mentions the document once: the planner
/// copies a parameter at each mention.
fn insert_results(
    document: StoredJsonb,
    table: &str,
    runs: &[Imported],
    node: Option<i32>,
) -> Result<(), UserError> {
    let lengths = fetch_all(
        "SELECT DISTINCT jsonb_array_length(value) FROM jsonb_each($1 -> $2)",
        &[document.into(), table.into()],
        |row| row.get::<i32>(1),
    )?;
    let rows = match lengths[..] {
        // An earlier version of the extension may not have had the table.
        [] => return Ok(()),
        [length] => length.unwrap_or_default(),
        _ => {
            return Err(UserError::invalid(format!(
                "\"{table}\" of the document has columns of different lengths"
            )));
        }
    };
    let listed = columns(table)?;
    let names = joined(&listed, |c| c.name.clone());
    let values = joined(&listed, |c| match &*c.name {
        "run_id" => "ids.run_id".to_owned(),
        "node" if let Some(node) = node => node.to_string(),
        _ => value_of(c, &c.read()),
    });
    let relation = qualified(table);
    let sql = format!(
        "WITH d AS MATERIALIZED (SELECT $1 -> '{table}' AS t) \
         INSERT INTO {relation} ({names}) SELECT {values} FROM d, {} \
         JOIN ROWS FROM (unnest($2), unnest($3)) AS ids (old, run_id) ON ids.old = x.run_id::int8",
        rows_of_lists(&listed)
    );
    let (old, new) = ids_of(runs);
    let written = run(&sql, &[document.into(), old.into(), new.into()])?;
    if written != rows.unsigned_abs() as usize {
        return Err(UserError::invalid(format!(
            "\"{table}\" of the document has rows of runs that are not in it"
        )));
    }
    Ok(())
}

// The results of another node's part of a run, which arrive as a document.

/// Writes part `number` of `of` of a document with a node's results into this node's run. The first part replaces the rows of an
/// earlier attempt; the last one sets `bench.nodes.status`.
///
/// # Errors
/// 22xxx and 23xxx for a text that is no document of bench.export with one run.
pub fn take_part(run_id: i64, node: i32, document: &str, (number, of): (i32, i32)) -> Result<(), UserError> {
    as_owner(|| {
        let document = fetch::<StoredJsonb>("SELECT $1::jsonb", &[document.into()])?
            .ok_or_else(|| internal("an empty document"))?;
        let id = format!("SELECT ($1 #>> '{{{RUN_LOG},0,run_id}}')::int8");
        let id_in_document = fetch::<i64>(&id, &[document.into()])?.unwrap_or_default();
        let runs = [Imported { id_in_document, run_id }];
        for table in RESULT_TABLES.into_iter().filter(|table| *table != NODES) {
            if number == 1 {
                let relation = qualified(table);
                let sql = format!("DELETE FROM {relation} WHERE run_id = $1 AND node = $2");
                run(&sql, &[run_id.into(), node.into()])?;
            }
            insert_results(document, table, &runs, Some(node))?;
        }
        if number == of { close_part(run_id, node, document) } else { Ok(()) }
    })
}

/// Returns a run's samples after `elapsed_secs`, in their order, at most [`MAX_SAMPLES`], as an array of rows of bench.samples;
/// `None` if there are none.
pub fn samples_after(run_id: i64, elapsed_secs: f64) -> Result<Option<JsonB>, UserError> {
    as_owner(|| {
        fetch::<JsonB>(
            &format!(
                "SELECT jsonb_agg(to_jsonb(x)) FROM (SELECT s.* FROM bench.samples s \
                 WHERE s.run_id = $1 AND s.node = 0 AND s.elapsed > $2 ORDER BY s.elapsed LIMIT {MAX_SAMPLES}) x"
            ),
            &[run_id.into(), elapsed_secs.into()],
        )
    })
}

/// More than a node writes between two questions: all nodes together write at most 100 a second.
const MAX_SAMPLES: u32 = 1000;

/// Writes a node's result of [`samples_after`] as its samples of this node's run, until [`take_part`] replaces them. Returns the
/// elapsed seconds of the last.
///
/// # Errors
/// 22xxx for a text that [`samples_after`] did not return.
pub fn take_samples(run_id: i64, node: i32, after_secs: f64, samples: &str) -> Result<f64, UserError> {
    let elapsed_of = |row: &Value| row.get("elapsed").and_then(Value::as_f64);
    let mut rows: Vec<Value> = serde_json::from_str(samples).map_err(|e| internal(e.to_string()))?;
    rows.retain(|row| elapsed_of(row).is_some_and(|elapsed_secs| elapsed_secs > after_secs));
    let Some(elapsed_secs) = rows.last().and_then(elapsed_of) else { return Ok(after_secs) };
    as_owner(|| {
        run(
            "INSERT INTO bench.samples SELECT r.* FROM jsonb_array_elements($1) e, \
             LATERAL jsonb_populate_record(NULL::bench.samples, \
                 e || jsonb_build_object('run_id', $2, 'node', $3)) r \
             ON CONFLICT DO NOTHING",
            &[JsonB(Value::Array(rows)).into(), run_id.into(), node.into()],
        )
        .map(drop)
    })?;
    Ok(elapsed_secs)
}

/// The table that has a row for each node.
const NODES: &str = "node_log";

/// Writes the node's row, which completes its part.
fn close_part(run_id: i64, node: i32, document: StoredJsonb) -> Result<(), UserError> {
    run(
        &format!(
            "INSERT INTO bench_internal.node_log AS n (run_id, node, name, is_coordinator, clients, status, error, latency_avg_ms, \
                 latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_p999_ms, latency_max_ms, \
                 lag_avg_ms, lag_max_ms, backlog, environment, secs, transactions, failed, retried, aborted, server_cpu_us, clients_stuck) \
             SELECT $2, $3, '', false, x.clients, x.status, x.error, x.latency_avg_ms, \
                 x.latency_stddev_ms, x.latency_p50_ms, x.latency_p95_ms, x.latency_p99_ms, x.latency_p999_ms, x.latency_max_ms, \
                 x.lag_avg_ms, x.lag_max_ms, x.backlog, x.environment, s.secs, s.transactions, s.failed, s.retried, s.aborted, x.server_cpu_us, x.clients_stuck \
             FROM jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}') x, \
                 (SELECT sum(secs) AS secs, sum(transactions)::int8 AS transactions, \
                         sum(failed)::int8 AS failed, sum(retried)::int8 AS retried, \
                         (SELECT sum(aborted)::int8 FROM ( \
                              SELECT aborted FROM bench.samples WHERE run_id = $2 AND node = $3 \
                              UNION ALL SELECT aborted FROM bench.warmup_samples WHERE run_id = $2 AND node = $3) AS a) AS aborted \
                  FROM bench.samples WHERE run_id = $2 AND node = $3) s \
             ON CONFLICT (run_id, node) DO UPDATE SET status = excluded.status, error = excluded.error, \
                 latency_avg_ms = excluded.latency_avg_ms, latency_stddev_ms = excluded.latency_stddev_ms, \
                 latency_p50_ms = excluded.latency_p50_ms, latency_p95_ms = excluded.latency_p95_ms, \
                 latency_p99_ms = excluded.latency_p99_ms, latency_p999_ms = excluded.latency_p999_ms, \
                 latency_max_ms = excluded.latency_max_ms, lag_avg_ms = excluded.lag_avg_ms, lag_max_ms = excluded.lag_max_ms, \
                 backlog = excluded.backlog, environment = excluded.environment, secs = excluded.secs, \
                 transactions = excluded.transactions, failed = excluded.failed, retried = excluded.retried, \
                 aborted = excluded.aborted, server_cpu_us = excluded.server_cpu_us, clients_stuck = excluded.clients_stuck"
        ),
        &[document.into(), run_id.into(), node.into()],
    )?;
    run(
        &format!(
            "UPDATE bench_internal.run_log r SET logged = coalesce(r.logged, 0) + x.logged, log_lost = coalesce(r.log_lost, 0) + x.log_lost \
             FROM jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}') x \
             WHERE r.run_id = $2 AND x.logged IS NOT NULL"
        ),
        &[document.into(), run_id.into()],
    )
    .map(drop)
}

/// Returns the error for the first value of a document's table that violates a constraint of schema/tables/12_ranges.sql;
/// `None` if there is no such value.
///
/// # Errors
/// Those of values that are not of their column's type.
fn out_of_range(document: StoredJsonb, table: &str) -> Result<Option<UserError>, UserError> {
    let rules: Vec<(String, String)> = fetch_all(
        "SELECT quote_ident(a.attname), pg_get_expr(k.conbin, k.conrelid) \
         FROM pg_constraint k \
         JOIN pg_attribute a ON a.attrelid = k.conrelid AND k.conname = a.attname || '_range' \
         WHERE k.conrelid = $1::regclass ORDER BY a.attnum",
        &[qualified(table).into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
    )?;
    let rows = if table == RUN_LOG {
        format!("jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}')")
    } else {
        let listed = columns(table)?;
        format!(
            "(SELECT {} FROM (SELECT $1 -> '{table}' AS t) d, {})",
            joined(&listed, |c| format!("{} AS {}", c.read(), c.name)),
            rows_of_lists(&listed),
        )
    };
    let cases: String = (0..)
        .zip(&rules)
        .map(|(place, (column, holds))| {
            let value = format!("left({column}::text, 100)");
            format!(" WHEN NOT ({holds}) THEN ARRAY['{place}', run_id::text, {value}]")
        })
        .collect();
    let sql = format!(
        "SELECT b FROM (SELECT CASE{cases} END AS b FROM {rows} AS x) AS y WHERE b IS NOT NULL LIMIT 1"
    );
    let Some(violation) = fetch::<Vec<Option<String>>>(&sql, &[document.into()])? else { return Ok(None) };
    let mut fields = violation.into_iter().map(Option::unwrap_or_default);
    let mut next = || fields.next().unwrap_or_default();
    let (place, run_id, value) = (next(), next(), next());
    let Some((column, holds)) = place.parse::<usize>().ok().and_then(|place| rules.get(place)) else {
        return Ok(None);
    };
    let message = format!("invalid \"{table}\" in the document: {column} of run {run_id} is out of range");
    Ok(Some(
        UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
            .detail(format!("It is {value}, but must satisfy {holds}.")),
    ))
}
