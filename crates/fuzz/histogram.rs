//! Any latencies, in two histograms: each lies within its bucket, and percentiles rise and stay between the least and the
//! greatest. The first byte says how many are in the first histogram.

#![no_main]

use bench_stats::histogram::{BUCKETS, Histogram, bucket_bounds_ns, bucket_of, coarse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [split, input @ ..] = bytes else { return };
    let (mut one, mut other) = (Histogram::new(), Histogram::new());
    let (mut least, mut greatest) = (f64::INFINITY, 0.0_f64);
    for (index, latency) in input.chunks_exact(9).enumerate() {
        // Shifted, so that short ones are as frequent as long ones.
        let [number @ .., shift] = latency else { unreachable!() };
        let ns = u64::from_le_bytes(number.try_into().expect("eight bytes")) >> (shift % 64);
        let (low, high) = bucket_bounds_ns(bucket_of(ns));
        assert!(low <= ns && (ns < high || bucket_of(ns) == BUCKETS - 1), "{ns} in {low}..{high}");
        (least, greatest) = (least.min(low as f64), greatest.max(high as f64));
        if index < usize::from(*split) { &mut one } else { &mut other }.record(ns);
    }
    let count = one.count() + other.count();
    one.merge(&other);
    assert_eq!(one.count(), count);
    let _ = coarse(&one);
    let mut before = 0.0;
    for p in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
        let Some(value) = one.percentile_ns(p) else {
            assert_eq!(count, 0);
            return;
        };
        assert!(before <= value && least <= value && value <= greatest, "{before} {value} at {p}");
        before = value;
    }
});
