//! What a comparison is reported as.

use bench_questions::comparison::{Comparison, ComparisonLine, Difference};
use bench_questions::statements::StatementLine;
use serde::Serialize;

use super::plans::PlanDifference;
use super::sides::{Collected, Side, WaitDifference};
use super::{conclusion, plans, sides};

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// Two sides compared; written down as JSON, the schema of `bench.compare_report(…, format => 'json')`.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonReport {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// That on TPS, with its interval, in one sentence.
    pub conclusion: String,
    /// faster, slower, same, inconclusive: that on TPS.
    pub verdict: &'static str,
    /// What to do about it, where there is something to do.
    pub advice: Option<String>,
    /// Ratios up to so much from 1 are the same, as a fraction.
    pub margin: f64,
    /// Whether the runs were compared in pairs.
    pub paired: bool,
    /// TPS first, then latencies.
    pub metrics: Vec<ComparisonLine>,
    pub differences: Vec<Difference>,
    pub baseline: Side,
    pub candidate: Side,
    /// Where clients spent their time, the greatest share of either side first.
    pub waits: Vec<WaitDifference>,
    /// The statements of both sides, those first that cost the candidate most.
    pub statements: Vec<StatementLine>,
    /// Statements of both sides that were not executed alike.
    pub plans: Vec<PlanDifference>,
}

impl ComparisonReport {
    /// The report of what was `compared`, with the details of both sides' runs, and their statements.
    pub fn new(
        compared: Comparison,
        margin: f64,
        paired: bool,
        baseline: Collected,
        candidate: Collected,
        statements: Vec<StatementLine>,
    ) -> ComparisonReport {
        let Comparison { lines, mut differences } = compared;
        // What was done differently, not what was set.
        let arm = conclusion::arm(&differences);
        differences.extend(sides::hot_updates(&baseline, &candidate));
        let waits = sides::wait_differences(&baseline, &candidate);
        let plans = plans::plan_differences(&baseline.plans, &candidate.plans);
        let (baseline, candidate) = (baseline.side(), candidate.side());
        let runs = (baseline.runs.len(), candidate.runs.len());
        ComparisonReport {
            schema_version: SCHEMA_VERSION,
            conclusion: conclusion::conclusion(lines.first(), margin, paired, runs, &arm),
            verdict: lines.first().map_or("inconclusive", |tps| tps.verdict),
            advice: lines.first().and_then(|tps| tps.advice.clone()),
            margin,
            paired,
            metrics: lines,
            differences,
            baseline,
            candidate,
            waits,
            statements,
            plans,
        }
    }
}
