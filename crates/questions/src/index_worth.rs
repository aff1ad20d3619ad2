//! `bench.index_worth`: the time that indexes save and cost a workload, from duels.

use bench_results::compared::parts;
use bench_results::experiment::{AskedIndex, IndexLine, IndexWorth};
use bench_stats::Estimate;
use bench_stats::compare::{Better, Terms, Verdict};
use bench_stats::duel::{ArmBatch, METRICS, PROCESSOR_TIME, compare};

/// The duels of a variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariantDuels {
    pub variant: String,
    /// The last duel.
    pub run_id: Option<i64>,
    pub batches: Vec<[ArmBatch; 2]>,
    /// Why one of the duels is invalid.
    pub error: Option<String>,
}

/// The joint confidence of all intervals.
const CONFIDENCE: f64 = 0.95;

/// Verdicts beside [`Verdict::Same`] and [`Verdict::Inconclusive`]; the last one if a saving or a cost is missing.
const EARNS: &str = "earns";
const COSTS: &str = "costs";
const NOT_MEASURED: &str = "not measured";

/// Returns the worth of each index, the most valuable first. `of_processor`: in processor time instead of latency.
pub fn index_worth(asked: &IndexWorth, duels: &[VariantDuels], of_processor: bool) -> Vec<IndexLine> {
    // Bonferroni, over two figures of each index.
    let confidence = 1.0 - (1.0 - CONFIDENCE) / (2.0 * asked.indexes.len().max(1) as f64);
    let terms = Terms { margin: asked.margin, confidence, better: Better::Lower };
    let mut lines: Vec<(f64, IndexLine)> =
        asked.indexes.iter().map(|index| index_line(index, duels, of_processor, terms)).collect();
    lines.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns the name of the metric.
fn metric_name(of_processor: bool) -> &'static str {
    if of_processor { "server_cpu_us" } else { "latency_avg_ms" }
}

/// Returns microseconds per transaction in arm a, and what arm b takes more.
fn difference(duels: &VariantDuels, of_processor: bool, terms: Terms) -> Option<(f64, Estimate)> {
    let (metric, unit) = if of_processor { (PROCESSOR_TIME, 1.0) } else { (&METRICS[0], 1000.0) };
    let figure = compare(&duels.batches, metric, terms)?;
    let (a, ratio) = (figure.means[0] * unit, figure.comparison.ratio?);
    let excess = |ratio: f64| a * (ratio - 1.0);
    let estimate = Estimate { value: excess(ratio.value), low: excess(ratio.low), high: excess(ratio.high) };
    [a, estimate.value, estimate.low, estimate.high]
        .iter()
        .all(|value| value.is_finite())
        .then_some((a, estimate))
}

/// Returns an index's line, and the microseconds by which it is sorted.
fn index_line(
    index: &AskedIndex,
    duels: &[VariantDuels],
    of_processor: bool,
    terms: Terms,
) -> (f64, IndexLine) {
    let find = |variant: &String| duels.iter().find(|duels| duels.variant == *variant);
    let (reads, writes) = (find(&index.reads), find(&index.writes));
    let saved = reads.and_then(|duels| difference(duels, of_processor, terms));
    // Arm b is without the index.
    let cost = writes.and_then(|duels| difference(duels, of_processor, terms)).map(|(_, excess)| Estimate {
        value: -excess.value,
        low: -excess.high,
        high: -excess.low,
    });
    let margin_us = saved.map_or(0.0, |(transaction_us, _)| transaction_us * terms.margin);
    let saved = saved.map(|(_, saved)| saved);
    let verdict = match (saved, cost) {
        (Some(saved), Some(cost)) => verdict(subtract(saved, cost), margin_us),
        _ => NOT_MEASURED,
    };
    let error =
        why_missing(reads, saved).or_else(|| why_missing(writes, cost)).or_else(|| index.unmeasured.clone());
    let [saved_us, saved_low, saved_high] = parts(saved);
    let [cost_us, cost_low, cost_high] = parts(cost);
    let line = IndexLine {
        index: index.name.clone(),
        definition: index.definition.clone(),
        bytes: index.bytes,
        saved_us,
        saved_low,
        saved_high,
        cost_us,
        cost_low,
        cost_high,
        metric: metric_name(of_processor).to_owned(),
        verdict: verdict.to_owned(),
        reads_run_id: reads.and_then(|duels| duels.run_id),
        writes_run_id: writes.and_then(|duels| duels.run_id),
        error,
    };
    (line.saved_us.unwrap_or_default() - line.cost_us.unwrap_or_default(), line)
}

