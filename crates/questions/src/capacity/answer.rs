//! What a search has shown.

use bench_results::capacity::{CapacityAnswer, CapacitySearch, Limit, Purpose, TrialOutcome};

use super::search::{Bracket, operating_rate, rounds_of, sustained};
use super::trial::{Reference, Trial, limit_of};

/// The answers to all objectives, the strictest first.
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
        trials: rounds.iter().map(|round| round.of(Purpose::Trial).count() as u32).sum(),
        failing: failing.into_iter().map(|(place, _)| place).collect(),
        rounds: search.rounds,
        rounds_without: brackets.iter().filter(|bracket| bracket.passes.is_none()).count() as u32,
        above: above.filter(|_| limit_ms.is_some()),
    }
}

/// Done transactions that took longer than the percentile.
fn above(outcome: &TrialOutcome, percentile: f64) -> u64 {
    (outcome.done as f64 * (1.0 - percentile)).round() as u64
}

/// The first of the most frequent ones.
fn most_frequent(limits: impl Iterator<Item = Limit> + Clone) -> Option<Limit> {
    let count = |limit: Limit| limits.clone().filter(|other| *other == limit).count();
    limits.clone().fold(None, |best: Option<Limit>, next| match best {
        Some(best) if count(best) >= count(next) => Some(best),
        _ => Some(next),
    })
}
