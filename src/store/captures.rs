//! Captures: rows of bench_internal.capture_list and bench.capture_statements, a capture's mix, and its values in
//! bench.captured_rows.

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Activity;
use bench_model::feeder::Feeder;
use bench_model::part::KeptRows;
use bench_model::spec::Share;
use pgrx::{JsonB, pg_sys};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::as_owner;
use crate::server::jsonb::json_of;
use crate::server::process::my_pid;
use crate::server::roles::name_of;
use crate::server::rows::{insert, select, select_from, select_one};
use crate::server::spi::{fetch, fetch_all, quote_identifier, quote_literal, run, timestamp};

/// The owner and the status of a capture.
#[derive(Deserialize)]
pub struct CaptureHandle {
    /// The current name of the role that captured, or the recorded one of a dropped role.
    pub role: String,
    #[serde(default)]
    pub owner_oid: pg_sys::Oid,
    /// The status in bench.captures: capturing, completed, canceled, failed or crashed.
    pub status: String,
    /// The process that captures.
    pub pid: i32,
}

/// Reads a capture by its name.
pub fn capture(name: &str) -> Result<Option<CaptureHandle>, UserError> {
    as_owner(|| {
        let sql = "SELECT bench_internal.role_name(l.owner_oid, l.role) AS role, \
                       CASE WHEN l.status = 'capturing' AND NOT EXISTS ( \
                           SELECT FROM pg_stat_get_activity(l.pid) a WHERE a.pid IS NOT NULL) \
                       THEN 'crashed' ELSE l.status END AS status, l.pid, l.owner_oid \
                   FROM bench_internal.capture_list l WHERE l.name = $1";
        select_one(sql, &[name.into()])
    })
}

/// Returns the workloads of a capture with their weights; `None` if there is no capture of this name.
pub fn mix(name: &str) -> Result<Option<Vec<Share>>, UserError> {
    as_owner(|| {
        if fetch::<i32>("SELECT 1 FROM bench_internal.capture_list WHERE name = $1", &[name.into()])?
            .is_none()
        {
            return Ok(None);
        }
        let sql = "SELECT s.workload, s.weight FROM bench.capture_statements s JOIN bench.workloads w ON w.name = s.workload \
                   WHERE s.capture = $1 AND s.kept ORDER BY s.number";
        let shares = select::<(String, u32)>(sql, &[name.into()])?;
        Ok(Some(
            shares
                .into_iter()
                .map(|(workload, weight)| Share { workload, weight, is_dealt: false })
                .collect(),
        ))
    })
}

/// Returns the milliseconds that a call of a captured workload took, if the capture recorded it.
pub fn captured_ms(workload: &str) -> Result<Option<f64>, UserError> {
    as_owner(|| {
        let sql =
            "SELECT exec_ms / calls FROM bench.capture_statements WHERE workload = $1 AND kept AND calls > 0";
        fetch::<f64>(sql, &[workload.into()])
    })
}

/// Whether a captured workload's values and constants are masked.
pub fn is_masked(workload: &str) -> Result<bool, UserError> {
    as_owner(|| {
        let sql = "SELECT EXISTS (SELECT FROM bench.capture_statements s JOIN bench_internal.capture_list l ON l.name = s.capture \
                   WHERE s.workload = $1 AND l.options ->> 'mask' = 'true')";
        Ok(fetch::<bool>(sql, &[workload.into()])?.unwrap_or_default())
    })
}

/// Returns a workload with a name that this capture would give to its own, but which does not belong to it.
pub fn alien_part(name: &str) -> Result<Option<String>, UserError> {
    as_owner(|| {
        let sql = "SELECT min(w.name) FROM bench.workloads w \
                   WHERE starts_with(w.name, $1 || '/') \
                     AND translate(substr(w.name, length($1) + 2), '0123456789', '') = '' \
                     AND NOT EXISTS (SELECT FROM bench.capture_statements s WHERE s.capture = $1 AND s.workload = w.name)";
        fetch::<String>(sql, &[name.into()])
    })
}

/// Writes the row of a capture that this process begins. Replaces an older one of the same name, whose statements, workloads and
/// values are deleted. `at` is its begin, a TimestampTz.
///
/// # Errors
/// 42710 if a workload has this name.
pub fn begin_capture(
    name: &str,
    role: pg_sys::Oid,
    source: &str,
    options: &Value,
    secs: f64,
    at: i64,
) -> Result<(), UserError> {
    if super::workload(name)?.is_some() {
        let message = format!("a workload is named \"{name}\"");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("bench.run accepts names of workloads and of captures: choose another name."));
    }
    delete_capture(name)?;
    as_owner(|| {
        run(
            "INSERT INTO bench_internal.capture_list (name, role, source, options, status, started_at, secs, pid, owner_oid) \
             VALUES ($1, $2, $3, $4, 'capturing', $7, $5, $6, $8)",
            &[
                name.into(),
                name_of(role).into(),
                source.into(),
                JsonB(options.clone()).into(),
                secs.into(),
                my_pid().into(),
                timestamp(at).into(),
                role.into(),
            ],
        )
        .map(drop)
    })
}

