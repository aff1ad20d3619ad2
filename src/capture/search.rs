//! The search for values: ways and sizes are tried, and then those between the ones that come near.

use std::time::Duration;

use bench_core::captured::Call;
use bench_core::error::UserError;

use super::feeders::{Plan, Source};
use super::lab::{Lab, Patience};
use super::trial::{Chosen, NEAR, SURE, Target, choose, nearest, single};
use super::ways::{COMPARED, INNER_LIMITS, Shape, Way, limits, ways};

/// Calls that are tried at most; values of so many may be kept.
const MOST: usize = 600;

/// Where so many come near, no more are tried.
const ENOUGH: usize = 150;

/// Of statements whose calls take longer, fewer are tried at a time.
const LONG_MS: f64 = 10.0;

/// Tries a statement for so long, and chooses.
///
/// # Errors
/// As [`super::trial::shape`].
pub fn search(plan: &Plan, target: &Target, patience: Duration, mask: bool) -> Result<Chosen, UserError> {
    let ways = ways(plan, &target.call);
    let shapes = shapes(plan, target);
    let began = Patience::begin();
    let part = if shapes.len() > 1 { 0.5 } else { 1.0 };
    let of = |shape: &Shape| {
        let serves = |way: &&Way| way.page == 0 || shape.is_paged;
        let ways: Vec<Way> = ways.iter().filter(serves).cloned().collect();
        Lab::new(plan, shape.clone(), &target.call, &began, patience.mul_f64(part), &ways)
            .map_err(|error| failed(&error))
    };
    let mut lab = of(&shapes[0])?;
    explore(&mut lab, target)?;
    let worth = |lab: &Lab| nearest(lab, target).map_or(-1.0, |(choice, _)| choice.worth());
    let mut best = worth(&lab);
    // Near with both.
    if best < 2.0 + NEAR * NEAR && shapes.len() > 1 {
        let next = patience.mul_f64(0.5 / shapes.len() as f64);
        let mut is_other = false;
        for (at, shape) in shapes.iter().enumerate().skip(1) {
            let Ok(mut other) = of(shape) else { continue };
            other.extend(patience.mul_f64(part) + next * at as u32);
            for way in 0..other.ways() {
                other.try_some(way, 1)?;
            }
            let found = worth(&other);
            if found > best + 0.02 {
                (best, lab, is_other) = (found, other, true);
            }
        }
        lab.extend(patience.mul_f64(1.2));
        if is_other {
            explore(&mut lab, target)?;
        }
    }
    if lab.tried.is_empty() {
        return match lab.error.take() {
            Some(error) => Err(failed(&error)),
            None => Ok(Chosen { shape: lab.shape, kept: Vec::new() }),
        };
    }
    Ok(choose(plan, &lab, target, mask))
}

fn failed(error: &UserError) -> UserError {
    let message = format!("it fails with the values that were found: {}", error.message);
    UserError { message, ..error.clone() }
}

/// Limits and other constants that are worth a trial, the likeliest first.
fn shapes(plan: &Plan, target: &Target) -> Vec<Shape> {
    let has = |what: fn(&Source) -> bool| plan.values.iter().any(what);
    let limits = limits(&target.call);
    let first = Shape { limit: limits[0], ..Shape::default() };
    let mut shapes = vec![first.clone()];
    if has(|value| matches!(value, Source::Offset)) {
        shapes.push(Shape { is_paged: true, ..first.clone() });
    }
    if has(|value| matches!(value, Source::Limit)) {
        shapes.extend(limits[1..].iter().map(|&limit| Shape { limit, ..first.clone() }));
    }
    if has(|value| matches!(value, Source::InnerLimit)) {
        shapes.extend(INNER_LIMITS[1..].iter().map(|&inner_limit| Shape { inner_limit, ..first.clone() }));
    }
    if has(|value| matches!(value, Source::Compared(_))) {
        shapes.extend(COMPARED[1..].iter().map(|&compared| Shape { compared, ..first.clone() }));
    }
    shapes
}

/// Tries ways, and the more of those from which values are taken.
fn explore(lab: &mut Lab, target: &Target) -> Result<(), UserError> {
    let (some, more) = if target.call.ms > LONG_MS { (1, 4) } else { (3, 15) };
    lab.try_some(0, some)?;
    if single(lab, target, 0).is_some_and(|choice| choice.least() > 0.9) {
        lab.try_some(0, 30 - some)?;
        if single(lab, target, 0).is_some_and(|choice| choice.least() > 0.98 && choice.error < SURE) {
            return Ok(());
        }
    }
    for way in 1..lab.ways() {
        lab.try_some(way, some)?;
    }
    for factor in [3.0, 1.7, 1.3, 1.15, 1.07, 1.03, 1.0, 1.0] {
        if lab.is_late() || lab.tried.len() >= MOST {
            break;
        }
        let Some((best, _)) = nearest(lab, target) else { break };
        if best.least() > 0.99 && lab.tried.len() >= ENOUGH {
            break;
        }
        let mut shares: Vec<(f64, usize)> = (0..lab.ways()).map(|way| (0.0, way)).collect();
        for (tried, weight) in lab.tried.iter().zip(&best.weights) {
            shares[tried.way].0 += weight;
        }
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        for way in between(lab, target) {
            if let Some(place) = lab.add(way) {
                lab.try_some(place, some)?;
            }
        }
        if let Some((_, way)) = shares.first() {
            for factor in [factor, 1.0 / factor] {
                for way in lab.way(*way).clone().neighbours(lab.plan(), factor) {
                    if let Some(place) = lab.add(way) {
                        lab.try_some(place, some)?;
                    }
                }
            }
        }
        for (_, way) in shares.iter().take(5).filter(|(share, _)| *share > 0.03) {
            lab.try_some(*way, more)?;
        }
    }
    Ok(())
}

/// A size of a way: how to read it, and how to set it.
type Size = (fn(&Way) -> u64, fn(&mut Way, u64));

/// Ways between those that take less than was captured and those of the next size, which take more.
fn between(lab: &Lab, target: &Target) -> Vec<Way> {
    let mut found = Vec::new();
    let sizes: [Size; 2] = [
        (|way| way.beyond.unwrap_or(0), |way, size| way.beyond = Some(size)),
        (|way| way.width, |way, size| way.width = size),
    ];
    for (size, set) in sizes {
        let mut all: Vec<(usize, Call)> = (0..lab.ways())
            .filter(|&way| size(lab.way(way)) > 0)
            .filter_map(|way| single(lab, target, way).map(|choice| (way, choice.mean)))
            .collect();
        all.sort_by_key(|&(way, _)| size(lab.way(way)));
        for pair in all.windows(2) {
            let [(low, one), (high, other)] = pair else { continue };
            let (low, high) = (lab.way(*low), lab.way(*high));
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
