use proptest::prelude::*;

use crate::histogram::*;

const MICROSECOND: u64 = 1_000;
const HOUR: u64 = 3_600_000_000_000;

fn of(latencies: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    latencies.iter().for_each(|&latency| histogram.record(latency));
    histogram
}

/// Latencies of every magnitude from 1 µs to 1 h.
fn latency() -> impl Strategy<Value = u64> {
    (10..42u32)
        .prop_flat_map(|bits| 1u64 << (bits - 1)..1u64 << bits)
        .prop_map(|ns| ns.clamp(MICROSECOND, HOUR))
}

/// What `percentile_cont` gives for the latencies themselves.
fn exact_percentile(latencies: &[u64], p: f64) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let rank = p * (sorted.len() - 1) as f64;
    let (lower, upper) = (sorted[rank.floor() as usize] as f64, sorted[rank.ceil() as usize] as f64);
    lower + (upper - lower) * rank.fract()
}

#[test]
fn buckets_tile() {
    assert_eq!(BUCKETS, 4352);
    let mut expected_low = 0;
    for bucket in 0..BUCKETS {
        let (low, high) = bucket_bounds_ns(bucket);
        assert_eq!(low, expected_low);
        assert_eq!((bucket_of(low), bucket_of(high - 1)), (bucket, bucket));
        expected_low = high;
    }
    assert_eq!(expected_low, 1 << LIMIT_BITS);
}

#[test]
fn no_bucket_above_one_microsecond_is_wider_than_one_percent() {
    for bucket in bucket_of(MICROSECOND)..BUCKETS {
        let (low, high) = bucket_bounds_ns(bucket);
        assert!((high - low) as f64 <= 0.01 * low as f64);
    }
}

#[test]
fn latencies_past_the_end_fall_into_the_last_bucket() {
    assert!(bucket_of(HOUR) < BUCKETS - 1);
    assert_eq!(bucket_of(1 << LIMIT_BITS), BUCKETS - 1);
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    assert_eq!(bucket_bounds_ns(usize::MAX), bucket_bounds_ns(BUCKETS - 1));
    let mut histogram = Histogram::new();
    histogram.add(usize::MAX, 3);
    assert_eq!(histogram.iter_nonzero().collect::<Vec<_>>(), [(BUCKETS - 1, 3)]);
}

#[test]
fn percentiles_of_few_values() {
    assert_eq!(Histogram::new().percentile_ns(0.5), None);
    assert!(Histogram::new().is_empty());
    // One value: the middle of its bucket, whatever the fraction.
    let one = of(&[1_000_000]);
    let (low, high) = bucket_bounds_ns(bucket_of(1_000_000));
    for p in [0.0, 0.5, 1.0, -3.0, 7.0, f64::NAN] {
        assert_eq!(one.percentile_ns(p), Some((low + high) as f64 / 2.0));
    }
    // Four values spread over a bucket, then interpolated between two buckets.
    assert_eq!(percentile_of([(0.0, 8.0, 4)].into_iter(), 0.0), Some(1.0));
    assert_eq!(percentile_of([(0.0, 8.0, 4)].into_iter(), 0.5), Some(4.0));
    assert_eq!(percentile_of([(0.0, 2.0, 1), (10.0, 12.0, 1)].into_iter(), 0.25), Some(3.5));
    assert_eq!(percentile_of([(0.0, 2.0, 0)].into_iter(), 0.5), None);
}

#[test]
fn empty_until_something_is_counted() {
    assert!(Histogram::new().is_empty());
    let histogram = of(&[1, 2, 3]);
    assert!(!histogram.is_empty());
    assert_eq!(histogram.count(), 3);
}

/// Eight hours of a million transactions a second, a hundred seconds of them at a time.
#[test]
fn a_soak_loses_no_count() {
    let mut interval = Histogram::new();
    interval.add(bucket_of(20 * MICROSECOND), 99_000_000);
    interval.add(bucket_of(1_000 * MICROSECOND), 1_000_000);
    let mut soak = Histogram::new();
    (0..288).for_each(|_| soak.merge(&interval));
    assert_eq!(soak.count(), 28_800_000_000);
    let whole: Vec<_> = interval.iter_nonzero().map(|(bucket, count)| (bucket, count * 288)).collect();
    assert_eq!(soak.iter_nonzero().collect::<Vec<_>>(), whole);
}

