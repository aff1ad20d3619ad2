//! The arms of a duel beside each other.

use std::collections::BTreeMap;

use bench_model::spec::AnswerVerdict;
use bench_stats::compare::{Better, Terms, Verdict};
use bench_stats::duel::{self, ArmBatch, BATCHES, DuelFigure, METRICS, PROCESSOR_TIME};
use bench_stats::histogram::bucket_bounds_ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compared::{
    ComparisonLine, OF_ONE_SIDE, PerCall, StatementFigures, StatementLine, plan_changed, plan_forms,
    take_answers,
};
use crate::run::{Bucket, CommandSummary, ScriptSummary};

/// A duel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Duel {
    /// Arm a, as given.
    pub a: Value,
    /// Arm b, as given.
    pub b: Value,
    /// `version()` of the target of each arm; null unless these are two.
    pub versions: Option<[String; 2]>,
    /// Largest difference that counts as `same`, as a fraction.
    pub margin: f64,
    /// Confidence of each metric's interval, as a fraction.
    pub confidence: f64,
    /// Measured transactions without an error of arm a and of arm b.
    pub transactions: [u64; 2],
    /// As `bench.duel` returns them; `baseline` is arm a and `candidate` is arm b.
    pub metrics: Vec<ComparisonLine>,
    /// As `bench.duel_statements` returns them, likewise.
    pub statements: Vec<StatementLine>,
    /// Wait events of both arms.
    pub waits: Vec<DuelWait>,
    /// Both arms over time.
    pub batches: Vec<DuelBatch>,
    /// Histogram of each arm's latencies, as `latencies` of the run.
    pub latencies: [Vec<Bucket>; 2],
}

/// A wait event, as shares of the time of each arm's transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DuelWait {
    /// As in `waits`.
    pub wait_event_type: String,
    /// As in `waits`.
    pub wait_event: String,
    /// Share of the time of arm a's transactions.
    pub a: f64,
    /// Share of the time of arm b's transactions.
    pub b: f64,
}

/// A part of the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DuelBatch {
    /// End of the batch, in seconds from the start of the measurement.
    pub elapsed: f64,
    /// Mean latency of arm a, in milliseconds.
    pub a_latency_avg_ms: Option<f64>,
    /// Mean latency of arm b, in milliseconds.
    pub b_latency_avg_ms: Option<f64>,
}

/// What was measured of a duel.
#[derive(Clone, Debug, Default)]
pub struct DuelMeasured {
    pub a: Value,
    pub b: Value,
    pub versions: Option<[String; 2]>,
    pub answers: Vec<AnswerVerdict>,
    /// Sessions that execute each arm's statements.
    pub sessions: u32,
    /// Given for the run, which then ends as soon as it is decided.
    pub margin: Option<f64>,
    /// Seconds of all [`BATCHES`], including those that a run has not reached.
    pub secs: f64,
    pub batches: Vec<[ArmBatch; 2]>,
    pub commands: Vec<DuelCommand>,
    pub waits: Vec<DuelWait>,
    /// What each arm used in sessions that had executed no other.
    pub alone: [Option<UsedAlone>; 2],
}

/// What a transaction used of the machine, with standard errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsedAlone {
    /// Microseconds of processor time.
    pub cpu_us: f64,
    /// Its standard error, in microseconds.
    pub cpu_us_error: f64,
    /// Minor page faults.
    pub minor_faults: f64,
    /// Their standard error.
    pub minor_faults_error: f64,
}

/// A command of an arm's script.
#[derive(Clone, Debug, Default)]
pub struct DuelCommand {
    pub script: u32,
    pub command: u32,
    /// As those of an arm whose transactions are its executions.
    pub batches: Vec<ArmBatch>,
}

impl Duel {
    /// Compares the arms; ratios within `margin` are the same. `calls`: by script, where pg_stat_statements counted its statements.
    pub fn new(
        measured: DuelMeasured,
        margin: f64,
        scripts: &[ScriptSummary],
        statements: &[CommandSummary],
        calls: &BTreeMap<u32, PerCall>,
    ) -> Self {
        let DuelMeasured { sessions, secs, ref batches, ref commands, .. } = measured;
        let (count, confidence) = duel::looked_at(batches.len(), measured.margin.is_some());
        let counted = &batches[..count];
        let terms = Terms { margin, confidence, better: Better::Lower };
        let sums = duel::whole(counted);
        let mut metrics = metric_lines(counted, terms);
        if let Some(influence) = Influence::of(measured.alone, &sums) {
            let times = METRICS.iter().zip(&mut metrics).filter(|(metric, _)| metric.is_time);
            times.for_each(|(_, line)| *line = influence.judge(std::mem::take(line)));
        }
        let transactions = [sums[0].transactions, sums[1].transactions];
        let hardly_wait = hardly_wait(&measured.waits);
        let pairs =
            Pairs { scripts, statements, calls, commands, count, transactions, sessions, hardly_wait };
        let elapsed = |place: usize| secs * (place + 1) as f64 / BATCHES as f64;
        let batch = |(place, [a, b]): (usize, &[ArmBatch; 2])| DuelBatch {
            elapsed: elapsed(place),
            a_latency_avg_ms: a.latency_avg_ms(),
            b_latency_avg_ms: b.latency_avg_ms(),
        };
        let mut statements = pairs.compared(terms);
        take_answers(&mut statements, &measured.answers);
        Self {
            metrics,
            statements,
            batches: counted.iter().enumerate().map(batch).collect(),
            latencies: [buckets(&sums[0]), buckets(&sums[1])],
            a: measured.a,
            b: measured.b,
            versions: measured.versions,
            margin,
            confidence,
            transactions,
            waits: measured.waits,
        }
    }

