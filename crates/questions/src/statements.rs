//! Which statements got slower: what `bench.compare_statements` and `bench.verify` say.

use std::collections::{BTreeMap, BTreeSet};

use bench_results::{CommandSummary, Duel, DuelStatement, ScriptSummary};
use bench_stats::compare::{Better, GroupComparison, Terms, Verdict, groups_together};
use schemars::JsonSchema;
use serde::Serialize;

/// What is known of the statements of a run.
#[derive(Clone, Debug, Default)]
pub struct StatementsOfRun {
    /// Measured transactions.
    pub transactions: u64,
    pub scripts: Vec<ScriptSummary>,
    pub statements: Vec<CommandSummary>,
    /// By script, where pg_stat_statements counted its statements.
    pub calls: BTreeMap<u32, PerCall>,
}

/// What a call of a script's statements did on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PerCall {
    pub rows: f64,
    /// Blocks of shared buffers looked up, found there or read.
    pub blocks: f64,
}

/// A statement of both sides, or only one of them, as in `bench.compare_statements`. Figures of a side are means over
/// its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StatementLine {
    /// Name of the script.
    pub workload: String,
    /// Place in the script, from 1.
    pub command: u32,
    /// Its text.
    pub statement: String,
    /// Its figures in the baseline.
    pub baseline: StatementFigures,
    /// Its figures in the candidate.
    pub candidate: StatementFigures,
    /// Candidate / baseline of the mean latency; the intervals of all statements hold together.
    pub ratio: Option<f64>,
    /// Lower bound of the interval of `ratio`.
    pub ratio_low: Option<f64>,
    /// Upper bound of that interval.
    pub ratio_high: Option<f64>,
    /// Candidate / baseline of the 95th percentiles.
    pub p95_ratio: Option<f64>,
    /// Lower bound of the interval of `p95_ratio`.
    pub p95_ratio_low: Option<f64>,
    /// Upper bound of that interval.
    pub p95_ratio_high: Option<f64>,
    /// `faster`, `slower`, `same`, `inconclusive` or `fails`.
    pub verdict: String,
    /// What to do about an inconclusive verdict.
    pub advice: Option<String>,
    /// Whether both sides have no plan in common, by nodes, tables and indexes.
    pub plan_changed: Option<bool>,
    /// What the statement adds to the time of a transaction, as a fraction of the baseline's statements together.
    pub effect: Option<f64>,
}

/// A statement on one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StatementFigures {
    /// Executions while measuring, in all runs.
    pub count: u64,
    /// Its share of the time of all statements.
    pub share: Option<f64>,
    /// Mean latency in milliseconds, mean over the runs.
    pub latency_avg_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds, mean over the runs.
    pub latency_p95_ms: Option<f64>,
    /// Rows per execution.
    pub rows: Option<f64>,
    /// Blocks per execution, if it is the only statement of its script.
    pub blocks: Option<f64>,
    /// Transactions that ended at it with an error.
    pub failed: u64,
    /// One of its plans.
    pub plan: Option<String>,
}

/// Compares the statements of two groups of runs, those first that cost the candidate most. The verdicts on all mean
/// latencies hold together ([`groups_together`]); the intervals of the percentiles have the same confidences.
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
            let avg = compared.as_ref().and_then(|of| of.ratio);
            let verdict = compared.as_ref().map_or(Verdict::Inconclusive, |of| of.verdict);
            StatementLine {
                workload: key.workload.clone(),
                command: key.command,
                statement: key.statement.clone(),
                baseline: one.figures(whole_ms),
                candidate: other.figures(candidate.whole_ms()),
                ratio: avg.map(|ratio| ratio.value),
                ratio_low: avg.map(|ratio| ratio.low),
                ratio_high: avg.map(|ratio| ratio.high),
                p95_ratio: p95.map(|ratio| ratio.value),
                p95_ratio_low: p95.map(|ratio| ratio.low),
                p95_ratio_high: p95.map(|ratio| ratio.high),
                advice: (verdict == Verdict::Inconclusive).then(|| advice(compared.as_ref())).flatten(),
                verdict: verdict.as_str().to_owned(),
                plan_changed: plan_changed(&one.forms, &other.forms),
                effect: (whole_ms > 0.0)
                    .then(|| (other.per_transaction_ms() - one.per_transaction_ms()) / whole_ms),
            }
        })
        .collect();
    finish(&mut lines);
    lines
}

/// What a statement is called at which the candidate's transactions fail more often.
const FAILS: &str = "fails";

/// Whether more of the candidate's transactions end at it with an error than chance makes of as many: three standard errors of
/// the difference of two counts; or none of its executions succeeds.
fn fails_more(baseline: &StatementFigures, candidate: &StatementFigures) -> bool {
    let (one, other) = (baseline.failed as f64, candidate.failed as f64);
    let none_succeeds = candidate.failed > 0 && candidate.count == 0 && baseline.count > 0;
    none_succeeds || other - one > 3.0 * (one + other).sqrt()
}

/// Puts those first that cost the candidate most, and says which fail.
fn finish(lines: &mut [StatementLine]) {
    for line in lines.iter_mut().filter(|line| fails_more(&line.baseline, &line.candidate)) {
        line.verdict = FAILS.to_owned();
        line.advice = None;
    }
    let effect = |line: &StatementLine| line.effect.unwrap_or_default();
    lines.sort_by(|one, other| effect(other).total_cmp(&effect(one)));
}

/// What to do about a statement that is not decided.
fn advice(compared: Option<&GroupComparison>) -> Option<String> {
    match compared {
        None => Some(OF_ONE_SIDE.to_owned()),
        Some(GroupComparison { runs: Some(runs), .. }) => Some(format!("{runs} runs per side decide it")),
        Some(GroupComparison { ratio: None, .. }) => Some("at least 2 runs per side are needed".to_owned()),
        Some(_) => None,
    }
}

