//! The search for parameter values under which a statement's calls take as many rows and blocks as the captured calls did.
//!
//! Statements that only read are executed with values of each sampling strategy. Strategies with sizes between the nearest ones
//! are added, most trials go to the strategies with the largest weights, and the nearest weighting of the trials is chosen.

use std::time::Duration;

use bench_base::error::UserError;
use bench_capture::fidelity::{Call, Counts, Likeness, likeness};
use bench_capture::statements::{
    MIN_MEAN_BLOCKS, MIN_MEAN_ROWS, fit, generic_share, mean, relative_deviation,
};

use super::queries::is_sampled;
use super::replay_plan::{
    COMPARED_NUMBERS, FeederShape, INNER_LIMITS, ParameterSource, ParameterValues, ReplayPlan, SampledValues,
    SamplingStrategy, candidate_limits, candidate_strategies, scale_sizes,
};
use super::trial_runner::{TrialBudget, TrialRunner};
use crate::driver::parameters::How;
use crate::server::guc;
use crate::server::transaction::rolled_back;

/// Time for all statements together, divided by their shares of the captured time; each gets at least [`SHORTEST`].
const TRIAL_TIME: Duration = Duration::from_secs(25);

/// Bounds of the time for one statement.
const SHORTEST: Duration = Duration::from_millis(700);
const LONGEST: Duration = Duration::from_secs(12);

/// Time for a statement when the time for all is over.
const LEAST: Duration = Duration::from_millis(50);

/// Most calls that are tried; the values of as many may be stored.
const MAX_CALLS: usize = 600;

/// Returns the trial time that a statement with this share of the captured time would get if time were not short: enough for
/// some calls, each of which may take longer than the captured ones.
pub fn desired_trial_time(counts: &Counts, share: f64) -> Duration {
    const CALLS: f64 = 60.0;
    let calls_secs = CALLS * counts.exec_ms / counts.calls.max(1) as f64 / 1e3;
    let calls_time = Duration::from_secs_f64(calls_secs.clamp(0.0, LONGEST.as_secs_f64()));
    TRIAL_TIME.mul_f64(share.clamp(0.0, 1.0)).max(calls_time).clamp(SHORTEST, LONGEST)
}

/// Time for the trials of several statements, divided in proportion to their desired times. Time that one statement leaves is
/// divided among the next ones.
pub struct TrialTime {
    whole: Duration,
    budget: TrialBudget,
    /// The sum of the desired times of the statements to come.
    desired: Duration,
}

impl TrialTime {
    /// Starts the clock; `desired` is the sum of the statements' desired times.
    pub fn begin(whole: Duration, desired: Duration) -> Self {
        Self { whole, budget: TrialBudget::begin(), desired }
    }

    /// Returns the time for the next statement, from its desired time.
    pub fn allot(&mut self, desired: Duration) -> Duration {
        let remaining = self.budget.remaining(self.whole).as_secs_f64();
        let part = (remaining / self.desired.max(desired).as_secs_f64()).min(1.0);
        self.desired = self.desired.saturating_sub(desired);
        desired.mul_f64(part).max(LEAST)
    }
}

/// Ratio of rows and of blocks from which on feeders over a relation serve.
const NEAR_RATIO: f64 = 0.96;

/// The merit of a weighting with both ratios at [`NEAR_RATIO`].
const NEAR_MERIT: f64 = 2.0 + NEAR_RATIO * NEAR_RATIO;

/// Ratio from which on a figure counts as right.
const RIGHT_RATIO: f64 = 0.93;

/// Relative standard error of the mean rows and blocks that is tolerated.
const MAX_ERROR: f64 = 0.03;

/// Smaller gains of a ratio or a merit are numerical noise: the earlier weighting stays.
const MIN_GAIN: f64 = 0.001;

/// The feeders that come nearest to the captured calls.
#[derive(Default)]
pub struct ChosenFeeders {
    pub shape: FeederShape,
    /// Values of all parameters, before their wrapping, with weights; empty where feeders over relations come nearer.
    pub kept: Vec<(f64, ParameterValues)>,
}

/// The calls of a captured statement: their mean and their number.
struct CapturedCalls {
    call: Call,
    calls: f64,
}

