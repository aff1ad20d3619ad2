//! The search for values: statements that only read are tried with values of some rows. Strategies and sizes are tried, and then
//! those between the ones that come near.

use std::time::Duration;

use bench_base::error::UserError;
use bench_capture::fidelity::{Call, Counts};

pub use super::choice::ChosenFeeders;

use super::choice::{CapturedCalls, NEAR, SURE, choose, nearest, single};
use super::replay_plan::{ParameterSource, ReplayPlan};
use super::sampling::{FeederShape, SampledValues, SamplingStrategy};
use super::strategies::{COMPARED, INNER_LIMITS, limits, neighbours, strategies};
use super::trial_runner::{TrialBudget, TrialRunner};
use crate::driver::parameters::How;
use crate::server::guc;
use crate::server::transaction::rolled_back;

/// How long the trials of all statements take together, each having a part of it like its share of the captured time.
const TRIAL_TIME: Duration = Duration::from_secs(25);

/// The least and the longest of one statement.
const SHORTEST: Duration = Duration::from_millis(700);
const LONGEST: Duration = Duration::from_secs(12);

/// Calls that are tried at most; values of so many may be kept.
const MOST: usize = 600;

/// Where so many come near, no more are tried.
const ENOUGH: usize = 150;

/// Of statements whose calls take longer, fewer are tried at a time.
const LONG_MS: f64 = 10.0;

/// The feeders' shape under which a statement's calls come nearest to those that were captured, or values with weights.
/// `share` is that of the captured time.
///
/// # Errors
/// Why the statement cannot be executed with any of them; 57014 where the capture was canceled.
pub fn shape(plan: &ReplayPlan, counts: &Counts, share: f64, mask: bool) -> Result<ChosenFeeders, UserError> {
    let Some(call) = Call::of(counts.calls, counts.rows, counts.hit, counts.read, counts.exec_ms) else {
        return Ok(ChosenFeeders::default());
    };
    let target = CapturedCalls { call, calls: counts.calls as f64 };
    if plan.analysed.writes || plan.values.is_empty() {
        return Ok(ChosenFeeders { shape: untried(plan, &call), kept: Vec::new() });
    }
    let path = guc::initial_search_path()?;
    // So many calls at least, each of which may take longer than those that were captured.
    let some = Duration::from_secs_f64((60.0 * call.ms / 1e3).clamp(0.0, 3600.0));
    let limit = TRIAL_TIME.mul_f64(share.clamp(0.0, 1.0)).max(some).clamp(SHORTEST, LONGEST);
    rolled_back(|| guc::with_search_path(&path, || search(plan, &target, limit, mask)))
}

/// The shape for a statement that is not tried. One that looks for a row by its key, and often finds none, gets values that no row
/// has as often.
fn untried(plan: &ReplayPlan, captured: &Call) -> FeederShape {
    const ALWAYS: f64 = 0.995;
    let meetings = || plan.analysed.parameters.iter().filter_map(|parameter| parameter.meeting.as_ref());
    let has = |how: How| meetings().any(|meeting| meeting.how == how);
    let is_by_key =
        has(How::Equal) && ![How::Array, How::Above, How::Below, How::Insert].into_iter().any(has);
    if !is_by_key || captured.rows >= ALWAYS {
        return FeederShape::default();
    }
    let missing = SamplingStrategy { drawn: SampledValues::Missing, ..SamplingStrategy::default() };
    let mut strategies = vec![(1.0 - captured.rows, missing)];
    if captured.rows > 0.0 {
        strategies.insert(0, (captured.rows, SamplingStrategy::default()));
    }
    FeederShape { strategies, ..FeederShape::default() }
}

/// Tries a statement for so long, and chooses.
///
/// # Errors
/// As [`shape`].
fn search(
    plan: &ReplayPlan,
    target: &CapturedCalls,
    limit: Duration,
    mask: bool,
) -> Result<ChosenFeeders, UserError> {
    let strategies = strategies(plan, &target.call);
    let shapes = shapes(plan, target);
    let began = TrialBudget::begin();
    let part = if shapes.len() > 1 { 0.5 } else { 1.0 };
    let of = |shape: &FeederShape| {
        let serves = |strategy: &&SamplingStrategy| strategy.page == 0 || shape.is_paged;
        let strategies: Vec<SamplingStrategy> = strategies.iter().filter(serves).cloned().collect();
        TrialRunner::new(plan, shape.clone(), &target.call, &began, limit.mul_f64(part), &strategies)
    };
    let mut runner = of(&shapes[0])?;
    explore(&mut runner, target)?;
    let worth = |runner: &TrialRunner| nearest(runner, target).map_or(-1.0, |(choice, _)| choice.worth());
    let mut best = worth(&runner);
    // Near with both.
    if best < 2.0 + NEAR * NEAR && shapes.len() > 1 {
        let next = limit.mul_f64(0.5 / shapes.len() as f64);
        let mut is_other = false;
        for (at, shape) in shapes.iter().enumerate().skip(1) {
            let Ok(mut other) = of(shape) else { continue };
            other.extend(limit.mul_f64(part) + next * at as u32);
            for strategy in 0..other.strategies() {
                other.try_some(strategy, 1)?;
            }
            let found = worth(&other);
            if found > best + 0.02 {
                (best, runner, is_other) = (found, other, true);
            }
        }
        runner.extend(limit.mul_f64(1.2));
        if is_other {
            explore(&mut runner, target)?;
        }
    }
    if runner.tried.is_empty() {
        return match runner.error.take() {
            Some(error) => Err(error),
            None => Ok(ChosenFeeders { shape: runner.shape, kept: Vec::new() }),
        };
    }
    Ok(choose(plan, &runner, target, mask))
}