/// Returns why a difference is missing or one of its duels invalid; `None` until one has ended.
fn why_missing(duels: Option<&VariantDuels>, difference: Option<Estimate>) -> Option<String> {
    let duels = duels?;
    let too_few = || {
        let run_id = duels.run_id.filter(|_| difference.is_none())?;
        Some(format!("run {run_id} has too few measurements of each arm"))
    };
    duels.error.clone().or_else(too_few)
}

/// Subtracts independent estimates; the distances to their limits add up like standard errors (Zou & Donner, "Construction of
/// confidence limits about effect measures: a general approach", Statistics in Medicine 27, 2008).
fn subtract(one: Estimate, other: Estimate) -> Estimate {
    let value = one.value - other.value;
    Estimate {
        value,
        low: value - (one.value - one.low).hypot(other.high - other.value),
        high: value + (one.high - one.value).hypot(other.value - other.low),
    }
}

/// Returns the verdict on an index by the microseconds that it earns.
fn verdict(earned: Estimate, margin: f64) -> &'static str {
    if earned.low > 0.0 && earned.high > margin {
        EARNS
    } else if earned.high < 0.0 && earned.low < -margin {
        COSTS
    } else if earned.low >= -margin && earned.high <= margin {
        Verdict::Same.as_str()
    } else {
        Verdict::Inconclusive.as_str()
    }
}