    /// Mean latency of each arm's transactions, in milliseconds.
    pub fn latencies_ms(&self) -> [Option<f64>; 2] {
        self.metric("latency_avg_ms").map_or([None, None], |line| [line.baseline, line.candidate])
    }

    /// A metric by its name.
    pub fn metric(&self, name: &str) -> Option<&ComparisonLine> {
        self.metrics.iter().find(|line| line.metric == name)
    }
}

/// Each metric of both arms: of the batches of a duel, or of several duels, each of which is a batch. Ratios within the margin are
/// the same.
pub fn metric_lines(batches: &[[ArmBatch; 2]], terms: Terms) -> Vec<ComparisonLine> {
    let compared = METRICS.iter().map(|metric| (metric, duel::compare(batches, metric, terms)));
    compared.map(|(metric, figure)| line(metric.name, metric.is_time, figure)).collect()
}

/// Arms whose processor times are this much farther apart alone than in the duel, or nearer, influence each other, if their page
/// faults are others as well: a fraction.
const INFLUENCE: f64 = 0.05;

/// Fewer page faults of a transaction than this are those of pages that a session meets for the first time.
const FAULTS: f64 = 0.5;

/// A difference of this many standard errors is no noise, although transactions that follow each other are not independent.
const CERTAIN: f64 = 5.0;

/// What the arms do to each other within a session: memory that malloc has once kept instead of returning it to the kernel, it
/// keeps for both.
struct Influence {
    /// By how much the logarithm of the ratio of processor times is another one alone.
    shift: f64,
    advice: String,
}

impl Influence {
    /// `None` where none is seen, or is not known.
    fn of(alone: [Option<UsedAlone>; 2], sums: &[ArmBatch; 2]) -> Option<Self> {
        // The noise of the duel is negligible: it is much longer than the time before it.
        let shared = sums.each_ref().map(|arm| {
            let (cpu_us, minor_faults) = arm.cpu_avg_us().zip(arm.minor_faults_avg())?;
            (cpu_us > 0.0).then_some(UsedAlone { cpu_us, minor_faults, ..UsedAlone::default() })
        });
        let [a, b] = [0, 1].map(|arm| alone[arm].or(shared[arm]).zip(shared[arm]));
        let ((a_alone, a), (b_alone, b)) = a.zip(b)?;
        let shift = (b_alone.cpu_us / b.cpu_us / (a_alone.cpu_us / a.cpu_us)).ln();
        let error = (a_alone.cpu_us_error / a_alone.cpu_us).hypot(b_alone.cpu_us_error / b_alone.cpu_us);
        let faults = (b_alone.minor_faults - b.minor_faults) - (a_alone.minor_faults - a.minor_faults);
        let faults_error = a_alone.minor_faults_error.hypot(b_alone.minor_faults_error);
        let is_certain =
            shift.abs() > INFLUENCE.max(CERTAIN * error) && faults.abs() > FAULTS.max(CERTAIN * faults_error);
        if !(shift.is_finite() && is_certain) {
            return None;
        }
        let describe = |alone: UsedAlone, shared: UsedAlone| {
            format!(
                "{:.1} µs and {:.1} page faults alone, {:.1} µs and {:.1} in the duel",
                alone.cpu_us, alone.minor_faults, shared.cpu_us, shared.minor_faults
            )
        };
        let (a, b) = (describe(a_alone, a), describe(b_alone, b));
        let advice = format!(
            "one arm uses memory that the other has left, a: {a}, b: {b}: compare them with bench.ab"
        );
        Some(Self { shift, advice })
    }

    /// A metric that is a time, without a verdict unless the arms differ by far more.
    fn judge(&self, line: ComparisonLine) -> ComparisonLine {
        let difference = line.ratio.map_or(0.0, f64::ln).abs();
        if self.shift.abs() < difference / 10.0 {
            return line;
        }
        ComparisonLine { verdict: word(Verdict::Inconclusive), advice: Some(self.advice.clone()), ..line }
    }
}

fn line(metric: &str, is_time: bool, figure: Option<DuelFigure>) -> ComparisonLine {
    let undecided = ComparisonLine {
        metric: metric.to_owned(),
        verdict: word(Verdict::Inconclusive),
        ..Default::default()
    };
    let Some(DuelFigure { means: [a, b], comparison, batches }) = figure else {
        let advice = Some("it was not measured of both arms".to_owned());
        return ComparisonLine { advice, ..undecided };
    };
    let line = ComparisonLine { baseline: Some(a), candidate: Some(b), ..undecided };
    if [a, b] == [0.0, 0.0] {
        return ComparisonLine { verdict: word(Verdict::Same), ..line };
    }
    let ratio = comparison.ratio;
    let advice = match (comparison.verdict, comparison.runs) {
        (Verdict::Inconclusive, Some(needed)) => {
            Some(format!("measure {:.1} times as long", f64::from(needed) / batches.max(1) as f64))
        }
        (Verdict::Inconclusive, None) if ratio.is_none() => {
            Some("measure longer: it was too rare".to_owned())
        }
        (Verdict::Inconclusive, None) => Some("a duel of practicable length does not decide".to_owned()),
        _ => None,
    };
    let verdict = match comparison.verdict {
        Verdict::Slower if !is_time => "more".to_owned(),
        Verdict::Faster if !is_time => "less".to_owned(),
        verdict => word(verdict),
    };
    ComparisonLine { verdict, advice, ..line.with_ratio(ratio) }
}

fn word(verdict: Verdict) -> String {
    verdict.as_str().to_owned()
}

