//! What a search for a capacity is asked: its arguments, validated once.

use bench_base::error::UserError;
use bench_model::spec::{RunArguments, required};
use bench_results::capacity::CapacitySearch;

/// More are taken for a mistake: each costs trials.
const MOST_OBJECTIVES: usize = 20;
const MOST_TRIALS: i32 = 99;
const MOST_ROUNDS: i32 = 100;

/// Validates what SQL handed over.
///
/// # Errors
/// 22023 for a value out of range.
pub(super) fn check(mut search: CapacitySearch) -> Result<CapacitySearch, UserError> {
    for limit in &search.latency_limits_ms {
        if !(*limit > 0.0 && limit.is_finite()) {
            return Err(UserError::invalid(format!(
                "latency_limit must be above 0 milliseconds, not {limit}"
            )));
        }
    }
    search.latency_limits_ms.sort_by(f64::total_cmp);
    search.latency_limits_ms.dedup();
    if !(search.percentile > 0.0 && search.percentile < 1.0) {
        return Err(UserError::invalid(format!(
            "percentile must be between 0 and 1, not {}",
            search.percentile
        ))
        .hint("For the 99th percentile: percentile => 0.99."));
    }
    if !(0.005..=1.0).contains(&search.margin) {
        return Err(UserError::invalid(format!("margin must be between 0.005 and 1, not {}", search.margin))
            .hint("0.05 ends the search when a rate passes and one 5 % higher fails."));
    }
    if !(0.0..=1.0).contains(&search.max_failed) {
        return Err(UserError::invalid(format!(
            "max_failed must be between 0 and 1, not {}",
            search.max_failed
        ))
        .hint("It is the share of the transactions that may fail: 0.001 for one in a thousand."));
    }
    Ok(search)
}

/// What SQL handed over beside a run's arguments; `None` is SQL's NULL.
#[derive(Clone, Debug, Default)]
pub struct SearchArguments {
    pub latency_limits: Option<Vec<Option<f64>>>,
    pub percentile: Option<f64>,
    pub trials: Option<i32>,
    pub margin: Option<f64>,
    pub rounds: Option<i32>,
    pub max_failed: Option<f64>,
}

impl SearchArguments {
    /// The search, and the arguments of its trials: their latency_limit is its objective.
    ///
    /// # Errors
    /// 22004 for a NULL where none may be, 22023 for a value out of range, for both kinds of limits, and for what a search
    /// finds itself.
    pub fn of_trials(self, mut run: RunArguments) -> Result<(CapacitySearch, RunArguments), UserError> {
        if run.rate.is_some() || run.rates.is_some() {
            return Err(UserError::invalid("a search for a capacity takes no rate")
                .hint("It finds the rate. To try a single one: bench.run with rate and latency_limit."));
        }
        if run.transactions.is_some() {
            return Err(UserError::invalid("a search for a capacity takes no transactions")
                .hint("A trial's number of transactions follows from its rate: set secs."));
        }
        let latency_limits_ms = match (run.latency_limit.take(), self.latency_limits) {
            (Some(_), Some(_)) => {
                return Err(UserError::invalid("latency_limit and latency_limits are mutually exclusive")
                    .hint("Set one of them and leave the other NULL."));
            }
            (Some(limit), None) => vec![limit],
            (None, Some(limits)) if limits.is_empty() => {
                return Err(UserError::invalid("latency_limits must name at least one objective")
                    .hint("For example: latency_limits => '{5,10,25}'; NULL: throughput alone."));
            }
            (None, Some(limits)) if limits.len() > MOST_OBJECTIVES => {
                return Err(UserError::invalid(format!(
                    "at most {MOST_OBJECTIVES} latency_limits are allowed, not {}",
                    limits.len()
                )));
            }
            (None, Some(limits)) => limits
                .into_iter()
                .map(|limit| required("an element of latency_limits", limit))
                .collect::<Result<_, _>>()?,
            (None, None) => Vec::new(),
        };
        let count = |name: &str, value: Option<i32>, most: i32| match required(name, value)? {
            count if (1..=most).contains(&count) => Ok(count.unsigned_abs()),
            count => Err(UserError::invalid(format!("{name} must be between 1 and {most}, not {count}"))),
        };
        let search = CapacitySearch {
            latency_limits_ms,
            percentile: required("percentile", self.percentile)?,
            trials: count("trials", self.trials, MOST_TRIALS)?,
            margin: required("margin", self.margin)?,
            max_failed: required("max_failed", self.max_failed)?,
            rounds: count("rounds", self.rounds, MOST_ROUNDS)?,
        };
        Ok((check(search)?, run))
    }
}