/// Sets the source of a running capture's workloads.
pub fn set_source_of_capture(name: &str, source: &str) -> Result<(), UserError> {
    as_owner(|| {
        let sql = "UPDATE bench_internal.capture_list SET source = $2 WHERE name = $1";
        run(sql, &[name.into(), source.into()]).map(drop)
    })
}

/// The facts written at the end of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureEnd {
    /// completed, canceled or failed.
    pub status: String,
    /// Calls of all statements, kept or not.
    pub calls: Option<i64>,
    /// Their execution time in milliseconds.
    pub exec_ms: Option<f64>,
    /// Entries that pg_stat_statements has evicted during the capture.
    pub dealloc: Option<i64>,
    pub notes: Vec<String>,
    pub error: Option<UserError>,
    /// The activity of the whole database during the capture.
    pub activity: Option<Activity>,
}

/// Closes the row of a capture.
pub fn end_capture(name: &str, end: &CaptureEnd) -> Result<(), UserError> {
    let error = end.error.as_ref().map(|error| JsonB(json_of(error)));
    let activity = end.activity.as_ref().map(|activity| JsonB(json_of(activity)));
    as_owner(|| {
        run(
            "UPDATE bench_internal.capture_list SET status = $2, finished_at = clock_timestamp(), calls = $3, exec_ms = $4, \
                 dealloc = $5, notes = $6, error = $7, activity = $8 WHERE name = $1",
            &[
                name.into(),
                end.status.as_str().into(),
                end.calls.into(),
                end.exec_ms.into(),
                end.dealloc.into(),
                end.notes.clone().into(),
                error.into(),
                activity.into(),
            ],
        )
        .map(drop)
    })
}

/// What is known of a capture as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CaptureHead {
    /// statements or log.
    pub source: String,
    /// As given.
    #[serde(default)]
    pub options: Value,
    pub secs: Option<f64>,
    pub calls: Option<i64>,
    pub exec_ms: Option<f64>,
    pub dealloc: Option<i64>,
    #[serde(default)]
    pub notes: Vec<String>,
    #[serde(default)]
    pub activity: Option<Activity>,
}

/// Reads the row of a capture.
pub fn head_of_capture(name: &str) -> Result<CaptureHead, UserError> {
    as_owner(|| {
        let found = select_from("bench_internal.capture_list WHERE name = $1", &[name.into()])?;
        Ok(found.into_iter().next().unwrap_or_default())
    })
}

/// A row of bench.capture_statements.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CapturedStatement {
    /// Its place, from 1.
    pub number: i32,
    /// The workload that was made of it; `None`: none was.
    pub workload: Option<String>,
    pub weight: Option<i32>,
    pub queryid: Option<i64>,
    pub query: Option<String>,
    /// The role that executed it, as pg_stat_statements, the log or a document says.
    pub role: Option<String>,
    pub calls: i64,
    pub rows: Option<i64>,
    pub shared_blks_hit: Option<i64>,
    pub shared_blks_read: Option<i64>,
    pub exec_ms: Option<f64>,
    /// Of the execution time of all statements.
    pub share: f64,
    pub reason: Option<String>,
    /// Statements of a transaction; `None`: it is one statement.
    #[serde(default)]
    pub statements: Option<i32>,
}

/// Writes statements of a capture.
pub fn put_captured_statements(capture: &str, statements: &[CapturedStatement]) -> Result<(), UserError> {
    as_owner(|| insert("bench.capture_statements", ("capture", capture.into()), statements))
}

/// Deletes a capture with its statements, workloads, values and feeders.
///
/// # Errors
/// 55006 while it is running, 55000 while it has a record of settings to restore in postgresql.auto.conf.
pub fn delete_capture(name: &str) -> Result<(), UserError> {
    let Some(handle) = capture(name)? else { return Ok(()) };
    if handle.status == "capturing" && handle.pid != my_pid() {
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, format!("capture \"{name}\" is under way"))
            .hint("Wait for its end, or stop it with bench.stop_capture."));
    }
    as_owner(|| {
        let unrestored =
            "SELECT system_settings IS NOT NULL FROM bench_internal.capture_list WHERE name = $1";
        if fetch::<bool>(unrestored, &[name.into()])? == Some(true) {
            let message =
                format!("capture \"{name}\" has not restored what it changed in postgresql.auto.conf");
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .hint("The next bench.capture or bench.sweep of a superuser restores it."));
        }
        let own = "SELECT workload FROM bench.capture_statements WHERE capture = $1 AND workload IS NOT NULL";
        run(&format!("DELETE FROM bench.captured_rows WHERE workload IN ({own})"), &[name.into()])?;
        run(&format!("DELETE FROM bench.feeders WHERE workload IN ({own})"), &[name.into()])?;
        run(&format!("DELETE FROM bench.workloads WHERE name IN ({own}) AND NOT builtin"), &[name.into()])?;
        run("DELETE FROM bench.capture_statements WHERE capture = $1", &[name.into()])?;
        run("DELETE FROM bench_internal.capture_list WHERE name = $1", &[name.into()]).map(drop)
    })
}

