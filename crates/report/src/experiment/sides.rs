//! Two sides of runs, and what the runs of each have in common: their waits, their latencies, their plans.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bench_base::number::percent;
use bench_questions::comparison::{ComparisonLine, Difference};
use bench_questions::statements::StatementLine;
use bench_results::experiment::{ExperimentRun, RunSamples};
use bench_results::{Bucket, Document, Unreplayed};
use schemars::JsonSchema;
use serde::Serialize;

use super::plans::{PlanDifference, SidePlans};
use crate::content::wait_name;

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
    pub(super) runs: Vec<ExperimentRun>,
    pub(super) unreplayed: Option<Unreplayed>,
    /// Counts by the bits of the bounds, which are in the order of numbers that are not negative.
    latencies: BTreeMap<(u64, u64), u64>,
    /// Sums of shares.
    waits: BTreeMap<String, f64>,
    /// Runs that were observed.
    observed: u32,
    /// Updates of the fixtures' tables, and HOT ones among them.
    updated: i64,
    hot_updated: i64,
    pub(super) plans: SidePlans,
}

impl Collected {
    /// Adds a run.
    pub fn add(&mut self, document: &Document) {
        self.unreplayed = self.unreplayed.into_iter().chain(document.unreplayed).max_by(by_share);
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
    pub(super) fn latencies(&self) -> Vec<Bucket> {
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