fn buckets(arm: &ArmBatch) -> Vec<Bucket> {
    let of = arm.latencies.iter().map(|(&bucket, &count)| {
        let (low, high) = bucket_bounds_ns(bucket as usize);
        Bucket { low_ms: low as f64 / 1e6, high_ms: high as f64 / 1e6, count }
    });
    of.collect()
}

/// The commands of both arms.
struct Pairs<'a> {
    scripts: &'a [ScriptSummary],
    statements: &'a [CommandSummary],
    calls: &'a BTreeMap<u32, PerCall>,
    commands: &'a [DuelCommand],
    /// Batches that count.
    count: usize,
    transactions: [u64; 2],
    sessions: u32,
    hardly_wait: bool,
}

/// Whether a session prefers the generic plan or the custom one depends on the first values that it meets. Arms whose shares
/// of generic plans are farther apart than this differ in that, by chance as far as is known.
const SHARE_OF_GENERIC: f64 = 0.1;

const LOTTERY: &str = "sessions chose between generic and custom plans differently: set plan_cache_mode in both arms, or use \
                       4 clients or more";

/// This many sessions of an arm do not agree by chance.
const AGREEING_SESSIONS: u32 = 4;

/// A statement is much slower or faster in an arm where it takes this many times as long as in the other.
const MUCH: f64 = 2.0;

/// A statement that pays for another one's use of the processor's caches pays less than this fraction of what the other takes. As
/// a ratio it may be much: statements of 5 µs took 20 times as long behind one of 15 ms.
const OF_ANOTHER: f64 = 0.05;

/// Withholds the verdict on statements with the same plan in both arms, beside one that is much slower or faster there: they share
/// the session, its memory and the processor's caches. Not on those whose own difference is large beside the other's. The other
/// one's own verdict does not matter: of few executions it may be open how much slower it is.
fn judge_beside_others(lines: &mut [StatementLine]) {
    let is_decided = |line: &StatementLine| is_slower_or_faster(&line.verdict);
    let either = |line: &StatementLine| difference(line, true).or_else(|| difference(line, false));
    let is_much =
        |line: &StatementLine| either(line).is_some_and(|(_, ratio)| ratio.max(1.0 / ratio) >= MUCH);
    let others = lines.iter().filter(|line| is_much(line));
    let effect = |line: &StatementLine| line.effect_us.unwrap_or_default();
    let Some(other) = others.max_by(|one, other| effect(one).abs().total_cmp(&effect(other).abs())) else {
        return;
    };
    let other = other.clone();
    for line in lines.iter_mut().filter(|line| line.plan_changed != Some(true) && is_decided(line)) {
        let by_latency = [line.ratio_low, line.ratio_high.map(|high| 1.0 / high)];
        let of_processor = !by_latency.iter().any(|bound| bound.is_some_and(|bound| bound > 1.0));
        let own = difference(line, of_processor);
        let others = difference(&other, of_processor).or_else(|| difference(&other, !of_processor));
        if own.zip(others).is_some_and(|((own_us, own), (us, ratio))| {
            own_us.abs() < OF_ANOTHER * us.abs() && own.ln().abs() < ratio.ln().abs()
        }) {
            line.verdict = word(Verdict::Inconclusive);
            line.advice = Some(format!(
                "its plan is the same in both arms, and command {} takes {:.1} times as long in b ({:+.1} µs): they share a \
                 session and the processor's caches; compare it alone",
                other.command,
                other.ratio.unwrap_or_default(),
                effect(&other)
            ));
        }
    }
}

/// How much longer a statement takes in arm b: in microseconds, and as a ratio.
fn difference(line: &StatementLine, of_processor: bool) -> Option<(f64, f64)> {
    if of_processor {
        let (b_us, a_us) = line.candidate.cpu_us.zip(line.baseline.cpu_us)?;
        return Some((b_us - a_us, line.cpu_ratio?));
    }
    line.effect_us.zip(line.ratio)
}

fn is_slower_or_faster(verdict: &str) -> bool {
    [Verdict::Slower, Verdict::Faster].map(Verdict::as_str).contains(&verdict)
}

/// Arms hardly wait where waits are less than this fraction of their processor time and waits together.
const HARDLY_WAITS: f64 = 0.05;

/// Whether the transactions of both arms hardly wait for anything but a processor.
fn hardly_wait(waits: &[DuelWait]) -> bool {
    let sum = |share: fn(&DuelWait) -> f64, types: &[&str], is_in: bool| {
        let chosen = waits.iter().filter(|wait| types.contains(&wait.wait_event_type.as_str()) == is_in);
        chosen.map(share).sum::<f64>()
    };
    let shares: [fn(&DuelWait) -> f64; 2] = [|wait| wait.a, |wait| wait.b];
    shares.into_iter().all(|share| {
        let (cpu, waiting) = (sum(share, &["CPU"], true), sum(share, &["CPU", "Runnable"], false));
        waiting < HARDLY_WAITS * (waiting + cpu)
    })
}

