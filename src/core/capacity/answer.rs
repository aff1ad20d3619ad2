//! What a search has shown.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::outcome::Reference;
use super::search::{Bracket, operating_rate, rounds_of};
use super::{Outcome, Purpose, Search, Trial};
use crate::document::capacity::{Answer, Limit};
use crate::stats::of_logarithms;

/// The answers to all objectives, the strictest first.
pub fn answers(search: &Search, trials: &[Trial]) -> Vec<Answer> {
    search.objectives().into_iter().map(|limit_ms| answer(search, trials, limit_ms)).collect()
}

fn answer(search: &Search, trials: &[Trial], limit_ms: Option<f64>) -> Answer {
    let rounds = rounds_of(search, trials);
    let brackets: Vec<Bracket> = rounds.iter().map(|round| round.bracket(limit_ms)).collect();
    let (Some(last), Some(bracket)) = (rounds.last(), brackets.last()) else { return Answer::default() };
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
                Some((trial.place, trial.outcome.limit(search, limit_ms, reference)?))
            })
        })
        .collect();
    let operating = rate.and_then(|rate| last.operating(operating_rate(rate)));
    let bounds = rounds.iter().zip(&brackets).flat_map(|(round, bracket)| round.bounding(*bracket));
    let above = bounds.map(|trial| above(&trial.outcome, search.percentile)).min();
    Answer {
        latency_limit_ms: limit_ms,
        percentile: search.percentile,
        rate,
        rate_low,
        rate_high,
        operating_rate: operating
            .filter(|trial| trial.outcome.limit(search, limit_ms, Reference::default()).is_none())
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
fn above(outcome: &Outcome, percentile: f64) -> u64 {
    (outcome.done as f64 * (1.0 - percentile)).round() as u64
}

/// The rate that all rounds together say, and the factor to either end of its 95 % interval; `None` where a round has none,
/// for the mean of the others would be that of the better ones.
pub(super) fn sustained(brackets: &[Bracket]) -> Option<(f64, f64)> {
    let rates: Vec<f64> = brackets.iter().map(|bracket| bracket.passes).collect::<Option<_>>()?;
    match rates.as_slice() {
        [] => None,
        [rate] => Some((*rate, 1.0)),
        rates => {
            let (mean, margin) = mean_of_logarithms(rates);
            Some((mean.exp(), margin.exp()))
        }
    }
}

/// Mean of the logarithms, and half the width of its 95 % interval by Student's t.
fn mean_of_logarithms(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let (mean, variance) = of_logarithms(values);
    let margin = match StudentsT::new(0.0, 1.0, count - 1.0) {
        Ok(student) => student.inverse_cdf(0.975) * (variance / count).sqrt(),
        Err(_) => f64::INFINITY,
    };
    (mean, margin)
}

/// The first of the most frequent ones.
fn most_frequent(limits: impl Iterator<Item = Limit> + Clone) -> Option<Limit> {
    let count = |limit: Limit| limits.clone().filter(|other| *other == limit).count();
    limits.clone().fold(None, |best: Option<Limit>, next| match best {
        Some(best) if count(best) >= count(next) => Some(best),
        _ => Some(next),
    })
}
