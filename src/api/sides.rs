//! Two sides of runs that are compared, and their report.

use bench_base::error::UserError;
use bench_base::words::Word;
use bench_model::spec::{MAX_RUN_IDS, check_count};
use bench_questions::calibration;
use bench_questions::comparison::{Comparison, Design, check_margin, check_runs, compare};
use bench_questions::statements::{StatementLine, StatementsOfRun, compare_statements};
use bench_report::Format;
use bench_report::experiment::{Collected, Experiment, render};
use bench_report::statements::junit;
use bench_results::Document;
use serde::Serialize;
use serde_json::{Map, Value};

use super::reports::unknown_format;
use super::required;
use crate::error::for_client;
use crate::server::jsonb::json_of;
use crate::store;

/// Ids of runs, as SQL hands them over.
type RunIds = Option<Vec<Option<i64>>>;

/// Runs that the caller may see, and how they are compared.
pub(super) struct Sides {
    baseline: Vec<Document>,
    candidate: Vec<Document>,
    design: Design,
    margin: f64,
}

impl Sides {
    /// The sides that a user names.
    ///
    /// # Errors
    /// 22004 for a NULL; 42704 and 42501 for a run that does not exist, or that the caller may not see.
    pub fn named(
        baseline: RunIds,
        candidate: RunIds,
        design: Design,
        margin: Option<f64>,
    ) -> Result<Self, UserError> {
        let margin = required("margin", margin)?;
        let (baseline, candidate) = (side("baseline", baseline)?, side("candidate", candidate)?);
        Ok(Self { baseline, candidate, design, margin })
    }

    /// Runs that were made in pairs.
    ///
    /// # Errors
    /// 42704 and 42501 as of [`named`](Self::named).
    pub fn of_pairs(pairs: &[(i64, i64)], margin: f64) -> Result<Self, UserError> {
        let (baseline, candidate) = pairs.iter().map(|(one, other)| (Some(*one), Some(*other))).unzip();
        Self::named(Some(baseline), Some(candidate), Design::Pairs, Some(margin))
    }

    /// The comparison, with what a calibration of runs like those of the baseline says of it, if there is one.
    ///
    /// # Errors
    /// 22023 and 55000 for runs that cannot be compared.
    pub fn compared(&self) -> Result<Comparison, UserError> {
        let mut compared = compare(&self.baseline, &self.candidate, self.margin, self.design)?;
        if let Some((sweep_id, equal)) =
            store::calibration_of(&ids(&self.baseline), calibration::ENOUGH_RUNS)?
        {
            let equal = equal.into_iter().map(store::headline).collect::<Result<Vec<_>, _>>()?;
            let runs = self.baseline.len().min(self.candidate.len());
            calibration::tell(&mut compared, sweep_id, &equal, (runs, self.design), self.margin);
        }
        Ok(compared)
    }

    /// The statements of both sides.
    ///
    /// # Errors
    /// As [`compared`](Self::compared).
    pub fn statements(&self) -> Result<Vec<StatementLine>, UserError> {
        check_margin(self.margin)?;
        check_runs(&self.baseline, &self.candidate)?;
        self.statements_of_any()
    }

    fn statements_of_any(&self) -> Result<Vec<StatementLine>, UserError> {
        let of = |side: &[Document]| -> Result<Vec<StatementsOfRun>, UserError> {
            side.iter()
                .map(|document| {
                    pgrx::check_for_interrupts!();
                    store::statements_of(document.run.run_id)
                })
                .collect()
        };
        Ok(compare_statements(&of(&self.baseline)?, &of(&self.candidate)?, self.margin))
    }

    /// Their report; without a format, JUnit's XML.
    ///
    /// # Errors
    /// As [`compared`](Self::compared).
    pub fn report(&self, format: Option<Format>) -> Result<String, UserError> {
        let statements = self.statements_of_any()?;
        let Some(format) = format else {
            let workload = self.baseline.first().map_or("", |document| document.run.workload.as_str());
            return Ok(for_client(junit(workload, &statements)));
        };
        let compared = self.compared()?;
        let sides = [collected(&self.baseline)?, collected(&self.candidate)?];
        let paired = self.design == Design::Pairs;
        let experiment = Experiment::of_sides(compared, self.margin, paired, sides, statements);
        Ok(for_client(render(&experiment, format)))
    }
}

/// The margin that a user names.
///
/// # Errors
/// 22004 for NULL, 22023 for what is no fraction.
pub(super) fn margin_of(margin: Option<f64>) -> Result<f64, UserError> {
    let margin = required("margin", margin)?;
    check_margin(margin).map(|()| margin)
}

/// A line as a row in which the sides have these names: a side's figures are columns that begin with it.
pub(super) fn row_of(line: &impl Serialize, [baseline, candidate]: [&str; 2]) -> Map<String, Value> {
    let mut row = Map::new();
    let Value::Object(line) = json_of(line) else { return row };
    for (name, value) in line {
        let name = match name.as_str() {
            "baseline" => baseline,
            "candidate" => candidate,
            name => name,
        };
        match value {
            Value::Object(figures) => {
                row.extend(figures.into_iter().map(|(figure, value)| (format!("{name}_{figure}"), value)));
            }
            value => drop(row.insert(name.to_owned(), value)),
        }
    }
    row
}

fn ids(side: &[Document]) -> Vec<i64> {
    side.iter().map(|document| document.run.run_id).collect()
}

/// The runs of a side.
fn side(name: &str, run_ids: RunIds) -> Result<Vec<Document>, UserError> {
    let run_ids = required(name, run_ids)?;
    check_count(name, run_ids.len(), MAX_RUN_IDS, "runs")?;
    run_ids
        .into_iter()
        .map(|run_id| store::visible_headline(required(&format!("a run of {name}"), run_id)?))
        .collect()
}

/// The format that reports of two sides have besides those of pages.
const JUNIT: &str = "junit";

/// The format that a user names for two sides; `None`: [`JUNIT`].
///
/// # Errors
/// 22023 with the known ones.
pub(super) fn format_of_two(format: Option<String>) -> Result<Option<Format>, UserError> {
    let name = required("format", format)?;
    match Format::from_word(&name) {
        None if name != JUNIT => Err(unknown_format(&name, Format::words().chain([JUNIT]))),
        format => Ok(format),
    }
}

/// The details of runs, one run after the other: whole documents of all of them would take much memory.
fn collected(side: &[Document]) -> Result<Collected, UserError> {
    let mut collected = Collected::default();
    for run_id in ids(side) {
        pgrx::check_for_interrupts!();
        collected.add(&store::document(run_id)?);
    }
    Ok(collected)
}
