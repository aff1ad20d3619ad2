//! Counts of transactions in memory that several processes share: of an interval, or of a script.
//!
//! A tally knows which buckets of its histogram hold something, so adding it to another one, and clearing it, costs
//! what was counted, not what could be.

use std::sync::atomic::{AtomicU64, Ordering::*};

use bench_stats::histogram::{BUCKETS, bucket_of};
use bench_stats::{Histogram, Moments};

/// A counter with a single writer: an increment is a load and a store, not a locked operation.
#[derive(Default)]
#[repr(transparent)]
pub struct Counter(AtomicU64);

impl Counter {
    /// What was counted.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Counts `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Sets the count.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Relaxed);
    }

    /// As [`Counter::add`], where several write at a time.
    fn add_beside_others(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    /// Moves the count to another counter, which several may write at a time.
    fn move_to(&self, to: &Counter) {
        let n = self.get();
        if n > 0 {
            to.add_beside_others(n);
            self.set(0);
        }
    }

    /// As [`Counter::move_to`], to the greater of both.
    fn move_greatest_to(&self, to: &Counter) {
        to.0.fetch_max(self.get(), Relaxed);
        self.set(0);
    }
}

/// A sum of nanoseconds, or of their squares, over many transactions, with a single writer. No integer: the lags of an
/// overloaded rate of a million a second outgrow 64 bits within ten minutes. Whole numbers up to 2⁵³ are exact.
#[derive(Default)]
#[repr(transparent)]
pub struct Sum(AtomicU64);

impl Sum {
    /// The sum.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// Adds to it.
    #[inline]
    pub fn add(&self, value: f64) {
        self.set(self.get() + value);
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    /// Moves the sum to another one, which several may write at a time.
    fn move_to(&self, to: &Sum) {
        let value = self.get();
        if value > 0.0 {
            let sum = |bits| Some((f64::from_bits(bits) + value).to_bits());
            // Never an error: the closure always has a new value.
            let _ = to.0.fetch_update(Relaxed, Relaxed, sum);
            self.set(0.0);
        }
    }
}

/// Buckets that one word of a [`Tally`]'s map stands for.
const MAPPED: usize = u64::BITS as usize;

/// Transactions, counted.
#[repr(C)]
pub struct Tally {
    /// Transactions that were committed.
    pub committed: Counter,
    /// Transactions given up at a serialization failure or deadlock.
    pub failed: Counter,
    /// Clients that another error ended.
    pub aborted: Counter,
    /// Transactions whose connection was lost when they may have been committed.
    pub unknown: Counter,
    /// Transactions that took more than one try.
    pub retried: Counter,
    /// Committed above the limit of latency.
    pub late: Counter,
    /// Not started, being late already when they were due.
    pub skipped: Counter,
    /// How far behind their schedule the committed ones started, together, ns.
    lag_sum_ns: Sum,
    lag_max_ns: Counter,
    latency_sum_ns: Sum,
    latency_sum_sq_ns2: Sum,
    latency_max_ns: Counter,
    /// A bit for each bucket, set where it holds something.
    map: [AtomicU64; BUCKETS.div_ceil(MAPPED)],
    histogram: [Counter; BUCKETS],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            committed: Counter::default(),
            failed: Counter::default(),
            aborted: Counter::default(),
            unknown: Counter::default(),
            retried: Counter::default(),
            late: Counter::default(),
            skipped: Counter::default(),
            lag_sum_ns: Sum::default(),
            lag_max_ns: Counter::default(),
            latency_sum_ns: Sum::default(),
            latency_sum_sq_ns2: Sum::default(),
            latency_max_ns: Counter::default(),
            map: std::array::from_fn(|_| AtomicU64::new(0)),
            histogram: std::array::from_fn(|_| Counter::default()),
        }
    }
}