/// What bench.latencies can hold, a bigint, is what bench.percentile may be asked about.
#[test]
fn percentiles_of_as_many_as_a_bigint_counts() {
    let (fast, slow) = (bucket_of(20 * MICROSECOND), bucket_of(HOUR));
    let mut histogram = Histogram::new();
    let half = i64::MAX as u64 / 2;
    histogram.add(fast, half);
    histogram.add(slow, half + 1);
    assert_eq!(histogram.count(), i64::MAX as u64);
    for (p, bucket) in
        [(0.0, fast), (0.25, fast), (0.499_999, fast), (0.500_001, slow), (0.999, slow), (1.0, slow)]
    {
        let (low, high) = bucket_bounds_ns(bucket);
        let percentile = histogram.percentile_ns(p).unwrap();
        assert!(low as f64 <= percentile && percentile <= high as f64, "{p}: {percentile}");
    }
}

#[test]
fn more_latencies_than_can_be_counted_have_a_percentile() {
    let buckets = [(1.0, 2.0, u64::MAX), (3.0, 4.0, u64::MAX)];
    assert_eq!(percentile_of(buckets.into_iter(), 0.0), Some(1.0));
    assert!(percentile_of(buckets.into_iter(), 1.0).is_some_and(|value| (1.0..=4.0).contains(&value)));
}

proptest! {
    #[test]
    fn a_latency_lies_within_its_bucket(latency in 0..1u64 << LIMIT_BITS) {
        let (low, high) = bucket_bounds_ns(bucket_of(latency));
        prop_assert!(low <= latency && latency < high);
    }

    #[test]
    fn buckets_are_monotone(first: u64, second: u64) {
        prop_assert_eq!(
            bucket_of(first.min(second)).min(bucket_of(first.max(second))),
            bucket_of(first.min(second)),
        );
    }

    #[test]
    fn anything_reported_from_a_bucket_is_within_one_percent(latency in latency(), share in 0.0..=1.0f64) {
        let (low, high) = bucket_bounds_ns(bucket_of(latency));
        let reported = low as f64 + (high - low) as f64 * share;
        prop_assert!((reported - latency as f64).abs() <= 0.01 * latency as f64);
    }

    #[test]
    fn merging_is_recording_both(
        first in prop::collection::vec(any::<u64>(), 0..50),
        second in prop::collection::vec(any::<u64>(), 0..50),
    ) {
        let both = of(&[first.clone(), second.clone()].concat());
        let mut merged = of(&first);
        merged.merge(&of(&second));
        prop_assert_eq!(&merged, &both);
    }

    #[test]
    fn percentiles_are_within_one_percent(
        latencies in prop::collection::vec(latency(), 1..200),
        p in 0.0..=1.0f64,
    ) {
        let exact = exact_percentile(&latencies, p);
        let reported = of(&latencies).percentile_ns(p).unwrap();
        prop_assert!((reported - exact).abs() <= 0.01 * exact, "{reported} for {exact}");
    }

    #[test]
    fn percentiles_grow_with_the_fraction(
        latencies in prop::collection::vec(latency(), 1..50),
        first in 0.0..=1.0f64,
        second in 0.0..=1.0f64,
    ) {
        let histogram = of(&latencies);
        let lower = histogram.percentile_ns(first.min(second)).unwrap();
        let upper = histogram.percentile_ns(first.max(second)).unwrap();
        // One part in 10¹² for the rounding of the interpolation.
        prop_assert!(lower <= upper * (1.0 + 1e-12));
    }
}

fn moments_of(latencies: &[u64]) -> Moments {
    let mut moments = Moments::default();
    latencies.iter().for_each(|&latency| moments.record(latency));
    moments
}

#[test]
fn nothing_has_no_mean() {
    assert_eq!(Moments::default().mean_ns(), None);
    assert_eq!(Moments::default().stddev_ns(), None);
}

#[test]
fn the_textbook_example() {
    let moments = moments_of(&[2, 4, 4, 4, 5, 5, 7, 9]);
    assert_eq!(moments.mean_ns(), Some(5.0));
    assert_eq!(moments.stddev_ns(), Some(2.0));
    assert_eq!(moments.max_ns, 9);
}

