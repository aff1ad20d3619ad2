//! bench.findings, bench.report and bench.percentile; bench.export, bench.import, bench.prune and bench.delete_run.

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_base::words::Word;
use bench_model::spec::{MAX_RUN_IDS, check_count};
use bench_report::{ExportFormat, Format, render, schema};
use bench_results::{Document, Finding};
use bench_stats::histogram::percentile_of;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use super::required;
use crate::error::{OrRaise, for_client};
use crate::launch::checks::check_writable;
use crate::server::jsonb::StoredJsonb;
use crate::server::roles;
use crate::server::rows::{Rows, rows};
use crate::server::transaction::all_or_nothing;
use crate::shm::Work;
use crate::store::{self, Imported};

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
        Ok(bench_report::export(&document(run_id)?, format))
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

/// Runs as a document.
#[pg_extern(sql = false)]
fn export(run_ids: Option<Vec<Option<i64>>>) -> StoredJsonb {
    ended_runs(run_ids).and_then(|run_ids| store::export(&run_ids)).or_raise()
}

/// How many parts a document has.
#[pg_extern(sql = false)]
fn export_part_count(run_ids: Option<Vec<Option<i64>>>) -> i32 {
    let count = |parts: usize| i32::try_from(parts).unwrap_or(i32::MAX);
    ended_runs(run_ids).and_then(|run_ids| Ok(count(store::chunks(&run_ids)?.len()))).or_raise()
}

/// A part of a document.
#[pg_extern(sql = false)]
fn export_part(run_ids: Option<Vec<Option<i64>>>, part: Option<i32>) -> StoredJsonb {
    (|| {
        let run_ids = ended_runs(run_ids)?;
        let part = store::chunk(&run_ids, required("part", part)?)?;
        store::export_piece(&run_ids, Some(&part))
    })()
    .or_raise()
}

/// Runs that the caller may export.
fn ended_runs(run_ids: Option<Vec<Option<i64>>>) -> Result<Vec<i64>, UserError> {
    let run_ids = required("run_ids", run_ids)?;
    check_count("run_ids", run_ids.len(), MAX_RUN_IDS, "runs")?;
    if run_ids.is_empty() {
        return Err(UserError::invalid("run_ids must not be empty"));
    }
    let run_ids = run_ids
        .into_iter()
        .map(|id| required("an element of run_ids", id))
        .collect::<Result<Vec<i64>, _>>()?;
    let mut seen = HashSet::new();
    for &run_id in &run_ids {
        if !seen.insert(run_id) {
            return Err(UserError::invalid(format!("run {run_id} is in run_ids more than once")));
        }
        store::check_visible(run_id)?;
        if store::is_open(&store::status(Work::Run(run_id))?) {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("run {run_id} is under way"),
            )
            .hint(format!("Wait for it: SELECT bench.wait({run_id}).")));
        }
    }
    Ok(run_ids)
}

/// Runs of a document.
#[pg_extern(sql = false)]
fn import(document: Option<StoredJsonb>) -> Vec<i64> {
    import_runs(document).or_raise()
}

/// The largest document of runs, in bytes: nearly the limit of jsonb.
const MAX_DOCUMENT: usize = 255 << 20;

fn import_runs(document: Option<StoredJsonb>) -> Result<Vec<i64>, UserError> {
    let document = required("document", document)?;
    let size = document.size();
    if size > MAX_DOCUMENT {
        let message = format!("a document must not be larger than {MAX_DOCUMENT} bytes, not {size}");
        return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("bench.export makes documents of about 16 MB each: import them one by one."));
    }
    let imported = store::import(document)?;
    imported.iter().try_for_each(check_readable)?;
    Ok(imported.into_iter().map(|run| run.run_id).collect())
}

/// Reads a run as its reports will: what they cannot read must not get in, for the views are everybody's.
fn check_readable(run: &Imported) -> Result<(), UserError> {
    all_or_nothing(|| document(Some(run.run_id)).map(drop)).map_err(|error| match &*error.sqlstate {
        sqlstate::QUERY_CANCELED | sqlstate::ADMIN_SHUTDOWN => error,
        _ => UserError::invalid(format!("run {} of the document is inconsistent", run.id_in_document))
            .detail(error.message),
    })
}

/// Deletes old runs.
#[pg_extern(sql = false)]
fn prune(older_than: Option<Interval>) -> i64 {
    required("older_than", older_than).and_then(store::prune).or_raise()
}

/// Deletes a run.
#[pg_extern(sql = false)]
fn delete_run(run_id: Option<i64>) -> bool {
    (|| {
        let run_id = required("run_id", run_id)?;
        check_writable("delete a run")?;
        let store::WorkHandle { role, owner_oid, .. } = store::handle_of(Work::Run(run_id))?;
        if !roles::acts_for(owner_oid) {
            return Err(UserError::new(
                sqlstate::INSUFFICIENT_PRIVILEGE,
                format!("run {run_id} belongs to role \"{role}\""),
            )
            .hint("Only roles with the privileges of its role may delete it."));
        }
        Ok(store::delete_runs(vec![run_id])? > 0)
    })()
    .or_raise()
}

/// The trigger of bench_internal.run_log.
#[pg_trigger(sql = false)]
fn forget_runs<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, UserError> {
    store::forget_runs(trigger).or_raise();
    Ok(None)
}