/// Summarises the lines, as `by latency, of 5 indexes 1 earn more than they cost (a), 0 cost more than they save, 1 make no difference, 2 not decided (b, c), 1 not
/// measured (d)`; the last three only if there are any.
pub fn sentence(lines: &[IndexLine]) -> String {
    let of_all = if lines.len() == 1 { "1 index".to_owned() } else { format!("{} indexes", lines.len()) };
    let parts = [
        (EARNS, "earn more than they cost"),
        (COSTS, "cost more than they save"),
        (Verdict::Same.as_str(), "make no difference"),
        (Verdict::Inconclusive.as_str(), "not decided"),
        (NOT_MEASURED, NOT_MEASURED),
    ];
    let counts = parts.iter().enumerate().filter_map(|(place, (verdict, words))| {
        let of_verdict = lines.iter().filter(|line| line.verdict == *verdict);
        let names: Vec<&str> = of_verdict.map(|line| line.index.as_str()).collect();
        let listed = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        (place < 2 || !names.is_empty()).then(|| format!("{} {words}{listed}", names.len()))
    });
    let of_processor = lines.first().is_some_and(|line| line.metric == metric_name(true));
    let by = if of_processor { "processor time" } else { "latency" };
    format!("by {by}, of {of_all} {}", counts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches whose arms take so many microseconds.
    fn duels(variant: &str, a: f64, b: f64) -> VariantDuels {
        let arm = |us: f64| ArmBatch {
            transactions: 1000,
            timed: 1000,
            latency_ms: us,
            cpu_us: us * 500.0,
            ..ArmBatch::default()
        };
        let wobble = |place: usize| 1.0 + (place % 5) as f64 / 1e4;
        let batches = (0..64).map(|place| [arm(a * wobble(place)), arm(b * wobble(place + 3))]).collect();
        VariantDuels { variant: variant.to_owned(), run_id: Some(7), batches, error: None }
    }

    fn asked(names: &[&str]) -> IndexWorth {
        let index = |name: &&str| AskedIndex {
            name: (*name).to_owned(),
            reads: format!("{name} reads"),
            writes: format!("{name} writes"),
            ..AskedIndex::default()
        };
        IndexWorth { indexes: names.iter().map(index).collect(), margin: 0.02 }
    }

    #[test]
    fn what_is_saved_is_held_against_what_it_costs() {
        let found = [
            duels("good reads", 100.0, 300.0),
            duels("good writes", 110.0, 100.0),
            duels("bad reads", 100.0, 100.1),
            duels("bad writes", 120.0, 100.0),
            duels("idle reads", 100.0, 100.0),
            duels("idle writes", 100.0, 100.0),
        ];
        let lines = index_worth(&asked(&["bad", "idle", "good"]), &found, false);
        let verdicts: Vec<(&str, &str)> =
            lines.iter().map(|line| (line.index.as_str(), line.verdict.as_str())).collect();
        assert_eq!(verdicts, [("good", "earns"), ("idle", "same"), ("bad", "costs")]);
        let good = &lines[0];
        assert!(
            (good.saved_us.unwrap() - 200.0).abs() < 1.0 && (good.cost_us.unwrap() - 10.0).abs() < 1.0,
            "{good:?}"
        );
        assert!(good.cost_low < good.cost_us && good.cost_us < good.cost_high);
        assert_eq!(
            sentence(&lines),
            "by latency, of 3 indexes 1 earn more than they cost (good), 1 cost more than they save (bad), 1 make no difference (idle)"
        );
        let of_processor = index_worth(&asked(&["good"]), &found, true);
        assert!((of_processor[0].saved_us.unwrap() - 100.0).abs() < 1.0);
        assert!(sentence(&of_processor).starts_with("by processor time, of 1 index"));
    }

    #[test]
    fn independent_intervals_add_up_as_standard_errors_do() {
        let estimate = |value: f64, low: f64, high: f64| Estimate { value, low, high };
        let found = subtract(estimate(10.0, 7.0, 16.0), estimate(4.0, -4.0, 8.0));
        assert_eq!(found, estimate(6.0, 1.0, 16.0));
        assert_eq!(verdict(found, 2.0), "earns");
        assert_eq!(verdict(subtract(estimate(4.0, -4.0, 8.0), estimate(10.0, 7.0, 16.0)), 2.0), "costs");
        assert_eq!(verdict(estimate(1.0, -1.0, 3.0), 2.0), "inconclusive");
        assert_eq!(verdict(estimate(1.0, 0.5, 1.5), 2.0), "same");
    }

    #[test]
    fn a_verdict_needs_both_sides() {
        let failed = |variant: &str| VariantDuels {
            variant: variant.to_owned(),
            error: Some("it failed".to_owned()),
            ..VariantDuels::default()
        };
        let empty =
            VariantDuels { variant: "empty writes".to_owned(), run_id: Some(8), ..Default::default() };
        let duels = [
            duels("read reads", 100.0, 300.0),
            failed("read writes"),
            failed("failed reads"),
            failed("failed writes"),
            duels("empty reads", 100.0, 300.0),
            empty,
        ];
        let mut all = asked(&["read", "failed", "empty", "pending", "qualified"]);
        all.indexes[4].unmeasured = Some("it names the schema".to_owned());
        let lines = index_worth(&all, &duels, false);
        assert_eq!(lines[4].error.as_deref(), Some("it names the schema"));
        let line = |name: &str| lines.iter().find(|line| line.index == name).unwrap();
        assert!(lines.iter().all(|line| line.verdict == "not measured"), "{lines:?}");
        assert!(line("read").saved_us.is_some() && line("read").cost_us.is_none());
        let errors = ["read", "failed", "empty", "pending"].map(|name| line(name).error.as_deref());
        let too_few = "run 8 has too few measurements of each arm";
        assert_eq!(errors, [Some("it failed"), Some("it failed"), Some(too_few), None]);
        let (counts, names) =
            ("by latency, of 1 index 0 earn more than they cost, 0 cost more than they save", "failed");
        assert_eq!(sentence(&[line("failed").clone()]), format!("{counts}, 1 not measured ({names})"));
    }
}
