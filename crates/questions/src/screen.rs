//! Screens, which show which of several settings matter: their variants, and the effects that their runs show.

#[cfg(test)]
mod tests;

use bench_base::error::UserError;
use bench_base::words;
use bench_model::spec::{Duel, object, plain};
use bench_results::compared::parts;
use bench_results::experiment::{Factor, FactorKind, Screen, ScreenLine};
use bench_stats::Estimate;
use bench_stats::compare::{Better, Terms};
use bench_stats::duel::{ArmBatch, METRICS, PROCESSOR_TIME, compare, whole};
use bench_stats::screen::{MOST_FACTORS, aliases, design, effects};
use serde_json::{Map, Value, json};

use crate::sweep::Variant;

// A screen runs a duel for each setting of the session, and combinations of levels for those of the server.

const EXAMPLE: &str =
    "For example: factors => '{\"work_mem\": [\"4MB\", \"64MB\"], \"jit\": [\"off\", \"on\"]}'.";

/// Parses a screen from JSON: an object with two values for each parameter. `kind` returns when a parameter can be set.
///
/// # Errors
/// 22023 for any other JSON, and those of `kind`.
pub fn screen_of(
    factors: Value,
    margin: f64,
    kind: &mut dyn FnMut(&str) -> Result<FactorKind, UserError>,
) -> Result<Screen, UserError> {
    let given = object("factors", factors)?;
    if given.is_empty() || given.len() > MOST_FACTORS {
        let message = format!("factors must name 1 to {MOST_FACTORS} settings, not {}", given.len());
        return Err(UserError::invalid(message).hint(EXAMPLE));
    }
    let mut factors = Vec::new();
    for (name, levels) in given {
        let is_level = |level: &Value| matches!(level, Value::String(_) | Value::Number(_) | Value::Bool(_));
        let (a, b) = match levels.as_array().map(Vec::as_slice) {
            Some([a, b]) if is_level(a) && is_level(b) && a != b => (a.clone(), b.clone()),
            _ => {
                let message = format!("factor \"{name}\" must be an array of two different values");
                return Err(UserError::invalid(message).hint(EXAMPLE));
            }
        };
        let kind = kind(&name)?;
        factors.push(Factor { name, a, b, kind });
    }
    Ok(Screen { factors, margin })
}

/// Returns the name of a combination of levels by its row in the design, from 0.
fn combination_name(row: usize) -> String {
    format!("combination {:02}", row + 1)
}

/// Returns the row of a combination by its name.
pub fn row_of(variant: &str) -> Option<usize> {
    variant.strip_prefix("combination ")?.parse::<usize>().ok()?.checked_sub(1)
}

/// Returns the variants of a screen's sweep: a duel for each session setting, and combinations of server settings.
///
/// # Errors
/// Those of the arms of a duel.
pub fn variants(screen: &Screen) -> Result<Vec<Variant>, UserError> {
    let mut variants = Vec::new();
    for Factor { name, a, b, .. } in screen.factors.iter().filter(|factor| factor.kind == FactorKind::Session)
    {
        let arm = |level: &Value| json!({"settings": {name: level}});
        let duel = Duel::new(&arm(a), &arm(b))?;
        variants.push(Variant { name: name.clone(), duel: Some(duel), ..Variant::default() });
    }
    let combined: Vec<&Factor> = screen.combined().collect();
    if combined.is_empty() {
        return Ok(variants);
    }
    for (row, levels) in design(combined.len()).iter().enumerate() {
        let settings = |kind: FactorKind| -> Map<String, Value> {
            let factors = combined.iter().zip(levels).filter(|(factor, _)| factor.kind == kind);
            factors
                .map(|(factor, b)| (factor.name.clone(), if *b { &factor.b } else { &factor.a }.clone()))
                .collect()
        };
        let (system, restart) = (settings(FactorKind::System), settings(FactorKind::Restart));
        variants.push(Variant { name: combination_name(row), system, restart, ..Variant::default() });
    }
    Ok(variants)
}

