//! Which feeders, or which values with which weights, come nearest to what was captured, by the rows and blocks that trials took.

use bench_capture::fidelity::{Call, Likeness, likeness};
use bench_capture::statements::{fit, generic_share, mean};

use super::queries::is_sampled;
use super::replay_plan::{ParameterValues, ReplayPlan};
use super::sampling::{FeederShape, SamplingStrategy};
use super::trial_runner::TrialRunner;

/// How near rows and blocks have to come for feeders over a relation.
pub const NEAR: f64 = 0.96;

/// How near one of them has to come to be right.
const RIGHT: f64 = 0.93;

/// The relative error that their means may have.
pub const SURE: f64 = 0.03;

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
pub fn nearest(runner: &TrialRunner, target: &CapturedCalls) -> Option<(TrialChoice, Vec<f64>)> {
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
