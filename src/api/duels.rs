//! bench.duel and what is read of duels; bench.verify and bench.compare_statements: which statements got slower.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{ARMS, AnswerVerdict, Duel, RunArguments};
use bench_questions::answers::{StatementAnswers, sentence as sentence_on_answers};
use bench_questions::comparison::Design;
use bench_questions::statements::{StatementLine, statements_of_duel, take_answers};
use bench_report as report;
use bench_report::statements::sentence;
use bench_report::{junit, render, with_unreplayed};
use bench_results::{Document, Duel as ComparedDuel};
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::comparisons::{Sides, format_of_two, make_pairs, margin_of, row_of};
use super::reports::document;
use super::required;
use super::runs::run_of;
use crate::error::{OrRaise, for_client, notice};
use crate::experiment::answers::{AnswerOptions, TOLERANCE, compare_arms};
use crate::run::prepare::pauses::leave_out;
use crate::run::prepare::start::{run_to_the_end, start};
use crate::server::rows::{Rows, rows};
use crate::store;

fn duel_run(
    (a, b, margin): (Option<Json>, Option<Json>, Option<f64>),
    run: RunArguments,
) -> Result<RunArguments, UserError> {
    check_margin(margin)?;
    let (a, b) = (required("a", a)?, required("b", b)?);
    let duel = Duel { margin, ..Duel::new(&a.0, &b.0)? };
    duel.run(leave_out(run, &[&a.0, &b.0])?)
}

/// Lines whose sides are the arms.
fn arm_rows<T: Serialize + 'static>(lines: Vec<T>) -> Rows {
    rows(lines.into_iter().map(|line| row_of(&line, ARMS)))
}

fn check_margin(margin: Option<f64>) -> Result<(), UserError> {
    margin.map_or(Ok(()), bench_questions::comparison::check_margin)
}

run_functions! {
    /// Runs two arms by turns, waits, and compares them.
    bench_duel,
    /// Starts a duel and returns the run's id.
    bench_start_duel(workload: [Option<String>], a: [Option<Json>], b: [Option<Json>], margin: [Option<f64>], clients: [Option<i32>])
        -> [Rows] = |workload, a, b, margin, clients, run| duel_run((a, b, margin), run_of(workload, clients, run)),
    duel_and_wait, start
}

fn duel_and_wait(arguments: RunArguments) -> Result<Rows, UserError> {
    // By the margin of the run.
    let run_id = run_to_the_end(arguments)?;
    let duel = store::duel_of(run_id, None)?;
    if let Some(sentence) = report::duel_sentence(&duel) {
        let left_out = store::fidelity::unreplayed(run_id)?;
        pgrx::notice!("{}", for_client(with_unreplayed(sentence, left_out.as_ref())));
    }
    Ok(arm_rows(duel.metrics))
}

/// Compares the arms of a duel that has ended.
#[pg_extern(sql = false)]
fn duel_results(run_id: Option<i64>, margin: Option<f64>) -> Rows {
    arm_rows(compared(run_id, margin).or_raise().metrics)
}

/// Compares the arms over several duels, each of which had sessions of its own.
#[pg_extern(sql = false)]
fn compare_duels(run_ids: Option<Vec<Option<i64>>>, margin: Option<f64>) -> Rows {
    let compared = (|| {
        let run_ids = required("run_ids", run_ids)?.into_iter().map(|run_id| required("run_ids", run_id));
        store::compare_duels(&run_ids.collect::<Result<Vec<_>, _>>()?, margin_of(margin)?)
    })();
    arm_rows(compared.or_raise())
}

fn compared(run_id: Option<i64>, margin: Option<f64>) -> Result<ComparedDuel, UserError> {
    check_margin(margin)?;
    store::duel_of(required("run_id", run_id)?, margin)
}

/// The commands of both arms beside each other.
#[pg_extern(sql = false)]
fn duel_statements(run_id: Option<i64>, margin: Option<f64>) -> Rows {
    arm_rows(compared(run_id, margin).or_raise().statements)
}

/// What both arms waited for.
#[pg_extern(sql = false)]
fn duel_waits(run_id: Option<i64>) -> Rows {
    let duel = compared(run_id, None).or_raise();
    let [a_ms, b_ms] = duel.latencies_ms();
    rows(duel.waits.into_iter().map(move |of| {
        json!({
            "wait_event_type": of.wait_event_type,
            "wait_event": of.wait_event,
            "a_share": of.a,
            "b_share": of.b,
            "a_ms": a_ms.map(|ms| ms * of.a),
            "b_ms": b_ms.map(|ms| ms * of.b),
        })
    }))
}

/// The statements of both sides as rows.
fn rows_of(lines: Vec<StatementLine>) -> Rows {
    rows(lines.into_iter().map(|line| row_of_statement(&line)))
}

fn row_of_statement(line: &StatementLine) -> Map<String, Value> {
    let mut row = row_of(line, ["baseline", "candidate"]);
    // A side whose scripts lack the statement has executed it 0 times.
    for (side, figures) in [("baseline", &line.baseline), ("candidate", &line.candidate)] {
        row.insert(format!("{side}_count"), figures.count.unwrap_or_default().into());
        row.insert(format!("{side}_ms"), figures.latency_avg_ms.into());
    }
    row
}

