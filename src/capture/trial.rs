//! Statements that only read are tried with values of some rows: how many rows and blocks a call takes then says which
//! feeders, or which values with which weights, come nearest to what was captured.

use std::time::Duration;

use bench_core::captured::{Call, Counts, Likeness, fit, generic_share, likeness, mean};
use bench_core::error::UserError;

use super::feeders::{Plan, Source};
pub use super::lab::Values;
use super::lab::{Lab, Patience};
use super::queries::is_sampled;
use super::ways::{COMPARED, INNER_LIMITS, Shape, Way, limits, ways};
use crate::server::guc;
use crate::server::spi::{self, fetch_all, quote_literal};
use crate::server::transaction::rolled_back;

/// How long the trials of all statements take together, each having a part of it like its share of the captured time.
const PATIENCE: Duration = Duration::from_secs(30);

/// The least and the longest of one statement.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(12);

/// Calls that are tried at most; values of so many may be kept.
const MOST: usize = 600;

/// Where so many come near, no more are tried.
const ENOUGH: usize = 150;

/// Of statements whose calls take longer, fewer are tried at a time.
const LONG_MS: f64 = 10.0;

/// How near rows and blocks have to come for feeders over a relation.
const NEAR: f64 = 0.96;

/// How near one of them has to come to be right.
const RIGHT: f64 = 0.93;

/// The relative error that their means may have.
const SURE: f64 = 0.03;

/// Values as the server writes them, of so many rows of a query.
pub fn rows(
    query: &str,
    columns: &[(String, String)],
    most: usize,
) -> Result<Vec<Vec<Option<String>>>, UserError> {
    let list: Vec<String> = columns
        .iter()
        .map(|(name, _)| format!("q.{}::pg_catalog.text", spi::quote_identifier(name)))
        .collect();
    let sql = format!("SELECT ARRAY[{}]::pg_catalog.text[] FROM ({query}) q LIMIT {most}", list.join(", "));
    fetch_all(&sql, &[], |row| Ok(row.get::<Vec<Option<String>>>(1)?.unwrap_or_default()))
}

/// A value as a literal of its type.
pub fn literal(value: Option<&str>, sql_type: &str) -> String {
    match value {
        Some(text) => format!("{}::{sql_type}", quote_literal(text)),
        None => format!("NULL::{sql_type}"),
    }
}

/// What comes nearest to the captured calls.
#[derive(Default)]
pub struct Chosen {
    pub shape: Shape,
    /// What values of all parameters are made of, with their weights, where they come nearer than feeders over relations do.
    pub kept: Vec<(f64, Values)>,
}

/// A choice of what was tried.
struct Choice {
    /// One for each call that was tried.
    weights: Vec<f64>,
    /// What a call takes on average.
    mean: Call,
    likeness: Likeness,
    /// The relative error of the means.
    error: f64,
}

impl Choice {
    /// The worse of both.
    fn least(&self) -> f64 {
        self.likeness.rows.min(self.likeness.blocks)
    }

    /// What is to be as high as possible: one that is right is worth more than two that are half right.
    fn worth(&self) -> f64 {
        let right = |ratio: f64| if ratio - self.error > RIGHT { 1.0 } else { 0.0 };
        right(self.likeness.rows) + right(self.likeness.blocks) + self.likeness.score - self.error
    }
}

/// What was captured of a statement.
struct Target {
    call: Call,
    calls: f64,
}

/// The feeders' shape under which a statement's calls come nearest to those that were captured, or values with weights.
/// `share` is that of the captured time.
///
/// # Errors
/// Why the statement cannot be executed with any of them; 57014 where the capture was canceled.
pub fn shape(plan: &Plan, counts: &Counts, share: f64, mask: bool) -> Result<Chosen, UserError> {
    let Some(call) = Call::of(counts.calls, counts.rows, counts.hit, counts.read, counts.exec_ms) else {
        return Ok(Chosen::default());
    };
    let target = Target { call, calls: counts.calls as f64 };
    if plan.analysed.writes || plan.values.is_empty() {
        return Ok(Chosen::default());
    }
    let path = guc::initial_search_path()?;
    // So many calls at least, each of which may take longer than those that were captured.
    let some = Duration::from_secs_f64((60.0 * call.ms / 1e3).clamp(0.0, 3600.0));
    let patience = PATIENCE.mul_f64(share.clamp(0.0, 1.0)).max(some).clamp(SHORTEST, LONGEST);
    rolled_back(|| guc::with_search_path(&path, || search(plan, &target, patience, mask)))
}

