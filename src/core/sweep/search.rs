//! The arguments of a search for a capacity.

use crate::capacity::Search;
use crate::error::UserError;
use crate::spec::{invalid, required};

/// More are taken for a mistake: each costs trials.
const MOST_OBJECTIVES: usize = 20;
const MOST_TRIALS: i32 = 99;
const MOST_ROUNDS: i32 = 100;

/// What SQL handed over, validated; `None` is SQL's NULL.
///
/// # Errors
/// 22004 for a NULL where none may be, 22023 for a value out of range and for both kinds of limits.
pub fn search_of(
    latency_limit: Option<f64>,
    latency_limits: Option<Vec<Option<f64>>>,
    percentile: Option<f64>,
    trials: Option<i32>,
    precision: Option<f64>,
    max_failed: Option<f64>,
    rounds: Option<i32>,
) -> Result<Search, UserError> {
    let latency_limits_ms = match (latency_limit, latency_limits) {
        (Some(_), Some(_)) => {
            return Err(invalid("latency_limit and latency_limits are mutually exclusive")
                .hint("Set one of them and leave the other NULL."));
        }
        (Some(limit), None) => vec![limit],
        (None, Some(limits)) if limits.is_empty() => {
            return Err(invalid("latency_limits must name at least one objective")
                .hint("For example: latency_limits => '{5,10,25}'; NULL: throughput alone."));
        }
        (None, Some(limits)) if limits.len() > MOST_OBJECTIVES => {
            return Err(invalid(format!(
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
        count => Err(invalid(format!("{name} must be between 1 and {most}, not {count}"))),
    };
    Search {
        latency_limits_ms,
        percentile: required("percentile", percentile)?,
        trials: count("trials", trials, MOST_TRIALS)?,
        precision: required("precision", precision)?,
        max_failed: required("max_failed", max_failed)?,
        rounds: count("rounds", rounds, MOST_ROUNDS)?,
    }
    .check()
}
