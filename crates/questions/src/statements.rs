//! Compares statements, for `bench.compare_statements` and `bench.verify`.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bench_results::compared::{OF_ONE_SIDE, parts, plan_changed};
use bench_results::{CommandSummary, Duel, ScriptSummary};
use bench_stats::compare::{Better, GroupComparison, Terms, Verdict, groups_together};

pub use bench_results::compared::{PerCall, StatementFigures, StatementLine, plan_forms, take_answers};

/// The statements of a run.
#[derive(Clone, Debug, Default)]
pub struct StatementsOfRun {
    /// Measured transactions.
    pub transactions: u64,
    pub scripts: Vec<ScriptSummary>,
    pub statements: Vec<CommandSummary>,
    /// By script, if pg_stat_statements counted its statements.
    pub calls: BTreeMap<u32, PerCall>,
}

/// Compares the statements of two groups of runs, ordered by what they cost the candidate more. The verdicts on all mean
/// latencies hold jointly ([`groups_together`]); the intervals of percentiles have the same confidences.
pub fn compare_statements(
    baseline: &[StatementsOfRun],
    candidate: &[StatementsOfRun],
    margin: f64,
) -> Vec<StatementLine> {
    let (baseline, candidate) = (Side::new(baseline), Side::new(candidate));
    let keys: BTreeSet<&Key> = baseline.statements.keys().chain(candidate.statements.keys()).collect();
    let none = Executed::default();
    let both: Vec<(&Key, &Executed, &Executed)> = keys
        .into_iter()
        .map(|key| {
            let [one, other] = [&baseline, &candidate].map(|side| side.statements.get(key).unwrap_or(&none));
            (key, one, other)
        })
        .collect();
    let terms = Terms { margin, confidence: 0.95, better: Better::Lower };
    let means: Vec<_> =
        both.iter().map(|(_, one, other)| (one.latencies_ms.clone(), other.latencies_ms.clone())).collect();
    let whole_ms = baseline.whole_ms();
    let mut lines: Vec<StatementLine> = both
        .iter()
        .zip(groups_together(&means, terms))
        .map(|((key, one, other), compared)| {
            let p95 = |confidence| {
                let terms = Terms { confidence, ..terms };
                groups_together(&[(one.p95_ms.clone(), other.p95_ms.clone())], terms).into_iter().next()
            };
            let is_executed = one.count > 0 && other.count > 0;
            let p95 = p95(compared.confidence).and_then(|p95| p95.of.ratio).filter(|_| is_executed);
            let compared = Some(compared.of).filter(|_| is_executed);
            let [ratio, ratio_low, ratio_high] = parts(compared.as_ref().and_then(|compared| compared.ratio));
            let [p95_ratio, p95_ratio_low, p95_ratio_high] = parts(p95);
            let effect_ms = other.per_transaction_ms() - one.per_transaction_ms();
            let verdict = compared.as_ref().map_or(Verdict::Inconclusive, |compared| compared.verdict);
            StatementLine {
                workload: key.workload.clone(),
                command: key.command,
                statement: key.statement.clone(),
                baseline: one.figures(whole_ms),
                candidate: other.figures(candidate.whole_ms()),
                ratio,
                ratio_low,
                ratio_high,
                cpu_ratio: None,
                cpu_ratio_low: None,
                cpu_ratio_high: None,
                p95_ratio,
                p95_ratio_low,
                p95_ratio_high,
                advice: (verdict == Verdict::Inconclusive).then(|| advice(compared.as_ref())).flatten(),
                verdict: verdict.as_str().to_owned(),
                answers: None,
                plan_changed: plan_changed(&one.forms, &other.forms),
                effect: (whole_ms > 0.0).then(|| effect_ms / whole_ms),
                effect_us: Some(effect_ms * 1e3),
            }
        })
        .collect();
    mark_and_sort(&mut lines);
    lines
}

/// The verdict on a statement at which the candidate's transactions fail more often.
const FAILS: &str = "fails";

/// Returns whether significantly more of the candidate's transactions fail at a statement, or only the candidate never succeeds.
fn fails_more(baseline: &StatementFigures, candidate: &StatementFigures) -> bool {
    /// Of the difference of two counts: fewer may be chance.
    const STANDARD_ERRORS: f64 = 3.0;
    let (one, other) = (baseline.failed as f64, candidate.failed as f64);
    let has_succeeded = |side: &StatementFigures| side.count.unwrap_or_default() > 0;
    let none_succeeds = candidate.failed > 0 && !has_succeeded(candidate) && has_succeeded(baseline);
    none_succeeds || other - one > STANDARD_ERRORS * (one + other).sqrt()
}