/// Whether no form of a plan is that of both sides; `None` where a side has none.
fn plan_changed(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Option<bool> {
    (!one.is_empty() && !other.is_empty()).then(|| one.is_disjoint(other))
}

const OF_ONE_SIDE: &str = "only one side executed it";

/// The statements of a duel, whose arm a is the baseline. `calls`: by script, where pg_stat_statements counted its statements.
pub fn statements_of_duel(duel: &Duel, calls: &BTreeMap<u32, PerCall>) -> Vec<StatementLine> {
    let [a, b] = duel.transactions.map(|count| count as f64);
    let per_transaction = |of: &DuelStatement| {
        let ms = |count: Option<u64>, avg_ms: Option<f64>, transactions: f64| {
            count.zip(avg_ms).map_or(0.0, |(count, ms)| count as f64 * ms / transactions.max(1.0))
        };
        [ms(of.a_count, of.a_latency_avg_ms, a), ms(of.b_count, of.b_latency_avg_ms, b)]
    };
    let statements = || duel.statements.iter().filter(|of| of.is_sql());
    let whole_ms = [0, 1].map(|arm: usize| statements().map(|of| per_transaction(of)[arm]).sum::<f64>());
    let figures = |of: &DuelStatement, arm: usize| {
        let is_only = statements().filter(|other| other.script == of.script).count() == 1;
        let call = calls.get(&(of.script + arm as u32)).filter(|_| is_only);
        let [count, failed] = [[of.a_count, of.b_count], [of.a_failed, of.b_failed]].map(|of| of[arm]);
        StatementFigures {
            count: count.unwrap_or_default(),
            share: (whole_ms[arm] > 0.0).then(|| per_transaction(of)[arm] / whole_ms[arm]),
            latency_avg_ms: [of.a_latency_avg_ms, of.b_latency_avg_ms][arm],
            latency_p95_ms: [of.a_latency_p95_ms, of.b_latency_p95_ms][arm],
            rows: [of.a_rows, of.b_rows][arm].or(call.map(|call| call.rows)),
            blocks: call.map(|call| call.blocks),
            failed: failed.unwrap_or_default(),
            plan: [&of.a_plan, &of.b_plan][arm].clone(),
        }
    };
    let forms = |plan: &Option<String>| plan.as_deref().map(plan_forms).unwrap_or_default();
    let line = |of: &DuelStatement| {
        let both = of.a_latency_p95_ms.zip(of.b_latency_p95_ms);
        let is_of_one = of.a_count.unwrap_or_default() == 0 || of.b_count.unwrap_or_default() == 0;
        StatementLine {
            workload: of.workload.clone(),
            command: of.command,
            statement: of.statement.clone(),
            baseline: figures(of, 0),
            candidate: figures(of, 1),
            ratio: of.ratio,
            ratio_low: of.ratio_low,
            ratio_high: of.ratio_high,
            p95_ratio: both.filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a),
            verdict: of.verdict.clone(),
            advice: if is_of_one { Some(OF_ONE_SIDE.to_owned()) } else { of.advice.clone() },
            plan_changed: plan_changed(&forms(&of.a_plan), &forms(&of.b_plan)),
            effect: of.effect_us.filter(|_| whole_ms[0] > 0.0).map(|us| us / 1e3 / whole_ms[0]),
            ..StatementLine::default()
        }
    };
    let mut lines: Vec<StatementLine> = statements().map(line).collect();
    finish(&mut lines);
    lines
}

/// What tells a statement from others.
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
            count: self.count,
            share: (whole_ms > 0.0).then(|| self.per_transaction_ms() / whole_ms),
            latency_avg_ms: mean(&self.latencies_ms),
            latency_p95_ms: mean(&self.p95_ms),
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
            for of in run.statements.iter().filter(|of| of.rows.is_some()) {
                let script = run.scripts.iter().find(|script| script.script == of.script);
                let workload = script.map_or_else(String::new, |script| script.workload.clone());
                let key = Key { workload, command: of.command, statement: of.statement.clone() };
                statements.entry(key).or_default().add(of, run);
            }
        }
        Self { statements }
    }

    /// Milliseconds that all statements of a transaction take.
    fn whole_ms(&self) -> f64 {
        self.statements.values().map(Executed::per_transaction_ms).sum()
    }
}

impl Executed {
    fn add(&mut self, of: &CommandSummary, run: &StatementsOfRun) {
        self.count = self.count.saturating_add(of.count);
        self.failed = self.failed.saturating_add(of.failed);
        let latency_ms = of.latency_avg_ms.filter(|ms| ms.is_finite() && *ms > 0.0);
        self.latencies_ms.extend(latency_ms);
        self.p95_ms.extend(of.latency_p95_ms.filter(|ms| ms.is_finite() && *ms > 0.0));
        if run.transactions > 0 {
            self.per_transaction_ms
                .push(latency_ms.unwrap_or_default() * of.count as f64 / run.transactions as f64);
        }
        let is_only =
            run.statements.iter().filter(|other| other.script == of.script && other.rows.is_some()).count()
                == 1;
        let call = run.calls.get(&of.script).filter(|_| is_only);
        self.rows.extend(of.rows_per_execution().or(call.map(|call| call.rows)));
        self.blocks.extend(call.map(|call| call.blocks));
        if let Some(plan) = &of.plan {
            self.forms.extend(plan_forms(plan));
            self.plan.get_or_insert_with(|| plan.clone());
        }
    }
}

/// What tells the forms of a plan from others: their nodes, with tables and indexes. Conditions are left out, in which a custom
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

#[cfg(test)]
mod tests;
