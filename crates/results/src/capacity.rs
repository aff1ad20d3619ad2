//! What a search for a capacity has shown; the room `capacity` makes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of a search by `bench.capacity`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapacitySearch {
    /// Objectives, ascending, in milliseconds at the percentile; empty: throughput alone.
    pub latency_limits_ms: Vec<f64>,
    /// Percentile of the latency, a share.
    pub percentile: f64,
    /// Maximum number of trials per rate.
    pub trials: u32,
    /// Maximum gap between the answer and a failing rate, as a share.
    pub margin: f64,
    /// Share of the transactions that may fail.
    pub max_failed: f64,
    /// Repeated searches, each from the beginning.
    pub rounds: u32,
}

impl CapacitySearch {
    /// The objectives, the strictest first.
    pub fn objectives(&self) -> Vec<Option<f64>> {
        match self.latency_limits_ms.as_slice() {
            [] => vec![None],
            limits => limits.iter().copied().map(Some).collect(),
        }
    }
}

/// What a run of a search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A closed loop: what the clients can do at most. It warms up as well.
    Estimate,
    /// Whether a rate passes.
    Trial,
    /// More than the clients can do, so that what comes after it follows an overload.
    Overload,
    /// Whether a rate that passed still does, after an overload.
    Return,
    /// The operating rate, over a checkpoint where the role may make one.
    Operating,
}

/// What keeps a rate from being sustained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrialOutcome {
    /// Committed transactions per second.
    pub tps: f64,
    /// Latency at the search's percentile, from when a transaction was due, in milliseconds.
    pub latency_ms: Option<f64>,
    /// Transactions due in the measured time.
    pub due: u64,
    /// Committed transactions among these.
    pub done: u64,
    /// Failed or in-doubt transactions among these.
    pub failed: u64,
    /// Growth of the lag, in seconds per second; null: it did not grow.
    pub lag_growth: Option<f64>,
    /// Mean time from a transaction's start to its end, in milliseconds.
    pub service_ms: Option<f64>,
    /// Share of the clients' time within transactions.
    pub busy: Option<f64>,
    /// Share of all processors' time idle.
    pub cpu_idle: Option<f64>,
    /// Checkpoints during the run, as far as known.
    pub checkpoints: u32,
    /// Whether errors ended clients; the rate then failed.
    pub ended_early: bool,
}

/// The answer to one objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CapacityAnswer {
    /// The objective: milliseconds allowed at the percentile; null: throughput alone.
    pub latency_limit_ms: Option<f64>,
    /// Percentile of the latency, a share.
    pub percentile: f64,
    /// Transactions per second sustained; null: in at least one round, no rate passed.
    pub rate: Option<f64>,
    /// With one round `rate`; with several the lower bound of its 95 % interval.
    pub rate_low: Option<f64>,
    /// With one round the lowest rate that failed; with several the upper bound of the 95 % interval.
    pub rate_high: Option<f64>,
    /// 70 % of the rate, if a longer run sustained it.
    pub operating_rate: Option<f64>,
    /// Checkpoints during that run, as far as known; null: there was none.
    pub checkpoints: Option<u32>,
    /// `latency`, `throughput`, `errors` or `clients`; null: no rate failed.
    pub limited_by: Option<Limit>,
    /// Whether, after an overload, a rate no longer passed that had passed before in the last round; null: not tried.
    pub hysteresis: Option<bool>,
    /// Trials of the search, all rounds.
    pub trials: u32,
    /// Places of the failed trials at the lowest rate that failed, of all rounds.
    pub failing: Vec<u32>,
    /// Rounds of the search.
    pub rounds: u32,
    /// Rounds in which no rate passed.
    pub rounds_without: u32,
    /// Smallest number of transactions above the percentile, over the trials at the answer and at the lowest failing
    /// rate; null: throughput alone.
    pub above: Option<u64>,
}
