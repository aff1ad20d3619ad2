//! Whether throughput was constant: a warm-up that was too short, or a drift.
//!
//! The better fit decides between them: two levels, the first of them short, are a warm-up; one slope is a drift.
//! Intervals excluded as a dip count for neither.

use bench_base::sentence::{grouped, percent, seconds};
use bench_results::{Document, Event, Finding, Severity, Topic};
use bench_stats::until_steady::truncation;
use bench_stats::{mean, trend};
use serde_json::json;

use crate::dips::detect::{Detected, MANY_INTERVALS};
use crate::intervals::{Intervals, finding};

/// The least change worth a word, as a share of the steady throughput.
const LEAST_CHANGE: f64 = 0.05;
/// What a warm-up has to do to the whole run's mean to matter.
const LEAST_BIAS: f64 = 0.01;
/// The share of the run within which a warm-up has to end: what changes in the middle was something else.
const LATEST_END: f64 = 0.35;
/// How many standard errors beyond the least change a warm-up has to lie off the rest. It is much, since the place of
/// the cut was chosen for this very difference.
const LEAST_ERRORS: f64 = 4.0;
/// Seconds below which a machine's own wandering is as good as any drift.
const LEAST_DRIFT_SECS: f64 = 20.0;
/// The confidence with which a drift must be more than the least change; told is the interval of 95 %.
const DRIFT_CONFIDENCE: f64 = 0.99;

/// The findings on the run's shape.
pub fn findings(document: &Document, intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    if detected.median <= 0.0 {
        return None;
    }
    if intervals.len() < MANY_INTERVALS {
        return short_warmup(document, intervals, detected);
    }
    warmup(document, intervals, detected).or_else(|| drift(intervals, detected))
}

/// The warm-up was given up.
pub fn unsteady(document: &Document) -> Option<Finding> {
    let secs = document.run.warmup_took.filter(|_| document.run.is_unsteady())?;
    Some(finding(
        Severity::Warning,
        Topic::Unsteady,
        format!("Throughput was not steady after {} of warm-up.", seconds(secs)),
        json!({"warmup_secs": secs}),
        "Look at tps in bench.warmup_samples for what changes: a cache that is still filling, a table that grows, other \
         load. Set warmup to a number of seconds that is long enough, or a rate that the server keeps up with.",
    ))
}

/// The warm-up of a run with so few intervals that levels are a guess: a beginning that would be a dip elsewhere.
fn short_warmup(document: &Document, intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    let cut = detected.beginning.end;
    if cut == 0 || cut as f64 > intervals.len() as f64 * LATEST_END {
        return None;
    }
    let is_in_dip = |index: &usize| detected.dips.iter().any(|dip| dip.intervals.contains(index));
    let rest: Vec<f64> =
        (cut..intervals.len()).filter(|index| !is_in_dip(index)).map(|index| intervals.tps[index]).collect();
    let (before, after) = (mean(&intervals.tps[..cut]), mean(&rest));
    let bias = (before - after) / after * cut as f64 / intervals.len() as f64;
    // Written so that what is no number is no finding.
    let tells = bias.abs() >= LEAST_BIAS;
    tells.then(|| warmup_finding(document, intervals.ends[cut - 1], before, after, bias))
}

fn warmup(document: &Document, intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    let mut tps = intervals.tps.clone();
    for dip in &detected.dips {
        tps[dip.intervals.clone()].copy_from_slice(&detected.expected[dip.intervals.clone()]);
    }
    let cut = begin_of_level(&tps, truncation(&tps));
    if cut == 0 || cut as f64 > tps.len() as f64 * LATEST_END {
        return None;
    }
    let (before, after) = (mean(&tps[..cut]), mean(&tps[cut..]));
    let change = before / after - 1.0;
    let bias = mean(&tps) / after - 1.0;
    let difference_error = error_of_difference(&tps[cut..], after, cut);
    let beyond_noise = (before - after).abs() >= LEAST_ERRORS * difference_error + LEAST_CHANGE * after;
    // Written so that what is no number is no finding.
    let two_levels =
        trend::squares_from(&tps[..cut], |_| before) + trend::squares_from(&tps[cut..], |_| after);
    let one_line = trend::squares_from_line(&tps);
    let tells = bias.abs() >= LEAST_BIAS && beyond_noise && two_levels < one_line;
    if !tells {
        return None;
    }
    let steady_after = intervals.ends[cut - 1];
    if change > 0.0 && something_began(document, intervals, detected, cut) {
        return None;
    }
    Some(warmup_finding(document, steady_after, before, after, bias))
}

/// The first `steady_after` seconds had another throughput than the rest, in tps; `bias` is what that does to the whole
/// run's mean, as a share.
fn warmup_finding(document: &Document, steady_after: f64, before: f64, after: f64, bias: f64) -> Finding {
    let change = before / after - 1.0;
    let warmup = (document.run.warmed_up_secs() + steady_after).ceil();
    finding(
        Severity::Warning,
        Topic::Warmup,
        format!(
            "The measurement began before the warm-up was over: in the first {} throughput was {} tps, {} {} than \
             the {} tps afterwards.",
            seconds(steady_after),
            grouped(before),
            percent(change.abs()),
            if change < 0.0 { "less" } else { "more" },
            grouped(after)
        ),
        json!({
            "steady_after_secs": steady_after,
            "tps_before": before,
            "tps_after": after,
            "change": change,
            "bias_of_mean": bias,
        }),
        format!("Run again with warmup => {warmup:.0} to measure the steady state only."),
    )
}

