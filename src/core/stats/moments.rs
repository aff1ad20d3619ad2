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
    use super::*;
    use proptest::prelude::*;

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
