//! What a run at an offered rate showed, and whether that is enough.

use serde::{Deserialize, Serialize};

use super::Search;
use crate::document::Document;
use crate::stats::histogram::percentile_of;
use crate::stats::trend::slope;

/// Of the transactions due, how many have to be done.
const LEAST_DONE: f64 = 0.99;

/// Seconds per second by which the schedule's lag may grow: as many transactions, as a share, are not served. Below what
/// [`LEAST_DONE`] shows at the end, for it is seen as it grows.
const LAG_GROWTH: f64 = 0.005;

/// How sure the growth has to be.
const CONFIDENCE: f64 = 0.99;

/// Clients that are so busy, as a share of their time, are all of them.
const BUSY: f64 = 0.9;

/// A server idles that has this share of its processors' time left.
const IDLE: f64 = 0.25;

/// A server that takes so many times as long as with little load suffers from the load.
const SUFFERS: f64 = 1.25;

/// What keeps a rate from being sustained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// The percentile is beyond the objective.
    Latency,
    /// Transactions were not done, or ever later.
    Throughput,
    /// More failed than may.
    Errors,
    /// All clients were busy while the server was not: with more of them it could do more.
    Clients,
}

impl Limit {
    /// As bench.capacities has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Errors => "errors",
            Self::Clients => "clients",
        }
    }
}

/// The figures of a trial that count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Done per second.
    pub tps: f64,
    /// The latency at the search's percentile, from when a transaction was due.
    pub latency_ms: Option<f64>,
    /// Transactions due in the measured time.
    pub due: u64,
    pub done: u64,
    /// Due, and failed for good or of unknown fate.
    pub failed: u64,
    /// Seconds per second by which transactions started ever later; `None`: they did not, as far as can be told.
    pub lag_growth: Option<f64>,
    /// Mean time from a transaction's start to its end.
    pub service_ms: Option<f64>,
    /// Share of the clients' time within transactions.
    pub busy: Option<f64>,
    /// Share of the processors' time; `None` of a server elsewhere.
    pub cpu_idle: Option<f64>,
}

impl Outcome {
    /// Of a completed run.
    pub fn of(document: &Document, percentile: f64) -> Self {
        let summary = &document.summary;
        let lost = [Some(summary.failed), summary.aborted, summary.unknown];
        let failed = lost.into_iter().flatten().fold(0, u64::saturating_add);
        let buckets = document.latencies.iter().map(|bucket| (bucket.low_ms, bucket.high_ms, bucket.count));
        let tps = summary.tps.unwrap_or_default();
        let service_ms =
            summary.latency_avg_ms.map(|all| (all - summary.lag_avg_ms.unwrap_or_default()).max(0.0));
        Self {
            tps,
            latency_ms: percentile_of(buckets, percentile),
            due: document.due(),
            done: summary.transactions,
            failed,
            lag_growth: lag_growth(document),
            service_ms,
            busy: service_ms.map(|ms| tps * ms / 1e3 / document.all_clients() as f64),
            cpu_idle: mean(&document.samples.cpu_idle),
        }
    }

    /// Why the rate is not sustained under a limit of the latency; `None`: it is. `light_ms`: how long a transaction took
    /// with the least load.
    pub fn limit(&self, search: &Search, limit_ms: Option<f64>, light_ms: Option<f64>) -> Option<Limit> {
        let due = self.due as f64;
        if self.failed as f64 > search.max_failed * due {
            return Some(Limit::Errors);
        }
        let is_behind = (self.done as f64) < LEAST_DONE * due || self.due == 0 || self.lag_growth.is_some();
        let is_late = limit_ms.is_some_and(|limit| self.latency_ms.is_none_or(|ms| ms > limit));
        match (is_behind, is_late) {
            (false, false) => None,
            _ if self.clients_are_the_limit(light_ms) => Some(Limit::Clients),
            (true, _) => Some(Limit::Throughput),
            (false, true) => Some(Limit::Latency),
        }
    }

    /// Whether more clients could do more: all are busy, processors are idle, and a transaction takes no longer than with
    /// little load.
    fn clients_are_the_limit(&self, light_ms: Option<f64>) -> bool {
        let (Some(busy), Some(service), Some(light)) = (self.busy, self.service_ms, light_ms) else {
            return false;
        };
        busy >= BUSY && self.cpu_idle.is_none_or(|idle| idle >= IDLE) && service <= SUFFERS * light
    }
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

fn mean(series: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = series.iter().copied().flatten().filter(|value| value.is_finite()).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}
