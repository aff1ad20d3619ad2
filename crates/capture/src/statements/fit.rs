//! Weights for tried values under which their calls do on average what the captured calls did, and the plans that a prepared
//! statement's executions get with these values.
//!
//! Of all weights with the wanted means, those that change given prior weights least (in relative entropy) are the prior
//! weights times exp(λ · x), where x are the rows and blocks of a call (E. T. Jaynes, Information Theory and Statistical
//! Mechanics, Physical Review 106, 1957). λ is the minimum of a convex function. A small penalty on λ lets the means miss by a
//! little where they cannot be reached.

use bench_script::Prng;

use crate::fidelity::{Call, Likeness, likeness};

/// The penalty on λ.
const PENALTY: f64 = 1e-5;

/// Calls further than this from the captured ones, as [`deviations`] measures it, get no weight.
const MAX_DEVIATION: f64 = 300.0;

/// Widths of the bell curve over the logarithm of a call's ratio to the captured ones, which multiplies its prior weight: from
/// no preference to calls that are nearly equal to the captured ones.
const WIDTHS: [f64; 6] = [f64::INFINITY, 1.0, 0.5, 0.3, 0.2, 0.1];

/// The exponent of the bell curve for the furthest calls: above 0, so that there are calls on both sides of the captured ones.
const LOWEST_EXPONENT: f64 = -60.0;

/// The relative spread that a fit may have, per square root of the calls: a run makes about a quarter of the captured calls,
/// and the standard error of its mean is then 4 %. The spread need never be below the second constant.
const SPREAD_PER_ROOT_CALLS: f64 = 0.02;
const MIN_ALLOWED_SPREAD: f64 = 0.1;

/// Fits whose score is this near to the best one's count as equally good.
const SCORE_TOLERANCE: f64 = 0.01;

/// Means below these count as these where something is divided by them.
pub const MIN_MEAN_ROWS: f64 = 0.05;
pub const MIN_MEAN_BLOCKS: f64 = 1.0;

/// Weights of tried calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// One per tried call, with a sum of 1.
    pub weights: Vec<f64>,
    /// The mean call under the weights.
    pub mean: Call,
    pub likeness: Likeness,
    /// The standard deviation of the rows or blocks of one call, relative to the mean: the larger one.
    pub spread: f64,
}

/// Finds the weights under which tried calls come nearest to the captured ones, from a prior weight of each. Of equally good
/// fits, takes the widest whose mean is reliable for this number of calls.
pub fn fit(captured: &Call, tried: &[Call], weights: &[f64], calls: f64) -> Option<Fit> {
    let is_far = |call: &Call| deviations(captured, call).iter().any(|deviation| *deviation > MAX_DEVIATION);
    let prior: Vec<f64> =
        tried.iter().zip(weights).map(|(call, weight)| if is_far(call) { 0.0 } else { *weight }).collect();
    let allowed_spread = (SPREAD_PER_ROOT_CALLS * calls.max(1.0).sqrt()).max(MIN_ALLOWED_SPREAD);
    let fits: Vec<Fit> =
        WIDTHS.iter().filter_map(|&width| fit_with_width(captured, tried, &prior, width)).collect();
    let best_score = fits.iter().map(|fit| fit.likeness.score).max_by(f64::total_cmp)?;
    let good = || fits.iter().filter(|fit| fit.likeness.score >= best_score - SCORE_TOLERANCE);
    let narrowest = good().min_by(|a, b| a.spread.total_cmp(&b.spread));
    good().find(|fit| fit.spread <= allowed_spread).or(narrowest).cloned()
}

/// Returns the mean of calls under weights.
pub fn mean(tried: &[Call], weights: &[f64]) -> Call {
    let total: f64 = weights.iter().sum();
    let mean = |figure: fn(&Call) -> f64| {
        tried.iter().zip(weights).map(|(call, weight)| weight * figure(call)).sum::<f64>() / total
    };
    Call { rows: mean(|call| call.rows), hit: mean(Call::blocks), read: 0.0, ms: mean(|call| call.ms) }
}

/// Returns the standard deviation of the mean of `observations` calls, relative to the mean: of rows or blocks, the larger one.
pub fn relative_deviation(calls: &[Call], weights: &[f64], mean: &Call, observations: f64) -> f64 {
    let deviation = |figure: fn(&Call) -> f64, min_mean: f64| {
        let middle = figure(mean);
        let squares =
            calls.iter().zip(weights).map(|(call, weight)| weight * (figure(call) - middle).powi(2));
        (squares.sum::<f64>() / observations).sqrt() / middle.max(min_mean)
    };
    deviation(|call| call.rows, MIN_MEAN_ROWS).max(deviation(Call::blocks, MIN_MEAN_BLOCKS))
}

/// Returns how far the rows and blocks of a call are from the captured ones: 0 where equal, 1 where twice as many.
fn deviations(captured: &Call, call: &Call) -> [f64; 2] {
    [
        (call.rows - captured.rows) / captured.rows.max(0.01),
        (call.blocks() - captured.blocks()) / captured.blocks().max(1.0),
    ]
}

/// Returns the bell curve's value for a call, from nearly 0 to 1 where it equals the captured ones.
fn nearness(captured: &Call, call: &Call, width: f64) -> f64 {
    if width.is_infinite() {
        return 1.0;
    }
    let distance = |wanted: f64, tried: f64, least: f64| {
        let floor = 0.1 * wanted + least;
        ((tried + floor) / (wanted + floor)).ln() / width
    };
    let rows = distance(captured.rows, call.rows, 0.01);
    let blocks = distance(captured.blocks(), call.blocks(), 0.5);
    (-0.5 * (rows * rows + blocks * blocks)).max(LOWEST_EXPONENT).exp()
}

