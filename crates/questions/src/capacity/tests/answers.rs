//! What trials say together.

use super::super::trial::{Reference, limit_of};
use super::{outcome, search};
use crate::capacity::{CapacitySearch, Limit, NextTrial, Purpose, Trial, TrialOutcome, answers, next};

#[test]
fn errors_that_end_clients_are_the_limit() {
    // However many transactions may fail: what is left of the clients is not what was asked for.
    let search = CapacitySearch { max_failed: 1.0, ..search(&[10.0]) };
    let ended = TrialOutcome { ended_early: true, ..outcome() };
    assert_eq!(limit_of(&ended, &search, Some(10.0), Reference::default()), Some(Limit::Errors));
}

#[test]
fn errors_in_the_closed_loop_are_told() {
    let search = search(&[10.0]);
    let step = NextTrial { round: 1, purpose: Purpose::Estimate, rate: None };
    let all_fail = TrialOutcome { due: 50, failed: 50, ..TrialOutcome::default() };
    let trials = [Trial { step, place: 1, outcome: all_fail }];
    assert_eq!(next(&search, &trials), None);
    let found = &answers(&search, &trials)[0];
    assert_eq!((found.rate, found.limited_by, &found.failing[..]), (None, Some(Limit::Errors), &[1][..]));
    // One that did something and met no limit has none.
    let trials = [Trial { step, place: 1, outcome: outcome() }];
    assert_eq!(answers(&search, &trials)[0].limited_by, None);
}

/// A trial of a first round.
fn tried(place: u32, rate: f64, outcome: TrialOutcome) -> Trial {
    Trial { step: NextTrial { round: 1, purpose: Purpose::Trial, rate: Some(rate) }, place, outcome }
}

#[test]
fn a_rate_at_which_nothing_is_due_tells_nothing() {
    let search = CapacitySearch { trials: 1, ..search(&[10.0]) };
    let estimate = Trial {
        step: NextTrial { round: 1, purpose: Purpose::Estimate, rate: None },
        place: 1,
        outcome: outcome(),
    };
    let late = TrialOutcome { latency_ms: Some(50.0), ..outcome() };
    let mut trials = vec![estimate, tried(2, 50.0, late.clone()), tried(3, 22.22, late)];
    let silent = next(&search, &trials).and_then(|step| step.rate).expect("a lower rate");
    trials.push(tried(4, silent, TrialOutcome::default()));
    assert_eq!(next(&search, &trials), None);
    let found = &answers(&search, &trials)[0];
    assert_eq!((found.rate, found.rate_high, found.limited_by), (None, Some(22.22), Some(Limit::Latency)));
    assert_eq!(found.failing, [3]);
}

#[test]
fn few_transactions_above_the_percentile_are_counted() {
    let search = CapacitySearch { trials: 1, margin: 1.0, ..search(&[10.0]) };
    let of = |latency_ms, done| TrialOutcome { latency_ms: Some(latency_ms), done, due: done, ..outcome() };
    let trials =
        [tried(1, 100.0, of(5.0, 700)), tried(2, 200.0, of(50.0, 1400)), tried(3, 400.0, of(90.0, 20))];
    assert_eq!(answers(&search, &trials)[0].above, Some(7));
    let alone = CapacitySearch { latency_limits_ms: Vec::new(), ..search };
    assert_eq!(answers(&alone, &trials)[0].above, None);
}

#[test]
fn a_round_without_an_answer_leaves_none() {
    let search = CapacitySearch { trials: 1, margin: 1.0, rounds: 2, ..search(&[10.0]) };
    let late = TrialOutcome { latency_ms: Some(50.0), ..outcome() };
    let second = |trial: Trial| Trial { step: NextTrial { round: 2, ..trial.step }, ..trial };
    let first = [tried(1, 100.0, outcome()), tried(2, 200.0, late.clone())];
    let none = [first.to_vec(), vec![second(tried(3, 50.0, late.clone()))]].concat();
    let found = &answers(&search, &none)[0];
    assert_eq!((found.rate, found.rate_high, found.operating_rate), (None, Some(50.0), None));
    assert_eq!((found.rounds, found.rounds_without), (2, 1));
    // Of two that have one, the operating rate is that of their mean.
    let both =
        [first.to_vec(), vec![second(tried(3, 400.0, outcome())), second(tried(4, 800.0, late))]].concat();
    let mean = 200.0;
    let operating = Trial {
        step: NextTrial { round: 2, purpose: Purpose::Operating, rate: Some(140.0) },
        place: 5,
        outcome: TrialOutcome { checkpoints: 1, ..outcome() },
    };
    let found = &answers(&search, &[both, vec![operating]].concat())[0];
    assert!((found.rate.unwrap() - mean).abs() < 1e-9);
    assert_eq!((found.operating_rate, found.checkpoints), (Some(140.0), Some(1)));
    assert_eq!((found.failing.as_slice(), found.limited_by), (&[2, 4][..], Some(Limit::Latency)));
}

#[test]
fn with_one_rate_nobody_knows_a_lighter_load() {
    let search = CapacitySearch { trials: 1, latency_limits_ms: Vec::new(), ..search(&[]) };
    let busy =
        TrialOutcome { busy: Some(1.0), service_ms: Some(9.0), cpu_idle: Some(0.9), done: 500, ..outcome() };
    let found = &answers(&search, &[tried(1, 100.0, busy)])[0];
    assert_eq!(found.limited_by, Some(Limit::Throughput));
}
