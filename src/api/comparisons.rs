//! bench.compare, bench.compare_report, bench.ab, bench.scalability and bench.change_points: what several runs say together.

use bench_base::error::UserError;
use bench_base::words::Word;
use bench_model::spec::{MAX_RUN_IDS, RunArguments, check_count};
use bench_questions::calibration;
use bench_questions::comparison::{
    Comparison, ComparisonLine, Design, Difference, check_margin, check_runs, compare, differences_of,
    scripts_differ,
};
use bench_questions::statements::{StatementLine, StatementsOfRun, compare_statements};
use bench_questions::sweep::SweepArguments;
use bench_report::Format;
use bench_report::experiment::{Collected, Experiment, render, schema};
use bench_report::statements::{MAX_MISSING, junit};
use bench_results::Document;
use bench_stats::change_points::change_points as changes_of;
use bench_stats::scalability as usl;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::reports::unknown_format;
use super::required;
use crate::error::{OrRaise, for_client, notice, warn};
use crate::experiment::launch::answer;
use crate::run::prepare::pauses::leave_out;
use crate::server::jsonb::{Jsonb, json_of};
use crate::server::rows::{Rows, rows};
use crate::store;

/// A row of a comparison.
#[derive(Serialize)]
struct ComparisonRow {
    #[serde(flatten)]
    line: ComparisonLine,
    differences: Option<Vec<Difference>>,
}

/// A row for each line; what else differs stands beside the first one's verdict.
fn rows_of(comparison: Comparison) -> Rows {
    let Comparison { lines, differences } = comparison;
    let mut differences = some_of(differences);
    rows(lines.into_iter().map(move |line| ComparisonRow {
        line: ComparisonLine { advice: line.advice.map(for_client), ..line },
        differences: differences.take(),
    }))
}

/// What differs; `None` where nothing does.
fn some_of(differences: Vec<Difference>) -> Option<Vec<Difference>> {
    Some(differences).filter(|all| !all.is_empty())
}

/// Compares two groups of runs.
#[pg_extern(sql = false)]
fn bench_compare(
    baseline: Option<Vec<Option<i64>>>,
    candidate: Option<Vec<Option<i64>>>,
    margin: Option<f64>,
) -> Rows {
    let sides = Sides::named(baseline, candidate, Design::Groups, margin);
    let compared = sides.and_then(|sides| sides.compared()).or_raise();
    if scripts_differ(&compared.differences) {
        warn(
            "the runs did not all run the same script",
            "See the column differences. Name runs of the same workload on both sides.",
        );
    }
    rows_of(compared)
}

/// A report of two sides of runs.
#[pg_extern(sql = false)]
fn compare_report(
    baseline: Option<Vec<Option<i64>>>,
    candidate: Option<Vec<Option<i64>>>,
    format: Option<String>,
    margin: Option<f64>,
    paired: Option<bool>,
) -> String {
    (|| {
        let format = format_of_two(format)?;
        if format == Some(Format::Schema) {
            return Ok(schema());
        }
        let design = if required("paired", paired)? { Design::Pairs } else { Design::Groups };
        Sides::named(baseline, candidate, design, margin)?.report(format, MAX_MISSING)
    })()
    .or_raise()
}

run_function! {
    /// Runs a workload under two kinds of settings in turn, and compares.
    bench_ab(
        workload: [Option<String>], a: [Option<Jsonb>], b: [Option<Jsonb>], rounds: [Option<i32>], margin: [Option<f64>],
        clients: [Option<i32>]
    ) -> [Rows] = |workload, a, b, rounds, margin, clients, run| {
        let run = RunArguments { workload, ..run };
        rows_of(paired(a, b, rounds, margin, clients, run).or_raise())
    }
}

/// Makes pairs of runs, which are kept as a sweep, and compares within them.
fn paired(
    a: Option<Jsonb>,
    b: Option<Jsonb>,
    rounds: Option<i32>,
    margin: Option<f64>,
    clients: Option<i32>,
    run: RunArguments,
) -> Result<Comparison, UserError> {
    let margin = margin_of(margin)?;
    let sides: Vec<&Value> = a.iter().chain(&b).map(|side| &side.0).collect();
    let run = leave_out(run, &sides)?;
    Sides::of_pairs(&make_pairs(a, b, rounds, clients, run)?, margin)?.compared()
}

/// Makes pairs of runs, which are kept as a sweep; those that have completed.
pub(super) fn make_pairs(
    a: Option<Jsonb>,
    b: Option<Jsonb>,
    rounds: Option<i32>,
    clients: Option<i32>,
    run: RunArguments,
) -> Result<Vec<(i64, i64)>, UserError> {
    let sweep_id = answer(SweepArguments {
        clients: Some(vec![clients]),
        rounds,
        variants: Some(json!({"a": required("a", a)?.0, "b": required("b", b)?.0})),
        run,
        paired: true,
        ..SweepArguments::default()
    })?;
    let pairs = store::sweep_pairs(sweep_id, "a", "b")?;
    let ids = |side: fn(&(i64, i64)) -> i64| {
        pairs.iter().map(|pair| side(pair).to_string()).collect::<Vec<_>>().join(",")
    };
    notice(
        format!("the runs belong to sweep {sweep_id}"),
        format!(
            "For a report: SELECT bench.compare_report('{{{}}}', '{{{}}}', paired => true).",
            ids(|pair| pair.0),
            ids(|pair| pair.1)
        ),
    );
    Ok(pairs)
}

