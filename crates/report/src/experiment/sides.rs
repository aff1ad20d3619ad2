//! Two sides of runs: what the runs of each have in common (waits, latencies, plans), and the sentence on which is faster.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bench_base::number::{MISSING, fixed, percent};
use bench_questions::comparison::{ComparisonLine, Difference};
use bench_questions::statements::{StatementLine, plan_forms};
use bench_results::experiment::{ExperimentRun, RunSamples};
use bench_results::{Bucket, Document, Unreplayed};
use schemars::JsonSchema;
use serde::Serialize;

use crate::run::transactions::wait_name;
use crate::sanitize::{cut, one_line};

/// Updates that have a share of HOT ones, and the difference of such shares that is told.
const UPDATES: i64 = 1_000;
const HOT_POINTS: f64 = 0.05;

/// Two sides of an experiment's runs beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedSides {
    /// The verdict on TPS, with its interval, in one sentence.
    pub conclusion: String,
    /// `faster`, `slower`, `same` or `inconclusive`: that on TPS.
    pub verdict: String,
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
    /// Histogram of the latencies of all runs of the baseline together, ascending; empty buckets are left out.
    pub baseline_latencies: Vec<Bucket>,
    /// That of the candidate.
    pub candidate_latencies: Vec<Bucket>,
    /// Where clients spent their time, the greatest share of either side first.
    pub waits: Vec<WaitDifference>,
    /// Verdicts on the statements of both sides, the costliest first.
    pub statements: Vec<StatementLine>,
    /// Statements with different plans on the two sides.
    pub plans: Vec<PlanDifference>,
}

/// The variant that the runs of the first side are of.
pub const BASELINE: &str = "baseline";

/// That of the second one.
pub const CANDIDATE: &str = "candidate";

/// The order of what is left out of captures.
pub fn by_share(one: &Unreplayed, other: &Unreplayed) -> Ordering {
    one.share.total_cmp(&other.share)
}

/// Where clients spent their time on each side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct WaitDifference {
    /// `type:event` as in pg_stat_activity; `CPU`, `Runnable` and `Unobserved` as in the report of a run.
    pub wait: String,
    /// Mean share of the clients' time over the baseline's runs; null where none was observed.
    pub baseline: Option<f64>,
    /// Mean share over the candidate's runs.
    pub candidate: Option<f64>,
    /// `candidate` − `baseline`.
    pub difference: Option<f64>,
}

/// What is gathered of a side, run by run: a run's whole document need not be kept.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    pub(crate) runs: Vec<ExperimentRun>,
    pub(crate) unreplayed: Option<Unreplayed>,
    /// Counts by the bits of the bounds, which are in the order of numbers that are not negative.
    latencies: BTreeMap<(u64, u64), u64>,
    /// Sums of shares.
    waits: BTreeMap<String, f64>,
    /// Runs that were observed.
    observed: u32,
    /// Updates of the fixtures' tables, and HOT ones among them.
    updated: i64,
    hot_updated: i64,
    pub(crate) plans: SidePlans,
}

impl Collected {
    /// Adds a run.
    pub fn add(&mut self, document: &Document) {
        self.unreplayed =
            self.unreplayed.take().into_iter().chain(document.unreplayed.clone()).max_by(by_share);
        let samples = &document.samples;
        let samples = RunSamples { elapsed: samples.elapsed.clone(), tps: samples.tps.clone() };
        self.runs.push(ExperimentRun { samples, ..ExperimentRun::default().with_figures(document) });
        let is_bound = |bound: f64| bound.is_finite() && bound.is_sign_positive();
        for bucket in document.latencies.iter().filter(|of| is_bound(of.low_ms) && is_bound(of.high_ms)) {
            let count =
                self.latencies.entry((bucket.low_ms.to_bits(), bucket.high_ms.to_bits())).or_default();
            *count = count.saturating_add(bucket.count);
        }
        let waits = document.merged_waits();
        self.observed += u32::from(!waits.is_empty());
        for wait in waits.iter().filter(|wait| wait.share.is_finite()) {
            *self.waits.entry(wait_name(&wait.wait_event_type, &wait.wait_event)).or_default() += wait.share;
        }
        for relation in &document.relations {
            if let (Some(updated), Some(hot)) = (relation.updated, relation.hot_updated) {
                self.updated = self.updated.saturating_add(updated);
                self.hot_updated = self.hot_updated.saturating_add(hot);
            }
        }
        self.plans.add(document);
    }

