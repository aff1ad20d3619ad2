//! What the runs of a side have in common: their waits, their latencies, and each run's throughput over time.

use std::collections::{BTreeMap, BTreeSet};

use bench_base::number::percent;
use bench_questions::comparison::Difference;
use bench_results::{Bucket, Document, Series, Unreplayed};
use schemars::JsonSchema;
use serde::Serialize;

use super::plans::SidePlans;
use crate::content::wait_name;

/// Updates that have a share of HOT ones, and the difference of such shares that is told.
const UPDATES: i64 = 1_000;
const HOT_POINTS: f64 = 0.05;

/// A side of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// Its runs, in the order given.
    pub runs: Vec<ComparedRun>,
    /// What the runs of a capture leave out of it, as in the report of a run; null if that is nothing.
    pub unreplayed: Option<Unreplayed>,
    /// Histogram of the latencies of all its runs together, ascending; empty buckets are left out.
    pub latencies: Vec<Bucket>,
}

/// A run of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// The run.
    pub run_id: i64,
    /// Name of the workload, or the mix as given.
    pub workload: String,
    /// Concurrent clients, on each node that clients ran on.
    pub clients: u32,
    /// When the clients began.
    pub started_at: Option<String>,
    /// `server_version` of the server at that time.
    pub server_version: String,
    /// Time measured, in seconds.
    pub secs: Option<f64>,
    /// Transactions committed.
    pub transactions: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Transactions skipped because they could no longer meet the `latency_limit`, with a rate.
    pub skipped: u64,
    /// `transactions` / `secs`.
    pub tps: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_avg_ms: Option<f64>,
    /// Median latency in milliseconds.
    pub latency_p50_ms: Option<f64>,
    /// 95th percentile of the latency in milliseconds.
    pub latency_p95_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub latency_p99_ms: Option<f64>,
    /// Processor time of the clients' processes per committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Processor time of the jobs of the wire driver per transaction, in microseconds.
    pub driver_cpu_us: Option<f64>,
    /// Context switches of the clients' processes per transaction.
    pub server_context_switches: Option<f64>,
    /// Context switches of the jobs of the wire driver per transaction.
    pub driver_context_switches: Option<f64>,
    /// The measured intervals, column by column.
    pub samples: RunSamples,
}

/// A run's throughput over time, column by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunSamples {
    /// End of the interval, in seconds since measuring began.
    pub elapsed: Series,
    /// TPS of the interval.
    pub tps: Series,
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
    runs: Vec<ComparedRun>,
    unreplayed: Option<Unreplayed>,
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
        let (run, summary, samples) = (&document.run, &document.summary, &document.samples);
        let most = |of: &Unreplayed, other: &Unreplayed| of.share.total_cmp(&other.share);
        self.unreplayed = self.unreplayed.into_iter().chain(document.unreplayed).max_by(most);
        self.runs.push(ComparedRun {
            run_id: run.run_id,
            workload: run.workload.clone(),
            clients: run.clients,
            started_at: run.started_at.clone(),
            server_version: run.server_version.clone(),
            secs: summary.secs,
            transactions: summary.transactions,
            failed: summary.failed,
            skipped: summary.skipped,
            tps: summary.tps,
            latency_avg_ms: summary.latency_avg_ms,
            latency_p50_ms: summary.latency_p50_ms,
            latency_p95_ms: summary.latency_p95_ms,
            latency_p99_ms: summary.latency_p99_ms,
            server_cpu_us: summary.server_cpu_us,
            driver_cpu_us: summary.driver_cpu_us,
            server_context_switches: document.environment.server_context_switches,
            driver_context_switches: document.environment.driver_context_switches,
            samples: RunSamples { elapsed: samples.elapsed.clone(), tps: samples.tps.clone() },
        });
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

    /// What is shown of it by itself.
    pub(super) fn side(self) -> Side {
        let bucket = |((low, high), count)| Bucket {
            low_ms: f64::from_bits(low),
            high_ms: f64::from_bits(high),
            count,
        };
        let latencies = self.latencies.into_iter().map(bucket).collect();
        Side { runs: self.runs, unreplayed: self.unreplayed, latencies }
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
