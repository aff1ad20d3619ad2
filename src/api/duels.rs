//! bench.duel and what is read of duels.

use bench_base::error::UserError;
use bench_model::spec::{ARMS, Duel, RunArguments};
use bench_report as report;
use bench_results::Duel as ComparedDuel;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::required;
use super::runs::run_of;
use super::sides::row_of;
use crate::error::{OrRaise, for_client};
use crate::run::prepare::start::{run_to_the_end, start};
use crate::server::rows::{Rows, rows};
use crate::store;

fn duel_run(
    (a, b, margin): (Option<Json>, Option<Json>, Option<f64>),
    run: RunArguments,
) -> Result<RunArguments, UserError> {
    check_margin(margin)?;
    let (a, b) = (required("a", a)?, required("b", b)?);
    Duel { margin, ..Duel::new(&a.0, &b.0)? }.run(run)
}

/// Lines whose sides are the arms.
fn arm_rows<T: Serialize + 'static>(lines: Vec<T>) -> Rows {
    rows(lines.into_iter().map(|line| row_of(&line, ARMS)))
}

fn check_margin(margin: Option<f64>) -> Result<(), UserError> {
    margin.map_or(Ok(()), bench_questions::comparison::check_margin)
}

run_functions! {
    /// Runs two arms by turns, waits, and compares them. See the COMMENT ON.
    bench_duel,
    /// Starts a duel and returns the run's id. See the COMMENT ON.
    bench_start_duel(workload: [Option<String>], a: [Option<Json>], b: [Option<Json>], margin: [Option<f64>], clients: [Option<i32>])
        -> [Rows] = |workload, a, b, margin, clients, run| duel_run((a, b, margin), run_of(workload, clients, run)),
    duel_and_wait, start
}

fn duel_and_wait(arguments: RunArguments) -> Result<Rows, UserError> {
    // By the margin of the run.
    let duel = store::duel_of(run_to_the_end(arguments)?, None)?;
    if let Some(sentence) = report::duel_sentence(&duel) {
        pgrx::notice!("{}", for_client(sentence));
    }
    Ok(arm_rows(duel.metrics))
}

/// Compares the arms of a duel that has ended. See the COMMENT ON.
#[pg_extern(sql = false)]
fn duel_results(run_id: Option<i64>, margin: Option<f64>) -> Rows {
    arm_rows(compared(run_id, margin).or_raise().metrics)
}

fn compared(run_id: Option<i64>, margin: Option<f64>) -> Result<ComparedDuel, UserError> {
    check_margin(margin)?;
    store::duel_of(required("run_id", run_id)?, margin)
}

/// The commands of both arms beside each other. See the COMMENT ON.
#[pg_extern(sql = false)]
fn duel_statements(run_id: Option<i64>, margin: Option<f64>) -> Rows {
    arm_rows(compared(run_id, margin).or_raise().statements)
}

/// What both arms waited for. See the COMMENT ON.
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
