//! bench.compare_statements: which statements got slower.

use bench_core::comparison::statements::{StatementLine, StatementsOfRun, compare_statements as compare_all};
use bench_core::comparison::{check_margin, check_runs};
use bench_core::document::Document;
use bench_core::error::UserError;
use bench_core::stats::compare::{GroupComparison, Verdict};
use pgrx::prelude::*;

use super::comparisons::side;
use super::required;
use crate::catalog;
use crate::error::OrRaise;

/// Compares the statements of two groups of runs. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn compare_statements(
    baseline: Option<Vec<Option<i64>>>,
    candidate: Option<Vec<Option<i64>>>,
    margin: Option<f64>,
) -> TableIterator<
    'static,
    (
        name!(workload, String),
        name!(command, i32),
        name!(statement, String),
        name!(baseline_count, i64),
        name!(candidate_count, i64),
        name!(baseline_share, Option<f64>),
        name!(candidate_share, Option<f64>),
        name!(baseline_ms, Option<f64>),
        name!(candidate_ms, Option<f64>),
        name!(ratio, Option<f64>),
        name!(ratio_low, Option<f64>),
        name!(ratio_high, Option<f64>),
        name!(p95_ratio, Option<f64>),
        name!(p95_ratio_low, Option<f64>),
        name!(p95_ratio_high, Option<f64>),
        name!(verdict, String),
        name!(advice, Option<String>),
        name!(effect, Option<f64>),
        name!(baseline_rows, Option<f64>),
        name!(candidate_rows, Option<f64>),
        name!(baseline_blocks, Option<f64>),
        name!(candidate_blocks, Option<f64>),
        name!(baseline_failed, i64),
        name!(candidate_failed, i64),
        name!(plan_changed, Option<bool>),
        name!(baseline_plan, Option<String>),
        name!(candidate_plan, Option<String>),
    ),
> {
    let compared = (|| {
        let margin = required("margin", margin)?;
        check_margin(margin)?;
        let (baseline, candidate) = (side("baseline", baseline)?, side("candidate", candidate)?);
        check_runs(&baseline.iter().collect::<Vec<_>>(), &candidate.iter().collect::<Vec<_>>())?;
        let (baseline, candidate) = (statements(&baseline)?, statements(&candidate)?);
        Ok(compare_all(&baseline, &candidate, margin))
    })();
    TableIterator::new(
        compared.map(|lines| lines.into_iter().map(statement_row).collect::<Vec<_>>()).or_raise(),
    )
}

fn statements(side: &[Document]) -> Result<Vec<StatementsOfRun>, UserError> {
    side.iter()
        .map(|document| {
            pgrx::check_for_interrupts!();
            catalog::statements_of(document.run.run_id)
        })
        .collect()
}

type StatementRow = (
    String,
    i32,
    String,
    i64,
    i64,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    String,
    Option<String>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    i64,
    i64,
    Option<bool>,
    Option<String>,
    Option<String>,
);

fn statement_row(line: StatementLine) -> StatementRow {
    let StatementLine { baseline, candidate, latency_avg, latency_p95, .. } = line;
    let ratio = |of: &Option<GroupComparison>| of.as_ref().and_then(|of| of.ratio);
    let (avg, p95) = (ratio(&latency_avg), ratio(&latency_p95));
    let verdict = latency_avg.as_ref().map_or(Verdict::Inconclusive, |of| of.verdict);
    let advice = match (verdict, latency_avg.as_ref().and_then(|of| of.runs)) {
        (Verdict::Inconclusive, Some(runs)) => Some(format!("{runs} runs per side decide it")),
        (Verdict::Inconclusive, None) if latency_avg.is_none() => {
            Some("only one side executed it".to_owned())
        }
        (Verdict::Inconclusive, None) if avg.is_none() => {
            Some("at least 2 runs per side are needed".to_owned())
        }
        _ => None,
    };
    (
        line.workload,
        line.command.cast_signed(),
        line.statement,
        baseline.count.cast_signed(),
        candidate.count.cast_signed(),
        baseline.share,
        candidate.share,
        baseline.latency_avg_ms,
        candidate.latency_avg_ms,
        avg.map(|ratio| ratio.value),
        avg.map(|ratio| ratio.low),
        avg.map(|ratio| ratio.high),
        p95.map(|ratio| ratio.value),
        p95.map(|ratio| ratio.low),
        p95.map(|ratio| ratio.high),
        verdict.as_str().to_owned(),
        advice,
        line.effect,
        baseline.rows,
        candidate.rows,
        baseline.blocks,
        candidate.blocks,
        baseline.failed.cast_signed(),
        candidate.failed.cast_signed(),
        line.plan_changed,
        baseline.plan,
        candidate.plan,
    )
}