/// Limits and other constants that are worth a trial, the likeliest first.
fn shapes(plan: &ReplayPlan, target: &CapturedCalls) -> Vec<FeederShape> {
    let has = |what: fn(&ParameterSource) -> bool| plan.values.iter().any(what);
    let limits = limits(&target.call);
    let first = FeederShape { limit: limits[0], ..FeederShape::default() };
    let mut shapes = vec![first.clone()];
    if has(|value| matches!(value, ParameterSource::Offset)) {
        shapes.push(FeederShape { is_paged: true, ..first.clone() });
    }
    if has(|value| matches!(value, ParameterSource::Limit)) {
        shapes.extend(limits[1..].iter().map(|&limit| FeederShape { limit, ..first.clone() }));
    }
    if has(|value| matches!(value, ParameterSource::InnerLimit)) {
        shapes.extend(
            INNER_LIMITS[1..].iter().map(|&inner_limit| FeederShape { inner_limit, ..first.clone() }),
        );
    }
    if has(|value| matches!(value, ParameterSource::Compared(_))) {
        shapes.extend(COMPARED[1..].iter().map(|&compared| FeederShape { compared, ..first.clone() }));
    }
    shapes
}

/// Tries ways, and the more of those from which values are taken.
fn explore(runner: &mut TrialRunner, target: &CapturedCalls) -> Result<(), UserError> {
    let (some, more) = if target.call.ms > LONG_MS { (1, 4) } else { (3, 15) };
    runner.try_some(0, some)?;
    if single(runner, target, 0).is_some_and(|choice| choice.least() > 0.9) {
        runner.try_some(0, 30 - some)?;
        if single(runner, target, 0).is_some_and(|choice| choice.least() > 0.98 && choice.error < SURE) {
            return Ok(());
        }
    }
    for strategy in 1..runner.strategies() {
        runner.try_some(strategy, some)?;
    }
    for factor in [3.0, 1.7, 1.3, 1.15, 1.07, 1.03, 1.0, 1.0] {
        if runner.is_late() || runner.tried.len() >= MOST {
            break;
        }
        let Some((best, _)) = nearest(runner, target) else { break };
        if best.least() > 0.99 && runner.tried.len() >= ENOUGH {
            break;
        }
        let mut shares: Vec<(f64, usize)> =
            (0..runner.strategies()).map(|strategy| (0.0, strategy)).collect();
        for (tried, weight) in runner.tried.iter().zip(&best.weights) {
            shares[tried.strategy].0 += weight;
        }
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        for strategy in between(runner, target) {
            if let Some(place) = runner.add(strategy) {
                runner.try_some(place, some)?;
            }
        }
        if let Some((_, strategy)) = shares.first() {
            for factor in [factor, 1.0 / factor] {
                for strategy in neighbours(runner.strategy(*strategy), runner.plan(), factor) {
                    if let Some(place) = runner.add(strategy) {
                        runner.try_some(place, some)?;
                    }
                }
            }
        }
        for (_, strategy) in shares.iter().take(5).filter(|(share, _)| *share > 0.03) {
            runner.try_some(*strategy, more)?;
        }
    }
    Ok(())
}

/// A size of a way: how to read it, and how to set it.
type Size = (fn(&SamplingStrategy) -> u64, fn(&mut SamplingStrategy, u64));

/// Ways between those that take less than was captured and those of the next size, which take more.
fn between(runner: &TrialRunner, target: &CapturedCalls) -> Vec<SamplingStrategy> {
    let mut found = Vec::new();
    let sizes: [Size; 2] = [
        (|strategy| strategy.beyond.unwrap_or(0), |strategy, size| strategy.beyond = Some(size)),
        (|strategy| strategy.width, |strategy, size| strategy.width = size),
    ];
    for (size, set) in sizes {
        let mut all: Vec<(usize, Call)> = (0..runner.strategies())
            .filter(|&strategy| size(runner.strategy(strategy)) > 0)
            .filter_map(|strategy| single(runner, target, strategy).map(|choice| (strategy, choice.mean)))
            .collect();
        all.sort_by_key(|&(strategy, _)| size(runner.strategy(strategy)));
        for pair in all.windows(2) {
            let [(low, one), (high, other)] = pair else { continue };
            let (low, high) = (runner.strategy(*low), runner.strategy(*high));
            let mut middle = low.clone();
            set(&mut middle, size(high));
            let is_next = middle == *high;
            let is_between = |what: fn(&Call) -> f64| {
                let wanted = what(&target.call);
                let (less, more) = (what(one).min(what(other)), what(one).max(what(other)));
                less < 0.95 * wanted && wanted * 1.05 < more
            };
            set(&mut middle, (size(low) as f64 * size(high) as f64).sqrt().round() as u64);
            if is_next && (is_between(|call| call.rows) || is_between(Call::blocks)) {
                found.push(middle);
            }
        }
    }
    found.truncate(4);
    found
}