/// Judges a statement whose latency and processor time are compared. Waits for locks, disks and commits are in its latency only, so
/// that this decides. Where it does not, beside others' work, processor time does: where transactions `hardly_wait`, or
/// where it differs by more than the margin of the whole latency.
fn judge_both(
    latency: ComparisonLine,
    cpu: &ComparisonLine,
    margin: f64,
    hardly_wait: bool,
) -> (String, Option<String>) {
    let shown = || {
        let [ratio, low, high] = [cpu.ratio, cpu.ratio_low, cpu.ratio_high].map(Option::unwrap_or_default);
        format!("{ratio:.3} times the processor time ({low:.3} to {high:.3})")
    };
    if is_slower_or_faster(&latency.verdict) && cpu.verdict == Verdict::Same.as_str() {
        let more = if latency.verdict == Verdict::Slower.as_str() { "longer" } else { "less" };
        return (latency.verdict, Some(format!("it takes {} in b, and waits {more}", shown())));
    }
    let undecided = latency.verdict == Verdict::Inconclusive.as_str();
    if undecided && is_slower_or_faster(&cpu.verdict) {
        let difference_us = cpu.candidate.zip(cpu.baseline).map_or(0.0, |(b, a)| b - a);
        let latency_us = latency.baseline.unwrap_or_default() * 1e3;
        let (verdict, rest) = match hardly_wait || difference_us.abs() > margin * latency_us {
            true => (cpu.verdict.clone(), "its latency alone does not decide"),
            false => (latency.verdict, "that is little of its latency, which includes waits"),
        };
        return (verdict, Some(format!("it takes {} in b; {rest}", shown())));
    }
    (latency.verdict, latency.advice)
}

/// Whether the arms' sessions have chosen between generic and custom plans differently, and not each arm's all alike.
fn is_lottery(a: &CommandSummary, b: &CommandSummary, sessions: u32) -> bool {
    let share = |of: &CommandSummary| {
        of.generic_plans as f64 / of.generic_plans.saturating_add(of.custom_plans).max(1) as f64
    };
    let [a, b] = [share(a), share(b)];
    let agree = |share: f64| !(SHARE_OF_GENERIC..=1.0 - SHARE_OF_GENERIC).contains(&share);
    (a - b).abs() > SHARE_OF_GENERIC && !(agree(a) && agree(b) && sessions >= AGREEING_SESSIONS)
}

impl Pairs<'_> {
    /// Those of a, each with b's at the same place that is the same; then those of b alone.
    fn compared(&self, terms: Terms) -> Vec<StatementLine> {
        let of_arm = |arm: u32| self.statements.iter().filter(move |of| of.script % 2 == arm);
        let other = |of: &CommandSummary, arm: u32| {
            let script = of.script - of.script % 2 + arm;
            self.statements.iter().find(|other| {
                (other.script, other.command, &other.statement) == (script, of.command, &of.statement)
            })
        };
        let pairs = of_arm(0).map(|a| (Some(a), other(a, 1)));
        let alone = of_arm(1).filter(|b| other(b, 0).is_none()).map(|b| (None, Some(b)));
        let mut pairs: Vec<_> = pairs.chain(alone).collect();
        pairs.sort_by_key(|(a, b)| a.or(*b).map(|of| (of.script - of.script % 2, of.command, a.is_none())));
        let compared = pairs.iter().filter(|(a, b)| self.is_compared(*a, *b)).count().max(1);
        let is_timed = |command: &DuelCommand| command.batches.iter().any(|batch| batch.timed > 0);
        let figures = if self.commands.iter().any(is_timed) { 2 } else { 1 };
        let confidence = 1.0 - (1.0 - terms.confidence) / (figures * compared) as f64;
        let terms = Terms { confidence, ..terms };
        let mut lines: Vec<StatementLine> =
            pairs.into_iter().map(|(a, b)| self.statement(a, b, terms)).collect();
        self.add_shares(&mut lines);
        judge_beside_others(&mut lines);
        lines
    }

    /// What part of the arms' time the statements take.
    fn add_shares(&self, lines: &mut [StatementLine]) {
        let ms = |of: &StatementFigures, arm: usize| {
            let whole_ms = of.count.zip(of.latency_avg_ms).map_or(0.0, |(count, ms)| count as f64 * ms);
            whole_ms / self.transactions[arm].max(1) as f64
        };
        let statements = || lines.iter().filter(|line| line.is_sql());
        let of_a: f64 = statements().map(|line| ms(&line.baseline, 0)).sum();
        let of_b: f64 = statements().map(|line| ms(&line.candidate, 1)).sum();
        for line in lines {
            line.baseline.share = (of_a > 0.0).then(|| ms(&line.baseline, 0) / of_a);
            line.candidate.share = (of_b > 0.0).then(|| ms(&line.candidate, 1) / of_b);
            line.effect = line.effect_us.filter(|_| of_a > 0.0).map(|us| us / 1e3 / of_a);
        }
    }

    /// A command in its arm.
    fn figures(&self, of: Option<&CommandSummary>, sums: &ArmBatch) -> StatementFigures {
        let Some(of) = of else { return StatementFigures::default() };
        let is_other =
            |other: &&CommandSummary| other.script == of.script && !other.statement.starts_with('\\');
        let is_only = self.statements.iter().filter(is_other).count() == 1;
        let call = self.calls.get(&of.script).filter(|_| is_only);
        StatementFigures {
            count: Some(of.count),
            share: None,
            latency_avg_ms: of.latency_avg_ms,
            latency_p95_ms: of.latency_p95_ms,
            cpu_us: sums.cpu_avg_us(),
            rows: of.rows_per_execution().or(call.map(|call| call.rows)),
            blocks: call.map(|call| call.blocks),
            failed: of.failed,
            plan: of.plan.clone(),
        }
    }

    fn is_compared(&self, a: Option<&CommandSummary>, b: Option<&CommandSummary>) -> bool {
        matches!((a, b), (Some(a), Some(b)) if a.rows.is_some() && a.count > 0 && b.count > 0)
    }

    fn statement(
        &self,
        a: Option<&CommandSummary>,
        b: Option<&CommandSummary>,
        terms: Terms,
    ) -> StatementLine {
        let Some(of) = a.or(b) else { return StatementLine::default() };
        let [of_a, of_b] = [self.batches(a), self.batches(b)];
        let batches: Vec<[ArmBatch; 2]> = of_a.into_iter().zip(of_b).map(|(a, b)| [a, b]).collect();
        let [latency, cpu] = [&METRICS[0], PROCESSOR_TIME].map(|metric| {
            let figure = if self.is_compared(a, b) { duel::compare(&batches, metric, terms) } else { None };
            line(metric.name, true, figure)
        });
        let is_known = latency.ratio.is_some();
        let [ratio, ratio_low, ratio_high] = [latency.ratio, latency.ratio_low, latency.ratio_high];
        let (mut verdict, mut advice) = judge_both(latency, &cpu, terms.margin, self.hardly_wait);
        if let (Some(a), Some(b)) = (a, b)
            && is_known
            && is_lottery(a, b, self.sessions)
        {
            (verdict, advice) = (word(Verdict::Inconclusive), Some(LOTTERY.to_owned()));
        }
        let sums = duel::whole(&batches);
        let of_transaction = |arm: usize| {
            let transactions = self.transactions[arm];
            (transactions > 0).then(|| sums[arm].latency_ms / transactions as f64 * 1e3)
        };
        let name = self.scripts.iter().find(|script| script.script == of.script);
        let (baseline, candidate) = (self.figures(a, &sums[0]), self.figures(b, &sums[1]));
        let p95 = baseline.latency_p95_ms.zip(candidate.latency_p95_ms).filter(|(a, _)| *a > 0.0);
        let is_of_one = baseline.count.unwrap_or_default() == 0 || candidate.count.unwrap_or_default() == 0;
        let forms = |figures: &StatementFigures| figures.plan.as_deref().map(plan_forms).unwrap_or_default();
        StatementLine {
            workload: name.map_or_else(String::new, |script| without_arm(&script.workload).to_owned()),
            command: of.command,
            statement: of.statement.clone(),
            ratio,
            ratio_low,
            ratio_high,
            cpu_ratio: cpu.ratio,
            cpu_ratio_low: cpu.ratio_low,
            cpu_ratio_high: cpu.ratio_high,
            p95_ratio: p95.map(|(a, b)| b / a),
            verdict,
            advice: if is_of_one { Some(OF_ONE_SIDE.to_owned()) } else { advice },
            plan_changed: plan_changed(&forms(&baseline), &forms(&candidate)),
            effect_us: of_transaction(1).zip(of_transaction(0)).map(|(b, a)| b - a),
            baseline,
            candidate,
            ..StatementLine::default()
        }
    }

    /// A command's batches that count, as those of an arm that does nothing else.
    fn batches(&self, of: Option<&CommandSummary>) -> Vec<ArmBatch> {
        let found = self.commands.iter().find(|command| {
            of.is_some_and(|of| (of.script, of.command) == (command.script, command.command))
        });
        let mut batches = found.map_or_else(Vec::new, |command| command.batches.clone());
        batches.resize(self.count, ArmBatch::default());
        batches
    }
}