#[test]
fn equal_latencies_do_not_deviate() {
    let deviation = moments_of(&[123_456_789_123; 1000]).stddev_ns().unwrap();
    // What is left is the rounding of squares of 1.5e22.
    assert!(deviation.is_finite() && deviation < 123_456_789_123.0 * 1e-6);
}

/// Eight hours of a million transactions a second, and the 288,000 intervals of 0.1 s that they are read in.
const SOAK: u64 = 30_000_000_000;
const INTERVALS: u64 = 288_000;

#[test]
fn the_intervals_of_a_soak_lose_nothing_of_mean_and_deviation() {
    // Half of the latencies are 1 µs below the mean, half above: any loss in 3e10 squares would show in the deviation.
    let half = SOAK / INTERVALS / 2;
    let mut interval = Moments { count: 2 * half, max_ns: 101_000, ..Moments::default() };
    for latency in [99_000.0, 101_000.0] {
        interval.sum_ns += half as f64 * latency;
        interval.sum_sq_ns2 += half as f64 * latency * latency;
    }
    let mut soak = Moments::default();
    (0..INTERVALS).for_each(|_| soak.merge(&interval));
    assert_eq!(soak.count, 2 * half * INTERVALS);
    assert!((soak.mean_ns().unwrap() - 100_000.0).abs() < 1e-4);
    assert!((soak.stddev_ns().unwrap() - 1_000.0).abs() < 0.1);
}

#[test]
fn a_latency_counts_after_as_many_as_a_soak_has() {
    // What is added is 2⁻³⁵ of the sum, whatever the unit; other latencies have other roundings.
    for latency in [10_000u64, 1_000_000, 1_000_000_000] {
        let (n, ns) = (SOAK as f64, latency as f64);
        let mut soak = Moments { count: SOAK, sum_ns: n * ns, sum_sq_ns2: n * ns * ns, max_ns: latency };
        (0..100_000).for_each(|_| soak.record(3 * latency));
        assert_eq!(soak.count, SOAK + 100_000);
        // By hand: a share s of latencies of 3 x among those of x has the mean x (1 + 2 s) and the deviation
        // 2 x √(s (1 − s)).
        let share = 100_000.0 / (n + 100_000.0);
        let mean = ns * (1.0 + 2.0 * share);
        let stddev = 2.0 * ns * (share * (1.0 - share)).sqrt();
        // Rounding of a sum of 2³⁵ terms leaves 2⁻¹⁸ of each term.
        assert!((soak.mean_ns().unwrap() / mean - 1.0).abs() < 1e-10);
        assert!((soak.stddev_ns().unwrap() / stddev - 1.0).abs() < 1e-4);
    }
}

#[test]
fn an_hour_each_does_not_overflow() {
    let hour = 3_600_000_000_000u64;
    let mut soak = Moments {
        count: i64::MAX as u64 - 1,
        sum_ns: i64::MAX as f64 * hour as f64,
        sum_sq_ns2: i64::MAX as f64 * hour as f64 * hour as f64,
        max_ns: hour,
    };
    soak.merge(&moments_of(&[hour]));
    assert_eq!(soak.count, i64::MAX as u64);
    assert!((soak.mean_ns().unwrap() / hour as f64 - 1.0).abs() < 1e-12);
    assert!(soak.stddev_ns().unwrap() < hour as f64 * 1e-6);
}

proptest! {
    #[test]
    fn merging_moments_is_recording_both(
        first in prop::collection::vec(0..1u64 << 20, 0..50),
        second in prop::collection::vec(0..1u64 << 20, 0..50),
    ) {
        let mut merged = moments_of(&first);
        merged.merge(&moments_of(&second));
        // Sums of integers this small are exact.
        prop_assert_eq!(merged, moments_of(&[first, second].concat()));
    }
}

#[test]
fn ten_buckets_make_a_decade() {
    for (ns, bucket) in
        [(0.0, 0), (900.0, 0), (1_100.0, 0), (1e6 * 1.01, 30), (12.7e6, 41), (1.01e9, 60), (1e30, LAST)]
    {
        assert_eq!(coarse_bucket_of(ns), bucket, "{ns} ns");
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
