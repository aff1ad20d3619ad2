//! bench.findings, bench.report and bench.percentile.

use bench_base::error::UserError;
use bench_base::words::Word;
use bench_report::{ExportFormat, Format, export, render, schema};
use bench_results::{Document, Finding};
use bench_stats::histogram::percentile_of;
use pgrx::prelude::*;

use super::required;
use crate::error::{OrRaise, for_client};
use crate::server::rows::{Rows, rows};
use crate::store;

/// A run with all that was measured of it and what there is to say of it.
pub fn document(run_id: Option<i64>) -> Result<Document, UserError> {
    let document = store::document(required("run_id", run_id)?)?;
    Ok(Document { findings: bench_findings::findings(&document), ..document })
}

/// What there is to say of a run.
#[pg_extern(sql = false)]
fn findings(run_id: Option<i64>) -> Rows {
    let found = document(run_id).or_raise().findings;
    rows(found.into_iter().map(|found| Finding {
        finding: for_client(found.finding),
        advice: for_client(found.advice),
        ..found
    }))
}

/// The format that a user names.
///
/// # Errors
/// 22023 with the known ones.
pub fn format_of(format: Option<String>) -> Result<Format, UserError> {
    let format = required("format", format)?;
    Format::from_word(&format).ok_or_else(|| unknown_format(&format, Format::words()))
}

pub(super) fn unknown_format(format: &str, known: impl Iterator<Item = &'static str>) -> UserError {
    let known: Vec<String> = known.map(|name| format!("'{name}'")).collect();
    UserError::invalid(format!("unrecognized value for format: \"{format}\""))
        .hint(format!("Available values: {}.", known.join(", ")))
}

/// A report of a run.
#[pg_extern(sql = false)]
fn report(run_id: Option<i64>, format: Option<String>) -> String {
    (|| {
        let format = required("format", format)?;
        if let Some(format) = Format::from_word(&format) {
            if format == Format::Schema {
                return Ok(schema());
            }
            return Ok(for_client(render(&document(run_id)?, format)));
        }
        let names = || Format::words().chain(ExportFormat::words());
        let format = ExportFormat::from_word(&format).ok_or_else(|| unknown_format(&format, names()))?;
        Ok(export(&document(run_id)?, format))
    })()
    .or_raise()
}

/// A latency percentile of a run.
#[pg_extern(sql = false)]
fn percentile(run_id: Option<i64>, percentile: Option<f64>) -> Option<f64> {
    (|| {
        let run_id = required("run_id", run_id)?;
        let p = required("percentile", percentile)?;
        if !(0.0..=1.0).contains(&p) {
            let error = UserError::invalid(format!("percentile value {p} is not between 0 and 1"));
            // To twelve digits: 99.9 / 100 is not quite 0.999.
            let as_share = (p * 1e10).round() / 1e12;
            return Err(if (0.0..=1.0).contains(&as_share) {
                error.hint(format!("Use {as_share} for the {p}th percentile."))
            } else {
                error
            });
        }
        store::check_visible(run_id)?;
        Ok(percentile_of(store::histogram(run_id)?.into_iter(), p))
    })()
    .or_raise()
}
