//! bench.capture_log.

use bench_base::error::UserError;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::required;
use crate::capture::log;
use crate::capture::log::{Arguments, LogSource};
use crate::error::OrRaise;
use crate::server::jsonb::Jsonb;

type LogRow = (Option<String>, Option<i32>, i64, f64, bool, Option<String>, Option<f64>, i64, Option<String>);

/// Makes a mix of workloads from the server's log. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity, reason = "the columns of a result")]
fn capture_log(
    name: Option<String>,
    log: Option<pg_sys::Oid>,
    file: Option<String>,
    format: Option<String>,
    shapes: Option<i32>,
    options: Option<Jsonb>,
) -> TableIterator<
    'static,
    (
        name!(workload, Option<String>),
        name!(weight, Option<i32>),
        name!(calls, i64),
        name!(share, f64),
        name!(kept, bool),
        name!(reason, Option<String>),
        name!(exec_ms_avg, Option<f64>),
        name!(value_rows, i64),
        name!(query, Option<String>),
    ),
> {
    TableIterator::new(rows(name, log, file, format, shapes, options).or_raise())
}

fn rows(
    name: Option<String>,
    log: Option<pg_sys::Oid>,
    file: Option<String>,
    format: Option<String>,
    shapes: Option<i32>,
    options: Option<Jsonb>,
) -> Result<std::vec::IntoIter<LogRow>, UserError> {
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
    let lines = log::capture(&Arguments { name, source, shapes, options })?;
    let row = |line: log::CaptureLine| {
        let statement = line.statement;
        (
            statement.workload.clone(),
            statement.weight,
            statement.calls,
            statement.share,
            statement.workload.is_some(),
            statement.reason,
            line.exec_ms_avg,
            line.rows,
            statement.query,
        )
    };
    Ok(lines.into_iter().map(row).collect::<Vec<LogRow>>().into_iter())
}
