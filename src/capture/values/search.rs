//! The search for values: statements that only read are tried with values of some rows. Strategies and sizes are tried, then those
//! between the ones that come near, and of what was tried what comes nearest is taken.

use std::time::Duration;

use bench_base::error::UserError;
use bench_capture::fidelity::{Call, Counts, Likeness, likeness};
use bench_capture::statements::{fit, generic_share, mean};

use super::queries::is_sampled;
use super::replay_plan::{
    COMPARED, FeederShape, INNER_LIMITS, ParameterSource, ParameterValues, ReplayPlan, SampledValues,
    SamplingStrategy, limits, neighbours, strategies,
};
use super::trial_runner::{TrialBudget, TrialRunner};
use crate::driver::parameters::How;
use crate::server::guc;
use crate::server::transaction::rolled_back;

/// What statements want together beside [`SHORTEST`], each a part of it like its share of the captured time.
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

/// The least that a statement gets of a time that is over.
const LEAST: Duration = Duration::from_millis(50);

/// Returns how long a statement with such a share of the captured time would be tried, if there was time enough for all: long
/// enough for some calls, each of which may take longer than those that were captured.
pub fn wanted(counts: &Counts, share: f64) -> Duration {
    const CALLS: f64 = 60.0;
    let calls_secs = CALLS * counts.exec_ms / counts.calls.max(1) as f64 / 1e3;
    let some = Duration::from_secs_f64(calls_secs.clamp(0.0, LONGEST.as_secs_f64()));
    TRIAL_TIME.mul_f64(share.clamp(0.0, 1.0)).max(some).clamp(SHORTEST, LONGEST)
}

/// The time for the trials of several statements, which is divided among them by what each wants. What one leaves, the next ones
/// get.
pub struct TrialTime {
    whole: Duration,
    began: TrialBudget,
    /// What the statements that are still to come want.
    wanted: Duration,
}

impl TrialTime {
    /// Begins a time for statements that want so much together.
    pub fn begin(whole: Duration, wanted: Duration) -> Self {
        Self { whole, began: TrialBudget::begin(), wanted }
    }

    /// Returns what the next statement gets.
    pub fn next(&mut self, wanted: Duration) -> Duration {
        let left = self.began.left(self.whole).as_secs_f64();
        let part = (left / self.wanted.max(wanted).as_secs_f64()).min(1.0);
        self.wanted = self.wanted.saturating_sub(wanted);
        wanted.mul_f64(part).max(LEAST)
    }
}