impl Tally {
    /// Counts a committed transaction.
    #[inline]
    pub fn commit(&self, latency_ns: u64) {
        self.committed.add(1);
        let latency = latency_ns as f64;
        self.latency_sum_ns.add(latency);
        self.latency_sum_sq_ns2.add(latency * latency);
        if latency_ns > self.latency_max_ns.get() {
            self.latency_max_ns.set(latency_ns);
        }
        let bucket = bucket_of(latency_ns);
        let counter = &self.histogram[bucket];
        let before = counter.get();
        if before == 0 {
            let word = &self.map[bucket / MAPPED];
            word.store(word.load(Relaxed) | 1 << (bucket % MAPPED), Relaxed);
        }
        counter.set(before + 1);
    }

    /// Counts how late, ns, a committed transaction started.
    #[inline]
    pub fn lag(&self, lag_ns: u64) {
        self.lag_sum_ns.add(lag_ns as f64);
        if lag_ns > self.lag_max_ns.get() {
            self.lag_max_ns.set(lag_ns);
        }
    }

    /// Transactions of every outcome, the skipped ones included.
    pub fn transactions(&self) -> u64 {
        self.committed.get()
            + self.failed.get()
            + self.aborted.get()
            + self.unknown.get()
            + self.skipped.get()
    }

    /// The lags of the committed ones: their sum, and the greatest, ns.
    pub fn lags_ns(&self) -> (f64, u64) {
        (self.lag_sum_ns.get(), self.lag_max_ns.get())
    }

    /// The latencies, summed up.
    pub fn moments(&self) -> Moments {
        Moments {
            count: self.committed.get(),
            sum_ns: self.latency_sum_ns.get(),
            sum_sq_ns2: self.latency_sum_sq_ns2.get(),
            max_ns: self.latency_max_ns.get(),
        }
    }

    /// Adds the latencies to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (place, word) in self.map.iter().enumerate() {
            for_each_bit(place, word.load(Relaxed), |bucket| {
                histogram.add(bucket, self.histogram[bucket].get())
            });
        }
    }

    /// Moves everything to another tally, and is empty then. Nobody may write into this one meanwhile; into the other
    /// one several may move theirs at a time.
    pub fn move_to(&self, to: &Tally) {
        for (from, to) in self.counters().into_iter().zip(to.counters()) {
            from.move_to(to);
        }
        for (from, to) in self.sums().into_iter().zip(to.sums()) {
            from.move_to(to);
        }
        self.lag_max_ns.move_greatest_to(&to.lag_max_ns);
        self.latency_max_ns.move_greatest_to(&to.latency_max_ns);
        for (place, word) in self.map.iter().enumerate() {
            let bits = word.load(Relaxed);
            if bits != 0 {
                to.map[place].fetch_or(bits, Relaxed);
                for_each_bit(place, bits, |bucket| self.histogram[bucket].move_to(&to.histogram[bucket]));
                word.store(0, Relaxed);
            }
        }
    }

    /// Empties it.
    pub fn clear(&self) {
        self.counters().into_iter().chain([&self.lag_max_ns, &self.latency_max_ns]).for_each(|c| c.set(0));
        self.sums().into_iter().for_each(|sum| sum.set(0.0));
        for (place, word) in self.map.iter().enumerate() {
            for_each_bit(place, word.load(Relaxed), |bucket| self.histogram[bucket].set(0));
            word.store(0, Relaxed);
        }
    }

    fn counters(&self) -> [&Counter; 7] {
        [
            &self.committed,
            &self.failed,
            &self.aborted,
            &self.unknown,
            &self.retried,
            &self.late,
            &self.skipped,
        ]
    }

    fn sums(&self) -> [&Sum; 3] {
        [&self.lag_sum_ns, &self.latency_sum_ns, &self.latency_sum_sq_ns2]
    }
}