/// Weights of the tried calls, and how near their mean comes to the captured calls.
struct Weighting {
    /// One per tried call.
    weights: Vec<f64>,
    mean: Call,
    likeness: Likeness,
    /// Relative standard error of the mean; 0 where it is not estimated.
    error: f64,
}

impl Weighting {
    /// Returns the figure to maximise: a right ratio counts 1, so that one right ratio beats two half right ones.
    fn merit(&self) -> f64 {
        let right = |ratio: f64| if ratio - self.error > RIGHT_RATIO { 1.0 } else { 0.0 };
        right(self.likeness.rows) + right(self.likeness.blocks) + self.likeness.score - self.error
    }
}

/// Finds the feeders under which a statement's calls come nearest to the captured ones; trials end after `limit`.
///
/// # Errors
/// Why the statement cannot be executed with any of them; 57014 where the capture was canceled.
pub fn search_feeders(
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
        return Ok(ChosenFeeders { shape: untried_shape(plan, &call), kept: Vec::new() });
    }
    let path = guc::initial_search_path()?;
    rolled_back(|| guc::with_search_path(&path, || search_by_trials(plan, &target, limit, mask)))
}

/// Returns the shape for a statement that is not tried. If it looks up a row by its key and often finds none, as many of its
/// values are ones that no row has.
fn untried_shape(plan: &ReplayPlan, captured: &Call) -> FeederShape {
    /// Rows per call from which on every look-up counts as successful.
    const ALWAYS_FOUND: f64 = 0.995;
    let is_by_key = plan.has_parameter(How::Equal)
        && ![How::Array, How::Above, How::Below, How::Insert].into_iter().any(|how| plan.has_parameter(how));
    if !is_by_key || captured.rows >= ALWAYS_FOUND {
        return FeederShape::default();
    }
    let missing = SamplingStrategy { drawn: SampledValues::Missing, ..SamplingStrategy::default() };
    let mut strategies = vec![(1.0 - captured.rows, missing)];
    if captured.rows > 0.0 {
        strategies.insert(0, (captured.rows, SamplingStrategy::default()));
    }
    FeederShape { strategies, ..FeederShape::default() }
}

/// The merit that a shape with other constants must gain over the first.
const MIN_SHAPE_GAIN: f64 = 0.02;

/// Tries a statement within `limit`, and chooses its feeders. Other shapes than the first are tried in its second half.
///
/// # Errors
/// As [`search_feeders`].
fn search_by_trials(
    plan: &ReplayPlan,
    target: &CapturedCalls,
    limit: Duration,
    mask: bool,
) -> Result<ChosenFeeders, UserError> {
    const FIRST_PART: f64 = 0.5;
    /// The end of the trials, relative to `limit`, where several shapes were tried.
    const EXTENDED_PART: f64 = 1.2;
    let strategies = candidate_strategies(plan, &target.call);
    let shapes = candidate_shapes(plan, target);
    let budget = TrialBudget::begin();
    let first_limit = limit.mul_f64(if shapes.len() > 1 { FIRST_PART } else { 1.0 });
    let start = |shape: &FeederShape| {
        let is_possible = |strategy: &&SamplingStrategy| strategy.page == 0 || shape.is_paged;
        let strategies: Vec<SamplingStrategy> = strategies.iter().filter(is_possible).cloned().collect();
        TrialRunner::new(plan, shape.clone(), &target.call, &budget, first_limit, &strategies)
    };
    let mut runner = start(&shapes[0])?;
    explore(&mut runner, target)?;
    let merit =
        |runner: &TrialRunner| fit_weights(runner, target).map_or(-1.0, |(weighting, _)| weighting.merit());
    let mut best_merit = merit(&runner);
    if best_merit < NEAR_MERIT && shapes.len() > 1 {
        let shape_time = limit.mul_f64(FIRST_PART / shapes.len() as f64);
        let mut is_first = true;
        for (number, shape) in shapes.iter().enumerate().skip(1) {
            let Ok(mut other) = start(shape) else { continue };
            other.set_time_limit(first_limit + shape_time * number as u32);
            for strategy in 0..other.strategy_count() {
                other.try_rows(strategy, 1)?;
            }
            let other_merit = merit(&other);
            if other_merit > best_merit + MIN_SHAPE_GAIN {
                (best_merit, runner, is_first) = (other_merit, other, false);
            }
        }
        runner.set_time_limit(limit.mul_f64(EXTENDED_PART));
        if !is_first {
            explore(&mut runner, target)?;
        }
    }
    if runner.tried.is_empty() {
        return match runner.error.take() {
            Some(error) => Err(error),
            None => Ok(ChosenFeeders { shape: runner.shape, kept: Vec::new() }),
        };
    }
    Ok(choose_feeders(plan, &runner, target, mask))
}

