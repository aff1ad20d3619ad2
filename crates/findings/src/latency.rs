//! What to know of the latencies: stalls that a closed loop or transactions never started hide, a long tail, too few of
//! them.

use bench_base::sentence::{counted, grouped, listed, milliseconds, seconds};
use bench_results::{Document, Finding, Severity, Topic};
use bench_stats::histogram::percentile_of;
use serde_json::json;

use crate::dips::detect::{Detected, Dip, STALL_DEPTH};
use crate::intervals::{Intervals, finding};

/// A latency above this many milliseconds, and above so many times the 99th percentile, is a stall.
const STALL_MS: f64 = 1000.0;
const STALL_TO_P99: f64 = 10.0;
/// Seconds of hardly any throughput from which on it is said to have stopped.
const LEAST_STALLED_SECS: f64 = 0.5;
/// The least that somebody has waited where throughput is said to have stood still.
const LEAST_STALL_MS: f64 = 250.0;
/// The share of the transactions due that have no latency from which on the 99.9th percentile is another one.
const LEAST_UNCOUNTED: f64 = 0.001;
/// The 99.9th percentile is a tail from so many milliseconds and so many medians on.
const TAIL_MS: f64 = 100.0;
const TAIL_TO_P50: f64 = 30.0;
/// Transactions above a percentile below which it is noise: ten.
const LEAST_FOR_P99: u64 = 1_000;
const LEAST_FOR_P999: u64 = 10_000;
/// What a rate for a run without one is suggested as, of its throughput: below saturation.
const RATE_OF_TPS: f64 = 0.8;

/// The findings on latencies.
pub fn findings(document: &Document, intervals: &Intervals, detected: &Detected) -> Vec<Finding> {
    let stalls = stalls(intervals, detected);
    [closed_loop(document, &stalls), uncounted(document, &stalls), tail(document), few(document)]
        .into_iter()
        .flatten()
        .collect()
}

/// Seconds for which throughput stopped in each dip.
fn stalls(intervals: &Intervals, detected: &Detected) -> Vec<f64> {
    let stall_secs = |dip: &Dip| -> f64 {
        let stalled = dip
            .intervals
            .clone()
            .filter(|&index| intervals.tps[index] < detected.median * (1.0 - STALL_DEPTH));
        stalled.map(|index| intervals.secs[index]).sum()
    };
    detected.dips.iter().map(stall_secs).collect()
}

/// A client that waits starts nothing, so that a stall of seconds counts as one slow transaction per client
/// (G. Tene's "coordinated omission", http://hdrhistogram.org).
fn closed_loop(document: &Document, stalls: &[f64]) -> Option<Finding> {
    let (run, summary) = (&document.run, &document.summary);
    if run.rate.is_some() {
        return None;
    }
    let stalled_secs: f64 = stalls.iter().sum();
    let longest_stall_ms = stalls.iter().copied().fold(0.0, f64::max) * 1000.0;
    let p99 = summary.latency_p99_ms?;
    let longest = summary.latency_max_ms?;
    let outlier = longest > STALL_MS && longest >= p99 * STALL_TO_P99;
    // Somebody has to have waited for most of the time, else it was slow but did not stand still.
    let stalled = stalled_secs >= LEAST_STALLED_SECS
        && longest >= p99 * STALL_TO_P99
        && longest >= (longest_stall_ms / 2.0).max(LEAST_STALL_MS);
    if !outlier && !stalled {
        return None;
    }
    let what = if stalled {
        format!("Throughput stopped for {}", seconds(stalled_secs))
    } else {
        format!("A transaction took {}", milliseconds(longest))
    };
    let rate = summary.tps.map(|tps| tps * RATE_OF_TPS);
    let advice = match rate {
        Some(rate) if rate >= 1.0 => format!(
            "Run again with rate => {rate:.0} (80 % of this throughput): transactions then have scheduled start \
             times, and latencies include the wait."
        ),
        _ => "Run again with a rate of 80 % of this throughput: latencies then include the wait.".to_owned(),
    };
    Some(finding(
        Severity::Warning,
        Topic::Stall,
        format!(
            "{what}, and the percentiles hide it: a client starts a transaction only after its previous one, so a \
             stall counts as one slow transaction per client (99th percentile {}, maximum {}).",
            milliseconds(p99),
            milliseconds(longest)
        ),
        json!({
            "stalled_secs": stalled_secs,
            "latency_p99_ms": p99,
            "latency_max_ms": longest,
            "suggested_rate": rate.map(f64::round),
        }),
        advice,
    ))
}

