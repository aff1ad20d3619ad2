//! How much load a server sustains: trials at offered rates, what each says, and which comes next.
//!
//! A search is a function of its trials: [`next`] looks at those made so far and names the one to make, [`answers`] says
//! what they have shown. So a search that was broken off goes on where it was, and a test can put a queue in the server's
//! place.

mod answer;
mod outcome;
mod search;

use bench_base::error::UserError;
use bench_base::error::sqlstate::INVALID_PARAMETER_VALUE;
use serde::{Deserialize, Serialize};

pub use answer::answers;
pub use bench_results::capacity::{CapacityAnswer, Limit, Purpose, TrialOutcome};
pub use outcome::outcome_of;
pub use search::next;

/// Of the highest rate that is sustained, what a server is given in operation (Google's SRE workbook and most capacity
/// plans keep some 30 % in reserve).
pub const OPERATING_SHARE: f64 = 0.7;

/// Rates at which a search ends without having met a limit: what bench.run takes.
const HIGHEST_RATE: f64 = 1e6;

/// What is searched for; travels as JSON and is kept with the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacitySearch {
    /// Milliseconds at the percentile that each objective allows, ascending; empty: throughput alone counts.
    pub latency_limits_ms: Vec<f64>,
    /// From 0 to 1.
    pub percentile: f64,
    /// Trials for each rate at most.
    pub trials: u32,
    /// The bracket about the answer: its upper end is at most this much above its lower one.
    pub margin: f64,
    /// Share of the transactions due that may fail.
    pub max_failed: f64,
    /// Searches, each from the beginning.
    pub rounds: u32,
}

impl CapacitySearch {
    /// Validates what SQL handed over.
    ///
    /// # Errors
    /// 22023 for a value out of range.
    pub fn check(mut self) -> Result<Self, UserError> {
        let invalid = |message: String| UserError::new(INVALID_PARAMETER_VALUE, message);
        for limit in &self.latency_limits_ms {
            if !(*limit > 0.0 && limit.is_finite()) {
                return Err(invalid(format!("latency_limit must be above 0 milliseconds, not {limit}")));
            }
        }
        self.latency_limits_ms.sort_by(f64::total_cmp);
        self.latency_limits_ms.dedup();
        if !(self.percentile > 0.0 && self.percentile < 1.0) {
            return Err(invalid(format!("percentile must be between 0 and 1, not {}", self.percentile))
                .hint("For the 99th percentile: percentile => 0.99."));
        }
        if !(0.005..=1.0).contains(&self.margin) {
            return Err(invalid(format!("margin must be between 0.005 and 1, not {}", self.margin))
                .hint("0.05 ends the search when a rate passes and one 5 % higher fails."));
        }
        if !(0.0..=1.0).contains(&self.max_failed) {
            return Err(invalid(format!("max_failed must be between 0 and 1, not {}", self.max_failed))
                .hint("It is the share of the transactions that may fail: 0.001 for one in a thousand."));
        }
        Ok(self)
    }

    /// The objectives, the strictest first.
    pub fn objectives(&self) -> Vec<Option<f64>> {
        match self.latency_limits_ms.as_slice() {
            [] => vec![None],
            limits => limits.iter().copied().map(Some).collect(),
        }
    }
}

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

#[cfg(test)]
mod tests;
