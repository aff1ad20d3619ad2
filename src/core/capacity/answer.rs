//! What a search has shown.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::search::Round;
use super::{Purpose, Search, Trial};
use crate::document::capacity::{Answer, Limit};
use crate::stats::of_logarithms;

/// The answers to all objectives, the strictest first.
pub fn answers(search: &Search, trials: &[Trial]) -> Vec<Answer> {
    search.objectives().into_iter().map(|limit_ms| answer(search, trials, limit_ms)).collect()
}

fn answer(search: &Search, trials: &[Trial], limit_ms: Option<f64>) -> Answer {
    let rounds: Vec<Round> = (1..=search.rounds).map(|round| Round::new(search, trials, round)).collect();
    let brackets: Vec<_> = rounds.iter().map(|round| round.bracket(limit_ms)).collect();
    let (Some(last), Some(bracket)) = (rounds.last(), brackets.last()) else { return Answer::default() };
    let rates: Vec<f64> = brackets.iter().filter_map(|bracket| bracket.passes).collect();
    let (rate, rate_low, rate_high) = match rates.as_slice() {
        [] => (None, None, bracket.fails),
        [rate] if rounds.len() == 1 => (Some(*rate), Some(*rate), bracket.fails),
        rates => {
            let (mean, margin) = mean_of_logarithms(rates);
            (Some(mean.exp()), Some((mean - margin).exp()), Some((mean + margin).exp()))
        }
    };
    let reference = last.reference();
    let failing: Vec<(u32, Limit)> = last
        .of(Purpose::Trial)
        .filter(|trial| trial.step.rate == bracket.fails)
        .filter_map(|trial| Some((trial.place, trial.outcome.limit(search, limit_ms, reference)?)))
        .collect();
    Answer {
        latency_limit_ms: limit_ms,
        percentile: search.percentile,
        rate,
        rate_low,
        rate_high,
        operating_rate: last.operating_rate(limit_ms),
        limited_by: most_frequent(failing.iter().map(|(_, limit)| *limit)),
        hysteresis: last.has_hysteresis(limit_ms),
        trials: rounds.iter().map(|round| round.of(Purpose::Trial).count() as u32).sum(),
        failing: failing.into_iter().map(|(place, _)| place).collect(),
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