fn search(plan: &Plan, target: &Target, patience: Duration, mask: bool) -> Result<Chosen, UserError> {
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

/// Ways between those that take less than was captured and those of the next size, which take more.
fn between(lab: &Lab, target: &Target) -> Vec<Way> {
    let mut found = Vec::new();
    let sizes: [(fn(&Way) -> u64, fn(&mut Way, u64)); 2] = [
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

/// What calls take when so large a share of them has the generic plan.
fn calls(lab: &Lab, share: f64) -> Vec<Call> {
    let between = |one: f64, other: f64| one + share * (other - one);
    lab.tried
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
fn generic(lab: &Lab, target: &Target, weights: &[f64]) -> f64 {
    if !lab.has_plans() {
        return 1.0;
    }
    let costs: Vec<f64> = lab.tried.iter().map(|tried| tried.cost).collect();
    // Of one session: as many calls as were captured are shared by some.
    let calls = (target.calls / 4.0).clamp(8.0, 300.0) as u32;
    generic_share(lab.generic_cost, &costs, weights, calls)
}

/// How near these weights come.
fn expected(lab: &Lab, target: &Target, weights: Vec<f64>) -> Choice {
    let calls = calls(lab, generic(lab, target, &weights));
    let mean = mean(&calls, &weights);
    Choice { likeness: likeness(&target.call, &mean), mean, weights, error: 0.0 }
}

/// The weights under which what was tried comes nearest, the run's choice of plans being what it is with them; and those to
/// begin with.
fn nearest(lab: &Lab, target: &Target) -> Option<(Choice, Vec<f64>)> {
    let mut begin = vec![0.0; lab.tried.len()];
    for way in 0..lab.ways() {
        let Some(single) = single(lab, target, way) else { continue };
        // Ways that come near by themselves are worth more than others.
        let worth = single.likeness.score.powi(2).max(0.01);
        begin.iter_mut().zip(&single.weights).for_each(|(sum, weight)| *sum += worth * weight);
    }
    toward(lab, target, &target.call, &begin).map(|choice| (choice, begin))
}

/// As [`nearest`]; where rows and blocks cannot both be reached, one of them, and the other as nearly as that lets it.
fn nearest_or_one(lab: &Lab, target: &Target) -> Option<Choice> {
    let (mut best, begin) = nearest(lab, target)?;
    if best.least() < RIGHT {
        for factor in [0.3, 0.5, 0.7, 0.85, 1.2, 1.4, 1.7, 2.0, 3.0] {
            let call = target.call;
            let blocks = Call { hit: call.blocks() * factor, read: 0.0, ..call };
            let rows = Call { rows: call.rows * factor, ..call };
            for wanted in [blocks, rows] {
                let found = toward(lab, target, &wanted, &begin);
                best = found.into_iter().fold(best, |best, found| {
                    if found.worth() > best.worth() + 0.001 { found } else { best }
                });
            }
        }
    }
    Some(best)
}

/// The weights under which what was tried comes nearest to such a call.
fn toward(lab: &Lab, target: &Target, wanted: &Call, begin: &[f64]) -> Option<Choice> {
    let mut best: Option<(f64, Choice)> = None;
    let mut shares = if lab.has_plans() { vec![0.0, 1.0, 0.2, 0.5, 0.8] } else { vec![1.0] };
    let mut at = 0;
    while let Some(share) = shares.get(at).copied() {
        at += 1;
        let Some(fit) = fit(wanted, &calls(lab, share), begin, target.calls) else { continue };
        let found = generic(lab, target, &fit.weights);
        if (found - share).abs() > 0.01 && shares.len() < 9 {
            shares.push(found);
        }
        let near = likeness(wanted, &mean(&calls(lab, found), &fit.weights));
        let least = near.rows.min(near.blocks);
        if best.as_ref().is_none_or(|(best, _)| least > best + 0.001) {
            best = Some((least, expected(lab, target, fit.weights)));
        }
    }
    best.map(|(_, choice)| choice)
}

/// How near one way comes, as often as it was tried.
fn single(lab: &Lab, target: &Target, way: usize) -> Option<Choice> {
    let count = lab.tried.iter().filter(|tried| tried.way == way).count() as f64;
    if count == 0.0 {
        return None;
    }
    let weights: Vec<f64> =
        lab.tried.iter().map(|tried| if tried.way == way { 1.0 / count } else { 0.0 }).collect();
    let calls = calls(lab, generic(lab, target, &weights));
    let mean = mean(&calls, &weights);
    let deviation = |what: fn(&Call) -> f64, least: f64| {
        let middle = what(&mean);
        let variance: f64 =
            calls.iter().zip(&weights).map(|(call, weight)| weight * (what(call) - middle).powi(2)).sum();
        (variance / (count - 1.0).max(1.0)).sqrt() / middle.max(least)
    };
    // Few calls that are alike are no proof that all are.
    let error = deviation(|call| call.rows, 0.05).max(deviation(Call::blocks, 1.0)) + 0.3 / count;
    Some(Choice { likeness: likeness(&target.call, &mean), mean, weights, error })
}

/// Feeders over relations where they come near, for these have the most different values; kept values otherwise.
fn choose(plan: &Plan, lab: &Lab, target: &Target, mask: bool) -> Chosen {
    let mut best: Option<(f64, Shape)> = None;
    let mut offer = |worth: f64, ways: Vec<(f64, Way)>| {
        if best.as_ref().is_none_or(|(least, _)| worth > *least) {
            best = Some((worth, Shape { ways, ..lab.shape.clone() }));
        }
    };
    // OFFSET is a number that only kept values have; and what is far from the end was found in a sample.
    let rows = plan.relations.iter().map(|relation| relation.rows).fold(0.0, f64::max);
    let is_exact = |way: &Way| mask || way.beyond.is_none_or(|beyond| !is_sampled(rows, beyond));
    let serves = |way: &Way| !lab.shape.is_paged && is_exact(way);
    let singles: Vec<(usize, Choice)> = (0..lab.ways())
        .filter(|&way| serves(lab.way(way)))
        .filter_map(|way| single(lab, target, way).map(|choice| (way, choice)))
        .collect();
    for (way, choice) in &singles {
        offer(choice.worth(), vec![(1.0, lab.way(*way).clone())]);
    }
    let fed = (0..plan.analysed.occurrences.len()).filter(|&at| !plan.parameters(at).is_empty()).count();
    if fed == 1
        && let Some((shares, choice)) = mixture(lab, target, &singles)
    {
        // Simpler is better.
        let ways = shares.iter().map(|(share, way)| (*share, lab.way(*way).clone())).collect();
        offer(choice.worth() - 0.01, ways);
    }
    let is_near = best.as_ref().is_some_and(|(worth, _)| *worth > 2.0 + NEAR * NEAR - SURE);
    let has_fed = fed > 0 || lab.shape.is_paged;
    if !mask
        && has_fed
        && !is_near
        && let Some(choice) = nearest_or_one(lab, target)
        && best.as_ref().is_none_or(|(worth, _)| choice.worth() > *worth)
    {
        return Chosen { shape: lab.shape.clone(), kept: kept(lab, &choice.weights) };
    }
    let shape = Shape { is_paged: false, ..best.map_or_else(|| lab.shape.clone(), |(_, shape)| shape) };
    Chosen { shape, kept: Vec::new() }
}

/// Some ways with their shares, and how near they come together.
fn mixture(lab: &Lab, target: &Target, singles: &[(usize, Choice)]) -> Option<(Vec<(f64, usize)>, Choice)> {
    const WAYS: usize = 4;
    let means: Vec<Call> = singles
        .iter()
        .map(|(_, choice)| mean(&calls(lab, generic(lab, target, &choice.weights)), &choice.weights))
        .collect();
    let begin: Vec<f64> = singles.iter().map(|(_, choice)| choice.likeness.score.powi(2).max(0.01)).collect();
    // The fewest that serve: those that the others add little to.
    let all = fit(&target.call, &means, &begin, target.calls)?;
    let mut order: Vec<usize> = (0..singles.len()).collect();
    order.sort_by(|&a, &b| all.weights[b].total_cmp(&all.weights[a]));
    order.truncate(WAYS);
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
    let mut weights = vec![0.0; lab.tried.len()];
    let mut variance = 0.0;
    for &(share, at) in &chosen {
        let one = &singles[at].1;
        weights.iter_mut().zip(&one.weights).for_each(|(sum, weight)| *sum += share * weight);
        // An error relative to its own mean, made relative to the captured one.
        let size = |what: fn(&Call) -> f64, least: f64| what(&means[at]) / what(&target.call).max(least);
        let size = size(|call| call.rows, 0.05).max(size(Call::blocks, 1.0));
        variance += (share * one.error * size).powi(2);
    }
    let choice = Choice { error: variance.sqrt(), ..expected(lab, target, weights) };
    Some((chosen.into_iter().map(|(share, at)| (share, singles[at].0)).collect(), choice))
}

fn kept(lab: &Lab, weights: &[f64]) -> Vec<(f64, Values)> {
    let all = lab.tried.iter().zip(weights).filter(|(_, weight)| **weight > 1e-6);
    all.map(|(tried, weight)| (*weight, tried.raw.clone())).collect()
}