/// The feeders' shape under which a statement's calls come nearest to those that were captured, or values with weights. Trials
/// end after `limit`.
///
/// # Errors
/// Why the statement cannot be executed with any of them; 57014 where the capture was canceled.
pub fn shape(
    plan: &ReplayPlan,
    counts: &Counts,
    limit: Duration,
    mask: bool,
) -> Result<ChosenFeeders, UserError> {
    let Some(call) = Call::of(counts.calls, counts.rows, counts.hit, counts.read, counts.exec_ms) else {
        return Ok(ChosenFeeders::default());
    };
    let target = CapturedCalls { call, calls: counts.calls as f64 };
    if plan.analysed.writes || plan.values.is_empty() {
        return Ok(ChosenFeeders { shape: untried(plan, &call), kept: Vec::new() });
    }
    let path = guc::initial_search_path()?;
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

/// How near rows and blocks have to come for feeders over a relation.
const NEAR: f64 = 0.96;

/// How near one of them has to come to be right.
const RIGHT: f64 = 0.93;

/// The relative error that their means may have.
const SURE: f64 = 0.03;

/// What comes nearest to the captured calls.
#[derive(Default)]
pub struct ChosenFeeders {
    pub shape: FeederShape,
    /// What values of all parameters are made of, with their weights, where they come nearer than feeders over relations do.
    pub kept: Vec<(f64, ParameterValues)>,
}

/// A choice of what was tried.
pub struct TrialChoice {
    /// One for each call that was tried.
    pub weights: Vec<f64>,
    /// What a call takes on average.
    pub mean: Call,
    likeness: Likeness,
    /// The relative error of the means.
    pub error: f64,
}

impl TrialChoice {
    /// The worse of both.
    pub fn least(&self) -> f64 {
        self.likeness.rows.min(self.likeness.blocks)
    }

    /// What is to be as high as possible: one that is right is worth more than two that are half right.
    pub fn worth(&self) -> f64 {
        let right = |ratio: f64| if ratio - self.error > RIGHT { 1.0 } else { 0.0 };
        right(self.likeness.rows) + right(self.likeness.blocks) + self.likeness.score - self.error
    }
}

/// What was captured of a statement.
pub struct CapturedCalls {
    pub call: Call,
    pub calls: f64,
}

/// What calls take when so large a share of them has the generic plan.
fn calls(runner: &TrialRunner, share: f64) -> Vec<Call> {
    let between = |one: f64, other: f64| one + share * (other - one);
    runner
        .tried
        .iter()
        .map(|tried| Call {
            rows: between(tried.custom.rows, tried.generic.rows),
            hit: between(tried.custom.blocks(), tried.generic.blocks()),
            read: 0.0,
            ms: between(tried.custom.ms, tried.generic.ms),
        })
        .collect()
}

/// The share of a run's calls that have the generic plan, when values come with such weights.
fn generic(runner: &TrialRunner, target: &CapturedCalls, weights: &[f64]) -> f64 {
    if !runner.has_plans() {
        return 1.0;
    }
    let costs: Vec<f64> = runner.tried.iter().map(|tried| tried.cost).collect();
    // Of one session: as many calls as were captured are shared by some.
    let calls = (target.calls / 4.0).clamp(8.0, 300.0) as u32;
    generic_share(runner.generic_cost, &costs, weights, calls)
}

/// How near these weights come.
fn expected(runner: &TrialRunner, target: &CapturedCalls, weights: Vec<f64>) -> TrialChoice {
    let calls = calls(runner, generic(runner, target, &weights));
    let mean = mean(&calls, &weights);
    TrialChoice { likeness: likeness(&target.call, &mean), mean, weights, error: 0.0 }
}

/// The weights under which what was tried comes nearest, the run's choice of plans being what it is with them; and those to
/// begin with.
fn nearest(runner: &TrialRunner, target: &CapturedCalls) -> Option<(TrialChoice, Vec<f64>)> {
    let mut begin = vec![0.0; runner.tried.len()];
    for strategy in 0..runner.strategies() {
        let Some(single) = single(runner, target, strategy) else { continue };
        // Ways that come near by themselves are worth more than others.
        let worth = single.likeness.score.powi(2).max(0.01);
        begin.iter_mut().zip(&single.weights).for_each(|(sum, weight)| *sum += worth * weight);
    }
    toward(runner, target, &target.call, &begin).map(|choice| (choice, begin))
}

/// As [`nearest`]; where rows and blocks cannot both be reached, one of them, and the other as nearly as that lets it.
fn nearest_or_one(runner: &TrialRunner, target: &CapturedCalls) -> Option<TrialChoice> {
    let (mut best, begin) = nearest(runner, target)?;
    if best.least() < RIGHT {
        for factor in [0.3, 0.5, 0.7, 0.85, 1.2, 1.4, 1.7, 2.0, 3.0] {
            let call = target.call;
            let blocks = Call { hit: call.blocks() * factor, read: 0.0, ..call };
            let rows = Call { rows: call.rows * factor, ..call };
            for wanted in [blocks, rows] {
                let found = toward(runner, target, &wanted, &begin);
                best = found.into_iter().fold(best, |best, found| {
                    if found.worth() > best.worth() + 0.001 { found } else { best }
                });
            }
        }
    }
    Some(best)
}

/// The weights under which what was tried comes nearest to such a call.
fn toward(runner: &TrialRunner, target: &CapturedCalls, wanted: &Call, begin: &[f64]) -> Option<TrialChoice> {
    let mut best: Option<(f64, TrialChoice)> = None;
    let mut shares = if runner.has_plans() { vec![0.0, 1.0, 0.2, 0.5, 0.8] } else { vec![1.0] };
    let mut at = 0;
    while let Some(share) = shares.get(at).copied() {
        at += 1;
        let Some(fit) = fit(wanted, &calls(runner, share), begin, target.calls) else { continue };
        let found = generic(runner, target, &fit.weights);
        if (found - share).abs() > 0.01 && shares.len() < 9 {
            shares.push(found);
        }
        let near = likeness(wanted, &mean(&calls(runner, found), &fit.weights));
        let least = near.rows.min(near.blocks);
        if best.as_ref().is_none_or(|(best, _)| least > best + 0.001) {
            best = Some((least, expected(runner, target, fit.weights)));
        }
    }
    best.map(|(_, choice)| choice)
}

/// How near one way comes, as often as it was tried.
pub fn single(runner: &TrialRunner, target: &CapturedCalls, strategy: usize) -> Option<TrialChoice> {
    let count = runner.tried.iter().filter(|tried| tried.strategy == strategy).count() as f64;
    if count == 0.0 {
        return None;
    }
    let weights: Vec<f64> =
        runner.tried.iter().map(|tried| if tried.strategy == strategy { 1.0 / count } else { 0.0 }).collect();
    let calls = calls(runner, generic(runner, target, &weights));
    let mean = mean(&calls, &weights);
    let deviation = |what: fn(&Call) -> f64, least: f64| {
        let middle = what(&mean);
        let variance: f64 =
            calls.iter().zip(&weights).map(|(call, weight)| weight * (what(call) - middle).powi(2)).sum();
        (variance / (count - 1.0).max(1.0)).sqrt() / middle.max(least)
    };
    // Few calls that are alike are no proof that all are.
    let error = deviation(|call| call.rows, 0.05).max(deviation(Call::blocks, 1.0)) + 0.3 / count;
    Some(TrialChoice { likeness: likeness(&target.call, &mean), mean, weights, error })
}

/// Feeders over relations where they come near, for these have the most different values; kept values otherwise.
pub fn choose(plan: &ReplayPlan, runner: &TrialRunner, target: &CapturedCalls, mask: bool) -> ChosenFeeders {
    let mut best: Option<(f64, FeederShape)> = None;
    let mut offer = |worth: f64, strategies: Vec<(f64, SamplingStrategy)>| {
        if best.as_ref().is_none_or(|(least, _)| worth > *least) {
            best = Some((worth, FeederShape { strategies, ..runner.shape.clone() }));
        }
    };
    // OFFSET is a number that only kept values have; and what is far from the end was found in a sample.
    let rows = plan.relations.iter().map(|relation| relation.rows).fold(0.0, f64::max);
    let is_exact =
        |strategy: &SamplingStrategy| mask || strategy.beyond.is_none_or(|beyond| !is_sampled(rows, beyond));
    let serves = |strategy: &SamplingStrategy| !runner.shape.is_paged && is_exact(strategy);
    let singles: Vec<(usize, TrialChoice)> = (0..runner.strategies())
        .filter(|&strategy| serves(runner.strategy(strategy)))
        .filter_map(|strategy| single(runner, target, strategy).map(|choice| (strategy, choice)))
        .collect();
    for (strategy, choice) in &singles {
        offer(choice.worth(), vec![(1.0, runner.strategy(*strategy).clone())]);
    }
    let fed = (0..plan.analysed.occurrences.len()).filter(|&at| !plan.parameters(at).is_empty()).count();
    if fed == 1
        && let Some((shares, choice)) = mixture(runner, target, &singles)
    {
        // Simpler is better.
        let strategies =
            shares.iter().map(|(share, strategy)| (*share, runner.strategy(*strategy).clone())).collect();
        offer(choice.worth() - 0.01, strategies);
    }
    let is_near = best.as_ref().is_some_and(|(worth, _)| *worth > 2.0 + NEAR * NEAR - SURE);
    let has_fed = fed > 0 || runner.shape.is_paged;
    if !mask
        && has_fed
        && !is_near
        && let Some(choice) = nearest_or_one(runner, target)
        && best.as_ref().is_none_or(|(worth, _)| choice.worth() > *worth)
    {
        return ChosenFeeders { shape: runner.shape.clone(), kept: kept(runner, &choice.weights) };
    }
    let shape =
        FeederShape { is_paged: false, ..best.map_or_else(|| runner.shape.clone(), |(_, shape)| shape) };
    ChosenFeeders { shape, kept: Vec::new() }
}

/// Some ways with their shares, and how near they come together.
fn mixture(
    runner: &TrialRunner,
    target: &CapturedCalls,
    singles: &[(usize, TrialChoice)],
) -> Option<(Vec<(f64, usize)>, TrialChoice)> {
    const STRATEGIES: usize = 4;
    let means: Vec<Call> = singles
        .iter()
        .map(|(_, choice)| mean(&calls(runner, generic(runner, target, &choice.weights)), &choice.weights))
        .collect();
    let begin: Vec<f64> = singles.iter().map(|(_, choice)| choice.likeness.score.powi(2).max(0.01)).collect();
    // The fewest that serve: those that the others add little to.
    let all = fit(&target.call, &means, &begin, target.calls)?;
    let mut order: Vec<usize> = (0..singles.len()).collect();
    order.sort_by(|&a, &b| all.weights[b].total_cmp(&all.weights[a]));
    order.truncate(STRATEGIES);
    let few = |values: &[f64]| order.iter().map(|&at| values[at]).collect::<Vec<f64>>();
    let few_means: Vec<Call> = order.iter().map(|&at| means[at]).collect();
    let fit = fit(&target.call, &few_means, &few(&begin), target.calls)?;
    let chosen: Vec<(f64, usize)> = fit
        .weights
        .iter()
        .zip(&order)
        .filter(|(share, _)| **share > 0.005)
        .map(|(share, &at)| ((share * 1e4).round() / 1e4, at))
        .collect();
    let mut weights = vec![0.0; runner.tried.len()];
    let mut variance = 0.0;
    for &(share, at) in &chosen {
        let one = &singles[at].1;
        weights.iter_mut().zip(&one.weights).for_each(|(sum, weight)| *sum += share * weight);
        // An error relative to its own mean, made relative to the captured one.
        let size = |what: fn(&Call) -> f64, least: f64| what(&means[at]) / what(&target.call).max(least);
        let size = size(|call| call.rows, 0.05).max(size(Call::blocks, 1.0));
        variance += (share * one.error * size).powi(2);
    }
    let choice = TrialChoice { error: variance.sqrt(), ..expected(runner, target, weights) };
    Some((chosen.into_iter().map(|(share, at)| (share, singles[at].0)).collect(), choice))
}

fn kept(runner: &TrialRunner, weights: &[f64]) -> Vec<(f64, ParameterValues)> {
    let all = runner.tried.iter().zip(weights).filter(|(_, weight)| **weight > 1e-6);
    all.map(|(tried, weight)| (*weight, tried.raw.clone())).collect()
}