/// Returns LIMITs and other constants that are worth a trial, the likeliest first.
fn candidate_shapes(plan: &ReplayPlan, target: &CapturedCalls) -> Vec<FeederShape> {
    let has_source = |is_source: fn(&ParameterSource) -> bool| plan.values.iter().any(is_source);
    let limits = candidate_limits(&target.call);
    let first = FeederShape { limit: limits[0], ..FeederShape::default() };
    let mut shapes = vec![first.clone()];
    if has_source(|source| matches!(source, ParameterSource::Offset)) {
        shapes.push(FeederShape { is_paged: true, ..first.clone() });
    }
    if has_source(|source| matches!(source, ParameterSource::Limit)) {
        shapes.extend(limits[1..].iter().map(|&limit| FeederShape { limit, ..first.clone() }));
    }
    if has_source(|source| matches!(source, ParameterSource::InnerLimit)) {
        let inner = |&inner_limit: &u64| FeederShape { inner_limit, ..first.clone() };
        shapes.extend(INNER_LIMITS[1..].iter().map(inner));
    }
    if has_source(|source| matches!(source, ParameterSource::Compared(_))) {
        let compared = |&compared_number: &u64| FeederShape { compared_number, ..first.clone() };
        shapes.extend(COMPARED_NUMBERS[1..].iter().map(compared));
    }
    shapes
}

/// Calls with which a strategy is probed, and calls that each round adds to a strategy with a large weight.
struct Batch {
    probe: usize,
    add: usize,
}

const QUICK_BATCH: Batch = Batch { probe: 3, add: 15 };
const SLOW_BATCH: Batch = Batch { probe: 1, add: 4 };

/// Statements whose calls take longer than this get [`SLOW_BATCH`].
const SLOW_MS: f64 = 10.0;

/// If the probed default strategy exceeds this ratio, it is tried [`DEFAULT_CALLS`] times before any other.
const PROMISING_RATIO: f64 = 0.9;
const DEFAULT_CALLS: usize = 30;

/// If the default strategy then exceeds this ratio, no other is tried.
const SUFFICIENT_RATIO: f64 = 0.98;

/// Trials stop after this many calls if the fitted mean exceeds [`MATCHING_RATIO`].
const ENOUGH_CALLS: usize = 150;
const MATCHING_RATIO: f64 = 0.99;

/// Factors for the sizes of the strategy with the largest weight, one per round: coarse steps first; 1.0 adds no strategies.
const SIZE_FACTORS: [f64; 8] = [3.0, 1.7, 1.3, 1.15, 1.07, 1.03, 1.0, 1.0];

/// Strategies that get more calls in a round, and the smallest weight for which they do.
const STRATEGIES_PER_ROUND: usize = 5;
const MIN_ROUND_SHARE: f64 = 0.03;

