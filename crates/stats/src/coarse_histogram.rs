//! Histograms of few buckets, small enough to be kept for each interval of a run: what a heat map is drawn of.

use std::collections::BTreeMap;

use super::histogram::{Histogram, bucket_bounds_ns};

/// Buckets of each power of ten: each is 26 % wide.
const PER_DECADE: f64 = 10.0;

/// The last bucket, which holds all above its lower bound of more than two hours: longer than a [`Histogram`] knows.
pub const LAST: u32 = 99;

/// Count by bucket, empty ones left out. Bucket k holds the latencies from 10^(k/10) to 10^((k+1)/10) µs; the first one
/// those below 1 µs as well.
pub type CoarseHistogram = BTreeMap<u32, u64>;

/// The bucket of a latency in ns.
fn bucket_of(latency_ns: f64) -> u32 {
    // A float below 0 is cast to 0.
    (((latency_ns / 1_000.0).log10() * PER_DECADE).floor() as u32).min(LAST)
}

/// The bounds of a bucket as decimal logarithms of milliseconds.
pub fn log_bounds_ms(bucket: u32) -> (f64, f64) {
    let of = |bucket: u32| f64::from(bucket) / PER_DECADE - 3.0;
    (of(bucket), of(bucket.saturating_add(1)))
}

/// The latencies of a histogram, each bucket's in the one where its middle lies: one at a bound may be in the neighbour
/// of its own, 0.8 % away.
pub fn coarse(histogram: &Histogram) -> CoarseHistogram {
    let mut coarse = CoarseHistogram::new();
    for (bucket, count) in histogram.iter_nonzero() {
        let (low, high) = bucket_bounds_ns(bucket);
        *coarse.entry(bucket_of((low as f64 + high as f64) / 2.0)).or_default() += count;
    }
    coarse
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_buckets_make_a_decade() {
        for (ns, bucket) in
            [(0.0, 0), (900.0, 0), (1_100.0, 0), (1e6 * 1.01, 30), (12.7e6, 41), (1.01e9, 60), (1e30, LAST)]
        {
            assert_eq!(bucket_of(ns), bucket, "{ns} ns");
        }
        assert_eq!(log_bounds_ms(30), (0.0, 3.1 - 3.0));
    }

    proptest! {
        #[test]
        fn every_latency_is_in_its_bucket(latencies in prop::collection::vec(0..4_000_000_000_000u64, 0..200)) {
            let mut histogram = Histogram::new();
            latencies.iter().for_each(|latency| histogram.record(*latency));
            let coarse = coarse(&histogram);
            prop_assert_eq!(coarse.values().sum::<u64>(), latencies.len() as u64);
            for latency in latencies {
                let ms = latency as f64 / 1e6;
                let holds = coarse.keys().any(|bucket| {
                    let (low, high) = log_bounds_ms(*bucket);
                    (*bucket == 0 || 10f64.powf(low) <= ms * 1.008) && ms <= 10f64.powf(high) * 1.008
                });
                prop_assert!(holds, "{ms} ms in {coarse:?}");
            }
        }
    }
}