fn fit_with_width(captured: &Call, tried: &[Call], prior: &[f64], width: f64) -> Option<Fit> {
    let prior: Vec<f64> =
        tried.iter().zip(prior).map(|(call, weight)| weight * nearness(captured, call, width)).collect();
    let total: f64 = prior.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let points: Vec<[f64; 2]> = tried.iter().map(|call| deviations(captured, call)).collect();
    let prior: Vec<f64> = prior.iter().map(|weight| weight / total).collect();
    let weights = tilted(&points, &prior, minimise(&points, &prior)).1;
    let mean = mean(tried, &weights);
    let spread = relative_deviation(tried, &weights, &mean, 1.0);
    Some(Fit { likeness: likeness(captured, &mean), mean, spread, weights })
}

/// Returns the logarithm of the sum of the tilted weights, and these with a sum of 1.
fn tilted(points: &[[f64; 2]], prior: &[f64], lambda: [f64; 2]) -> (f64, Vec<f64>) {
    let exponents: Vec<f64> =
        points.iter().map(|point| lambda[0] * point[0] + lambda[1] * point[1]).collect();
    let possible = exponents.iter().zip(prior).filter(|(_, weight)| **weight > 0.0);
    // Subtracted from the exponents, so that exp() does not overflow.
    let highest = possible.map(|(exponent, _)| *exponent).fold(f64::NEG_INFINITY, f64::max);
    let raw: Vec<f64> = exponents
        .iter()
        .zip(prior)
        .map(|(exponent, weight)| if *weight > 0.0 { weight * (exponent - highest).exp() } else { 0.0 })
        .collect();
    let total: f64 = raw.iter().sum();
    (highest + total.ln(), raw.iter().map(|weight| weight / total).collect())
}

/// Finds the λ under which the tilted mean is nearest to 0, by Newton's method with Armijo's rule for the step's length.
fn minimise(points: &[[f64; 2]], prior: &[f64]) -> [f64; 2] {
    const MAX_STEPS: usize = 200;
    const SMALLEST_GRADIENT: f64 = 1e-9;
    const SHORTEST_STEP: f64 = 1e-12;
    /// Part of the decrease along the gradient that a step must reach.
    const ARMIJO: f64 = 1e-4;
    let objective = |lambda: [f64; 2]| {
        tilted(points, prior, lambda).0 + 0.5 * PENALTY * (lambda[0] * lambda[0] + lambda[1] * lambda[1])
    };
    let mut lambda = [0.0, 0.0];
    let mut lowest = objective(lambda);
    for _ in 0..MAX_STEPS {
        let weights = tilted(points, prior, lambda).1;
        let expectation = |term: &dyn Fn(&[f64; 2]) -> f64| {
            points.iter().zip(&weights).map(|(point, weight)| weight * term(point)).sum::<f64>()
        };
        let mean = [expectation(&|p| p[0]), expectation(&|p| p[1])];
        let gradient = [mean[0] + PENALTY * lambda[0], mean[1] + PENALTY * lambda[1]];
        if gradient[0].abs().max(gradient[1].abs()) < SMALLEST_GRADIENT {
            break;
        }
        // The Hessian [[a, b], [b, c]].
        let a = expectation(&|p| (p[0] - mean[0]).powi(2)) + PENALTY;
        let b = expectation(&|p| (p[0] - mean[0]) * (p[1] - mean[1]));
        let c = expectation(&|p| (p[1] - mean[1]).powi(2)) + PENALTY;
        let determinant = a * c - b * b;
        if determinant.is_nan() || determinant <= 0.0 {
            break;
        }
        let step = [
            -(c * gradient[0] - b * gradient[1]) / determinant,
            -(a * gradient[1] - b * gradient[0]) / determinant,
        ];
        let slope = gradient[0] * step[0] + gradient[1] * step[1];
        let mut length = 1.0;
        let reached = loop {
            let next = [lambda[0] + length * step[0], lambda[1] + length * step[1]];
            let value = objective(next);
            if value <= lowest + ARMIJO * length * slope {
                break Some((next, value));
            }
            length *= 0.5;
            if length < SHORTEST_STEP {
                break None;
            }
        };
        let Some((next, value)) = reached else { break };
        (lambda, lowest) = (next, value);
    }
    lambda
}

/// Sessions that are simulated.
const SESSIONS: u32 = 40;

/// Executions before the server may choose the generic plan (choose_custom_plan).
const CUSTOM_PLANS: u32 = 5;

/// Estimates the share of executions that get the generic plan, by the rule of choose_custom_plan (utils/cache/plancache.c):
/// five custom plans; then the generic one, as soon as it costs less than the custom plans did on average. Values have these
/// custom plans' costs and these weights; each session makes `calls` calls.
pub fn generic_share(generic_cost: f64, costs: &[f64], weights: &[f64], calls: u32) -> f64 {
    let mut cumulated = Vec::with_capacity(weights.len());
    let mut total = 0.0;
    for weight in weights {
        total += weight;
        cumulated.push(total);
    }
    if calls == 0 || costs.is_empty() || total.is_nan() || total <= 0.0 {
        return 0.0;
    }
    let mut random = Prng::from_seed(1);
    let mut generic_calls = 0;
    for _ in 0..SESSIONS {
        let mut custom_cost = 0.0;
        for call in 0..calls {
            if call >= CUSTOM_PLANS && generic_cost < custom_cost / f64::from(call) {
                generic_calls += calls - call;
                break;
            }
            let drawn = random.uint64_range(0, u64::from(u32::MAX)) as f64 / 4_294_967_296.0 * total;
            let place = cumulated.partition_point(|&sum| sum <= drawn).min(costs.len() - 1);
            custom_cost += costs[place];
        }
    }
    f64::from(generic_calls) / f64::from(SESSIONS * calls)
}