/// Marks failing statements and sorts by cost to the candidate.
fn mark_and_sort(lines: &mut [StatementLine]) {
    for line in lines.iter_mut().filter(|line| fails_more(&line.baseline, &line.candidate)) {
        line.verdict = FAILS.to_owned();
        line.advice = None;
    }
    let effect = |line: &StatementLine| line.effect.unwrap_or_default();
    lines.sort_by(|one, other| effect(other).total_cmp(&effect(one)));
}

/// Advises what to do about an undecided statement.
fn advice(compared: Option<&GroupComparison>) -> Option<String> {
    match compared {
        None => Some(OF_ONE_SIDE.to_owned()),
        Some(GroupComparison { runs: Some(runs), .. }) => Some(format!("{runs} runs per side decide it")),
        Some(GroupComparison { ratio: None, .. }) => Some("at least 2 runs per side are needed".to_owned()),
        Some(_) => None,
    }
}

/// Returns the statements of a duel, with arm a as the baseline.
pub fn statements_of_duel(duel: &Duel) -> Vec<StatementLine> {
    let mut lines: Vec<StatementLine> =
        duel.statements.iter().filter(|line| line.is_sql()).cloned().collect();
    mark_and_sort(&mut lines);
    lines
}

/// Identifies a statement across runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    workload: String,
    command: u32,
    statement: String,
}

/// A statement in the runs of a side.
#[derive(Clone, Debug, Default)]
struct Executed {
    count: u64,
    failed: u64,
    /// Mean latency in each run that executed it.
    latencies_ms: Vec<f64>,
    p95_ms: Vec<f64>,
    /// Milliseconds of a transaction in each run.
    per_transaction_ms: Vec<f64>,
    rows: Vec<f64>,
    blocks: Vec<f64>,
    plan: Option<String>,
    forms: BTreeSet<String>,
}

impl Executed {
    fn per_transaction_ms(&self) -> f64 {
        mean(&self.per_transaction_ms).unwrap_or_default()
    }

    fn figures(&self, whole_ms: f64) -> StatementFigures {
        StatementFigures {
            count: Some(self.count),
            share: (whole_ms > 0.0).then(|| self.per_transaction_ms() / whole_ms),
            latency_avg_ms: mean(&self.latencies_ms),
            latency_p95_ms: mean(&self.p95_ms),
            cpu_us: None,
            rows: mean(&self.rows),
            blocks: mean(&self.blocks),
            failed: self.failed,
            plan: self.plan.clone(),
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The runs of a side.
struct Side {
    statements: BTreeMap<Key, Executed>,
}

impl Side {
    fn new(runs: &[StatementsOfRun]) -> Self {
        let mut statements: BTreeMap<Key, Executed> = BTreeMap::new();
        for run in runs {
            for command in run.statements.iter().filter(|command| command.rows.is_some()) {
                let script = run.scripts.iter().find(|script| script.script == command.script);
                let workload = script.map_or_else(String::new, |script| script.workload.clone());
                let key = Key { workload, command: command.command, statement: command.statement.clone() };
                statements.entry(key).or_default().add(command, run);
            }
        }
        Self { statements }
    }

    /// Returns the milliseconds that all statements of a transaction take.
    fn whole_ms(&self) -> f64 {
        self.statements.values().map(Executed::per_transaction_ms).sum()
    }
}

impl Executed {
    fn add(&mut self, summary: &CommandSummary, run: &StatementsOfRun) {
        self.count = self.count.saturating_add(summary.count);
        self.failed = self.failed.saturating_add(summary.failed);
        let latency_ms = summary.latency_avg_ms.filter(|ms| ms.is_finite() && *ms > 0.0);
        self.latencies_ms.extend(latency_ms);
        self.p95_ms.extend(summary.latency_p95_ms.filter(|ms| ms.is_finite() && *ms > 0.0));
        if run.transactions > 0 {
            self.per_transaction_ms
                .push(latency_ms.unwrap_or_default() * summary.count as f64 / run.transactions as f64);
        }
        let is_only = run
            .statements
            .iter()
            .filter(|other| other.script == summary.script && other.rows.is_some())
            .count()
            == 1;
        let call = run.calls.get(&summary.script).filter(|_| is_only);
        self.rows.extend(summary.rows_per_execution().or(call.map(|call| call.rows)));
        self.blocks.extend(call.map(|call| call.blocks));
        if let Some(plan) = &summary.plan {
            self.forms.extend(plan_forms(plan));
            self.plan.get_or_insert_with(|| plan.clone());
        }
    }
}