/// Under a rate, latencies count from when transactions were due, so that percentiles show a stall: but for those that were
/// due in it and never started.
fn uncounted(document: &Document, stalls: &[f64]) -> Option<Finding> {
    let summary = &document.summary;
    document.run.rate?;
    let skipped = summary.skipped;
    // One per client may be due at any end.
    let backlog = summary.backlog.unwrap_or(0).saturating_sub(document.all_clients());
    let uncounted = skipped.saturating_add(backlog);
    let stalled_secs: f64 = stalls.iter().sum();
    // Written so that what is no number is no finding.
    let tells = stalled_secs >= LEAST_STALLED_SECS
        && uncounted > 0
        && uncounted as f64 >= document.due() as f64 * LEAST_UNCOUNTED;
    if !tells {
        return None;
    }
    let mut what = Vec::new();
    if skipped > 0 {
        what.push(format!("{} were skipped", grouped(skipped as f64)));
    }
    if backlog > 0 {
        what.push(format!("{} were not started by the end", grouped(backlog as f64)));
    }
    Some(finding(
        Severity::Warning,
        Topic::Stall,
        format!(
            "Throughput stopped for {}, and the percentiles hide a part of it: of the transactions due, {}, and have no \
             latency.",
            seconds(stalled_secs),
            listed(&what)
        ),
        json!({
            "stalled_secs": stalled_secs,
            "skipped": skipped,
            "backlog": summary.backlog,
            "latency_p99_ms": summary.latency_p99_ms,
            "latency_max_ms": summary.latency_max_ms,
        }),
        if skipped > 0 {
            "Run again without latency_limit: transactions that are late already are then started, and their latencies \
             include the wait."
        } else {
            "Measure for longer than the stall lasts: transactions that are due in it are then started, and their \
             latencies include the wait."
        },
    ))
}

fn tail(document: &Document) -> Option<Finding> {
    let buckets = document.latencies.iter().map(|bucket| (bucket.low_ms, bucket.high_ms, bucket.count));
    let count = document.latencies.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.count));
    // Counts that cannot be added up are no histogram.
    if !(LEAST_FOR_P999..u64::MAX).contains(&count) {
        return None;
    }
    let p50 = percentile_of(buckets.clone(), 0.5)?;
    let p999 = percentile_of(buckets, 0.999)?;
    let tells = p50 > 0.0 && p999 >= TAIL_MS && p999 >= p50 * TAIL_TO_P50;
    tells.then(|| {
        finding(
            Severity::Warning,
            Topic::Tail,
            format!(
                "One transaction in a thousand took {} or more, {} times the median of {}.",
                milliseconds(p999),
                grouped(p999 / p50),
                milliseconds(p50)
            ),
            json!({ "latency_p50_ms": p50, "latency_p999_ms": p999, "ratio": p999 / p50 }),
            "Look for a cause that only some transactions meet: locks, uncached data, WAL flushes, a checkpoint. \
             bench.waits and bench.statements show where the time went.",
        )
    })
}

fn few(document: &Document) -> Option<Finding> {
    let count = document.summary.transactions;
    let secs = document.summary.secs.filter(|secs| *secs > 0.0)?;
    if count >= LEAST_FOR_P999 {
        return None;
    }
    if count == 0 {
        return Some(finding(
            Severity::Critical,
            Topic::Transactions,
            format!("No transaction completed in the {} measured.", seconds(secs)),
            json!({ "transactions": 0, "secs": secs }),
            "See bench.errors and bench.waits, run the script by itself, or measure for longer than one \
             transaction takes.",
        ));
    }
    let (noisy, enough) = if count < LEAST_FOR_P99 {
        (
            "99th and 99.9th percentiles are",
            format!("{} and {}", grouped(LEAST_FOR_P99 as f64), grouped(LEAST_FOR_P999 as f64)),
        )
    } else {
        ("99.9th percentile is", grouped(LEAST_FOR_P999 as f64))
    };
    let longer = (secs * LEAST_FOR_P999 as f64 / count as f64).ceil();
    Some(finding(
        Severity::Notice,
        Topic::Transactions,
        format!(
            "The {noisy} noise: fewer than ten of {} lie above ({enough} transactions are enough).",
            counted(count, "transaction")
        ),
        json!({ "transactions": count, "secs": secs, "secs_for_p999": longer }),
        format!("Measure for about {} to get 10,000 transactions.", seconds(longer)),
    ))
}
