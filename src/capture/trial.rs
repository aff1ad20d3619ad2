//! Statements that only read are tried with values of some rows: how many rows and blocks a call takes then says which
//! feeders come nearest to what was captured.

use std::time::{Duration, Instant};

use bench_core::captured::{Call, Counts, likeness, pick, with_values};
use bench_core::error::UserError;

use super::feeders::{Plan, Source, sql_of};
use super::queries::{Shape, query_of};
use crate::engine::parameters::How;
use crate::server::guc;
use crate::server::process::accessed_blocks;
use crate::server::spi::{self, fetch_all, quote_literal};
use crate::server::transaction::rolled_back;

/// Calls of each trial.
const CALLS: usize = 100;

/// The longest that the trials of one statement take.
const PATIENCE: Duration = Duration::from_secs(1);

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
    // All of them are looked at, so that one row is as likely as another.
    let order = if most > 1 { "ORDER BY pg_catalog.random()" } else { "" };
    let sql =
        format!("SELECT ARRAY[{}]::pg_catalog.text[] FROM ({query}) q {order} LIMIT {most}", list.join(", "));
    fetch_all(&sql, &[], |row| Ok(row.get::<Vec<Option<String>>>(1)?.unwrap_or_default()))
}

/// A value as a literal of its type.
pub fn literal(value: Option<&str>, sql_type: &str) -> String {
    match value {
        Some(text) => format!("{}::{sql_type}", quote_literal(text)),
        None => format!("NULL::{sql_type}"),
    }
}

/// Values of the parameters of one occurrence, a row for each call.
type Drawn = (Vec<usize>, Vec<Vec<Option<String>>>);

/// Calls that were tried.
struct Tried {
    drawn: Vec<Drawn>,
    /// Each call's rows and blocks.
    calls: Vec<Call>,
}

impl Tried {
    fn mean(&self) -> Call {
        let count = self.calls.len().max(1) as f64;
        let mean = |of: fn(&Call) -> f64| self.calls.iter().map(of).sum::<f64>() / count;
        Call { rows: mean(|call| call.rows), hit: mean(Call::blocks), ..Call::default() }
    }

    /// The row of values of each call, and the call, of those whose values are not those of an earlier one.
    fn different(&self) -> Vec<(&Vec<Option<String>>, Call)> {
        let [(_, rows)] = &self.drawn[..] else { return Vec::new() };
        let mut found: Vec<(&Vec<Option<String>>, Call)> = Vec::new();
        for (row, call) in rows.iter().zip(&self.calls) {
            if !found.iter().any(|(known, _)| *known == row) {
                found.push((row, *call));
            }
        }
        found
    }
}

/// Calls with values of such feeders; `None` where there are none.
fn tried(plan: &Plan, shape: &Shape, until: Instant) -> Result<Option<Tried>, UserError> {
    let mut drawn: Vec<Drawn> = Vec::new();
    for occurrence in 0..plan.analysed.occurrences.len() {
        if let Some(query) = query_of(plan, occurrence, shape)? {
            let found = rows(&query, &plan.columns(occurrence), CALLS)?;
            if found.is_empty() {
                return Ok(None);
            }
            drawn.push((plan.parameters(occurrence), found));
        }
    }
    let most = if drawn.is_empty() { 1 } else { CALLS };
    let mut calls = Vec::with_capacity(most);
    while calls.len() < most && (calls.is_empty() || Instant::now() < until) {
        pgrx::check_for_interrupts!();
        let text = with_values(plan.text, |number| {
            sql_of(plan, shape, number, |index| {
                let value = drawn.iter().find_map(|(indexes, rows)| {
                    let place = indexes.iter().position(|&other| other == index)?;
                    rows[calls.len() % rows.len()][place].clone()
                });
                literal(value.as_deref(), &plan.analysed.parameters[index].sql_type)
            })
        });
        let before = accessed_blocks();
        let rows = spi::count_rows(&text)? as f64;
        calls.push(Call { rows, hit: (accessed_blocks() - before) as f64, ..Call::default() });
    }
    Ok(Some(Tried { drawn, calls }))
}

/// What comes nearest to the captured calls.
#[derive(Default)]
pub struct Chosen {
    pub shape: Shape,
    /// Rows of values with their weights, where a few of them come nearer than feeders over the relation do.
    pub picked: Vec<(f64, Vec<Option<String>>)>,
}

