//! Whether a run kept its `latency_limit`: what is looked for first where one was given.

use bench_base::number::{count, finite, percent};
use bench_results::Document;

/// The share of transactions that may exceed the limit: p99 has to be within it, as `bench.capacity` asks for.
const MAY_EXCEED: f64 = 0.01;

/// How a run stands to its limit.
pub struct LatencyLimit {
    limit_ms: f64,
    /// Late, skipped and failed transactions.
    beyond: u64,
    /// Done, skipped and failed ones.
    all: u64,
    pub is_kept: bool,
}

impl LatencyLimit {
    /// That of a run with a limit, if there was a transaction.
    pub fn of(document: &Document) -> Option<LatencyLimit> {
        let (limit_ms, summary) = (finite(document.run.latency_limit)?, &document.summary);
        let without = summary.skipped.saturating_add(summary.failed);
        let (beyond, all) =
            (summary.late.saturating_add(without), summary.transactions.saturating_add(without));
        let is_kept = beyond as f64 <= MAY_EXCEED * all as f64;
        (all > 0).then_some(LatencyLimit { limit_ms, beyond, all, is_kept })
    }

    /// The verdict with its figures, in one sentence.
    pub fn sentence(&self) -> String {
        let LatencyLimit { limit_ms, beyond, all, is_kept } = self;
        format!(
            "Latency limit of {limit_ms} ms {}: {} of {} transactions ({}) were late, skipped or failed, {} may be.",
            if *is_kept { "kept" } else { "missed" },
            count(*beyond),
            count(*all),
            percent(Some(*beyond as f64 / *all as f64)),
            percent(Some(MAY_EXCEED))
        )
    }
}
