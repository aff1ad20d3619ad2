//! Captures: rows of bench.capture_list, bench.capture_statements and bench.captured_rows, and the mix that a capture is.

use bench_core::captured::Counts;
use bench_core::error::{UserError, sqlstate};
use bench_core::spec::Share;
use pgrx::JsonB;
use serde_json::Value;

use super::as_owner;
use crate::server::process::my_pid;
use crate::server::spi::{fetch, fetch_all, run, timestamp};

/// Who owns a capture, and how it is.
pub struct CaptureHandle {
    /// The role that captured.
    pub role: String,
    /// As bench.captures has it: capturing, completed, canceled, failed or crashed.
    pub status: String,
    /// The process that captures.
    pub pid: i32,
}

/// A capture by its name.
pub fn capture(name: &str) -> Result<Option<CaptureHandle>, UserError> {
    as_owner(|| {
        let sql = "SELECT l.role, CASE WHEN l.status = 'capturing' AND NOT EXISTS ( \
                       SELECT FROM pg_catalog.pg_stat_get_activity(l.pid) a WHERE a.pid IS NOT NULL) \
                   THEN 'crashed' ELSE l.status END, l.pid FROM bench.capture_list l WHERE l.name = $1";
        let found = fetch_all(sql, &[name.into()], |row| {
            let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
            Ok(CaptureHandle {
                role: text(1)?,
                status: text(2)?,
                pid: row.get::<i32>(3)?.unwrap_or_default(),
            })
        })?;
        Ok(found.into_iter().next())
    })
}

/// The workloads of a capture with their weights; `None` where no capture has that name.
pub fn mix(name: &str) -> Result<Option<Vec<Share>>, UserError> {
    as_owner(|| {
        if fetch::<i32>("SELECT 1 FROM bench.capture_list WHERE name = $1", &[name.into()])?.is_none() {
            return Ok(None);
        }
        let sql = "SELECT s.workload, s.weight FROM bench.capture_statements s JOIN bench.workloads w ON w.name = s.workload \
                   WHERE s.capture = $1 AND s.kept ORDER BY s.number";
        fetch_all(sql, &[name.into()], |row| {
            Ok(Share {
                workload: row.get::<String>(1)?.unwrap_or_default(),
                weight: row.get::<i32>(2)?.unwrap_or_default().unsigned_abs(),
            })
        })
        .map(Some)
    })
}

/// Writes the row of a capture that this process begins, over an older one of the same name, whose statements, workloads
/// and values go. `at` is when it began, a TimestampTz.
///
/// # Errors
/// 42710 where a workload has this name.
pub fn begin_capture(
    name: &str,
    role: &str,
    source: &str,
    options: &Value,
    secs: f64,
    at: i64,
) -> Result<(), UserError> {
    if super::workload(name)?.is_some() {
        let message = format!("a workload is named \"{name}\"");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("A capture is run by its name, as a workload is: choose another one."));
    }
    delete_capture(name)?;
    as_owner(|| {
        run(
            "INSERT INTO bench.capture_list (name, role, source, options, status, started_at, secs, pid) \
             VALUES ($1, $2, $3, $4, 'capturing', $7, $5, $6)",
            &[
                name.into(),
                role.into(),
                source.into(),
                JsonB(options.clone()).into(),
                secs.into(),
                my_pid().into(),
                timestamp(at).into(),
            ],
        )
        .map(drop)
    })
}

/// What is written of a capture when it has ended.
#[derive(Clone, Debug, Default)]
pub struct CaptureEnd {
    /// completed, canceled or failed.
    pub status: String,
    /// Calls of all statements, kept or not.
    pub calls: Option<i64>,
    /// Their execution time in milliseconds.
    pub exec_ms: Option<f64>,
    /// Entries that pg_stat_statements has dropped meanwhile.
    pub dealloc: Option<i64>,
    pub notes: Vec<String>,
    pub error: Option<UserError>,
}

/// Closes the row of a capture.
pub fn end_capture(name: &str, end: &CaptureEnd) -> Result<(), UserError> {
    let error = end.error.as_ref().map(|error| JsonB(serde_json::to_value(error).unwrap_or_default()));
    as_owner(|| {
        run(
            "UPDATE bench.capture_list SET status = $2, finished_at = pg_catalog.clock_timestamp(), calls = $3, exec_ms = $4, \
                 dealloc = $5, notes = $6, error = $7 WHERE name = $1",
            &[
                name.into(),
                end.status.as_str().into(),
                end.calls.into(),
                end.exec_ms.into(),
                end.dealloc.into(),
                end.notes.clone().into(),
                error.into(),
            ],
        )
        .map(drop)
    })
}