/// Runs each strategy a few times, then gives most trials to those with the largest weights.
fn explore(runner: &mut TrialRunner, target: &CapturedCalls) -> Result<(), UserError> {
    let batch = if target.call.ms > SLOW_MS { SLOW_BATCH } else { QUICK_BATCH };
    runner.try_rows(0, batch.probe)?;
    if weigh_strategy(runner, target, 0).is_some_and(|probed| probed.likeness.lower() > PROMISING_RATIO) {
        runner.try_rows(0, DEFAULT_CALLS - batch.probe)?;
        let is_sufficient =
            |tried: Weighting| tried.likeness.lower() > SUFFICIENT_RATIO && tried.error < MAX_ERROR;
        if weigh_strategy(runner, target, 0).is_some_and(is_sufficient) {
            return Ok(());
        }
    }
    for strategy in 1..runner.strategy_count() {
        runner.try_rows(strategy, batch.probe)?;
    }
    for factor in SIZE_FACTORS {
        if runner.is_time_over() || runner.tried.len() >= MAX_CALLS {
            break;
        }
        let Some((best, _)) = fit_weights(runner, target) else { break };
        if best.likeness.lower() > MATCHING_RATIO && runner.tried.len() >= ENOUGH_CALLS {
            break;
        }
        let shares = strategy_shares(runner, &best.weights);
        let mut added = intermediate_strategies(runner, target);
        if let Some((_, heaviest)) = shares.first() {
            let heaviest = runner.strategy(*heaviest);
            added.extend([factor, 1.0 / factor].map(|factor| scale_sizes(heaviest, runner.plan(), factor)));
        }
        for strategy in added {
            if let Some(index) = runner.add_strategy(strategy) {
                runner.try_rows(index, batch.probe)?;
            }
        }
        for (_, strategy) in
            shares.iter().take(STRATEGIES_PER_ROUND).filter(|(share, _)| *share > MIN_ROUND_SHARE)
        {
            runner.try_rows(*strategy, batch.add)?;
        }
    }
    Ok(())
}

/// Sums the weights of the calls by strategy; the largest sum comes first.
fn strategy_shares(runner: &TrialRunner, weights: &[f64]) -> Vec<(f64, usize)> {
    let mut shares: Vec<(f64, usize)> =
        (0..runner.strategy_count()).map(|strategy| (0.0, strategy)).collect();
    for (tried, weight) in runner.tried.iter().zip(weights) {
        shares[tried.strategy].0 += weight;
    }
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    shares
}

/// Most strategies between two sizes that a round adds.
const MAX_INTERMEDIATE: usize = 4;

/// A figure lies between those of two strategies if it is at least this far from both, relative to itself.
const BETWEEN_MARGIN: f64 = 0.05;

/// A size of a strategy; 0 where the strategy does not have it.
struct StrategySize {
    get: fn(&SamplingStrategy) -> u64,
    set: fn(&mut SamplingStrategy, u64),
}

const SIZES: [StrategySize; 2] = [
    StrategySize {
        get: |strategy| strategy.rows_beyond.unwrap_or(0),
        set: |strategy, size| strategy.rows_beyond = Some(size),
    },
    StrategySize { get: |strategy| strategy.width, set: |strategy, size| strategy.width = size },
];

impl StrategySize {
    fn with_size(&self, strategy: &SamplingStrategy, size: u64) -> SamplingStrategy {
        let mut resized = strategy.clone();
        (self.set)(&mut resized, size);
        resized
    }
}

/// Returns strategies between two of neighbouring sizes, where the captured rows or blocks lie between those of the two. The
/// new size is the geometric mean.
fn intermediate_strategies(runner: &TrialRunner, target: &CapturedCalls) -> Vec<SamplingStrategy> {
    let mut strategies = Vec::new();
    for size in &SIZES {
        let mut sized: Vec<(&SamplingStrategy, Call)> = (0..runner.strategy_count())
            .filter(|&index| (size.get)(runner.strategy(index)) > 0)
            .filter_map(|index| Some((runner.strategy(index), weigh_strategy(runner, target, index)?.mean)))
            .collect();
        sized.sort_by_key(|(strategy, _)| (size.get)(strategy));
        for pair in sized.windows(2) {
            let [(smaller, smaller_mean), (larger, larger_mean)] = pair else { continue };
            let (smaller_size, larger_size) = ((size.get)(smaller), (size.get)(larger));
            let differs_otherwise = size.with_size(smaller, larger_size) != **larger;
            let is_between = |figure: fn(&Call) -> f64| {
                lies_between(figure(&target.call), figure(smaller_mean), figure(larger_mean))
            };
            if !differs_otherwise && (is_between(|call| call.rows) || is_between(Call::blocks)) {
                let middle = (smaller_size as f64 * larger_size as f64).sqrt().round() as u64;
                strategies.push(size.with_size(smaller, middle));
            }
        }
    }
    strategies.truncate(MAX_INTERMEDIATE);
    strategies
}

