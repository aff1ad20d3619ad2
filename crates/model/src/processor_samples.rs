//! Which executions of a duel's statements have their processor time read. A reading is a system call, unlike one of the clock
//! that latencies are from, so only a sample is read: readings take the same small share of the processor time in both arms, and
//! leave the ratios of all figures as they are.

use bench_script::Prng;

/// Readings take at most this share of the processor time of any statement.
const SHARE: f64 = 0.01;

/// Readings of an execution: before it and after it.
const READINGS: f64 = 2.0;

/// Chooses the executions of one client.
pub struct ProcessorSamples {
    /// Nanoseconds of processor time that a reading takes.
    reading_ns: u64,
    random: Prng,
    /// By place.
    statements: Vec<Sampled>,
}

#[derive(Clone)]
struct Sampled {
    /// An execution is read if a random number is at most this one.
    at_most: u64,
    /// Executions that were read, and nanoseconds of them together.
    read: u64,
    cpu_ns: u64,
}

impl ProcessorSamples {
    /// Creates a sample of this number of statements; a reading takes `reading_ns`.
    pub fn new(seed: u64, reading_ns: u64, statements: usize) -> Self {
        let statements = vec![Sampled { at_most: u64::MAX, read: 0, cpu_ns: 0 }; statements];
        Self { reading_ns, random: Prng::from_seed(seed), statements }
    }

    /// Whether the execution of a statement that comes next is read: by chance, so that no rhythm of the workload decides.
    #[inline]
    pub fn is_read(&mut self, place: usize) -> bool {
        let number = self.random.next_u64();
        self.statements.get(place).is_some_and(|sampled| number <= sampled.at_most)
    }

    /// Returns what a statement took between two readings, without what these took of it.
    pub fn record(&mut self, place: usize, between_ns: u64) -> u64 {
        let cpu_ns = between_ns.saturating_sub(self.reading_ns);
        if let Some(sampled) = self.statements.get_mut(place) {
            sampled.read += 1;
            sampled.cpu_ns = sampled.cpu_ns.saturating_add(cpu_ns);
            // A statement faster than a reading is counted as one that takes as long.
            let mean_ns = (sampled.cpu_ns as f64 / sampled.read as f64).max(self.reading_ns as f64);
            let probability = SHARE * mean_ns / (READINGS * self.reading_ns as f64);
            // Saturates: all are read where that takes less.
            sampled.at_most = (probability * u64::MAX as f64) as u64;
        }
        cpu_ns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXECUTIONS: u64 = 100_000;

    /// Share of a statement's executions that are read, and the mean of their processor times, where every few of them one takes
    /// twice as long.
    fn sampled(seed: u64, reading_ns: u64, cpu_ns: u64, every: u64) -> (f64, f64) {
        let mut samples = ProcessorSamples::new(seed, reading_ns, 3);
        let (mut read, mut sum_ns) = (0, 0);
        for number in 0..EXECUTIONS {
            if samples.is_read(2) {
                let twice = if number % every == 0 { 2 } else { 1 };
                read += 1;
                sum_ns += samples.record(2, cpu_ns * twice + reading_ns);
            }
        }
        (read as f64 / EXECUTIONS as f64, sum_ns as f64 / read as f64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn readings_take_a_hundredth_and_their_mean_is_that_of_all(
            seed: u64, reading_ns in 100..2_000u64, cpu_ns in 2_000..500_000u64, every in 1..40u64,
        ) {
            let (share, mean_ns) = sampled(seed, reading_ns, cpu_ns, every);
            let whole_ns = cpu_ns as f64 * (1.0 + 1.0 / every as f64);
            let needed = (SHARE * whole_ns / (READINGS * reading_ns as f64)).clamp(SHARE / READINGS, 1.0);
            // Five standard errors.
            let near = 5.0 / (share * EXECUTIONS as f64).sqrt();
            prop_assert!((share / needed - 1.0).abs() < near + 0.02, "{share} instead of {needed}");
            prop_assert!((mean_ns / whole_ns - 1.0).abs() < near, "{mean_ns} instead of {whole_ns}");
        }
    }

    #[test]
    fn what_is_faster_than_a_reading_is_read_seldom_and_never_less_than_nothing() {
        let mut samples = ProcessorSamples::new(1, 500, 1);
        assert!(samples.is_read(0));
        assert_eq!(samples.record(0, 400), 0);
        let read = (0..100_000).filter(|_| samples.is_read(0)).count();
        assert!((400..600).contains(&read), "{read}");
        assert!(!samples.is_read(1), "there is no such statement");
    }

    #[test]
    fn a_clock_that_costs_nothing_is_always_read() {
        let mut samples = ProcessorSamples::new(1, 0, 1);
        for _ in 0..100 {
            assert!(samples.is_read(0));
            assert_eq!(samples.record(0, 7), 7);
        }
    }
}
