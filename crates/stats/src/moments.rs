//! Count, mean, standard deviation and maximum of latencies, without keeping them.

/// The sums that pgbench keeps too (`SimpleStats` in pgbench.c).
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Moments {
    /// How many latencies.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: f64,
    /// The sum of their squares, ns².
    pub sum_sq_ns2: f64,
    /// The largest, ns; 0 when there is none.
    pub max_ns: u64,
}

impl Moments {
    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let latency = latency_ns as f64;
        self.count += 1;
        self.sum_ns += latency;
        self.sum_sq_ns2 += latency * latency;
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds all latencies of another.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.sum_sq_ns2 += other.sum_sq_ns2;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean, ns; `None` without latencies.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / self.count as f64)
    }

    /// The standard deviation of the population, ns: sqrt(Σx²/n − mean²), as pgbench's `printSimpleStats`.
    /// `None` without latencies. Rounding may bring the difference below 0 where all latencies are alike; that
    /// is 0.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        Some((self.sum_sq_ns2 / self.count as f64 - mean * mean).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(latencies: &[u64]) -> Moments {
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
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(moments.mean_ns(), Some(5.0));
        assert_eq!(moments.stddev_ns(), Some(2.0));
        assert_eq!(moments.max_ns, 9);
    }

    #[test]
    fn equal_latencies_do_not_deviate() {
        let deviation = of(&[123_456_789_123; 1000]).stddev_ns().unwrap();
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
        soak.merge(&of(&[hour]));
        assert_eq!(soak.count, i64::MAX as u64);
        assert!((soak.mean_ns().unwrap() / hour as f64 - 1.0).abs() < 1e-12);
        assert!(soak.stddev_ns().unwrap() < hour as f64 * 1e-6);
    }

    proptest! {
        #[test]
        fn merging_is_recording_both(
            first in prop::collection::vec(0..1u64 << 20, 0..50),
            second in prop::collection::vec(0..1u64 << 20, 0..50),
        ) {
            let mut merged = of(&first);
            merged.merge(&of(&second));
            // Sums of integers this small are exact.
            prop_assert_eq!(merged, of(&[first, second].concat()));
        }
    }
}
