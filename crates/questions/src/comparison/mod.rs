//! Groups of runs against each other: what `bench.compare` and `bench.ab` say.

mod differences;
pub(crate) mod lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_results::Document;

pub use bench_results::ComparisonLine;

pub use crate::comparison::differences::{Difference, differences as differences_of, scripts_differ};
pub use crate::comparison::lines::Design;

/// What a comparison says.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// TPS first: the verdict is on it, with a 95 % interval. Those of the four metrics of latency are intervals of
    /// 98.75 %, so that all four hold with 95 % (Bonferroni): whoever looks at four at 95 % finds a difference in up
    /// to one of five comparisons of what is the same. Then the processor time, which answers a question of its own
    /// and has an interval of 95 %. Of a mix the mean latency of each script follows, whose intervals hold together.
    pub lines: Vec<ComparisonLine>,
    pub differences: Vec<Difference>,
}

/// Compares two sides of runs, of which run, summary and environment are known. `margin` is a fraction: 0.02 for 2 %.
///
/// # Errors
/// 22023 for a margin out of range, an empty side, pairs without a partner, and a run that is named twice; 55000 for a run that
/// is not completed.
pub fn compare(
    baseline: &[Document],
    candidate: &[Document],
    margin: f64,
    design: Design,
) -> Result<Comparison, UserError> {
    if design == Design::Pairs {
        check_pairs(baseline.len(), candidate.len())?;
    }
    check_margin(margin)?;
    check_runs(baseline, candidate)?;
    Ok(Comparison {
        lines: lines::lines(baseline, candidate, margin, design),
        differences: differences::differences(baseline, candidate),
    })
}

/// That a margin is a fraction.
///
/// # Errors
/// 22023 where it is not.
pub fn check_margin(margin: f64) -> Result<(), UserError> {
    if (0.0..1.0).contains(&margin) {
        return Ok(());
    }
    // To twelve digits, where a percentage was meant: 2.1 / 100 is not quite 0.021.
    let (percentage, fraction) =
        if (1.0..100.0).contains(&margin) { (margin, (margin * 1e10).round() / 1e12) } else { (2.0, 0.02) };
    Err(UserError::invalid(format!("margin must be at least 0 and below 1, not {margin}"))
        .hint(format!("It is a fraction: use {fraction} for {percentage} %.")))
}

/// That sides of so many runs can be compared in pairs.
///
/// # Errors
/// 22023 where one is longer.
pub(crate) fn check_pairs(baseline: usize, candidate: usize) -> Result<(), UserError> {
    if baseline == candidate {
        return Ok(());
    }
    Err(UserError::invalid("pairs need as many baseline as candidate runs".to_owned())
        .detail(format!("The baseline has {baseline}, the candidate {candidate}."))
        .hint("Name the two runs of a pair at the same place of both arrays, or use paired => false."))
}

/// That each side has runs, each of them once and completed.
pub fn check_runs(baseline: &[Document], candidate: &[Document]) -> Result<(), UserError> {
    let mut first: BTreeSet<i64> = BTreeSet::new();
    for (side, runs) in [("baseline", baseline), ("candidate", candidate)] {
        if runs.is_empty() {
            return Err(UserError::invalid(format!("there is no {side} run to compare"))
                .hint("Name at least two runs per side; five or more are better."));
        }
        let mut own = BTreeSet::new();
        for run_id in runs.iter().map(|document| document.run.run_id) {
            if first.contains(&run_id) {
                return Err(UserError::invalid(format!("run {run_id} is on both sides"))
                    .detail("A run is no different from itself.")
                    .hint("Remove it from one side."));
            }
            if !own.insert(run_id) {
                return Err(UserError::invalid(format!("run {run_id} is named twice among the {side} runs"))
                    .detail("A repeated run would count as additional evidence.")
                    .hint("Name it once."));
            }
        }
        first.append(&mut own);
    }
    baseline.iter().chain(candidate).try_for_each(completed)
}

fn completed(document: &Document) -> Result<(), UserError> {
    let run = &document.run;
    let hint = match run.status.as_str() {
        "completed" => return Ok(()),
        "starting" | "running" => format!("Wait for it: SELECT bench.wait({}).", run.run_id),
        _ => "Leave it out, or run it again.".to_owned(),
    };
    let message = format!("run {} is not completed", run.run_id);
    Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
        .detail(format!("Its status is {}.", run.status))
        .hint(hint))
}
