//! Two sides of runs that are compared, and their report.

use bench_base::error::UserError;
use bench_model::spec::limits;
use bench_questions::calibration;
use bench_questions::comparison::{Comparison, check_pairs, compare as compare_groups, compare_pairs};
use bench_questions::statements::{StatementLine, StatementsOfRun, compare_statements as compare_all};
use bench_report::Format;
use bench_report::compare::{Collected, ComparisonReport, render};
use bench_report::statements::junit;
use bench_results::Document;

use super::reports::unknown_format;
use super::required;
use crate::error::for_client;
use crate::store;

/// The runs of a side.
pub(super) fn side(name: &str, run_ids: Option<Vec<Option<i64>>>) -> Result<Vec<Document>, UserError> {
    let run_ids = required(name, run_ids)?;
    limits::check_count(name, run_ids.len(), limits::MAX_RUN_IDS, "runs")?;
    run_ids
        .into_iter()
        .map(|run_id| store::visible_headline(required(&format!("a run of {name}"), run_id)?))
        .collect()
}

/// The comparison with what a calibration of runs like those of the baseline says of it, if there is one. `runs`: how many a
/// side, and whether they are pairs.
pub(super) fn calibrated(
    mut compared: Comparison,
    baseline: &[i64],
    runs: (usize, bool),
    margin: f64,
) -> Result<Comparison, UserError> {
    if let Some((sweep_id, equal)) = store::calibration_of(baseline, calibration::ENOUGH_RUNS)? {
        let equal = equal.into_iter().map(store::headline).collect::<Result<Vec<_>, _>>()?;
        calibration::tell(&mut compared, sweep_id, &equal, runs, margin);
    }
    Ok(compared)
}

/// The statements of the runs of both sides, which the caller may see.
pub(super) fn statements_of(
    baseline: &[Document],
    candidate: &[Document],
    margin: f64,
) -> Result<Vec<StatementLine>, UserError> {
    let of = |side: &[Document]| -> Result<Vec<StatementsOfRun>, UserError> {
        side.iter()
            .map(|document| {
                pgrx::check_for_interrupts!();
                store::statements_of(document.run.run_id)
            })
            .collect()
    };
    Ok(compare_all(&of(baseline)?, &of(candidate)?, margin))
}

/// The format that reports of two sides have besides those of pages.
const JUNIT: &str = "junit";

/// The format that a user names for two sides; `None`: [`JUNIT`].
///
/// # Errors
/// 22023 with the known ones.
pub(super) fn format_of_two(format: Option<String>) -> Result<Option<Format>, UserError> {
    let name = required("format", format)?;
    match Format::parse(&name) {
        None if name != JUNIT => Err(unknown_format(&name, Format::NAMES.iter().chain(&[JUNIT]))),
        format => Ok(format),
    }
}

/// The report of two sides; without a format, JUnit's XML.
pub(super) fn compared_report(
    baseline: Vec<Document>,
    candidate: Vec<Document>,
    format: Option<Format>,
    margin: f64,
    paired: bool,
) -> Result<String, UserError> {
    let ids = |side: &[Document]| side.iter().map(|document| document.run.run_id).collect::<Vec<_>>();
    let (baseline_ids, candidate_ids) = (ids(&baseline), ids(&candidate));
    let runs = (baseline.len().min(candidate.len()), paired);
    let statements = statements_of(&baseline, &candidate, margin)?;
    let Some(format) = format else {
        let workload = baseline.first().map_or("", |document| document.run.workload.as_str());
        return Ok(for_client(junit(workload, &statements)));
    };
    let compared = if paired {
        check_pairs(baseline.len(), candidate.len())?;
        compare_pairs(&baseline.into_iter().zip(candidate).collect::<Vec<_>>(), margin)?
    } else {
        compare_groups(&baseline, &candidate, margin)?
    };
    let compared = calibrated(compared, &baseline_ids, runs, margin)?;
    let (baseline, candidate) = (collected(&baseline_ids)?, collected(&candidate_ids)?);
    let report = ComparisonReport::new(compared, margin, paired, baseline, candidate, statements);
    Ok(for_client(render(&report, format)))
}

/// The details of runs, one run after the other: whole documents of all of them would take much memory.
fn collected(run_ids: &[i64]) -> Result<Collected, UserError> {
    let mut collected = Collected::default();
    for run_id in run_ids {
        pgrx::check_for_interrupts!();
        collected.add(&store::document(*run_id)?);
    }
    Ok(collected)
}