/// The feeders' shape under which a statement's calls come nearest to those that were captured, or a few rows of values.
///
/// # Errors
/// Why the statement cannot be executed with any of them.
pub fn shape(plan: &Plan, counts: &Counts, mask: bool) -> Result<Chosen, UserError> {
    let Some(captured) = Call::of(counts.calls, counts.rows, counts.hit, counts.read, counts.exec_ms) else {
        return Ok(Chosen::default());
    };
    if plan.analysed.writes || plan.values.is_empty() {
        return Ok(Chosen::default());
    }
    let path = guc::initial_search_path()?;
    let until = Instant::now() + PATIENCE;
    let try_it = |shape: &Shape| {
        // What goes wrong with one shape may go well with another.
        rolled_back(|| guc::with_search_path(&path, || tried(plan, shape, until))).ok().flatten()
    };
    let mut best: Option<(f64, Shape, Tried)> = None;
    let look = |shape: Shape, best: &mut Option<(f64, Shape, Tried)>| {
        if best.is_some() && Instant::now() >= until {
            return;
        }
        let Some(found) = try_it(&shape) else { return };
        let score = likeness(&captured, &found.mean()).score;
        if best.as_ref().is_none_or(|(least, ..)| score > *least) {
            *best = Some((score, shape, found));
        }
    };
    for shape in candidates(plan, &captured) {
        look(shape, &mut best);
        if best.as_ref().is_some_and(|(score, ..)| *score > 0.97) {
            break;
        }
    }
    // Between the sizes that were tried.
    for factor in [1.6, 0.6, 1.3, 0.77, 1.14, 0.88] {
        let is_near = |score: f64| score > 0.95 || !(has(plan, How::Above) || has(plan, How::Below));
        let Some((_, shape, _)) = best.as_ref().filter(|(score, ..)| !is_near(*score)) else { break };
        let Some(shape) = shape.scaled(factor) else { break };
        look(shape, &mut best);
    }
    let Some((mut score, mut shape, found)) = best else {
        let shape = Shape { limit: limits(&captured)[0], ..Shape::default() };
        let result = rolled_back(|| guc::with_search_path(&path, || tried(plan, &shape, until)));
        return match result {
            Ok(_) => Ok(Chosen { shape, picked: Vec::new() }),
            Err(error) => {
                let message = format!("it fails with the values that were found: {}", error.message);
                Err(UserError { message, ..error })
            }
        };
    };
    if score < 0.97 && (has(plan, How::Equal) || has(plan, How::Like) || has(plan, How::Operator)) {
        let mean = |shape: &Shape| try_it(shape).map(|tried| tried.mean());
        (score, shape) = mixed(&captured, shape, &found.mean(), &mean);
        for limit in limits(&captured).into_iter().filter(|_| has_limit(plan)) {
            let other = Shape { limit, distinct: 0.0, misses: 0.0, ..shape.clone() };
            let Some(from_rows) = mean(&other) else { continue };
            let (nearer, mixture) = mixed(&captured, other, &from_rows, &mean);
            if nearer > score + 0.02 {
                (score, shape) = (nearer, mixture);
            }
        }
    }
    let mut chosen = Chosen { shape, picked: Vec::new() };
    let different = found.different();
    let is_few = different.len() <= FEW_VALUES && found.calls.len() >= 2 * different.len();
    // Masked, they would find nothing.
    if score < 0.9 && !mask && (is_few || score < 0.5) {
        let calls: Vec<Call> = different.iter().map(|(_, call)| *call).collect();
        if let Some((one, other, part, nearer)) = pick(&captured, &calls)
            && nearer > score + 0.05
        {
            let row = |at: usize, weight: f64| (weight, different[at].0.clone());
            chosen.picked =
                [row(one, 1.0 - part), row(other, part)].into_iter().filter(|(w, _)| *w > 0.0).collect();
        }
    }
    Ok(chosen)
}

/// A column with so few different values is one of kinds: the application names them.
const FEW_VALUES: usize = 12;

/// Whether a parameter meets something so.
fn has(plan: &Plan, how: How) -> bool {
    plan.analysed.parameters.iter().any(|p| p.meeting.as_ref().is_some_and(|meeting| meeting.how == how))
}

fn has_limit(plan: &Plan) -> bool {
    plan.values.iter().any(|value| matches!(value, Source::Limit))
}

