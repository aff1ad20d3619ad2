//! bench.capture_log.

use bench_base::error::UserError;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::required;
use crate::capture::log;
use crate::capture::log::{Arguments, LogSource};
use crate::error::OrRaise;
use crate::server::jsonb::Jsonb;
use crate::server::rows::{Rows, rows};

/// Makes a mix of workloads from the server's log. See the COMMENT ON.
#[pg_extern(sql = false)]
fn capture_log(
    name: Option<String>,
    log: Option<pg_sys::Oid>,
    file: Option<String>,
    format: Option<String>,
    shapes: Option<i32>,
    options: Option<Jsonb>,
) -> Rows {
    rows(captured(name, log, file, format, shapes, options).or_raise())
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
