//! A trial, a run at an offered rate: what it showed, and whether that is enough.

use bench_base::number::mean;
use bench_results::Document;
use bench_results::capacity::{CapacitySearch, Limit, Purpose, TrialOutcome};
use bench_stats::histogram::percentile_of;
use bench_stats::trend::slope;
use serde::{Deserialize, Serialize};

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextTrial {
    /// From 1.
    pub round: u32,
    pub purpose: Purpose,
    /// Transactions per second; `None`: a closed loop.
    pub rate: Option<f64>,
}

/// A run that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub step: NextTrial,
    /// The run's place in its sweep.
    pub place: u32,
    pub outcome: TrialOutcome,
}

/// Of the transactions due, how many have to be done.
const LEAST_DONE: f64 = 0.99;

/// Seconds per second by which the schedule's lag may grow: as many transactions, as a share, are not served. Below what
/// [`LEAST_DONE`] shows at the end, for it is seen as it grows.
const LAG_GROWTH: f64 = 0.005;

/// How sure the growth has to be.
const CONFIDENCE: f64 = 0.99;

/// With clients that are so busy, as a share of their time, transactions wait for one.
const BUSY: f64 = 0.7;

/// A server idles that has this share of its processors' time left.
const IDLE: f64 = 0.25;

/// A server that takes so many times as long as with little load suffers from the load.
const SUFFERS: f64 = 1.25;

/// How the server was otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reference {
    /// How long a transaction took with the least load.
    pub light_ms: Option<f64>,
    /// The percentile in a closed loop: with all clients busy, and without waiting for one.
    pub closed_ms: Option<f64>,
}

/// What a run showed that completed, or whose clients were ended by errors.
pub fn outcome_of(document: &Document, percentile: f64) -> TrialOutcome {
    let summary = &document.summary;
    let lost = [Some(summary.failed), summary.aborted, summary.unknown];
    let failed = lost.into_iter().flatten().fold(0, u64::saturating_add);
    let buckets = document.latencies.iter().map(|bucket| (bucket.low_ms, bucket.high_ms, bucket.count));
    let tps = summary.tps.unwrap_or_default();
    let service_ms =
        summary.latency_avg_ms.map(|all| (all - summary.lag_avg_ms.unwrap_or_default()).max(0.0));
    TrialOutcome {
        tps,
        latency_ms: percentile_of(buckets, percentile),
        due: document.due(),
        done: summary.transactions,
        failed,
        lag_growth: lag_growth(document),
        service_ms,
        busy: service_ms.map(|ms| tps * ms / 1e3 / document.all_clients() as f64),
        cpu_idle: mean(&document.samples.cpu_idle),
        checkpoints: document.events.iter().filter(|event| event.kind == "checkpoint").count() as u32,
        ended_early: document.run.status != "completed",
    }
}

/// Why the rate is not sustained under a limit of the latency; `None`: it is.
pub fn limit_of(
    outcome: &TrialOutcome,
    search: &CapacitySearch,
    limit_ms: Option<f64>,
    reference: Reference,
) -> Option<Limit> {
    let due = outcome.due as f64;
    if outcome.ended_early || outcome.failed as f64 > search.max_failed * due {
        return Some(Limit::Errors);
    }
    let is_behind =
        (outcome.done as f64) < LEAST_DONE * due || outcome.due == 0 || outcome.lag_growth.is_some();
    let is_late = limit_ms.is_some_and(|limit| outcome.latency_ms.is_none_or(|ms| ms > limit));
    match (is_behind, is_late) {
        (false, false) => None,
        _ if clients_are_the_limit(outcome, limit_ms, reference) => Some(Limit::Clients),
        (true, _) => Some(Limit::Throughput),
        (false, true) => Some(Limit::Latency),
    }
}

/// Whether more clients could do more: transactions wait for one, the processors are idle, and a transaction that has one
/// takes no longer than with little load, nor too long with all of them busy.
fn clients_are_the_limit(outcome: &TrialOutcome, limit_ms: Option<f64>, reference: Reference) -> bool {
    let (Some(busy), Some(service), Some(light)) = (outcome.busy, outcome.service_ms, reference.light_ms)
    else {
        return false;
    };
    let would_do = limit_ms.is_none_or(|limit| reference.closed_ms.is_some_and(|ms| ms <= limit));
    busy >= BUSY && outcome.cpu_idle.is_none_or(|idle| idle >= IDLE) && service <= SUFFERS * light && would_do
}

/// By how much the lag behind the schedule grew per second, where it did for sure.
fn lag_growth(document: &Document) -> Option<f64> {
    let samples = &document.samples;
    let points: Vec<(f64, f64)> = samples
        .elapsed
        .iter()
        .zip(&samples.lag_avg_ms)
        .filter_map(|(elapsed, lag)| Some(((*elapsed)?, (*lag)? / 1e3)))
        .collect();
    let slope = slope(&points)?;
    (slope.slope >= LAG_GROWTH && slope.slope > slope.margin(CONFIDENCE)).then_some(slope.slope)
}