/// Where the level of what follows `cut` begins. The truncation point cuts off some more where what is left happens
/// to be more even; two levels are best parted where their squares are least, and a slow rise ends when three values
/// in a row are, on average, at the level.
fn begin_of_level(tps: &[f64], cut: usize) -> usize {
    let level = mean(&tps[cut..]);
    // The less the squares about two means, the greater what the means explain: sums alone are needed.
    let total: f64 = tps.iter().map(|value| value - level).sum();
    let (mut sum, mut best, mut begin) = (0.0, f64::NEG_INFINITY, 0);
    for (index, value) in tps[..cut].iter().enumerate() {
        sum += value - level;
        let (before, after) = ((index + 1) as f64, (tps.len() - index - 1) as f64);
        let explained = sum * sum / before + (total - sum) * (total - sum) / after;
        if explained > best {
            (best, begin) = (explained, index + 1);
        }
    }
    let off = |at: usize| (mean(&tps[at..(at + 3).min(tps.len())]) / level - 1.0).abs() > LEAST_CHANGE;
    while begin < cut && off(begin) {
        begin += 1;
    }
    begin
}

/// Whether a dip or a checkpoint began where the first level ends: then it ended that level, and there was no
/// warm-up.
fn something_began(document: &Document, intervals: &Intervals, detected: &Detected, cut: usize) -> bool {
    let at = intervals.ends[cut - 1];
    let near = intervals.typical_secs().max(0.5) * 2.0;
    let checkpoint = |event: &Event| event.kind == "checkpoint" && (event.started - at).abs() <= near;
    document.events.iter().any(checkpoint)
        || detected.dips.iter().any(|dip| dip.intervals.start.abs_diff(cut) <= 2)
}

/// The standard error of the difference between the means of the first `cut` values and of the steady rest, both
/// taken to vary as the rest does. Neighbours are alike, so that n values count for n (1 − r) / (1 + r), r being the
/// autocorrelation at lag 1 (Bayley & Hammersley 1946, J. R. Stat. Soc. Suppl. 8, of a first-order process).
fn error_of_difference(rest: &[f64], mean: f64, cut: usize) -> f64 {
    let count = rest.len() as f64;
    let variance = rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let covariance = rest.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / count;
    let autocorrelation = if variance > 0.0 { (covariance / variance).clamp(0.0, 0.9) } else { 0.0 };
    let inflation = (1.0 + autocorrelation) / (1.0 - autocorrelation);
    (variance * inflation * (1.0 / cut as f64 + 1.0 / count)).sqrt()
}

fn drift(intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    let secs = intervals.measured_secs();
    let in_a_dip = |index: usize| detected.dips.iter().any(|dip| dip.intervals.contains(&index));
    let points: Vec<(f64, f64)> = (0..intervals.len())
        .filter(|&index| !in_a_dip(index))
        .map(|index| ((intervals.starts[index] + intervals.ends[index]) / 2.0, intervals.tps[index]))
        .collect();
    let found = trend::slope(&points)?;
    // Relative to where it began: that is what a reader compares the end with.
    let change = found.at_last / found.at_first - 1.0;
    let span = points.last()?.0 - points.first()?.0;
    let relative = |slope: f64| slope * span / found.at_first;
    let surely = relative(found.slope.abs() - found.margin(DRIFT_CONFIDENCE));
    let tells = secs >= LEAST_DRIFT_SECS && found.at_first > 0.0 && surely > LEAST_CHANGE;
    if !tells {
        return None;
    }
    let margin = found.margin(0.95);
    let (low, high) = (relative(found.slope - margin), relative(found.slope + margin));
    let (least, most) = if change < 0.0 { (-high, -low) } else { (low, high) };
    let direction = if change < 0.0 { "fell" } else { "rose" };
    Some(finding(
        Severity::Warning,
        Topic::Drift,
        format!(
            "Throughput {direction} by {} over the {} measured, from {} to {} tps (95 % confidence interval of the \
             change: {} to {}).",
            percent(change.abs()),
            seconds(secs),
            grouped(found.at_first),
            grouped(found.at_last),
            percent(least),
            percent(most)
        ),
        json!({
            "change": change,
            "change_low": low,
            "change_high": high,
            "tps_first": found.at_first,
            "tps_last": found.at_last,
            "tps_per_sec": found.slope,
            "secs": secs,
        }),
        if change < 0.0 {
            "Measure longer to see where it ends, and look for growth: tables and indexes (bench.relations), dead \
             rows, WAL, unwritten file data."
        } else {
            "Warm up longer, and measure longer to see where it ends: caches may still have been filling."
        },
    ))
}
