//! The experiment that two sides of runs are.

use bench_questions::comparison::Comparison;
use bench_questions::statements::StatementLine;
use bench_results::experiment::{ExperimentDocument, ExperimentRun, SCHEMA_VERSION, Sweep, Variant};

use super::conclusion;
use super::plans::plan_differences;
use super::results::{Experiment, distinct};
use super::sides::{BASELINE, CANDIDATE, Collected, ComparedSides, by_share, hot_updates, wait_differences};

impl Experiment {
    /// The experiment that was `compared`, with the details of both sides' runs, and their statements.
    pub fn of_sides(
        compared: Comparison,
        margin: f64,
        paired: bool,
        [baseline, candidate]: [Collected; 2],
        statements: Vec<StatementLine>,
    ) -> Experiment {
        let Comparison { lines, mut differences } = compared;
        // What was done differently, not what was set.
        let arm = conclusion::arm(&differences);
        differences.extend(hot_updates(&baseline, &candidate));
        let runs = (baseline.runs.len(), candidate.runs.len());
        let sides = ComparedSides {
            conclusion: conclusion::conclusion(lines.first(), margin, paired, runs, &arm),
            verdict: lines.first().map_or("inconclusive", |tps| &tps.verdict).to_owned(),
            advice: lines.first().and_then(|tps| tps.advice.clone()),
            margin,
            paired,
            metrics: lines,
            differences,
            waits: wait_differences(&baseline, &candidate),
            plans: plan_differences(&baseline.plans, &candidate.plans),
            baseline_latencies: baseline.latencies(),
            candidate_latencies: candidate.latencies(),
            statements,
        };
        Experiment::new(document(baseline, candidate), Some(sides))
    }
}

/// The document of an experiment whose variants are two sides.
fn document(baseline: Collected, candidate: Collected) -> ExperimentDocument {
    let unreplayed = baseline.unreplayed.into_iter().chain(candidate.unreplayed).max_by(by_share);
    let of_variant = |variant: &'static str, runs: Vec<ExperimentRun>| {
        let numbered = (1..).zip(runs);
        numbered.map(move |(round, run)| ExperimentRun { variant: variant.to_owned(), round, ..run })
    };
    let both = of_variant(BASELINE, baseline.runs).chain(of_variant(CANDIDATE, candidate.runs));
    let runs: Vec<ExperimentRun> =
        (1..).zip(both).map(|(place, run)| ExperimentRun { place, ..run }).collect();
    let variant = |name: &str| Variant { name: name.to_owned(), ..Variant::default() };
    let sweep = Sweep {
        workload: distinct(runs.iter().map(|run| run.workload.as_str())).join(", "),
        clients: distinct(runs.iter().map(|run| run.clients)),
        rounds: runs.iter().map(|run| run.round).max().unwrap_or_default(),
        variants: vec![variant(BASELINE), variant(CANDIDATE)],
        ..Sweep::default()
    };
    ExperimentDocument { schema_version: SCHEMA_VERSION, sweep, runs, unreplayed, ..Default::default() }
}