/// Limits that return so many rows per call: exactly so many, where it is a whole number; or sizes of pages that not all calls
/// fill.
fn limits(captured: &Call) -> Vec<u64> {
    const PAGES: [u64; 8] = [5, 10, 20, 25, 50, 100, 1000, 10_000];
    let exact = (captured.rows.ceil() as u64).max(1);
    if (captured.rows - captured.rows.round()).abs() < 0.005 && captured.rows > 0.5 {
        return vec![exact];
    }
    let pages = PAGES.into_iter().filter(|&page| page > exact).take(3);
    [exact].into_iter().chain(pages).collect()
}

/// Shapes that are worth a trial, the first one being that without a choice.
fn candidates(plan: &Plan, captured: &Call) -> Vec<Shape> {
    let limits = limits(captured);
    let first = Shape { limit: limits[0], ..Shape::default() };
    let mut candidates = vec![first.clone()];
    if has_limit(plan) {
        candidates.extend(limits[1..].iter().map(|&limit| Shape { limit, ..first.clone() }));
    }
    let has = |how: How| has(plan, how);
    let mut vary = |is_varied: bool, change: &dyn Fn(&mut Shape, u64), values: &[u64]| {
        if is_varied {
            let with = |value: &u64| {
                let mut shape = first.clone();
                change(&mut shape, *value);
                shape
            };
            candidates.extend(values.iter().map(with));
        }
    };
    let near = (captured.rows.round() as u64).max(1);
    let (above, below) = (has(How::Above), has(How::Below));
    let sizes = [near, 2, 5, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000];
    vary(above && below, &|shape, width| shape.width = width, &sizes);
    vary(above != below, &|shape, beyond| shape.beyond = Some(beyond), &sizes);
    vary(
        has(How::Array),
        &|shape, length| shape.array = length as u32,
        &[near.min(100), 1, 2, 3, 10, 20, 50],
    );
    vary(has(How::Like), &|shape, length| shape.pattern = length as u32, &[1, 2, 4, 5, 6, 8, 12]);
    candidates
}

/// Values drawn from rows favour those that many rows have, distinct ones favour none: the mixture of both that returns as many
/// rows, or takes as many blocks, as were captured.
fn mixed(
    captured: &Call,
    shape: Shape,
    from_rows: &Call,
    try_it: &dyn Fn(&Shape) -> Option<Call>,
) -> (f64, Shape) {
    let all = Shape { distinct: 1.0, ..shape.clone() };
    let Some(from_distinct) = try_it(&all) else { return (likeness(captured, from_rows).score, shape) };
    let share = |wanted: f64, one: f64, other: f64| {
        let span = other - one;
        (span.abs() > 0.02 * one.abs().max(other.abs()).max(0.01))
            .then(|| ((wanted - one) / span).clamp(0.0, 1.0))
    };
    let by_rows = share(captured.rows, from_rows.rows, from_distinct.rows);
    let by_blocks = share(captured.blocks(), from_rows.blocks(), from_distinct.blocks());
    let expected = |part: f64| {
        let between = |one: f64, other: f64| one + part * (other - one);
        let call = Call {
            rows: between(from_rows.rows, from_distinct.rows),
            hit: between(from_rows.blocks(), from_distinct.blocks()),
            ..Call::default()
        };
        likeness(captured, &call).score
    };
    let parts = [Some(0.0), by_rows, by_blocks, Some(1.0)];
    let best = parts.into_iter().flatten().max_by(|a, b| expected(*a).total_cmp(&expected(*b)));
    let distinct = best.map_or(0.0, |part| (part * 1000.0).round() / 1000.0);
    // Neither returns as few rows: some calls found nothing.
    let lower = if from_rows.rows < from_distinct.rows { (0.0, from_rows) } else { (1.0, &from_distinct) };
    if captured.rows < 0.97 * lower.1.rows {
        let found = captured.rows / lower.1.rows;
        let call = Call { rows: captured.rows, hit: found * lower.1.blocks(), ..Call::default() };
        let score = likeness(captured, &call).score;
        if score > expected(distinct) {
            let misses = ((1.0 - found) * 1000.0).round() / 1000.0;
            return (score, Shape { distinct: lower.0, misses, ..shape });
        }
    }
    (expected(distinct), Shape { distinct, ..shape })
}
