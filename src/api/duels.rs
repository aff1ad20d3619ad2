//! bench.duel and what is read of duels.

use bench_base::error::UserError;
use bench_model::spec::{Duel, RunArguments};
use bench_report as report;
use bench_results::{Duel as ComparedDuel, DuelLine, DuelStatement};
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::required;
use super::runs::run_of;
use crate::error::{OrRaise, for_client};
use crate::run::prepare::run::{run_to_the_end, start};
use crate::store;

type DuelRow =
    (String, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>, String, Option<String>);

fn duel_run(
    (a, b, margin): (Option<Json>, Option<Json>, Option<f64>),
    run: RunArguments,
) -> Result<RunArguments, UserError> {
    check_margin(margin)?;
    let (a, b) = (required("a", a)?, required("b", b)?);
    Duel { margin, ..Duel::new(&a.0, &b.0)? }.run(run)
}

fn check_margin(margin: Option<f64>) -> Result<(), UserError> {
    margin.map_or(Ok(()), bench_questions::comparison::check_margin)
}

fn rows(duel: ComparedDuel) -> Vec<DuelRow> {
    let row = |line: DuelLine| {
        let DuelLine { metric, a, b, ratio, ratio_low, ratio_high, verdict, advice } = line;
        (metric, a, b, ratio, ratio_low, ratio_high, verdict, advice)
    };
    duel.metrics.into_iter().map(row).collect()
}

run_function! {
    /// Runs two arms by turns, waits, and compares them. See the COMMENT ON.
    bench_duel(workload: [Option<String>], a: [Option<Json>], b: [Option<Json>], margin: [Option<f64>], clients: [Option<i32>])
        -> [TableIterator<
            'static,
            (
                name!(metric, String),
                name!(a, Option<f64>),
                name!(b, Option<f64>),
                name!(ratio, Option<f64>),
                name!(ratio_low, Option<f64>),
                name!(ratio_high, Option<f64>),
                name!(verdict, String),
                name!(advice, Option<String>),
            ),
        >] = |workload, a, b, margin, clients, run| {
        let found = (|| {
            let run_id = run_to_the_end(duel_run((a, b, margin), run_of(workload, clients, run))?)?;
            let duel = store::duel_of(run_id, margin)?;
            if let Some(sentence) = report::duel_sentence(&duel) {
                pgrx::notice!("{}", for_client(sentence));
            }
            Ok(rows(duel))
        })();
        TableIterator::new(found.or_raise())
    }
}

run_function! {
    /// Starts a duel and returns the run's id. See the COMMENT ON.
    bench_start_duel(workload: [Option<String>], a: [Option<Json>], b: [Option<Json>], margin: [Option<f64>], clients: [Option<i32>])
        -> [i64] = |workload, a, b, margin, clients, run| {
        duel_run((a, b, margin), run_of(workload, clients, run)).and_then(start).or_raise()
    }
}

/// Compares the arms of a duel that has ended. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn duel_results(
    run_id: Option<i64>,
    margin: Option<f64>,
) -> TableIterator<
    'static,
    (
        name!(metric, String),
        name!(a, Option<f64>),
        name!(b, Option<f64>),
        name!(ratio, Option<f64>),
        name!(ratio_low, Option<f64>),
        name!(ratio_high, Option<f64>),
        name!(verdict, String),
        name!(advice, Option<String>),
    ),
> {
    TableIterator::new(compared(run_id, margin).map(rows).or_raise())
}

fn compared(run_id: Option<i64>, margin: Option<f64>) -> Result<ComparedDuel, UserError> {
    check_margin(margin)?;
    store::duel_of(required("run_id", run_id)?, margin)
}

/// The commands of both arms beside each other. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn duel_statements(
    run_id: Option<i64>,
    margin: Option<f64>,
) -> TableIterator<
    'static,
    (
        name!(workload, String),
        name!(command, i32),
        name!(statement, String),
        name!(a_count, Option<i64>),
        name!(b_count, Option<i64>),
        name!(a_latency_avg_ms, Option<f64>),
        name!(b_latency_avg_ms, Option<f64>),
        name!(ratio, Option<f64>),
        name!(ratio_low, Option<f64>),
        name!(ratio_high, Option<f64>),
        name!(verdict, String),
        name!(effect_us, Option<f64>),
        name!(a_latency_p95_ms, Option<f64>),
        name!(b_latency_p95_ms, Option<f64>),
        name!(a_rows, Option<f64>),
        name!(b_rows, Option<f64>),
        name!(a_plan, Option<String>),
        name!(b_plan, Option<String>),
    ),
> {
    let row = |of: DuelStatement| {
        (
            of.workload,
            of.command.cast_signed(),
            of.statement,
            of.a_count.map(u64::cast_signed),
            of.b_count.map(u64::cast_signed),
            of.a_latency_avg_ms,
            of.b_latency_avg_ms,
            of.ratio,
            of.ratio_low,
            of.ratio_high,
            of.verdict,
            of.effect_us,
            of.a_latency_p95_ms,
            of.b_latency_p95_ms,
            of.a_rows,
            of.b_rows,
            of.a_plan,
            of.b_plan,
        )
    };
    let duel = compared(run_id, margin);
    TableIterator::new(duel.map(|duel| duel.statements.into_iter().map(row).collect::<Vec<_>>()).or_raise())
}

/// What both arms waited for. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn duel_waits(
    run_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(wait_event_type, String),
        name!(wait_event, String),
        name!(a_share, f64),
        name!(b_share, f64),
        name!(a_ms, Option<f64>),
        name!(b_ms, Option<f64>),
    ),
> {
    let found = compared(run_id, None).map(|duel| {
        let [a_ms, b_ms] = duel.latencies_ms();
        let row = |of: bench_results::DuelWait| {
            let (a, b) = (a_ms.map(|ms| ms * of.a), b_ms.map(|ms| ms * of.b));
            (of.wait_event_type, of.wait_event, of.a, of.b, a, b)
        };
        duel.waits.into_iter().map(row).collect::<Vec<_>>()
    });
    TableIterator::new(found.or_raise())
}
