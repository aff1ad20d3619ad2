//! bench.duel and bench.start_duel.

use bench_core::error::UserError;
use bench_core::spec::{Duel, RunArguments};
use bench_core::stats::compare::{Better, Terms, Verdict};
use bench_core::stats::duel::{ArmBatch, BATCHES, DuelFigure, compare};
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::required;
use super::runs::run_of;
use crate::catalog;
use crate::error::OrRaise;
use crate::launch::run::{run_to_the_end, start};

/// What differs less than this is the same, where nothing is said.
const MARGIN: f64 = 0.02;

type DuelRow =
    (String, Option<f64>, Option<f64>, Option<f64>, Option<f64>, Option<f64>, String, Option<String>);

fn duel_of(a: Option<Json>, b: Option<Json>, run: RunArguments) -> Result<RunArguments, UserError> {
    let (a, b) = (required("a", a)?, required("b", b)?);
    Ok(RunArguments { duel: Some(Duel::new(&a.0, &b.0)?), ..run })
}

fn margin_of(margin: Option<f64>) -> Result<f64, UserError> {
    let margin = margin.unwrap_or(MARGIN);
    bench_core::comparison::check_margin(margin)?;
    Ok(margin)
}

fn row(metric: &str, figure: Option<DuelFigure>) -> DuelRow {
    let Some(DuelFigure { means: [a, b], comparison, batches }) = figure else {
        let advice = Some("it was not measured of both arms".to_owned());
        return (
            metric.to_owned(),
            None,
            None,
            None,
            None,
            None,
            Verdict::Inconclusive.as_str().to_owned(),
            advice,
        );
    };
    let ratio = comparison.ratio;
    let advice = match (comparison.verdict, comparison.runs) {
        (Verdict::Inconclusive, Some(needed)) => {
            let times = f64::from(needed) / batches.max(1) as f64;
            Some(format!("measure {times:.1} times as long"))
        }
        (Verdict::Inconclusive, None) => Some("a duel of practicable length does not decide".to_owned()),
        _ if batches < BATCHES => Some(format!("the interval is of {batches} batches of {BATCHES}")),
        _ => None,
    };
    (
        metric.to_owned(),
        Some(a),
        Some(b),
        ratio.map(|ratio| ratio.value),
        ratio.map(|ratio| ratio.low),
        ratio.map(|ratio| ratio.high),
        comparison.verdict.as_str().to_owned(),
        advice,
    )
}

fn rows(run_id: i64, margin: f64) -> Result<Vec<DuelRow>, UserError> {
    let batches = catalog::duel_of(run_id)?;
    let terms = Terms { margin, confidence: 0.95, better: Better::Lower };
    Ok(vec![
        row("latency_avg_ms", compare(&batches, ArmBatch::latency_avg_ms, terms)),
        row("server_cpu_us", compare(&batches, ArmBatch::cpu_avg_us, terms)),
    ])
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
            let margin = margin_of(margin)?;
            let run_id = run_to_the_end(duel_of(a, b, run_of(workload, clients, run))?)?;
            rows(run_id, margin)
        })();
        TableIterator::new(found.or_raise())
    }
}

run_function! {
    /// Starts a duel and returns the run's id. See the COMMENT ON.
    bench_start_duel(workload: [Option<String>], a: [Option<Json>], b: [Option<Json>], clients: [Option<i32>]) -> [i64] =
        |workload, a, b, clients, run| {
        duel_of(a, b, run_of(workload, clients, run)).and_then(start).or_raise()
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
    let found = required("run_id", run_id).and_then(|run_id| rows(run_id, margin_of(margin)?));
    TableIterator::new(found.or_raise())
}