/// Reads the statements of a capture.
pub fn captured_statements(name: &str) -> Result<Vec<CapturedStatement>, UserError> {
    as_owner(|| select_from("bench.capture_statements WHERE capture = $1 ORDER BY number", &[name.into()]))
}

/// Reads the notes about a capture.
pub fn notes_of_capture(name: &str) -> Result<Vec<String>, UserError> {
    as_owner(|| {
        let sql = "SELECT notes FROM bench_internal.capture_list WHERE name = $1";
        Ok(fetch::<Vec<String>>(sql, &[name.into()])?.unwrap_or_default())
    })
}

/// The SELECT of a feeder over kept values: `columns` are names of variables and, as the server writes them, their types.
pub fn select_captured_rows(
    workload: &str,
    prefix: &str,
    columns: &[(String, String)],
    weighted: bool,
) -> String {
    let mut list = kept_values(columns);
    list.extend(weighted.then(|| "weight".to_owned()));
    format!(
        "SELECT {} FROM bench.captured_rows WHERE workload = {} AND prefix = {} ORDER BY row_number",
        list.join(", "),
        quote_literal(workload),
        quote_literal(prefix)
    )
}

/// Whether values of a type are written as names of relations. Feeders have OIDs instead: what a relation's name is depends on
/// the session that writes it.
pub fn names_relations(sql_type: &str) -> bool {
    matches!(sql_type, "regclass" | "pg_catalog.regclass")
}

/// Values of kept ones, which the column `row` has as texts: `columns` are their names and, as the server writes them, types.
pub fn kept_values(columns: &[(String, String)]) -> Vec<String> {
    let value = |(name, sql_type): &(String, String)| {
        let text = format!("(row ->> {})", quote_literal(name));
        let value = match names_relations(sql_type) {
            // Of a name or of an OID: a cast of a text takes a name alone.
            true => format!("pg_catalog.regclassin({text}::pg_catalog.cstring)::pg_catalog.oid"),
            false => format!("{text}::{sql_type}"),
        };
        format!("{value} AS {}", quote_identifier(name))
    };
    columns.iter().map(value).collect()
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
             SELECT $1, $2, v.number, v.weight, v.row::jsonb \
             FROM ROWS FROM (unnest($3), unnest($4)) WITH ORDINALITY AS v (weight, row, number)",
            &[workload.into(), prefix.into(), weights.into(), values.into()],
        )
        .map(drop)
    })
}

/// The mean of the sum of these variables over the values that a capture has kept of a workload's transactions.
pub fn mean_of_captured(workload: &str, variables: Vec<String>) -> Result<f64, UserError> {
    let sql = "SELECT coalesce(sum((r.row ->> v.name)::float8) / count(DISTINCT r.row_number), 0) \
               FROM bench.captured_rows r, unnest($2) AS v (name) WHERE r.workload = $1 AND r.prefix = ''";
    as_owner(|| Ok(fetch::<f64>(sql, &[workload.into(), variables.into()])?.unwrap_or_default()))
}

/// The values that a capture has kept for feeders of a workload, as far as this role may read them.
pub fn kept_rows(workload: &str, feeders: &[Feeder]) -> Result<Vec<KeptRows>, UserError> {
    let sql = "SELECT weight, row FROM bench.captured_rows \
               WHERE workload = $1 AND prefix = $2 ORDER BY row_number";
    let mut kept = Vec::new();
    for Feeder { prefix, .. } in feeders {
        let rows = fetch_all(sql, &[workload.into(), prefix.as_str().into()], |row| {
            Ok((row.get::<f64>(1)?, row.get::<JsonB>(2)?.map_or(Value::Null, |row| row.0)))
        })?;
        if !rows.is_empty() {
            kept.push(KeptRows { workload: workload.to_owned(), prefix: prefix.clone(), rows });
        }
    }
    Ok(kept)
}

/// Puts another node's kept values where feeders look for them, for as long as the (sub)transaction lasts, which is to be
/// rolled back. Only this role and its members see them.
pub fn lend_captured_rows(role: pg_sys::Oid, kept: Vec<KeptRows>) -> Result<(), UserError> {
    for KeptRows { workload, prefix, rows } in kept {
        as_owner(|| {
            run(
                "INSERT INTO bench.workloads (name, owner, script, owner_oid) VALUES ($1, $2, '', $3) \
                 ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, owner_oid = EXCLUDED.owner_oid",
                &[workload.as_str().into(), name_of(role).into(), role.into()],
            )?;
            let sql = "DELETE FROM bench.captured_rows WHERE workload = $1 AND prefix = $2";
            run(sql, &[workload.as_str().into(), prefix.as_str().into()])
        })?;
        put_captured_rows(&workload, &prefix, rows)?;
    }
    Ok(())
}
