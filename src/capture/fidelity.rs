//! A run of a capture beside what was captured.

use bench_core::captured::{Call, Counts, likeness, overall};
use bench_core::error::{UserError, sqlstate};

use crate::catalog::{self, Ended};

/// A statement, or the whole where it has no workload.
#[derive(Clone, Debug, Default)]
pub struct FidelityLine {
    pub workload: Option<String>,
    pub calls: i64,
    pub captured: Option<Call>,
    pub replayed: Option<Call>,
    pub score: Option<f64>,
    /// Transactions of the run that errors ended.
    pub failed: i64,
}

fn call(counts: &Counts) -> Option<Call> {
    Call::of(counts.calls, counts.rows, counts.hit, counts.read, counts.exec_ms)
}

/// The statements of a run that were captured, and the whole behind them.
///
/// # Errors
/// 55000 for a run without captured statements, or without what pg_stat_statements counted of them.
pub fn of_run(run_id: i64) -> Result<Vec<FidelityLine>, UserError> {
    catalog::check_visible(run_id)?;
    let pairs = catalog::calls_of_captured(run_id)?;
    let shapes = catalog::shapes_of_captured(run_id)?;
    if pairs.is_empty() && !shapes.is_empty() {
        return Ok(of_shapes(shapes));
    }
    if pairs.is_empty() {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("run {run_id} has no statements of a capture"),
        )
        .hint("bench.fidelity compares runs of captures that still exist with these captures."));
    }
    if pairs.iter().all(|pair| pair.replayed.is_none()) {
        let message = format!("pg_stat_statements has not counted the statements of run {run_id}");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint(
            "It must be loaded during the run. It cannot identify the statements of runs with driver => 'wire' or \
             query_mode => 'simple'.",
        ));
    }
    let mut lines: Vec<FidelityLine> = Vec::with_capacity(pairs.len() + 1);
    let mut scores = Vec::new();
    let mut calls = 0;
    let (mut all_captured, mut all_replayed, mut shares) = (Call::default(), Call::default(), 0.0);
    for pair in pairs {
        let captured = call(&pair.captured);
        let replayed = pair.replayed.as_ref().and_then(call);
        let likeness =
            captured.as_ref().zip(replayed.as_ref()).map(|(one, other)| likeness(one, other).score);
        let score = likeness.map(|score| score * spared(&pair.ended).unwrap_or(1.0));
        if let (Some(one), Some(other)) = (&captured, &replayed) {
            // The whole is that of the captured mix.
            let weight = pair.captured.calls as f64;
            shares += weight;
            add(&mut all_captured, one, weight);
            add(&mut all_replayed, other, weight);
        }
        scores.push((pair.share, score));
        calls += pair.replayed.map_or(0, |counts| counts.calls);
        lines.push(FidelityLine {
            workload: Some(pair.workload),
            calls: pair.replayed.map_or(0, |counts| counts.calls),
            captured,
            replayed,
            score,
            failed: pair.ended.failed,
        });
    }
    let mean = |sum: Call| Call {
        rows: sum.rows / shares,
        hit: sum.hit / shares,
        read: sum.read / shares,
        ms: sum.ms / shares,
    };
    let whole = (shares > 0.0).then(|| (mean(all_captured), mean(all_replayed)));
    lines.push(FidelityLine {
        workload: None,
        failed: failed(&lines),
        calls,
        captured: whole.map(|(captured, _)| captured),
        replayed: whole.map(|(_, replayed)| replayed),
        score: overall(&scores),
    });
    Ok(lines)
}

/// Of transactions from the log, which says neither rows nor blocks: how many went without an error.
fn of_shapes(shapes: Vec<catalog::ReplayedShape>) -> Vec<FidelityLine> {
    let mut scores = Vec::with_capacity(shapes.len());
    let mut lines: Vec<FidelityLine> = Vec::with_capacity(shapes.len() + 1);
    for shape in shapes {
        let score = spared(&shape.ended);
        // One that has not been drawn says nothing of the others.
        if score.is_some() {
            scores.push((shape.share, score));
        }
        lines.push(FidelityLine {
            workload: Some(shape.workload),
            calls: shape.ended.processed,
            failed: shape.ended.failed,
            score,
            ..FidelityLine::default()
        });
    }
    let calls = lines.iter().map(|line| line.calls).sum();
    lines.push(FidelityLine {
        calls,
        failed: failed(&lines),
        score: overall(&scores),
        ..FidelityLine::default()
    });
    lines
}

/// The share of the transactions that went without an error; `None` without any.
fn spared(ended: &Ended) -> Option<f64> {
    let all = ended.processed + ended.failed;
    (all > 0).then(|| ended.processed as f64 / all as f64)
}

fn failed(lines: &[FidelityLine]) -> i64 {
    lines.iter().map(|line| line.failed).sum()
}

fn add(sum: &mut Call, call: &Call, weight: f64) {
    sum.rows += call.rows * weight;
    sum.hit += call.hit * weight;
    sum.read += call.read * weight;
    sum.ms += call.ms * weight;
}
