//! Weights for values that were tried, under which their calls do on average what the captured calls did, and which plans a
//! prepared statement's executions get with them.
//!
//! Of all weights with the wanted means, those that change given ones least (in relative entropy) are these times
//! exp(λ · x), where x are the rows and blocks of a call (E. T. Jaynes, Information Theory and Statistical Mechanics, Physical
//! Review 106, 1957). λ is the minimum of a convex function. A small penalty on λ lets the means miss by a little where they
//! cannot be reached.

use bench_script::Prng;

use crate::fidelity::{Call, Likeness, likeness};

/// The penalty on λ.
const PENALTY: f64 = 1e-5;

/// Calls with more than this multiple of the wanted rows or blocks get no weight.
const FAR: f64 = 300.0;

/// How narrow a choice of values may become, from all of them to those whose own calls are most like the captured ones: the
/// standard deviation of the logarithm of the ratio.
const WIDTHS: [f64; 6] = [f64::INFINITY, 1.0, 0.5, 0.3, 0.2, 0.1];

/// A choice of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// One for each call that was tried, with a sum of 1.
    pub weights: Vec<f64>,
    /// What a call does on average under them.
    pub mean: Call,
    pub likeness: Likeness,
    /// The standard deviation of the rows or blocks of one call, relative to the mean: the larger one.
    pub spread: f64,
}

/// The weights under which calls that were tried come nearest to the captured ones. Each has a weight to begin with. A choice
/// is no wider than `calls` calls bear: their mean has to be near the captured one.
pub fn fit(captured: &Call, tried: &[Call], weights: &[f64], calls: f64) -> Option<Fit> {
    let far = |call: &Call| place(captured, call).iter().any(|x| *x > FAR);
    let begin: Vec<f64> =
        tried.iter().zip(weights).map(|(call, weight)| if far(call) { 0.0 } else { *weight }).collect();
    // A run makes perhaps a quarter of them: then the mean's standard error is 4 %.
    let allowed = (0.02 * calls.max(1.0).sqrt()).max(0.1);
    let all: Vec<Fit> =
        WIDTHS.iter().filter_map(|&width| with_width(captured, tried, &begin, width)).collect();
    let best = all.iter().map(|fit| fit.likeness.score).max_by(f64::total_cmp)?;
    let near = || all.iter().filter(|fit| fit.likeness.score >= best - 0.01);
    let narrowest = near().min_by(|a, b| a.spread.total_cmp(&b.spread));
    near().find(|fit| fit.spread <= allowed).or(narrowest).cloned()
}

/// What calls do on average under weights.
pub fn mean(tried: &[Call], weights: &[f64]) -> Call {
    let total: f64 = weights.iter().sum();
    let of = |what: fn(&Call) -> f64| {
        tried.iter().zip(weights).map(|(call, weight)| weight * what(call)).sum::<f64>() / total
    };
    Call { rows: of(|call| call.rows), hit: of(Call::blocks), read: 0.0, ms: of(|call| call.ms) }
}

/// Rows and blocks of a call beside the captured ones: 0 where they are equal, 1 where they are twice as many.
fn place(captured: &Call, call: &Call) -> [f64; 2] {
    [
        (call.rows - captured.rows) / captured.rows.max(0.01),
        (call.blocks() - captured.blocks()) / captured.blocks().max(1.0),
    ]
}

/// How near a call is to the captured ones, for a width: a normal distribution's density over the logarithms.
fn nearness(captured: &Call, call: &Call, width: f64) -> f64 {
    if width.is_infinite() {
        return 1.0;
    }
    let distance = |wanted: f64, found: f64, least: f64| {
        let floor = 0.1 * wanted + least;
        ((found + floor) / (wanted + floor)).ln() / width
    };
    let rows = distance(captured.rows, call.rows, 0.01);
    let blocks = distance(captured.blocks(), call.blocks(), 0.5);
    // Far from 0, so that calls on both sides stay.
    (-0.5 * (rows * rows + blocks * blocks)).max(-60.0).exp()
}

fn with_width(captured: &Call, tried: &[Call], begin: &[f64], width: f64) -> Option<Fit> {
    let begin: Vec<f64> =
        tried.iter().zip(begin).map(|(call, weight)| weight * nearness(captured, call, width)).collect();
    let total: f64 = begin.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let points: Vec<[f64; 2]> = tried.iter().map(|call| place(captured, call)).collect();
    let begin: Vec<f64> = begin.iter().map(|weight| weight / total).collect();
    let weights = tilted(&points, &begin, minimum(&points, &begin)).1;
    let mean = mean(tried, &weights);
    let deviation = |what: fn(&Call) -> f64, least: f64| {
        let middle = what(&mean);
        let variance: f64 =
            tried.iter().zip(&weights).map(|(call, weight)| weight * (what(call) - middle).powi(2)).sum();
        variance.sqrt() / middle.max(least)
    };
    let spread = deviation(|call| call.rows, 0.05).max(deviation(Call::blocks, 1.0));
    Some(Fit { likeness: likeness(captured, &mean), mean, spread, weights })
}

