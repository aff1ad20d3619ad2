//! Searches the load that a server sustains, by trials at offered rates.
//!
//! A search is a function of its trials: [`next`] returns the next trial, [`answers`] what the trials made so far show. So an
//! interrupted search continues where it was, and tests can replace the server by a queue.

mod search;
#[cfg(test)]
mod tests;

use bench_base::error::UserError;
use bench_model::spec::{RunArguments, required};

pub use bench_results::experiment::{CapacityAnswer, CapacitySearch, Limit, Purpose, TrialOutcome};

use crate::capacity::search::{Bracket, Reference, limit_of, operating_rate, rounds_of, sustained};

pub use crate::capacity::search::{NextTrial, OPERATING_SHARE, Trial, next, outcome_of};

/// Limits of arguments; larger numbers are probably mistakes, as each costs trials.
const MOST_OBJECTIVES: usize = 20;
const MOST_TRIALS: i32 = 99;
const MOST_ROUNDS: i32 = 100;

/// Validates a search's arguments.
///
/// # Errors
/// 22023 for a value out of range.
pub(crate) fn checked(mut search: CapacitySearch) -> Result<CapacitySearch, UserError> {
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

/// The SQL arguments of a search beside a run's; `None` is NULL.
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
    /// Returns the search, and the arguments of its trials, whose latency_limit becomes its objective.
    ///
    /// # Errors
    /// 22004 for a NULL that is not allowed; 22023 for a value out of range, for both kinds of limits, and for a rate or a number
    /// of transactions.
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
        Ok((checked(search)?, run))
    }
}

/// Returns the answers to all objectives, the strictest first.
pub fn answers(search: &CapacitySearch, trials: &[Trial]) -> Vec<CapacityAnswer> {
    search.objectives().into_iter().map(|limit_ms| answer(search, trials, limit_ms)).collect()
}

fn answer(search: &CapacitySearch, trials: &[Trial], limit_ms: Option<f64>) -> CapacityAnswer {
    let rounds = rounds_of(search, trials);
    let brackets: Vec<Bracket> = rounds.iter().map(|round| round.bracket(limit_ms)).collect();
    let (Some(last), Some(bracket)) = (rounds.last(), brackets.last()) else {
        return CapacityAnswer::default();
    };
    let (rate, rate_low, rate_high) = match (sustained(&brackets), brackets.as_slice()) {
        (None, _) => (None, None, brackets.iter().filter_map(|bracket| bracket.fails).reduce(f64::min)),
        (Some((rate, _)), [_]) => (Some(rate), Some(rate), bracket.fails),
        (Some((rate, factor)), _) => (Some(rate), Some(rate / factor), Some(rate * factor)),
    };
    let failing: Vec<(u32, Limit)> = rounds
        .iter()
        .zip(&brackets)
        .flat_map(|(round, bracket)| {
            let reference = round.reference();
            round.failing(*bracket).filter_map(move |trial| {
                Some((trial.place, limit_of(&trial.outcome, search, limit_ms, reference)?))
            })
        })
        .collect();
    let operating = rate.and_then(|rate| last.operating(operating_rate(rate)));
    let bounds = rounds.iter().zip(&brackets).flat_map(|(round, bracket)| round.bounding(*bracket));
    let above = bounds.map(|trial| above(&trial.outcome, search.percentile)).min();
    CapacityAnswer {
        latency_limit_ms: limit_ms,
        percentile: search.percentile,
        rate,
        rate_low,
        rate_high,
        operating_rate: operating
            .filter(|trial| limit_of(&trial.outcome, search, limit_ms, Reference::default()).is_none())
            .and_then(|trial| trial.step.rate),
        checkpoints: operating.map(|trial| trial.outcome.checkpoints),
        limited_by: most_frequent(failing.iter().map(|(_, limit)| *limit)),
        hysteresis: last.has_hysteresis(limit_ms),
        trials: rounds.iter().map(|round| round.trials_for(Purpose::Trial).count() as u32).sum(),
        failing: failing.into_iter().map(|(place, _)| place).collect(),
        rounds: search.rounds,
        rounds_without: brackets.iter().filter(|bracket| bracket.passes.is_none()).count() as u32,
        above: above.filter(|_| limit_ms.is_some()),
    }
}

/// Returns the number of completed transactions above the percentile.
fn above(outcome: &TrialOutcome, percentile: f64) -> u64 {
    (outcome.done as f64 * (1.0 - percentile)).round() as u64
}

/// Returns the first of the most frequent limits.
fn most_frequent(limits: impl Iterator<Item = Limit> + Clone) -> Option<Limit> {
    let count = |limit: Limit| limits.clone().filter(|other| *other == limit).count();
    limits.clone().fold(None, |best: Option<Limit>, next| match best {
        Some(best) if count(best) >= count(next) => Some(best),
        _ => Some(next),
    })
}
