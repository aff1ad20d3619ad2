//! bench.capture, bench.capture_log and their kin.

use bench_base::error::UserError;
use bench_capture::fidelity::Call;
use bench_capture::shortened;
use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};
use serde_json::{Value, json};

use super::required;
use super::runs::deadline;
use crate::capture::log::{self, Arguments, LogSource};
use crate::capture::spec::CaptureSpec;
use crate::capture::{document, launch, worker};
use crate::error::OrRaise;
use crate::server::jsonb::Jsonb;
use crate::server::rows::{Rows, rows};
use crate::store::fidelity::{self, Fidelity};

/// The document of a capture: about as much as a jsonb can hold.
type CaptureJsonb = Jsonb<{ 255 << 20 }>;

pgrx::impl_sql_translatable!(CaptureJsonb, "jsonb");

fn spec(
    name: Option<String>,
    secs: Option<f64>,
    statements: Option<i32>,
    options: Option<Jsonb>,
) -> Result<CaptureSpec, UserError> {
    let options = options.map_or_else(|| Value::Object(serde_json::Map::new()), |options| options.0);
    CaptureSpec::new(
        required("name", name)?,
        required("secs", secs)?,
        required("statements", statements)?,
        options,
    )
}

/// Captures and waits.
#[pg_extern(sql = false)]
fn capture_statements(
    name: Option<String>,
    secs: Option<f64>,
    statements: Option<i32>,
    options: Option<Jsonb>,
) -> Rows {
    let lines = spec(name, secs, statements, options).and_then(|spec| worker::to_the_end(&spec)).or_raise();
    rows(lines.into_iter().map(|line| {
        json!({
            "workload": line.workload,
            "weight": line.weight,
            "calls": line.calls,
            "share_percent": percent(line.share),
            "kept": line.workload.is_some(),
            "reason": line.reason,
            "query": line.query.as_deref().map(shortened),
        })
    }))
}

/// A share in per cent, with one digit.
fn percent(share: f64) -> f64 {
    (1000.0 * share).round() / 10.0
}

/// Captures in a background worker.
#[pg_extern(sql = false)]
fn start_capture(name: Option<String>, secs: Option<f64>, statements: Option<i32>, options: Option<Jsonb>) {
    spec(name, secs, statements, options).and_then(|spec| worker::start(&spec)).or_raise();
}

/// Waits for a capture.
#[pg_extern(sql = false)]
fn wait_capture(name: Option<String>, timeout: Option<f64>) -> String {
    required("name", name).and_then(|name| launch::wait(&name, deadline(timeout)?)).or_raise()
}

/// Stops a capture under way.
#[pg_extern(sql = false)]
fn stop_capture(name: Option<String>) -> bool {
    required("name", name).and_then(|name| launch::stop(&name)).or_raise()
}

/// Removes a capture.
#[pg_extern(sql = false)]
fn drop_capture(name: Option<String>) {
    required("name", name).and_then(|name| launch::drop(&name)).or_raise();
}

/// A capture as a document.
#[pg_extern(sql = false)]
fn export_capture(name: Option<String>, with_values: Option<bool>) -> JsonB {
    let document = required("name", name)
        .and_then(|name| document::export(&name, required("with_values", with_values)?));
    JsonB(document.or_raise())
}

/// The capture of a document.
#[pg_extern(sql = false)]
fn import_capture(document: Option<CaptureJsonb>) -> String {
    required("document", document).and_then(|document| document::import(document.0)).or_raise()
}

/// A run beside what was captured.
#[pg_extern(sql = false)]
fn fidelity_of_run(run_id: Option<i64>) -> Rows {
    let Fidelity { lines, .. } = required("run_id", run_id).and_then(fidelity::of_run).or_raise();
    rows(lines.into_iter().map(|line| {
        let captured = |of: fn(&Call) -> f64| line.captured.as_ref().map(of);
        let replayed = |of: fn(&Call) -> f64| line.replayed.as_ref().map(of);
        json!({
            "workload": line.workload,
            "calls": line.calls,
            "rows_captured": captured(|call| call.rows),
            "rows_replayed": replayed(|call| call.rows),
            "blocks_captured": captured(Call::blocks),
            "blocks_replayed": replayed(Call::blocks),
            "score": line.score,
            "hit_captured": captured(|call| call.hit),
            "hit_replayed": replayed(|call| call.hit),
            "read_captured": captured(|call| call.read),
            "read_replayed": replayed(|call| call.read),
            "ms_captured": captured(|call| call.ms),
            "ms_replayed": replayed(|call| call.ms),
            "failed": line.failed,
            "reason": line.reason,
        })
    }))
}

/// What a run's fidelity is made of.
#[pg_extern(sql = false)]
fn fidelity_parts(run_id: Option<i64>) -> Rows {
    let Fidelity { parts, .. } = required("run_id", run_id).and_then(fidelity::of_run).or_raise();
    rows(parts)
}

/// Makes a mix of workloads from the server's log.
#[pg_extern(sql = false)]
fn capture_log(
    name: Option<String>,
    log: Option<pg_sys::Oid>,
    file: Option<String>,
    format: Option<String>,
    shapes: Option<i32>,
    options: Option<Jsonb>,
) -> Rows {
    let lines = captured(name, log, file, format, shapes, options).or_raise();
    rows(lines.into_iter().map(|line| {
        json!({
            "workload": line.statement.workload,
            "weight": line.statement.weight,
            "calls": line.statement.calls,
            "share_percent": percent(line.statement.share),
            "kept": line.kept,
            "reason": line.statement.reason,
            "exec_ms_avg": line.exec_ms_avg,
            "value_rows": line.value_rows,
            "query": line.statement.query,
        })
    }))
}

fn captured(
    name: Option<String>,
    log: Option<pg_sys::Oid>,
    file: Option<String>,
    format: Option<String>,
    shapes: Option<i32>,
    options: Option<Jsonb>,
) -> Result<Vec<log::CaptureLine>, UserError> {
    let name = required("name", name)?;
    let format = format.as_deref().map(log::format).transpose()?;
    let source = match (log, file) {
        (Some(table), None) => LogSource::Table(table),
        (None, Some(path)) => LogSource::File { path, format },
        (found, _) => {
            let which = if found.is_some() { "both" } else { "neither" };
            let message = format!("one of log and file must be given, not {which}");
            return Err(UserError::invalid(message)
                .hint("log is a table with the log's messages, file a path on the server."));
        }
    };
    let shapes = required("shapes", shapes)?;
    let options = required("options", options)?.0;
    log::capture(&Arguments { name, source, shapes, options })
}