/// The logarithm of the sum of the tilted weights, and these with a sum of 1.
fn tilted(points: &[[f64; 2]], begin: &[f64], lambda: [f64; 2]) -> (f64, Vec<f64>) {
    let exponents: Vec<f64> =
        points.iter().map(|point| lambda[0] * point[0] + lambda[1] * point[1]).collect();
    let possible = exponents.iter().zip(begin).filter(|(_, weight)| **weight > 0.0);
    let highest = possible.map(|(exponent, _)| *exponent).fold(f64::NEG_INFINITY, f64::max);
    let raw: Vec<f64> = exponents
        .iter()
        .zip(begin)
        .map(|(exponent, weight)| if *weight > 0.0 { weight * (exponent - highest).exp() } else { 0.0 })
        .collect();
    let total: f64 = raw.iter().sum();
    (highest + total.ln(), raw.iter().map(|weight| weight / total).collect())
}

/// The λ under which the tilted mean is nearest to 0, by Newton's method.
fn minimum(points: &[[f64; 2]], begin: &[f64]) -> [f64; 2] {
    let value = |lambda: [f64; 2]| {
        tilted(points, begin, lambda).0 + 0.5 * PENALTY * (lambda[0] * lambda[0] + lambda[1] * lambda[1])
    };
    let mut lambda = [0.0, 0.0];
    let mut at = value(lambda);
    for _ in 0..200 {
        let weights = tilted(points, begin, lambda).1;
        let sum = |of: &dyn Fn(&[f64; 2]) -> f64| {
            points.iter().zip(&weights).map(|(point, weight)| weight * of(point)).sum::<f64>()
        };
        let mean = [sum(&|p| p[0]), sum(&|p| p[1])];
        let gradient = [mean[0] + PENALTY * lambda[0], mean[1] + PENALTY * lambda[1]];
        if gradient[0].abs().max(gradient[1].abs()) < 1e-9 {
            break;
        }
        let a = sum(&|p| (p[0] - mean[0]).powi(2)) + PENALTY;
        let b = sum(&|p| (p[0] - mean[0]) * (p[1] - mean[1]));
        let c = sum(&|p| (p[1] - mean[1]).powi(2)) + PENALTY;
        let determinant = a * c - b * b;
        if determinant.is_nan() || determinant <= 0.0 {
            break;
        }
        let step = [
            -(c * gradient[0] - b * gradient[1]) / determinant,
            -(a * gradient[1] - b * gradient[0]) / determinant,
        ];
        let slope = gradient[0] * step[0] + gradient[1] * step[1];
        let mut part = 1.0;
        // Armijo's rule.
        let next = loop {
            let next = [lambda[0] + part * step[0], lambda[1] + part * step[1]];
            let found = value(next);
            if found <= at + 1e-4 * part * slope {
                break Some((next, found));
            }
            part *= 0.5;
            if part < 1e-12 {
                break None;
            }
        };
        let Some((next, found)) = next else { break };
        (lambda, at) = (next, found);
    }
    lambda
}

/// Sessions that are looked at.
const SESSIONS: u32 = 40;

/// The share of the executions that get the generic plan, by the rule of choose_custom_plan (utils/cache/plancache.c): five
/// times a plan for the values at hand; then the generic one, as soon as it costs less than those did on average. Values come
/// with these costs and weights, `calls` times in a session.
pub fn generic_share(generic_cost: f64, costs: &[f64], weights: &[f64], calls: u32) -> f64 {
    let mut sums = Vec::with_capacity(weights.len());
    let mut total = 0.0;
    for weight in weights {
        total += weight;
        sums.push(total);
    }
    if calls == 0 || costs.is_empty() || total.is_nan() || total <= 0.0 {
        return 0.0;
    }
    let mut random = Prng::from_seed(1);
    let mut generic = 0;
    for _ in 0..SESSIONS {
        let mut spent = 0.0;
        for call in 0..calls {
            if call >= 5 && generic_cost < spent / f64::from(call) {
                generic += calls - call;
                break;
            }
            let drawn = random.uint64_range(0, u64::from(u32::MAX)) as f64 / 4_294_967_296.0 * total;
            let place = sums.partition_point(|&sum| sum <= drawn).min(costs.len() - 1);
            spent += costs[place];
        }
    }
    f64::from(generic) / f64::from(SESSIONS * calls)
}