/// The buckets whose bits are set in a word of the map.
#[inline]
fn for_each_bit(place: usize, mut bits: u64, mut then: impl FnMut(usize)) {
    while bits != 0 {
        then(place * MAPPED + bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(latencies: &[u64]) -> Box<Tally> {
        let tally = Box::<Tally>::default();
        latencies.iter().for_each(|&latency| tally.commit(latency));
        tally
    }

    fn histogram(tally: &Tally) -> Histogram {
        let mut histogram = Histogram::new();
        tally.add_to(&mut histogram);
        histogram
    }

    fn is_as_new(tally: &Tally) -> bool {
        tally.transactions() == 0
            && tally.moments() == Moments::default()
            && tally.lags_ns() == (0.0, 0)
            && (tally.retried.get(), tally.late.get()) == (0, 0)
            && tally.histogram.iter().all(|bucket| bucket.get() == 0)
            && tally.map.iter().all(|word| word.load(Relaxed) == 0)
    }

    /// An interval of 600 s at a million a second, whose transactions are some minutes late: 9.4e19 ns together, and 64
    /// bits hold 1.8e19.
    #[test]
    fn lags_and_latencies_of_an_overloaded_rate_do_not_wrap() {
        let tally = Box::<Tally>::default();
        let (lag_ns, count) = (157_000_000_000u64, 600_000_000u64);
        // As after all of them but the last thousand.
        tally.lag_sum_ns.set(lag_ns as f64 * (count - 1000) as f64);
        tally.latency_sum_ns.set(lag_ns as f64 * (count - 1000) as f64);
        tally.committed.set(count - 1000);
        for _ in 0..1000 {
            tally.commit(lag_ns);
            tally.lag(lag_ns);
        }
        let total = Box::<Tally>::default();
        tally.move_to(&total);
        let (sum_ns, greatest_ns) = total.lags_ns();
        assert!((sum_ns / count as f64 / lag_ns as f64 - 1.0).abs() < 1e-12);
        assert_eq!(greatest_ns, lag_ns);
        assert!((total.moments().mean_ns().unwrap() / lag_ns as f64 - 1.0).abs() < 1e-12);
    }

    proptest! {
        /// Any lags up to an hour, as many as a rate of a million a second has in an hour.
        #[test]
        fn the_mean_of_lags_is_that_of_wide_integers(lags in prop::collection::vec((0..3_600_000_000_000u64, 1..1_000_000_000u64), 1..20)) {
            let total = Box::<Tally>::default();
            let (mut exact, mut count) = (0u128, 0u128);
            for (lag_ns, times) in lags {
                let tally = Box::<Tally>::default();
                tally.lag_sum_ns.set(lag_ns as f64 * (times - 1) as f64);
                tally.lag(lag_ns);
                tally.move_to(&total);
                exact += u128::from(lag_ns) * u128::from(times);
                count += u128::from(times);
            }
            let mean = exact as f64 / count as f64;
            prop_assert!((total.lags_ns().0 / count as f64 - mean).abs() <= mean * 1e-12);
        }

        #[test]
        fn a_histogram_has_what_was_counted(latencies in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut expected = Histogram::new();
            latencies.iter().for_each(|&latency| expected.record(latency));
            prop_assert_eq!(histogram(&of(&latencies)), expected);
        }

        #[test]
        fn what_is_moved_is_there_and_no_longer_here(
            first in prop::collection::vec(0..1u64 << 20, 0..50),
            second in prop::collection::vec(0..1u64 << 20, 0..50),
        ) {
            let (from, to) = (of(&first), of(&second));
            from.skipped.add(2);
            from.late.add(3);
            from.retried.add(1);
            from.aborted.add(1);
            from.unknown.add(4);
            from.lag(7);
            to.skipped.add(1);
            from.move_to(&to);
            prop_assert!(is_as_new(&from));
            let both = of(&[first, second].concat());
            // Sums of integers this small are exact.
            prop_assert_eq!(to.moments(), both.moments());
            prop_assert_eq!(histogram(&to), histogram(&both));
            prop_assert_eq!((to.skipped.get(), to.late.get(), to.retried.get(), to.aborted.get()), (3, 3, 1, 1));
            prop_assert_eq!(to.lags_ns(), (7.0, 7));
            to.clear();
            prop_assert!(is_as_new(&to));
        }
    }
}