/// A row of bench.capture_statements.
#[derive(Clone, Debug, Default)]
pub struct CapturedStatement {
    /// Its place, from 1.
    pub number: i32,
    /// The workload that was made of it; `None`: none was.
    pub workload: Option<String>,
    pub weight: Option<i32>,
    pub queryid: Option<i64>,
    pub query: Option<String>,
    pub roles: Vec<String>,
    pub calls: i64,
    pub rows: Option<i64>,
    pub shared_blks_hit: Option<i64>,
    pub shared_blks_read: Option<i64>,
    pub exec_ms: Option<f64>,
    /// Of the execution time of all statements.
    pub share: f64,
    pub reason: Option<String>,
}

/// Writes a statement of a capture.
pub fn put_captured_statement(capture: &str, statement: &CapturedStatement) -> Result<(), UserError> {
    as_owner(|| {
        run(
            "INSERT INTO bench.capture_statements (capture, number, workload, weight, queryid, query, roles, calls, rows, \
                 shared_blks_hit, shared_blks_read, exec_ms, share, kept, reason) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $3 IS NOT NULL, $14)",
            &[
                capture.into(),
                statement.number.into(),
                statement.workload.as_deref().into(),
                statement.weight.into(),
                statement.queryid.into(),
                statement.query.as_deref().into(),
                statement.roles.clone().into(),
                statement.calls.into(),
                statement.rows.into(),
                statement.shared_blks_hit.into(),
                statement.shared_blks_read.into(),
                statement.exec_ms.into(),
                statement.share.into(),
                statement.reason.as_deref().into(),
            ],
        )
        .map(drop)
    })
}

/// The SELECT of a feeder over kept values: `columns` are names of variables and, as the server writes them, their types.
pub fn select_captured_rows(
    workload: &str,
    prefix: &str,
    columns: &[(String, String)],
    weighted: bool,
) -> String {
    let quoted = crate::server::spi::quote_literal;
    let list: Vec<String> = columns
        .iter()
        .map(|(name, sql_type)| {
            format!(
                "(row ->> {})::{sql_type} AS {}",
                quoted(name),
                crate::server::spi::quote_identifier(name)
            )
        })
        .chain(weighted.then(|| "weight".to_owned()))
        .collect();
    format!(
        "SELECT {} FROM bench.captured_rows WHERE workload = {} AND prefix = {} ORDER BY row_number",
        list.join(", "),
        quoted(workload),
        quoted(prefix)
    )
}

/// Keeps values of a workload's parameters: each row an object by the names of variables, with its weight.
pub fn put_captured_rows(
    workload: &str,
    prefix: &str,
    rows: Vec<(Option<f64>, Value)>,
) -> Result<(), UserError> {
    let weights: Vec<Option<f64>> = rows.iter().map(|(weight, _)| *weight).collect();
    let values: Vec<String> = rows.into_iter().map(|(_, row)| row.to_string()).collect();
    as_owner(|| {
        run(
            "INSERT INTO bench.captured_rows (workload, prefix, row_number, weight, row) \
             SELECT $1, $2, v.number, v.weight, v.row::pg_catalog.jsonb \
             FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) WITH ORDINALITY AS v (weight, row, number)",
            &[workload.into(), prefix.into(), weights.into(), values.into()],
        )
        .map(drop)
    })
}

/// Removes a capture with its statements, workloads and values, and so their feeders.
///
/// # Errors
/// 55006 while it is under way.
pub fn delete_capture(name: &str) -> Result<(), UserError> {
    let Some(handle) = capture(name)? else { return Ok(()) };
    if handle.status == "capturing" && handle.pid != my_pid() {
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, format!("capture \"{name}\" is under way"))
            .hint("Wait for its end, or cancel it with bench.cancel_capture."));
    }
    as_owner(|| {
        let own = "SELECT workload FROM bench.capture_statements WHERE capture = $1 AND workload IS NOT NULL";
        run(&format!("DELETE FROM bench.captured_rows WHERE workload IN ({own})"), &[name.into()])?;
        run(&format!("DELETE FROM bench.feeders WHERE workload IN ({own})"), &[name.into()])?;
        run(&format!("DELETE FROM bench.workloads WHERE name IN ({own}) AND NOT builtin"), &[name.into()])?;
        run("DELETE FROM bench.capture_statements WHERE capture = $1", &[name.into()])?;
        run("DELETE FROM bench.capture_list WHERE name = $1", &[name.into()]).map(drop)
    })
}

/// What was counted of a captured statement, and of its replay in a run.
pub struct Replayed {
    pub workload: String,
    /// Of the captured execution time of the run's statements and those that were not kept.
    pub share: f64,
    pub captured: Counts,
    pub replayed: Option<Counts>,
}

