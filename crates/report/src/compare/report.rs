//! What a comparison is reported as.

use bench_questions::comparison::{Comparison, ComparisonLine, Difference};
use bench_questions::statements::StatementLine;
use schemars::JsonSchema;
use serde::Serialize;

use super::plans::PlanDifference;
use super::sides::{Collected, Side, WaitDifference};
use super::{conclusion, plans, sides};

/// The version of the JSON schema. Fields may be added within a version; none is renamed, removed or given another unit.
pub const SCHEMA_VERSION: u32 = 1;

/// Two sets of runs compared, as `bench.compare_report(baseline, candidate, 'json')` returns it. Every key is always
/// present; unknown values are null or missing from a list. Readers should ignore keys that they do not know. A
/// timestamp is a string in ISO 8601 with its offset from UTC, a share is a number from 0 to 1, TPS is committed
/// transactions per second, and latency is the time from a transaction's start (with a `rate`, from its due time) to
/// its end, retries included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ComparisonReport {
    /// Version of this schema: 1.
    pub schema_version: u32,
    /// The verdict on TPS, with its interval, in one sentence.
    pub conclusion: String,
    /// `faster`, `slower`, `same` or `inconclusive`: that on TPS.
    pub verdict: &'static str,
    /// What to do about the verdict, as in `bench.compare`.
    pub advice: Option<String>,
    /// Largest distance of a ratio from 1 that counts as the same, as a fraction.
    pub margin: f64,
    /// Whether the runs were compared in pairs.
    pub paired: bool,
    /// Rows of `bench.compare`: TPS, four latencies, server_cpu_us.
    pub metrics: Vec<ComparisonLine>,
    /// Arguments, settings, versions and machines that are not the same in all runs.
    pub differences: Vec<Difference>,
    /// The runs of the baseline.
    pub baseline: Side,
    /// The runs of the candidate.
    pub candidate: Side,
    /// Where clients spent their time, the greatest share of either side first.
    pub waits: Vec<WaitDifference>,
    /// Verdicts on the statements of both sides, the costliest first.
    pub statements: Vec<StatementLine>,
    /// Statements with different plans on the two sides.
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