words! {
    /// What effects are on, by the names that users know.
    pub enum ScreenMetric {
        /// Transactions per second.
        Tps = "tps",
        /// Mean latency, ms.
        Latency = "latency_avg_ms",
        /// Processor time of the server per transaction, µs.
        Cpu = "server_cpu_us",
    }
}

impl ScreenMetric {
    fn better(self) -> Better {
        if self == Self::Tps { Better::Higher } else { Better::Lower }
    }
}

/// A run of a combination of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct CombinedRun {
    /// Row of the design, from 0.
    pub row: usize,
    /// From 1.
    pub round: u32,
    /// The metric, or why the run is invalid.
    pub value: Result<f64, String>,
}

/// The runs of a screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScreenRuns {
    /// The batches of valid duels, by session factor.
    pub duels: Vec<(String, Vec<[ArmBatch; 2]>)>,
    /// Errors of invalid duels, by factor.
    pub failed_duels: Vec<(String, String)>,
    pub combined: Vec<CombinedRun>,
    /// The limit of the 99th percentile; a level above it fails.
    pub latency_limit_ms: Option<f64>,
}

/// The joint confidence of all intervals of a screen.
const CONFIDENCE: f64 = 0.95;

/// The verdict on a setting with a level that fails.
const FAILS: &str = "fails";

/// Returns the effect of each factor, failing ones first, then by size. `margin` replaces the screen's.
pub fn screen(screen: &Screen, runs: &ScreenRuns, metric: ScreenMetric, margin: f64) -> Vec<ScreenLine> {
    // Bonferroni, over both kinds.
    let confidence =
        |count: usize| 1.0 - (1.0 - CONFIDENCE) * count as f64 / screen.factors.len().max(1) as f64;
    let terms = |count: usize| Terms { margin, confidence: confidence(count), better: metric.better() };
    let mut lines: Vec<ScreenLine> = Vec::new();
    for factor in screen.factors.iter().filter(|factor| factor.kind == FactorKind::Session) {
        lines.push(duel_effect(factor, runs, metric, terms(1)));
    }
    let combined: Vec<&Factor> = screen.combined().collect();
    if !combined.is_empty() {
        lines.extend(combined_effects(&combined, &runs.combined, metric, terms(combined.len())));
    }
    let size = |line: &ScreenLine| line.effect.map_or(0.0, |effect| (1.0 + effect).ln().abs());
    lines.sort_by(|one, other| {
        let works = |line: &ScreenLine| line.verdict != FAILS;
        works(one)
            .cmp(&works(other))
            .then(size(other).total_cmp(&size(one)))
            .then(one.factor.cmp(&other.factor))
    });
    lines
}

fn empty_line(factor: &Factor, metric: ScreenMetric, margin: f64) -> ScreenLine {
    ScreenLine {
        metric: metric.as_str().to_owned(),
        factor: factor.name.clone(),
        a: plain(&factor.a),
        b: plain(&factor.b),
        margin,
        verdict: "inconclusive".to_owned(),
        ..ScreenLine::default()
    }
}

/// Adds an estimate of the ratio b / a to a line.
fn with_ratio(mut line: ScreenLine, ratio: Option<Estimate>, terms: Terms) -> ScreenLine {
    let finite =
        |ratio: &Estimate| [ratio.value, ratio.low, ratio.high].iter().all(|value| value.is_finite());
    if let Some(ratio) = ratio.filter(finite) {
        line.verdict = terms.verdict(&ratio).as_str().to_owned();
        [line.effect, line.effect_low, line.effect_high] =
            parts(Some(ratio)).map(|part| part.map(|ratio| ratio - 1.0));
    }
    line
}

fn failing(line: &ScreenLine, error: String) -> ScreenLine {
    ScreenLine { verdict: FAILS.to_owned(), error: Some(error), ..line.clone() }
}