/// The statements of a run that are a capture's.
pub fn calls_of_captured(run_id: i64) -> Result<Vec<Replayed>, UserError> {
    as_owner(|| {
        let sql = "SELECT s.workload, s.exec_ms, s.calls, s.rows, s.shared_blks_hit, s.shared_blks_read, \
                       c.calls, c.rows, c.shared_blks_hit, c.shared_blks_read, c.exec_ms \
                   FROM bench.script_log l JOIN bench.capture_statements s ON s.workload = l.workload AND s.kept \
                   JOIN bench.capture_list k ON k.name = s.capture AND k.source = 'statements' \
                   LEFT JOIN (SELECT run_id, script, pg_catalog.sum(calls)::pg_catalog.int8 AS calls, \
                           pg_catalog.sum(rows)::pg_catalog.int8 AS rows, pg_catalog.sum(shared_blks_hit)::pg_catalog.int8 AS shared_blks_hit, \
                           pg_catalog.sum(shared_blks_read)::pg_catalog.int8 AS shared_blks_read, pg_catalog.sum(exec_ms) AS exec_ms \
                       FROM bench.call_log GROUP BY run_id, script) c ON c.run_id = l.run_id AND c.script = l.script \
                   WHERE l.run_id = $1 AND l.node = 0 ORDER BY l.script";
        fetch_all(sql, &[run_id.into()], |row| {
            let number = |column| row.get::<i64>(column);
            let counts = |calls, first, exec_ms: f64| -> pgrx::spi::Result<Counts> {
                let [rows, hit, read] =
                    [number(first)?, number(first + 1)?, number(first + 2)?].map(Option::unwrap_or_default);
                Ok(Counts { calls, rows, hit, read, exec_ms })
            };
            let exec_ms = row.get::<f64>(2)?.unwrap_or_default();
            let replayed = match number(7)? {
                Some(calls) => Some(counts(calls, 8, row.get::<f64>(11)?.unwrap_or_default())?),
                None => None,
            };
            Ok(Replayed {
                workload: row.get::<String>(1)?.unwrap_or_default(),
                share: exec_ms,
                captured: counts(number(3)?.unwrap_or_default(), 4, exec_ms)?,
                replayed,
            })
        })
    })
}

/// The statements of a capture, as far as bench.capture returns them.
pub fn captured_statements(name: &str) -> Result<Vec<CapturedStatement>, UserError> {
    as_owner(|| {
        let sql = "SELECT number, workload, weight, calls, share, reason FROM bench.capture_statements \
                   WHERE capture = $1 ORDER BY number";
        fetch_all(sql, &[name.into()], |row| {
            Ok(CapturedStatement {
                number: row.get::<i32>(1)?.unwrap_or_default(),
                workload: row.get(2)?,
                weight: row.get(3)?,
                calls: row.get::<i64>(4)?.unwrap_or_default(),
                share: row.get::<f64>(5)?.unwrap_or_default(),
                reason: row.get(6)?,
                ..CapturedStatement::default()
            })
        })
    })
}

/// What there is to know of a capture.
pub fn notes_of_capture(name: &str) -> Result<Vec<String>, UserError> {
    as_owner(|| {
        let sql = "SELECT notes FROM bench.capture_list WHERE name = $1";
        Ok(fetch::<Vec<String>>(sql, &[name.into()])?.unwrap_or_default())
    })
}

/// How a run replayed the transactions of one shape of a log.
pub struct ReplayedShape {
    pub workload: String,
    /// Of the captured transactions.
    pub share: f64,
    pub transactions: i64,
    /// Those that errors ended.
    pub failed: i64,
}

/// The scripts of a run that are a capture's from the log.
pub fn shapes_of_captured(run_id: i64) -> Result<Vec<ReplayedShape>, UserError> {
    as_owner(|| {
        let sql = "SELECT s.workload, pg_catalog.min(s.share), pg_catalog.sum(l.transactions)::pg_catalog.int8, \
                       pg_catalog.sum(l.failed + coalesce(l.aborted, 0))::pg_catalog.int8 \
                   FROM bench.script_log l JOIN bench.capture_statements s ON s.workload = l.workload AND s.kept \
                   JOIN bench.capture_list k ON k.name = s.capture AND k.source = 'log' \
                   WHERE l.run_id = $1 GROUP BY s.workload, l.script ORDER BY l.script";
        fetch_all(sql, &[run_id.into()], |row| {
            Ok(ReplayedShape {
                workload: row.get::<String>(1)?.unwrap_or_default(),
                share: row.get::<f64>(2)?.unwrap_or_default(),
                transactions: row.get::<i64>(3)?.unwrap_or_default(),
                failed: row.get::<i64>(4)?.unwrap_or_default(),
            })
        })
    })
}
