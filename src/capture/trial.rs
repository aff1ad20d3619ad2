//! Statements that only read are tried with values of some rows: how many rows and blocks a call takes then says which
//! feeders, or which values with which weights, come nearest to what was captured.

use std::time::Duration;

use bench_core::captured::{Call, Counts, Likeness, fit, generic_share, likeness, mean};
use bench_core::error::UserError;

use super::feeders::Plan;
use super::lab::Lab;
pub use super::lab::Values;
use super::queries::is_sampled;
use super::search::search;
use super::ways::{Shape, Way};
use crate::server::guc;
use crate::server::spi::{self, fetch_all, quote_literal};
use crate::server::transaction::rolled_back;

/// How long the trials of all statements take together, each having a part of it like its share of the captured time.
const PATIENCE: Duration = Duration::from_secs(25);

/// The least and the longest of one statement.
const SHORTEST: Duration = Duration::from_millis(700);
const LONGEST: Duration = Duration::from_secs(12);

/// How near rows and blocks have to come for feeders over a relation.
pub const NEAR: f64 = 0.96;

/// How near one of them has to come to be right.
const RIGHT: f64 = 0.93;

/// The relative error that their means may have.
pub const SURE: f64 = 0.03;

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
pub struct Choice {
    /// One for each call that was tried.
    pub weights: Vec<f64>,
    /// What a call takes on average.
    pub mean: Call,
    likeness: Likeness,
    /// The relative error of the means.
    pub error: f64,
}

impl Choice {
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
pub struct Target {
    pub call: Call,
    pub calls: f64,
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
pub fn nearest(lab: &Lab, target: &Target) -> Option<(Choice, Vec<f64>)> {
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
pub fn single(lab: &Lab, target: &Target, way: usize) -> Option<Choice> {
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
pub fn choose(plan: &Plan, lab: &Lab, target: &Target, mask: bool) -> Chosen {
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