/// Returns the effect of a session factor from its duels.
fn duel_effect(factor: &Factor, runs: &ScreenRuns, metric: ScreenMetric, terms: Terms) -> ScreenLine {
    let line = empty_line(factor, metric, terms.margin);
    let batches: Vec<[ArmBatch; 2]> = runs
        .duels
        .iter()
        .filter(|(name, _)| *name == factor.name)
        .flat_map(|(_, batches)| batches.clone())
        .collect();
    if batches.is_empty() {
        let error = runs.failed_duels.iter().find(|(name, _)| *name == factor.name);
        return error.map_or(line.clone(), |(_, error)| failing(&line, error.clone()));
    }
    for (arm, level) in whole(&batches).iter().zip([&line.a, &line.b]) {
        let p99 = arm.percentile_ms(0.99);
        if let Some((p99, limit)) = p99.zip(runs.latency_limit_ms).filter(|(p99, limit)| p99 > limit) {
            let error = above_limit(level, p99, limit);
            return failing(&line, error);
        }
    }
    let duel_metric = if metric == ScreenMetric::Cpu { PROCESSOR_TIME } else { &METRICS[0] };
    // A client's throughput is the inverse of its latency.
    let figure = compare(&batches, duel_metric, Terms { better: Better::Lower, ..terms });
    let ratio = figure.and_then(|figure| figure.comparison.ratio).map(|ratio| match metric {
        ScreenMetric::Tps => {
            Estimate { value: 1.0 / ratio.value, low: 1.0 / ratio.high, high: 1.0 / ratio.low }
        }
        _ => ratio,
    });
    with_ratio(line, ratio, terms)
}

/// Returns the error for a level whose 99th percentile is above the limit.
pub fn above_limit(level: &str, p99: f64, limit: f64) -> String {
    format!("{level}: p99 of {p99:.3} ms is above latency_limit of {limit} ms")
}

/// Bounds memory for imported sweeps, whose rounds may be any number.
const MAX_ROUNDS: u32 = 1000;

/// Returns the effects of combined factors.
fn combined_effects(
    factors: &[&Factor],
    runs: &[CombinedRun],
    metric: ScreenMetric,
    terms: Terms,
) -> Vec<ScreenLine> {
    let design = design(factors.len());
    let rounds = runs.iter().map(|run| run.round).max().unwrap_or_default().min(MAX_ROUNDS) as usize;
    let mut values: Vec<Vec<Option<f64>>> = vec![vec![None; design.len()]; rounds];
    let runs: Vec<&CombinedRun> = runs
        .iter()
        .filter(|run| run.row < design.len() && (1..=rounds).contains(&(run.round as usize)))
        .collect();
    for run in &runs {
        values[run.round as usize - 1][run.row] = run.value.as_ref().ok().copied();
    }
    let estimates = effects(&design, &values, terms.confidence);
    let has_run = |row: usize| values.iter().any(|round| round[row].is_some());
    let executed: Vec<Vec<bool>> = design
        .iter()
        .enumerate()
        .filter(|(row, _)| has_run(*row))
        .map(|(_, levels)| levels.clone())
        .collect();
    let line = |(column, factor): (usize, &&Factor)| {
        let line = empty_line(factor, metric, terms.margin);
        for (level, name) in [(false, &line.a), (true, &line.b)] {
            if let Some(error) = level_failure(&design, &runs, column, level) {
                let error = format!("{} = {name}: {error}", factor.name);
                return failing(&line, error);
            }
        }
        let ratio = estimates.as_ref().and_then(|estimates| *estimates.effects.get(column)?);
        ScreenLine { aliases: format_aliases(&executed, column, factors), ..with_ratio(line, ratio, terms) }
    };
    factors.iter().enumerate().map(line).collect()
}

/// Returns the error of a factor's level whose runs all fail, if runs with the other level succeed.
fn level_failure<'a>(
    design: &[Vec<bool>],
    runs: &[&'a CombinedRun],
    column: usize,
    level: bool,
) -> Option<&'a String> {
    let (with, without): (Vec<&CombinedRun>, Vec<&CombinedRun>) =
        runs.iter().partition(|run| design[run.row][column] == level);
    let works = |runs: &[&CombinedRun]| runs.iter().any(|run| run.value.is_ok());
    with.iter().find_map(|run| run.value.as_ref().err()).filter(|_| !works(&with) && works(&without))
}

