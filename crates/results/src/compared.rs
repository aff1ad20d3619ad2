//! Lines of a comparison: a metric or a statement of two sides. Those of a duel are its arms a and b.

use std::collections::BTreeSet;

use bench_model::spec::AnswerVerdict;
use bench_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A metric of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ComparisonLine {
    /// Name of the metric, as in `bench.summary`; of a duel also `blocks`, `wal_bytes`, `rows`, `failed`,
    /// `retried` and `minor_faults`.
    pub metric: String,
    /// The script of a mix whose `latency_avg_ms` it is; null: that of all transactions.
    pub script: Option<String>,
    /// Mean over the baseline's runs, or per transaction of arm a; null where a run lacks the metric.
    pub baseline: Option<f64>,
    /// That of the candidate, or of arm b.
    pub candidate: Option<f64>,
    /// Candidate / baseline; for runs, of the geometric means.
    pub ratio: Option<f64>,
    /// Lower bound of its interval, for runs 95 % for TPS and server_cpu_us, 98.75 % for each latency; null where there is none.
    pub ratio_low: Option<f64>,
    /// Upper bound of that interval.
    pub ratio_high: Option<f64>,
    /// `faster`, `slower`, `same` or `inconclusive`; `less` or `more` for metrics of a duel that are not times.
    pub verdict: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl ComparisonLine {
    /// With a ratio and its interval, where there are such.
    pub fn with_ratio(self, ratio: Option<Estimate>) -> Self {
        let [ratio, ratio_low, ratio_high] = parts(ratio);
        Self { ratio, ratio_low, ratio_high, ..self }
    }
}

/// An estimate and the bounds of its interval.
pub fn parts(estimate: Option<Estimate>) -> [Option<f64>; 3] {
    estimate.map_or([None; 3], |of| [of.value, of.low, of.high].map(Some))
}

/// A statement of both sides, or only one of them. Figures of a side are means over its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StatementLine {
    /// Name of the script; of a duel without its arm.
    pub workload: String,
    /// Place in the script, from 1.
    pub command: u32,
    /// Its text.
    pub statement: String,
    /// Its figures in the baseline, or in arm a.
    pub baseline: StatementFigures,
    /// Its figures in the candidate, or in arm b.
    pub candidate: StatementFigures,
    /// Candidate / baseline of the mean latency; the intervals of all statements hold together.
    pub ratio: Option<f64>,
    /// Lower bound of the interval of `ratio`.
    pub ratio_low: Option<f64>,
    /// Upper bound of that interval.
    pub ratio_high: Option<f64>,
    /// Candidate / baseline of the processor times; null except for a duel of the engine.
    pub cpu_ratio: Option<f64>,
    /// Lower bound of the interval of `cpu_ratio`, as certain as that of `ratio`.
    pub cpu_ratio_low: Option<f64>,
    /// Upper bound of that interval.
    pub cpu_ratio_high: Option<f64>,
    /// Candidate / baseline of the 95th percentiles.
    pub p95_ratio: Option<f64>,
    /// Lower bound of the interval of `p95_ratio`; null for a duel.
    pub p95_ratio_low: Option<f64>,
    /// Upper bound of that interval.
    pub p95_ratio_high: Option<f64>,
    /// `faster`, `slower`, `same`, `inconclusive` or, in `bench.verify`, `fails`.
    pub verdict: String,
    /// What to do about an inconclusive verdict, or what else may have caused it.
    pub advice: Option<String>,
    /// Whether both sides have no plan in common, by nodes, tables and indexes.
    pub plan_changed: Option<bool>,
    /// Whether both sides return the same, as `verdict` of `bench.answers`; null unless `bench.verify` has compared it.
    pub answers: Option<String>,
    /// What the statement adds to the time of a transaction, as a fraction of the baseline's statements together.
    pub effect: Option<f64>,
    /// The same, in microseconds.
    pub effect_us: Option<f64>,
}

impl StatementLine {
    /// Whether the sides are known to return different results.
    pub fn answers_otherwise(&self) -> bool {
        matches!(self.answers.as_deref(), Some("differs" | "fails"))
    }

    /// Whether it is a statement, and not a meta command.
    pub fn is_sql(&self) -> bool {
        !self.statement.starts_with('\\')
    }
}

/// Gives each statement the verdict on its answers.
pub fn take_answers(lines: &mut [StatementLine], answers: &[AnswerVerdict]) {
    for line in lines {
        let is_it = |one: &&AnswerVerdict| (&one.workload, one.command) == (&line.workload, line.command);
        line.answers = answers.iter().find(is_it).map(|one| one.verdict.clone());
    }
}

/// A statement on one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StatementFigures {
    /// Executions while measuring, in all runs; null: it is not in the side's scripts.
    pub count: Option<u64>,
    /// Its share of the time of all statements.
    pub share: Option<f64>,
    /// Mean latency in milliseconds, mean over the runs.
    pub latency_avg_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds, mean over the runs.
    pub latency_p95_ms: Option<f64>,
    /// Microseconds of processor time of an execution, by a sample; null except for a duel of the engine.
    pub cpu_us: Option<f64>,
    /// Rows per execution, all phases.
    pub rows: Option<f64>,
    /// Blocks per execution, if it is the only statement of its script.
    pub blocks: Option<f64>,
    /// Transactions that ended at it with an error.
    pub failed: u64,
    /// One of its plans, as `plan` in `statements` of a run.
    pub plan: Option<String>,
}

/// What a call of a script's statements did on average, as pg_stat_statements counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PerCall {
    pub rows: f64,
    /// Blocks of shared buffers looked up, found there or read.
    pub blocks: f64,
}

/// The advice on a statement that there is nothing to compare with.
pub const OF_ONE_SIDE: &str = "only one side executed it";

/// Whether no form of a plan is that of both sides; `None` where a side has none.
pub fn plan_changed(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Option<bool> {
    (!one.is_empty() && !other.is_empty()).then(|| one.is_disjoint(other))
}

/// Returns what distinguishes the forms of a plan: their nodes, with tables and indexes. Conditions are left out, in which a custom
/// plan has the values of its parameters, and so are the headings, which say when each of several forms was met.
pub fn plan_forms(plan: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let mut form = String::new();
    for line in plan.lines().map(str::trim_end) {
        let is_heading = line.ends_with(':') && !line.starts_with(' ');
        if is_heading {
            forms.insert(std::mem::take(&mut form));
        } else if !line.contains(": ") && !line.ends_with(':') {
            form += line;
            form.push('\n');
        }
    }
    forms.insert(form);
    forms.remove("");
    forms
}
