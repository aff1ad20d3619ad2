//! What a search for a capacity has shown; the room `capacity` makes it.

use serde::{Deserialize, Serialize};

/// What a run of a search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(default)]
pub struct TrialOutcome {
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
    /// Checkpoints that fell into it, as far as that is known.
    pub checkpoints: u32,
    /// Errors ended clients, so that fewer of them served the rest.
    pub ended_early: bool,
}

/// The answer to one objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityAnswer {
    /// Milliseconds; `None`: throughput alone counted.
    pub latency_limit_ms: Option<f64>,
    pub percentile: f64,
    /// Transactions per second that are sustained; `None`: none of the rates tried, in a round at least.
    pub rate: Option<f64>,
    /// Of a single search the greatest rate that passed, and the least that failed above it; of several the 95 % interval of
    /// their mean.
    pub rate_low: Option<f64>,
    pub rate_high: Option<f64>,
    /// 70 % of the rate, where a longer run has held it.
    pub operating_rate: Option<f64>,
    /// Checkpoints that fell into that run, as far as that is known; `None`: there was none.
    pub checkpoints: Option<u32>,
    /// What kept the next higher rate from being sustained, in most rounds; `None`: no rate failed.
    pub limited_by: Option<Limit>,
    /// Whether the rate of the last round was no longer sustained after an overload; `None`: not tried.
    pub hysteresis: Option<bool>,
    /// Trials that served the search.
    pub trials: u32,
    /// Places of the runs that showed the limit: those of the least rate that failed, of all rounds.
    pub failing: Vec<u32>,
    pub rounds: u32,
    /// Of these, in which no rate tried was sustained.
    pub rounds_without: u32,
    /// Transactions above the percentile in the trial with the fewest, of those that bound the answer; `None`: throughput
    /// alone counted.
    pub above: Option<u64>,
}