/// Compares the statements of two groups of runs.
#[pg_extern(sql = false)]
fn compare_statements(
    baseline: Option<Vec<Option<i64>>>,
    candidate: Option<Vec<Option<i64>>>,
    margin: Option<f64>,
) -> Rows {
    let sides = Sides::named(baseline, candidate, Design::Groups, margin);
    rows_of(sides.and_then(|sides| sides.statements()).or_raise())
}

run_function! {
    /// Runs a workload in two ways and compares its statements.
    bench_verify(
        workload: [Option<String>], a: [Option<Json>], b: [Option<Json>], margin: [Option<f64>], rounds: [Option<i32>],
        answers: [Option<i32>], clients: [Option<i32>]
    ) -> [Rows] = |workload, a, b, margin, rounds, answers, clients, run| {
        let run = run_of(workload, clients, run);
        let answers = answers_before((&a, &b), answers, &run).or_raise();
        let mut lines = verified((a, b, margin, rounds), clients, run, &answers).or_raise();
        lines.sort_by_key(|line| !line.answers_otherwise());
        let rows_of_lines = lines.into_iter().map(move |line| {
            let mut row = row_of_statement(&line);
            let answer = answers.iter().find(|one| (&one.workload, one.command) == (&line.workload, line.command));
            let answer = answer.map(|answer| answer.row(TOLERANCE)).unwrap_or_default();
            row.insert("answer_example".to_owned(), answer["example"].clone());
            row
        });
        rows(rows_of_lines)
    }
}

/// Compares the answers of both arms, each statement executed so often, before their times are measured.
fn answers_before(
    (a, b): (&Option<Json>, &Option<Json>),
    executions: Option<i32>,
    run: &RunArguments,
) -> Result<Vec<StatementAnswers>, UserError> {
    let Some(executions) = executions else { return Ok(Vec::new()) };
    let (a, b) = (required("a", a.as_ref())?, required("b", b.as_ref())?);
    let answers = compare_arms(&a.0, &b.0, AnswerOptions::of(executions), run.clone())?;
    pgrx::notice!("{}", for_client(sentence_on_answers(&answers)));
    Ok(answers)
}

/// A duel where arms can take turns in a run, pairs of runs otherwise.
fn verified(
    (a, b, margin, rounds): (Option<Json>, Option<Json>, Option<f64>, Option<i32>),
    clients: Option<i32>,
    run: RunArguments,
    answers: &[StatementAnswers],
) -> Result<Vec<StatementLine>, UserError> {
    let answers: Vec<AnswerVerdict> = answers.iter().map(|one| one.in_short(TOLERANCE)).collect();
    let margin = margin_of(margin)?;
    let (a, b) = (required("a", a)?, required("b", b)?);
    // That a statement fails is a verdict on it, and not the end of the measuring.
    let run = RunArguments { continue_on_error: Some(true), ..leave_out(run, &[&a.0, &b.0])? };
    let duel = Duel::new(&a.0, &b.0).map(|duel| Duel { answers: answers.clone(), ..duel });
    let duel = duel.and_then(|duel| duel.run(run.clone())).and_then(run_to_the_end);
    let (lines, run_id) = match duel {
        Ok(run_id) => (statements_of_duel(&store::duel_of(run_id, Some(margin))?), run_id),
        Err(error) if error.sqlstate == sqlstate::FEATURE_NOT_SUPPORTED => {
            notice(format!("in pairs of runs, because {}", error.message), error.hint.unwrap_or_default());
            let pairs = make_pairs(Some(a), Some(b), rounds, clients, run)?;
            let Some((first, _)) = pairs.first().copied() else {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    "no pair of runs has completed",
                ));
            };
            let mut lines = Sides::of_pairs(&pairs, margin)?.statements()?;
            take_answers(&mut lines, &answers);
            (lines, first)
        }
        Err(error) => return Err(error),
    };
    if let Some(sentence) = sentence(&lines, margin) {
        let left_out = store::fidelity::unreplayed(run_id)?;
        notice(
            for_client(with_unreplayed(sentence, left_out.as_ref())),
            format!("For a report: SELECT bench.verify_report({run_id})."),
        );
    }
    Ok(lines)
}

/// A report of what bench.verify has run.
#[pg_extern(sql = false)]
fn verify_report(
    run_id: Option<i64>,
    format: Option<String>,
    margin: Option<f64>,
    max_missing: Option<f64>,
) -> String {
    (|| {
        let run_id = required("run_id", run_id)?;
        let format = format_of_two(format)?;
        let margin = margin_of(margin)?;
        let max_missing = required("max_missing", max_missing)?;
        if !(0.0..=1.0).contains(&max_missing) {
            let message = format!("max_missing must be between 0 and 1, not {max_missing}");
            return Err(
                UserError::invalid(message).hint("It is a fraction: 0.05 is 5 % of the captured time.")
            );
        }
        store::check_visible(run_id)?;
        if let Some(duel) = store::find_duel(run_id, Some(margin))? {
            let document = Document { duel: Some(duel), ..document(Some(run_id))? };
            return Ok(for_client(match format {
                Some(format) => render(&document, format),
                None => junit(&document, max_missing),
            }));
        }
        let pairs = store::pairs_with(run_id)?;
        if pairs.is_empty() {
            let message = format!("run {run_id} is neither a duel nor one of a pair");
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .hint("bench.verify, bench.duel and bench.ab make such runs."));
        }
        Sides::of_pairs(&pairs, margin)?.report(format, max_missing)
    })()
    .or_raise()
}