/// The universal scalability law, fitted to each variant of a sweep.
#[pg_extern(sql = false)]
fn scalability(sweep_id: Option<i64>) -> Rows {
    let document = required("sweep_id", sweep_id).and_then(store::sweep_document).or_raise();
    let fits = document.sweep.setup.variants.iter().map(|variant| {
        let fit = usl::fit(&document.points(&variant.name));
        let mut row = Map::new();
        row.insert("variant".to_owned(), json!(variant.name));
        row.insert("r2".to_owned(), json!(fit.r2));
        row.insert("verdict".to_owned(), json!(fit.verdict.as_str()));
        for (name, estimate) in [
            ("lambda", fit.lambda),
            ("sigma", fit.sigma),
            ("kappa", fit.kappa),
            ("peak_clients", fit.peak_clients),
            ("peak_tps", fit.peak_tps),
        ] {
            row.insert(name.to_owned(), json!(estimate.map(|of| of.value)));
            row.insert(format!("{name}_low"), json!(estimate.map(|of| of.low)));
            row.insert(format!("{name}_high"), json!(estimate.map(|of| of.high)));
        }
        row
    });
    rows(fits.collect::<Vec<_>>())
}

/// bench.change_points: where runs of the same kind changed their level.
#[pg_extern(sql = false)]
fn bench_change_points(
    workload: Option<String>,
    metric: Option<String>,
    tags: Option<Jsonb>,
    margin: Option<f64>,
) -> Rows {
    let found = (|| {
        let workload = required("workload", workload)?;
        let metric = required("metric", metric)?;
        let tags = match required("tags", tags)?.0 {
            Value::Object(tags) => tags,
            _ => return Err(UserError::invalid("tags must be a JSON object")),
        };
        let margin = margin_of(margin)?;
        all_changes(&workload, &metric, tags, margin)
    })();
    rows(found.or_raise())
}

/// The runs of a series that are looked at, the latest: the search takes time by their square, and seconds for so many.
const LONGEST_SERIES: usize = 1000;

/// The runs of a level, next to its change, whose circumstances are compared: of more, more has changed that has nothing to do
/// with it.
const COMPARED_RUNS: usize = 5;

/// A run from which on the level is another one.
#[derive(Serialize)]
struct ChangePointRow {
    run_id: i64,
    at: String,
    before: f64,
    after: f64,
    change: Option<f64>,
    change_low: Option<f64>,
    change_high: Option<f64>,
    p: f64,
    differences: Option<Vec<Difference>>,
}

fn all_changes(
    workload: &str,
    metric: &str,
    tags: Map<String, Value>,
    margin: f64,
) -> Result<Vec<ChangePointRow>, UserError> {
    let mut found = Vec::new();
    // Runs of other options, or with other tags, are other series.
    for series in store::history(workload, metric, tags)?.chunk_by(|a, b| a.group == b.group) {
        let series = &series[series.len().saturating_sub(LONGEST_SERIES)..];
        pgrx::check_for_interrupts!();
        let values: Vec<f64> = series.iter().map(|run| run.value).collect();
        let changes = changes_of(&values, margin);
        for (place, change) in changes.iter().enumerate() {
            let run = &series[change.index];
            let begin = if place == 0 { 0 } else { changes[place - 1].index };
            let end = changes.get(place + 1).map_or(series.len(), |next| next.index);
            let (before, after) = (&series[begin..change.index], &series[change.index..end]);
            let before = &before[before.len().saturating_sub(COMPARED_RUNS)..];
            let after = &after[..after.len().min(COMPARED_RUNS)];
            let documents = |side: &[store::Past]| {
                side.iter().map(|run| store::headline(run.run_id)).collect::<Result<Vec<_>, _>>()
            };
            let (before, after) = (documents(before)?, documents(after)?);
            found.push(ChangePointRow {
                run_id: run.run_id,
                at: run.started_at.clone(),
                before: change.before,
                after: change.after,
                change: change.change.map(|of| of.value),
                change_low: change.change.map(|of| of.low),
                change_high: change.change.map(|of| of.high),
                p: change.p,
                differences: some_of(differences_of(&before, &after)),
            });
        }
    }
    found.sort_by_key(|change| change.run_id);
    Ok(found)
}

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

    /// Their report; without a format, JUnit's XML, with a failure where more than `max_missing` of the captured time is not
    /// replayed.
    ///
    /// # Errors
    /// As [`compared`](Self::compared).
    pub fn report(&self, format: Option<Format>, max_missing: f64) -> Result<String, UserError> {
        let statements = self.statements_of_any()?;
        let Some(format) = format else {
            let workload = self.baseline.first().map_or("", |document| document.run.workload.as_str());
            let first = self.baseline.first().map(|document| document.run.run_id);
            let left_out = first.map_or(Ok(None), store::fidelity::unreplayed)?;
            return Ok(for_client(junit(workload, &statements, left_out.as_ref(), max_missing)));
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