    /// The share of HOT updates, of updates enough to have one.
    fn hot_share(&self) -> Option<f64> {
        (self.updated >= UPDATES).then(|| self.hot_updated as f64 / self.updated as f64)
    }

    /// The histogram of all its runs.
    pub(crate) fn latencies(&self) -> Vec<Bucket> {
        let bucket = |(&(low, high), &count)| Bucket {
            low_ms: f64::from_bits(low),
            high_ms: f64::from_bits(high),
            count,
        };
        self.latencies.iter().map(bucket).collect()
    }

    /// The mean share of a wait.
    fn share(&self, wait: &str) -> Option<f64> {
        let sum = self.waits.get(wait).copied().unwrap_or_default();
        (self.observed > 0).then(|| sum / f64::from(self.observed))
    }
}

/// The shares of HOT updates, where they are not alike: those write no index, and leave less to vacuum.
pub fn hot_updates(baseline: &Collected, candidate: &Collected) -> Option<Difference> {
    let (baseline, candidate) = (baseline.hot_share()?, candidate.hot_share()?);
    ((baseline - candidate).abs() >= HOT_POINTS).then(|| Difference {
        what: "HOT updates".to_owned(),
        baseline: Some(percent(Some(baseline))),
        candidate: Some(percent(Some(candidate))),
    })
}

/// A line for each wait of either side, the greatest share first.
pub fn wait_differences(baseline: &Collected, candidate: &Collected) -> Vec<WaitDifference> {
    let names: BTreeSet<&String> = baseline.waits.keys().chain(candidate.waits.keys()).collect();
    let line = |name: &String| {
        let (baseline, candidate) = (baseline.share(name), candidate.share(name));
        let difference = baseline.zip(candidate).map(|(baseline, candidate)| candidate - baseline);
        WaitDifference { wait: name.clone(), baseline, candidate, difference }
    };
    let mut lines: Vec<WaitDifference> = names.into_iter().map(line).collect();
    let greatest =
        |line: &WaitDifference| line.baseline.unwrap_or_default().max(line.candidate.unwrap_or_default());
    lines.sort_by(|one, other| greatest(other).total_cmp(&greatest(one)));
    lines
}

/// A statement of both sides with other plans: the same text at the same place of both sides' scripts. Plans differ if
/// their nodes, tables or indexes differ; conditions do not count, because those of custom plans contain parameter
/// values. Custom plans on a partitioned table may show different partitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PlanDifference {
    /// Index of the script in the mix, from 0.
    pub script: u32,
    /// Its place in the script, from 1.
    pub command: u32,
    /// The command as written.
    pub statement: String,
    /// Its plans in the baseline's runs, one for each form, as `plan` in the report of a run.
    pub baseline: Vec<String>,
    /// Its plans in the candidate's runs.
    pub candidate: Vec<String>,
}

/// The script, the place in it and the text of a statement.
type StatementPlace = (u32, u32, String);

/// The plans of a side by statement: the forms that it was executed in by a run, with the first plan of these.
#[derive(Clone, Debug, Default)]
pub struct SidePlans(BTreeMap<StatementPlace, Plans>);

type Plans = BTreeMap<BTreeSet<String>, String>;

impl SidePlans {
    /// Adds those of a run.
    pub fn add(&mut self, document: &Document) {
        for statement in &document.statements {
            let Some(plan) = &statement.plan else { continue };
            let place = (statement.script, statement.command, statement.statement.clone());
            self.0.entry(place).or_default().entry(plan_forms(plan)).or_insert_with(|| plan.clone());
        }
    }
}

/// The statements of both sides with a form on one that the other has not.
pub fn plan_differences(baseline: &SidePlans, candidate: &SidePlans) -> Vec<PlanDifference> {
    let both = baseline.0.iter().filter_map(|(place, forms)| Some((place, forms, candidate.0.get(place)?)));
    let differ = both.filter(|(_, baseline, candidate)| !baseline.keys().eq(candidate.keys()));
    let plans = |forms: &Plans| forms.values().cloned().collect();
    differ
        .map(|((script, command, statement), baseline, candidate)| PlanDifference {
            script: *script,
            command: *command,
            statement: statement.clone(),
            baseline: plans(baseline),
            candidate: plans(candidate),
        })
        .collect()
}