/// Number of aliases that are named.
const NAMED_ALIASES: usize = 3;

/// Smaller absolute shares are shown.
const FULL_SHARE: f64 = 0.999;

/// Lists interactions that are mixed into a factor's effect, those of two settings first.
fn format_aliases(executed: &[Vec<bool>], column: usize, factors: &[&Factor]) -> Option<String> {
    let mut all = aliases(executed, column);
    all.sort_by(|one, other| {
        one.factors.len().cmp(&other.factors.len()).then(other.share.abs().total_cmp(&one.share.abs()))
    });
    let named = all.iter().take(NAMED_ALIASES).map(|alias| {
        let names: Vec<&str> = alias.factors.iter().map(|place| factors[*place].name.as_str()).collect();
        let share = if alias.share.abs() > FULL_SHARE {
            String::new()
        } else {
            format!(" ({:.2})", alias.share.abs())
        };
        format!("{}{share}", names.join(" × "))
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = all.len().saturating_sub(NAMED_ALIASES);
    match (all.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named),
        (false, more) => Some(format!("{named} and {more} more")),
    }
}

/// Summarises a screen, as `of 8 settings 2 matter for tps: a (+12.0 %), b (-5.0 %); 4 make no difference, together less than
/// 2.0 %; 2 not decided (c, d)`.
pub fn sentence(lines: &[ScreenLine]) -> Option<String> {
    let metric = &lines.first()?.metric;
    let is = |verdicts: &'static [&'static str]| {
        move |line: &&ScreenLine| verdicts.contains(&line.verdict.as_str())
    };
    let shown =
        |line: &ScreenLine| format!("{} ({:+.1} %)", line.factor, line.effect.unwrap_or_default() * 100.0);
    let mattering: Vec<String> = lines.iter().filter(is(&["faster", "slower"])).map(shown).collect();
    let failing: Vec<&str> = lines.iter().filter(is(&[FAILS])).map(|line| line.factor.as_str()).collect();
    let same: Vec<&ScreenLine> = lines.iter().filter(is(&["same"])).collect();
    let open: Vec<&str> =
        lines.iter().filter(is(&["inconclusive"])).map(|line| line.factor.as_str()).collect();
    let settings = if lines.len() == 1 { "setting" } else { "settings" };
    let mut summary = match mattering.len() {
        0 => format!("of {} {settings} none is seen to matter for {metric}", lines.len()),
        1 => format!("of {} {settings} 1 matters for {metric}: {}", lines.len(), mattering[0]),
        count => {
            format!("of {} {settings} {count} matter for {metric}: {}", lines.len(), mattering.join(", "))
        }
    };
    if !failing.is_empty() {
        summary += &format!("; a level of {} fails", failing.join(", "));
    }
    if !same.is_empty() {
        let verb = if same.len() == 1 { "makes" } else { "make" };
        summary += &format!("; {} {verb} no difference", same.len());
    }
    if let Some(most) = joint_bound(&same) {
        summary += &format!(", together less than {:.1} %", most * 100.0);
    }
    if !open.is_empty() {
        summary += &format!("; {} not decided ({})", open.len(), open.join(", "));
    }
    Some(summary)
}

/// Returns an upper bound of the settings' joint effect, whatever their signs: effects add up, independent errors add up in
/// squares.
fn joint_bound(lines: &[&ScreenLine]) -> Option<f64> {
    let (mut sum, mut squares) = (0.0, 0.0);
    for line in lines {
        let (effect, high) = ((1.0 + line.effect?).ln(), (1.0 + line.effect_high?).ln());
        sum += effect.abs();
        squares += (high - effect).powi(2);
    }
    let most = (sum + squares.sqrt()).exp() - 1.0;
    (!lines.is_empty() && most.is_finite()).then_some(most)
}
