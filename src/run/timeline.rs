//! The time line of a run, from its options.

use bench_model::spec::{Extent, RunOptions};
use bench_model::timeline::Timeline;
use bench_stats::until_steady::LONGEST_SECS;

use crate::server::process::NS_PER_SEC;

/// The time line of a run whose first interval begins at `begins_ns`, by CLOCK_MONOTONIC. A warm-up whose end is not given
/// has its longest length.
pub fn timeline(options: &RunOptions, begins_ns: i64) -> Timeline {
    let ns = |secs: f64| (secs * NS_PER_SEC) as i64;
    let measure_ns = match options.extent {
        Extent::Secs(secs) => Some(ns(secs)),
        Extent::Transactions(_) => None,
    };
    let warmup_ns = ns(options.warmup_secs.unwrap_or(LONGEST_SECS));
    let (of_warmup, interval) = (options.warmup_interval_secs(), options.sample_interval_secs);
    Timeline::with_warmup(begins_ns, warmup_ns, ns(of_warmup), measure_ns, ns(interval))
}