/// The name of an arm's script without the arm.
fn without_arm(name: &str) -> &str {
    name.strip_suffix(" [a]").or_else(|| name.strip_suffix(" [b]")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(script: u32, command: u32, statement: &str) -> CommandSummary {
        CommandSummary {
            script,
            command,
            statement: statement.to_owned(),
            count: 640,
            custom_plans: 640,
            rows: Some(1280),
            ..CommandSummary::default()
        }
    }

    fn script(script: u32, workload: &str) -> ScriptSummary {
        ScriptSummary { script, workload: workload.to_owned(), ..ScriptSummary::default() }
    }

    /// Arm b takes a tenth more; its second statement all of it.
    fn measured(margin: Option<f64>) -> DuelMeasured {
        let noise = |place: usize| 1.0 + 0.01 * ((place * 7919 % 13) as f64 - 6.0) / 6.0;
        let arm = |ms: f64| ArmBatch {
            transactions: 10,
            latency_ms: 10.0 * ms,
            timed: 10,
            cpu_us: 5000.0,
            ..ArmBatch::default()
        };
        let batch = |place| [arm(1.0), arm(1.1 * noise(place))];
        let of = |script, command, ms: f64| DuelCommand {
            script,
            command,
            batches: (0..BATCHES)
                .map(|place| ArmBatch {
                    transactions: 10,
                    latency_ms: 10.0 * ms * noise(place),
                    ..ArmBatch::default()
                })
                .collect(),
        };
        DuelMeasured {
            margin,
            secs: 64.0,
            batches: (0..BATCHES).map(batch).collect(),
            commands: vec![of(0, 1, 0.5), of(0, 2, 0.5), of(1, 1, 0.5), of(1, 2, 0.6)],
            ..DuelMeasured::default()
        }
    }

    #[test]
    fn arms_are_compared_metric_by_metric_and_statement_by_statement() {
        let scripts = [script(0, "x [a]"), script(1, "x [b]")];
        let statements = [(0, 1), (0, 2), (1, 1), (1, 2)]
            .map(|(script, place)| command(script, place, if place == 1 { "SELECT 1" } else { "SELECT 2" }));
        let duel = Duel::new(measured(None), 0.02, &scripts, &statements, &BTreeMap::new());
        let latency = duel.metric("latency_avg_ms").unwrap();
        assert_eq!((latency.verdict.as_str(), duel.confidence), ("slower", 0.95));
        assert!((latency.ratio.unwrap() - 1.1).abs() < 0.005, "{latency:?}");
        assert_eq!(duel.metric("rows").unwrap().verdict, "inconclusive");
        assert_eq!(duel.metric("failed").unwrap().verdict, "same");
        let verdicts: Vec<&str> = duel.statements.iter().map(|of| of.verdict.as_str()).collect();
        assert_eq!(verdicts, ["same", "slower"]);
        assert!((duel.statements[1].effect_us.unwrap() - 100.0).abs() < 2.0);
        assert_eq!(
            (duel.statements[1].workload.as_str(), duel.statements[1].baseline.rows),
            ("x", Some(2.0))
        );
        assert_eq!(duel.batches.last().map(|batch| batch.elapsed), Some(64.0));
    }

    #[test]
    fn a_statement_beside_one_that_is_much_slower_may_have_paid_for_it() {
        let line = |command, verdict: &str, plan_changed, ratio, effect_us| StatementLine {
            command,
            verdict: verdict.to_owned(),
            plan_changed: Some(plan_changed),
            ratio: Some(ratio),
            ratio_low: Some(0.99 * ratio),
            ratio_high: Some(1.01 * ratio),
            effect_us: Some(effect_us),
            ..StatementLine::default()
        };
        let judged = |lines: &[StatementLine]| {
            let mut lines = lines.to_vec();
            judge_beside_others(&mut lines);
            lines.iter().map(|line| line.verdict.clone()).collect::<Vec<_>>()
        };
        let much = line(2, "slower", true, 26.0, 900.0);
        let mut lines = [line(1, "slower", false, 1.4, 4.0), much.clone()];
        judge_beside_others(&mut lines);
        assert_eq!(
            lines[0].advice.as_deref(),
            Some(
                "its plan is the same in both arms, and command 2 takes 26.0 times as long in b (+900.0 µs): they share a \
                 session and the processor's caches; compare it alone"
            )
        );
        assert_eq!((lines[0].verdict.as_str(), &lines[1]), ("inconclusive", &much));
        let faster = line(1, "faster", false, 0.9, -4.0);
        assert_eq!(judged(&[faster, much.clone()]), ["inconclusive", "slower"]);
        // Too much for that, another plan, and the same.
        assert_eq!(judged(&[line(1, "slower", false, 3.0, 60.0), much.clone()]), ["slower"; 2]);
        assert_eq!(judged(&[line(1, "slower", false, 30.0, 30.0), much.clone()]), ["slower"; 2]);
        assert_eq!(judged(&[line(1, "slower", true, 1.4, 4.0), much.clone()]), ["slower"; 2]);
        assert_eq!(judged(&[line(1, "same", false, 1.0, 0.1), much]), ["same", "slower"]);
        // Of few executions the other's own verdict may be open.
        let open = line(2, "inconclusive", true, 26.0, 900.0);
        assert_eq!(judged(&[line(1, "slower", false, 1.4, 4.0), open]), ["inconclusive"; 2]);
        let of_processor = |line: StatementLine, [a, b]: [f64; 2]| StatementLine {
            baseline: StatementFigures { cpu_us: Some(a), ..StatementFigures::default() },
            candidate: StatementFigures { cpu_us: Some(b), ..StatementFigures::default() },
            cpu_ratio: Some(b / a),
            ..line
        };
        // Where its latency does not decide, others' work may have made most of that.
        let undecided = StatementLine { ratio_low: Some(0.5), ..line(1, "slower", false, 3.0, 100.0) };
        let much = of_processor(line(2, "slower", true, 26.0, 900.0), [20.0, 400.0]);
        assert_eq!(
            judged(&[of_processor(undecided.clone(), [10.0, 20.0]), much.clone()]),
            ["inconclusive", "slower"]
        );
        assert_eq!(judged(&[of_processor(undecided, [10.0, 60.0]), much]), ["slower"; 2]);
        // Where all take longer.
        let all = line(2, "slower", true, 1.1, 900.0);
        assert_eq!(judged(&[line(1, "slower", false, 1.1, 4.0), all]), ["slower"; 2]);
    }

    /// Batches of an execution of 100 µs. By the clock it takes longer by others' work, `load` times it on average, and in arm b by
    /// waits; of processor time one execution in ten is known.
    fn executions(random: &mut Noise, load: f64, cpu_b: f64, wait_us: f64) -> [Vec<ArmBatch>; 2] {
        [(1.0, 0.0), (cpu_b, wait_us)].map(|(cpu, wait_us)| {
            let batch = |_| {
                let cpu_us = 100.0 * cpu;
                let others_us = 100.0 * load * (1.0 + random.next());
                let (timed, transactions) = (50, 500);
                ArmBatch {
                    transactions,
                    latency_ms: transactions as f64
                        * (cpu_us * (1.0 + 0.01 * random.next()) + others_us + wait_us)
                        / 1e3,
                    timed,
                    cpu_us: timed as f64 * cpu_us * (1.0 + 0.04 * random.next()),
                    ..ArmBatch::default()
                }
            };
            (0..BATCHES).map(batch).collect()
        })
    }

    /// Deviates of a standard normal distribution, nearly: sums of twelve uniform ones (SplitMix64).
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            let uniform = |_| {
                self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
            };
            (0..12).map(uniform).sum::<f64>() - 6.0
        }
    }

    /// Waits of both arms for this share of the time; they run on a processor for another one.
    fn waits_of(cpu: f64, waiting: f64) -> Vec<DuelWait> {
        let wait = |wait_event_type: &str, share| DuelWait {
            wait_event_type: wait_event_type.to_owned(),
            a: share,
            b: share,
            ..DuelWait::default()
        };
        vec![wait("CPU", cpu), wait("Runnable", 1.0 - cpu - waiting), wait("IO", waiting)]
    }

    #[test]
    fn transactions_wait_by_their_waits_and_not_for_processors() {
        assert!(hardly_wait(&waits_of(0.2, 0.0)) && hardly_wait(&waits_of(0.2, 0.01)));
        assert!(!hardly_wait(&waits_of(0.2, 0.02)) && !hardly_wait(&waits_of(0.0, 0.0)));
        assert!(!hardly_wait(&[]), "not known");
    }

    /// Of 200 duels, the shares with each verdict on an execution of [`executions`] within 2 %.
    fn verdicts_of(load: f64, cpu_b: f64, wait_us: f64, waits: &[DuelWait]) -> BTreeMap<String, f64> {
        const DUELS: usize = 200;
        let mut random = Noise(3);
        let mut shares = BTreeMap::new();
        for _ in 0..DUELS {
            let commands = (0..).zip(executions(&mut random, load, cpu_b, wait_us));
            let commands =
                commands.map(|(script, batches)| DuelCommand { script, command: 1, batches }).collect();
            let measured = DuelMeasured { commands, waits: waits.to_vec(), ..measured(None) };
            let statements = [command(0, 1, "SELECT 1"), command(1, 1, "SELECT 1")];
            let duel = Duel::new(measured, 0.02, &[], &statements, &BTreeMap::new());
            *shares.entry(duel.statements[0].verdict.clone()).or_default() += 1.0 / DUELS as f64;
        }
        shares
    }

    #[test]
    fn latency_and_processor_time_find_what_either_alone_does_not() {
        let share =
            |shares: &BTreeMap<String, f64>, verdict: &str| shares.get(verdict).copied().unwrap_or_default();
        for load in [0.0, 4.0] {
            let busy = waits_of(1.0 / (1.0 + load), 0.0);
            let equal = verdicts_of(load, 1.0, 0.0, &busy);
            // By 5 % if they are right: of 200, 10 % are beyond three standard errors.
            assert!(share(&equal, "slower") + share(&equal, "faster") < 0.1, "{load}: {equal:?}");
            let slower = verdicts_of(load, 1.05, 0.0, &busy);
            assert!(share(&slower, "slower") > 0.95, "{load}: {slower:?}");
            let waiting = verdicts_of(load, 1.0, 1000.0, &waits_of(0.1, 0.5));
            assert!(share(&waiting, "slower") > 0.95, "{load}: {waiting:?}");
        }
        // A tenth of the processor time is little beside what it waits for.
        let commits = verdicts_of(20.0, 1.1, 0.0, &waits_of(0.05, 0.95));
        assert!(share(&commits, "slower") < 0.1, "{commits:?}");
    }

    #[test]
    fn advice_says_which_time_a_statement_takes_longer() {
        let line = |verdict: &str, [baseline, candidate]: [f64; 2], ratio| ComparisonLine {
            verdict: verdict.to_owned(),
            baseline: Some(baseline),
            candidate: Some(candidate),
            ratio: Some(ratio),
            ratio_low: Some(ratio - 0.01),
            ratio_high: Some(ratio + 0.01),
            advice: (verdict == "inconclusive").then(|| "measure 2.0 times as long".to_owned()),
            ..ComparisonLine::default()
        };
        let judged_if = |hardly_wait, latency, cpu| {
            let (verdict, advice) = judge_both(latency, &cpu, 0.02, hardly_wait);
            (verdict, advice.unwrap_or_default())
        };
        let judged = |latency, cpu| judged_if(false, latency, cpu);
        let of = |verdict: &str, advice: &str| (verdict.to_owned(), advice.to_owned());
        let (open, waits) = (line("inconclusive", [0.1, 0.11], 1.1), line("slower", [0.1, 0.2], 2.0));
        let (same, slower) = (line("same", [50.0, 50.0], 1.0), line("slower", [50.0, 60.0], 1.2));
        assert_eq!(
            judged(waits.clone(), same.clone()),
            of("slower", "it takes 1.000 times the processor time (0.990 to 1.010) in b, and waits longer")
        );
        assert_eq!(judged(waits, slower.clone()), of("slower", ""));
        assert_eq!(judged(open.clone(), same), of("inconclusive", "measure 2.0 times as long"));
        assert_eq!(
            judged(open.clone(), ComparisonLine::default()),
            of("inconclusive", "measure 2.0 times as long")
        );
        assert_eq!(
            judged(open, slower.clone()),
            of(
                "slower",
                "it takes 1.200 times the processor time (1.190 to 1.210) in b; its latency alone does not decide"
            )
        );
        let long = line("inconclusive", [5.0, 5.1], 1.02);
        assert_eq!(judged_if(true, long.clone(), slower.clone()).0, "slower");
        assert_eq!(
            judged(long, slower),
            of(
                "inconclusive",
                "it takes 1.200 times the processor time (1.190 to 1.210) in b; that is little of its latency, which \
                 includes waits"
            )
        );
    }

    #[test]
    fn arms_that_influence_each_other_leave_times_undecided() {
        let verdicts_at = |errors: [f64; 2], alone: [Option<(f64, f64)>; 2], faults: [u64; 2]| {
            let [cpu_us_error, minor_faults_error] = errors;
            let used =
                |(cpu_us, minor_faults)| UsedAlone { cpu_us, cpu_us_error, minor_faults, minor_faults_error };
            let mut measured = DuelMeasured { alone: alone.map(|of| of.map(used)), ..measured(None) };
            for batch in &mut measured.batches {
                for (arm, minor_faults) in batch.iter_mut().zip(faults) {
                    (arm.counted, arm.minor_faults) = (10, 10 * minor_faults);
                }
            }
            let duel = Duel::new(measured, 0.02, &[], &[], &BTreeMap::new());
            ["latency_avg_ms", "server_cpu_us"].map(|name| duel.metric(name).unwrap().verdict.clone())
        };
        let verdicts = |alone, faults| verdicts_at([1.0, 0.1], alone, faults);
        let (decided, undecided) = (["slower", "same"], ["inconclusive", "inconclusive"]);
        // b takes 1.1 ms instead of 1; both take 500 µs of a processor.
        assert_eq!(verdicts([None, None], [0, 200]), decided);
        assert_eq!(verdicts([Some((500.0, 0.0)), Some((500.0, 200.0))], [0, 200]), decided);
        assert_eq!(verdicts([Some((600.0, 17.0)), Some((500.0, 0.0))], [0, 0]), undecided);
        assert_eq!(verdicts([Some((600.0, 17.0)), None], [0, 0]), undecided);
        // Both alike; by noise; for another reason.
        assert_eq!(verdicts([Some((600.0, 17.0)), Some((600.0, 17.0))], [0, 0]), decided);
        assert_eq!(verdicts([Some((520.0, 17.0)), Some((500.0, 0.0))], [0, 0]), decided);
        assert_eq!(verdicts([Some((600.0, 0.2)), Some((500.0, 0.0))], [0, 0]), decided);
        for errors in [[30.0, 0.1], [1.0, 3.0]] {
            assert_eq!(verdicts_at(errors, [Some((600.0, 17.0)), Some((500.0, 0.0))], [0, 0]), decided);
        }
    }

    #[test]
    fn the_choice_of_generic_plans_by_chance_is_no_difference_of_the_arms() {
        let verdict = |a: (u64, u64), b: (u64, u64), sessions| {
            let of = |script, (generic_plans, custom_plans)| CommandSummary {
                generic_plans,
                custom_plans,
                ..command(script, 2, "SELECT 2")
            };
            let statements = [of(0, a), of(1, b)];
            let duel = Duel::new(
                DuelMeasured { sessions, ..measured(None) },
                0.02,
                &[],
                &statements,
                &BTreeMap::new(),
            );
            duel.statements[0].verdict.clone()
        };
        assert_eq!(verdict((600, 10), (600, 10), 2), "slower");
        assert_eq!(verdict((0, 640), (0, 640), 1), "slower");
        // One of two sessions.
        assert_eq!(verdict((300, 320), (0, 640), 2), "inconclusive");
        assert_eq!(verdict((600, 10), (0, 640), 2), "inconclusive");
        assert_eq!(verdict((600, 10), (0, 640), 4), "slower");
        assert_eq!(verdict((300, 320), (0, 640), 4), "inconclusive");
        // Over connections it is not known.
        assert_eq!(verdict((0, 0), (0, 0), 2), "slower");
    }

    #[test]
    fn statements_have_their_part_of_a_transaction() {
        let of = |script, place, ms: f64, plan: &str| CommandSummary {
            latency_avg_ms: Some(ms),
            latency_p95_ms: Some(2.0 * ms),
            plan: Some(plan.to_owned()),
            ..command(script, place, &format!("SELECT {place}"))
        };
        let (seq, index) = ("custom plan:\nSeq Scan on t\n  Filter: (id = 1)", "generic plan:\nIndex Scan");
        let set = |script| CommandSummary { latency_avg_ms: Some(9.0), ..command(script, 3, "\\set id 1") };
        let statements = [
            of(0, 1, 1.0, seq),
            of(0, 2, 3.0, seq),
            set(0),
            of(1, 1, 1.0, "custom plan:\nSeq Scan on t"),
            of(1, 2, 4.0, index),
            set(1),
        ];
        let duel = Duel::new(measured(None), 0.02, &[], &statements, &BTreeMap::new());
        let [first, second, _] = &duel.statements[..] else { panic!("{:?}", duel.statements) };
        // What a meta command takes is no part of the statements' time.
        assert_eq!((second.baseline.share, second.candidate.share), (Some(0.75), Some(0.8)));
        assert!((second.effect.unwrap() - second.effect_us.unwrap() / 4000.0).abs() < 1e-12);
        assert_eq!((first.plan_changed, second.plan_changed), (Some(false), Some(true)));
        assert_eq!(second.p95_ratio, Some(4.0 / 3.0));
        let calls = BTreeMap::from([(0, PerCall { rows: 7.0, blocks: 3.0 })]);
        let only = [CommandSummary { rows: None, ..of(0, 1, 1.0, seq) }, set(0)];
        let duel = Duel::new(measured(None), 0.02, &[], &only, &calls);
        let figures = &duel.statements[0].baseline;
        assert_eq!(
            (figures.rows, figures.blocks),
            (Some(7.0), Some(3.0)),
            "the only statement of its script"
        );
        let duel = Duel::new(measured(None), 0.02, &[], &statements, &calls);
        assert_eq!(duel.statements[0].baseline.blocks, None, "one of two");
    }

    #[test]
    fn statements_that_are_not_the_same_stand_alone() {
        let statements = [command(0, 1, "SELECT 1"), command(1, 1, "SELECT 1 FROM t"), command(1, 2, "END")];
        let duel = Duel::new(measured(Some(0.02)), 0.02, &[], &statements, &BTreeMap::new());
        let alone: Vec<_> = duel
            .statements
            .iter()
            .map(|of| (of.baseline.count, of.candidate.count, of.ratio, of.command))
            .collect();
        assert_eq!(
            alone,
            [(Some(640), None, None, 1), (None, Some(640), None, 1), (None, Some(640), None, 2)]
        );
        assert!(duel.confidence > 0.96);
    }

    #[test]
    fn a_run_that_was_stopped_counts_up_to_its_last_look() {
        let mut stopped = measured(Some(0.02));
        stopped.batches.truncate(20);
        let duel = Duel::new(stopped, 0.02, &[], &[], &BTreeMap::new());
        assert_eq!((duel.transactions, duel.batches.len()), ([160, 160], 16));
    }
}