/// How long a name may be.
pub const NAME: usize = 60;

/// The names of metrics where they stand for the metric.
pub fn metric(line: &ComparisonLine) -> String {
    let name = match line.metric.as_str() {
        "tps" => "TPS",
        "latency_avg_ms" => "average",
        "server_cpu_us" => "CPU",
        name => name.strip_prefix("latency_").and_then(|name| name.strip_suffix("_ms")).unwrap_or(name),
    };
    match &line.script {
        Some(script) => format!("{name} of {}", cut(&one_line(script), NAME)),
        None => name.to_owned(),
    }
}

/// The ratio from which on a figure is so many times another one: percentages of hundreds are hard to read.
pub(crate) const TIMES: f64 = 3.0;

/// How far a ratio is from 1, in percent with its sign, or how many times it is.
pub fn change(ratio: f64) -> String {
    if !(TIMES..f64::INFINITY).contains(&ratio) {
        return percentage(ratio);
    }
    format!("{} times", fixed(Some(ratio), if ratio < 10.0 { 1 } else { 0 }))
}

/// How far a ratio is from 1, in percent, with its sign.
pub fn percentage(ratio: f64) -> String {
    let change = fixed(Some((ratio - 1.0) * 100.0), 1);
    match change.strip_prefix('-') {
        Some(less) => format!("−{less} %"),
        None if change == MISSING => change,
        None => format!("+{change} %"),
    }
}

/// What the candidate is, where one thing only tells it from the baseline: in parentheses, with a blank before it.
pub fn arm(differences: &[Difference]) -> String {
    let [Difference { what, baseline, candidate }] = differences else { return String::new() };
    let what = what.strip_prefix("server setting ").or(what.strip_prefix("setting ")).unwrap_or(what);
    let value = |value: &Option<String>| cut(&one_line(value.as_deref().unwrap_or("the default")), NAME);
    format!(" ({} {} instead of {})", cut(&one_line(what), NAME), value(candidate), value(baseline))
}

/// The verdict on TPS with its interval, in one sentence, with what the candidate is ([`arm`]). `runs` are those of the baseline
/// and of the candidate.
pub fn conclusion(
    line: Option<&ComparisonLine>,
    margin: f64,
    paired: bool,
    runs: (usize, usize),
    arm: &str,
) -> String {
    let undecided = format!("It is undecided whether the candidate{arm} is faster or slower");
    let runs = match (paired, runs) {
        (true, (1, _)) => "1 pair of runs".to_owned(),
        (true, (pairs, _)) => format!("{pairs} pairs of runs"),
        (false, (1, candidate)) => format!("1 run against {candidate}"),
        (false, (baseline, candidate)) => format!("{baseline} runs against {candidate}"),
    };
    let Some(line) = line else { return format!("{undecided}.") };
    let interval = line
        .ratio_low
        .zip(line.ratio_high)
        .map(|(low, high)| format!("95 % interval: {} to {}; {runs}", change(low), change(high)));
    let Some(ratio) = line.ratio.filter(|ratio| ratio.is_finite()) else {
        return format!("{undecided}: there is no ratio of TPS ({runs}).");
    };
    let Some(interval) = interval else {
        // The only verdict that needs no interval: nothing is done any more.
        return match line.verdict.as_str() {
            "slower" => format!("The candidate{arm} is slower: its TPS is 0 ({runs})."),
            _ => format!("{undecided}: its TPS differs by {}, without an interval ({runs}).", change(ratio)),
        };
    };
    let differs = match ratio < TIMES {
        true => format!("its TPS differs by {} ({interval})", change(ratio)),
        false => format!("its TPS is {} the baseline's ({interval})", change(ratio)),
    };
    match line.verdict.as_str() {
        verdict @ ("faster" | "slower") => format!("The candidate{arm} is {verdict}: {differs}."),
        "same" => format!(
            "The candidate{arm} is as fast as the baseline, within the margin of {}: {differs}.",
            percent(Some(margin)),
        ),
        _ => format!("{undecided}: {differs}."),
    }
}