fn lies_between(wanted: f64, one: f64, other: f64) -> bool {
    one.min(other) < (1.0 - BETWEEN_MARGIN) * wanted && wanted * (1.0 + BETWEEN_MARGIN) < one.max(other)
}

/// Returns the figures of each tried call where this share of the executions has the generic plan.
fn expected_calls(runner: &TrialRunner, generic_share: f64) -> Vec<Call> {
    let between = |custom: f64, generic: f64| custom + generic_share * (generic - custom);
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

/// Sessions that the captured calls are assumed to be spread over, and bounds of the calls of one. From five calls on, the
/// server may choose the generic plan; more calls cost time and hardly change its share.
const CAPTURED_SESSIONS: f64 = 4.0;
const MIN_SESSION_CALLS: f64 = 8.0;
const MAX_SESSION_CALLS: f64 = 300.0;

/// Estimates the share of a run's executions that get the generic plan, when values come with these weights.
fn generic_plan_share(runner: &TrialRunner, target: &CapturedCalls, weights: &[f64]) -> f64 {
    if !runner.has_custom_plans() {
        return 1.0;
    }
    let costs: Vec<f64> = runner.tried.iter().map(|tried| tried.cost).collect();
    let session_calls = (target.calls / CAPTURED_SESSIONS).clamp(MIN_SESSION_CALLS, MAX_SESSION_CALLS) as u32;
    generic_share(runner.generic_cost, &costs, weights, session_calls)
}

/// Compares the mean under these weights with the captured calls, without an error.
fn weigh_calls(runner: &TrialRunner, target: &CapturedCalls, weights: Vec<f64>) -> Weighting {
    let calls = expected_calls(runner, generic_plan_share(runner, target, &weights));
    let mean = mean(&calls, &weights);
    Weighting { likeness: likeness(&target.call, &mean), mean, weights, error: 0.0 }
}

/// Added to the relative error of `n` calls, divided by `n`: a few equal calls do not prove that all are equal.
const SMALL_SAMPLE_ERROR: f64 = 0.3;

/// Compares the mean of one strategy's calls with the captured ones; `None` where it was not tried.
fn weigh_strategy(runner: &TrialRunner, target: &CapturedCalls, strategy: usize) -> Option<Weighting> {
    let count = runner.tried.iter().filter(|tried| tried.strategy == strategy).count() as f64;
    if count == 0.0 {
        return None;
    }
    let weights: Vec<f64> =
        runner.tried.iter().map(|tried| if tried.strategy == strategy { 1.0 / count } else { 0.0 }).collect();
    let calls = expected_calls(runner, generic_plan_share(runner, target, &weights));
    let mean = mean(&calls, &weights);
    let error =
        relative_deviation(&calls, &weights, &mean, (count - 1.0).max(1.0)) + SMALL_SAMPLE_ERROR / count;
    Some(Weighting { likeness: likeness(&target.call, &mean), mean, weights, error })
}

/// The smallest prior weight of a strategy, whatever its likeness.
const MIN_PRIOR: f64 = 0.01;

/// Returns a strategy's prior weight: strategies that come near by themselves have more.
fn prior_weight(weighting: &Weighting) -> f64 {
    weighting.likeness.score.powi(2).max(MIN_PRIOR)
}

/// Fits weights to the captured calls; returns them with the prior weights.
fn fit_weights(runner: &TrialRunner, target: &CapturedCalls) -> Option<(Weighting, Vec<f64>)> {
    let mut prior = vec![0.0; runner.tried.len()];
    for strategy in 0..runner.strategy_count() {
        let Some(single) = weigh_strategy(runner, target, strategy) else { continue };
        let strategy_weight = prior_weight(&single);
        prior.iter_mut().zip(&single.weights).for_each(|(sum, weight)| *sum += strategy_weight * weight);
    }
    fit_weights_to(&target.call, runner, target, &prior).map(|weighting| (weighting, prior))
}

/// Factors for rows, or for blocks, where both cannot be reached.
const COMPROMISES: [f64; 9] = [0.3, 0.5, 0.7, 0.85, 1.2, 1.4, 1.7, 2.0, 3.0];

/// As [`fit_weights`]; where rows and blocks cannot both be reached, fits one of them and compromises on the other.
fn fit_weights_or_compromise(runner: &TrialRunner, target: &CapturedCalls) -> Option<Weighting> {
    let (mut best, prior) = fit_weights(runner, target)?;
    let factors = if best.likeness.lower() < RIGHT_RATIO { &COMPROMISES[..] } else { &[] };
    for factor in factors {
        let call = target.call;
        let other_blocks = Call { hit: call.blocks() * factor, read: 0.0, ..call };
        let other_rows = Call { rows: call.rows * factor, ..call };
        for wanted in [other_blocks, other_rows] {
            if let Some(fitted) = fit_weights_to(&wanted, runner, target, &prior)
                && fitted.merit() > best.merit() + MIN_GAIN
            {
                best = fitted;
            }
        }
    }
    Some(best)
}

/// Shares of executions with the generic plan that a fit begins with; the fitted weights lead to further ones.
const PLAN_SHARES: [f64; 5] = [0.0, 1.0, 0.2, 0.5, 0.8];
const MAX_PLAN_SHARES: usize = 9;

/// Shares of executions that differ less than this are the same.
const SAME_SHARE: f64 = 0.01;

/// Fits weights to the rows and blocks of `wanted`. The share of generic plans depends on the weights and they on it: several
/// shares are assumed, then those that the fitted weights lead to.
fn fit_weights_to(
    wanted: &Call,
    runner: &TrialRunner,
    target: &CapturedCalls,
    prior: &[f64],
) -> Option<Weighting> {
    let mut best: Option<(f64, Weighting)> = None;
    let mut assumed_shares = if runner.has_custom_plans() { PLAN_SHARES.to_vec() } else { vec![1.0] };
    let mut next = 0;
    while let Some(assumed) = assumed_shares.get(next).copied() {
        next += 1;
        let Some(fit) = fit(wanted, &expected_calls(runner, assumed), prior, target.calls) else { continue };
        let resulting = generic_plan_share(runner, target, &fit.weights);
        if (resulting - assumed).abs() > SAME_SHARE && assumed_shares.len() < MAX_PLAN_SHARES {
            assumed_shares.push(resulting);
        }
        let lower = likeness(wanted, &mean(&expected_calls(runner, resulting), &fit.weights)).lower();
        if best.as_ref().is_none_or(|(best, _)| lower > best + MIN_GAIN) {
            best = Some((lower, weigh_calls(runner, target, fit.weights)));
        }
    }
    best.map(|(_, weighting)| weighting)
}

/// The merit that a mixture must have more than a single strategy: simpler is better.
const MIXTURE_COST: f64 = 0.01;

/// Chooses feeders over relations where they come near, because these have the most distinct values; else tried values.
fn choose_feeders(
    plan: &ReplayPlan,
    runner: &TrialRunner,
    target: &CapturedCalls,
    mask: bool,
) -> ChosenFeeders {
    let singles: Vec<(usize, Weighting)> = (0..runner.strategy_count())
        .filter(|&strategy| can_feed(plan, runner, runner.strategy(strategy), mask))
        .filter_map(|strategy| weigh_strategy(runner, target, strategy).map(|single| (strategy, single)))
        .collect();
    let with_shares = |shares: &[(f64, usize)]| {
        let strategy = |&(share, index): &(f64, usize)| (share, runner.strategy(index).clone());
        FeederShape { strategies: shares.iter().map(strategy).collect(), ..runner.shape.clone() }
    };
    let mut candidates: Vec<(f64, FeederShape)> =
        singles.iter().map(|(index, single)| (single.merit(), with_shares(&[(1.0, *index)]))).collect();
    let occurrences = 0..plan.analysed.occurrences.len();
    let feeder_count = occurrences.filter(|&occurrence| !plan.parameters(occurrence).is_empty()).count();
    if feeder_count == 1
        && let Some((shares, mixed)) = fit_mixture(runner, target, &singles)
    {
        candidates.push((mixed.merit() - MIXTURE_COST, with_shares(&shares)));
    }
    // Of equal ones the first.
    let best = candidates.into_iter().reduce(|best, other| if other.0 > best.0 { other } else { best });
    let is_near = best.as_ref().is_some_and(|(merit, _)| *merit > NEAR_MERIT - MAX_ERROR);
    let has_values = feeder_count > 0 || runner.shape.is_paged;
    if !mask
        && has_values
        && !is_near
        && let Some(weighting) = fit_weights_or_compromise(runner, target)
        && best.as_ref().is_none_or(|(merit, _)| weighting.merit() > *merit)
    {
        let kept = weighted_values(runner, &weighting.weights);
        return ChosenFeeders { shape: runner.shape.clone(), kept };
    }
    let shape = best.map_or_else(|| runner.shape.clone(), |(_, shape)| shape);
    ChosenFeeders { shape: FeederShape { is_paged: false, ..shape }, kept: Vec::new() }
}

/// Returns whether a feeder over a relation can draw as the strategy did in trials: not numbers for OFFSET, nor values that
/// were looked for in a sample, unless tried values must not be stored.
fn can_feed(plan: &ReplayPlan, runner: &TrialRunner, strategy: &SamplingStrategy, mask: bool) -> bool {
    let rows = plan.largest_relation_rows();
    let is_exact = || mask || strategy.rows_beyond.is_none_or(|beyond| !is_sampled(rows, beyond));
    !runner.shape.is_paged && is_exact()
}

/// Most strategies in a mixture, their smallest share, and the parts that shares are rounded to.
const MAX_MIXED: usize = 4;
const MIN_MIXED_SHARE: f64 = 0.005;
const SHARE_PARTS: f64 = 1e4;

/// Fits shares of at most [`MAX_MIXED`] strategies; returns them with the strategies' numbers, and the weighting of the calls.
fn fit_mixture(
    runner: &TrialRunner,
    target: &CapturedCalls,
    singles: &[(usize, Weighting)],
) -> Option<(Vec<(f64, usize)>, Weighting)> {
    let means: Vec<Call> = singles.iter().map(|(_, single)| single.mean).collect();
    let priors: Vec<f64> = singles.iter().map(|(_, single)| prior_weight(single)).collect();
    let all = fit(&target.call, &means, &priors, target.calls)?;
    let mut heaviest: Vec<usize> = (0..singles.len()).collect();
    heaviest.sort_by(|&a, &b| all.weights[b].total_cmp(&all.weights[a]));
    heaviest.truncate(MAX_MIXED);
    let heaviest_means: Vec<Call> = heaviest.iter().map(|&place| means[place]).collect();
    let heaviest_priors: Vec<f64> = heaviest.iter().map(|&place| priors[place]).collect();
    let fit = fit(&target.call, &heaviest_means, &heaviest_priors, target.calls)?;
    let rounded = |share: f64| (share * SHARE_PARTS).round() / SHARE_PARTS;
    let mut shares = Vec::new();
    let mut weights = vec![0.0; runner.tried.len()];
    let mut variance = 0.0;
    for (share, &place) in fit.weights.iter().zip(&heaviest).filter(|(share, _)| **share > MIN_MIXED_SHARE) {
        let share = rounded(*share);
        let (strategy, single) = &singles[place];
        shares.push((share, *strategy));
        weights.iter_mut().zip(&single.weights).for_each(|(sum, weight)| *sum += share * weight);
        // From an error relative to the strategy's mean to one relative to the captured mean.
        let rows_ratio = single.mean.rows / target.call.rows.max(MIN_MEAN_ROWS);
        let blocks_ratio = single.mean.blocks() / target.call.blocks().max(MIN_MEAN_BLOCKS);
        variance += (share * single.error * rows_ratio.max(blocks_ratio)).powi(2);
    }
    let weighting = Weighting { error: variance.sqrt(), ..weigh_calls(runner, target, weights) };
    Some((shares, weighting))
}

/// The smallest weight of values that are stored.
const MIN_WEIGHT: f64 = 1e-6;

fn weighted_values(runner: &TrialRunner, weights: &[f64]) -> Vec<(f64, ParameterValues)> {
    let weighted = runner.tried.iter().zip(weights).filter(|(_, weight)| **weight > MIN_WEIGHT);
    weighted.map(|(tried, weight)| (*weight, tried.raw.clone())).collect()
}
