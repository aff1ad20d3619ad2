//! Which executions of a duel's statements have their processor time read. A reading is a system call, unlike one of the clock
//! that latencies are from: only a sample is read, of both arms' executions the same share.

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
    /// By place, of the pair that a statement of arm a and that of arm b are.
    statements: Vec<Sampled>,
}

/// A statement of both arms.
#[derive(Clone, Default)]
struct Sampled {
    /// Of each arm: executions before the next one that is read.
    before_next: [u64; 2],
    /// Of each arm: executions that were read, and nanoseconds of them together.
    read: [(u64, u64); 2],
}

impl ProcessorSamples {
    /// A sample of so many statements; a reading takes `reading_ns`.
    pub fn new(seed: u64, reading_ns: u64, statements: usize) -> Self {
        let statements = vec![Sampled::default(); statements];
        Self { reading_ns, random: Prng::from_seed(seed), statements }
    }

    /// Whether the statement's execution that comes next is read.
    #[inline]
    pub fn is_read(&mut self, statement: usize, arm: usize) -> bool {
        let Some(sampled) = self.statements.get_mut(statement) else { return false };
        let before_next = &mut sampled.before_next[arm];
        if let Some(fewer) = before_next.checked_sub(1) {
            *before_next = fewer;
            return false;
        }
        // Drawn, so that no rhythm of the workload or of the arms decides what is read.
        let skipped = sampled.every(self.reading_ns) - 1;
        sampled.before_next[arm] = self.random.uint64_range(0, 2 * skipped);
        true
    }

    /// Returns what a statement took between two readings, without what these took of it.
    pub fn record(&mut self, statement: usize, arm: usize, between_ns: u64) -> u64 {
        let cpu_ns = between_ns.saturating_sub(self.reading_ns);
        if let Some(sampled) = self.statements.get_mut(statement) {
            let (count, sum_ns) = &mut sampled.read[arm];
            (*count, *sum_ns) = (*count + 1, sum_ns.saturating_add(cpu_ns));
        }
        cpu_ns
    }
}

impl Sampled {
    /// One execution of so many is read, by what the statement takes in the faster arm.
    fn every(&self, reading_ns: u64) -> u64 {
        let means = self.read.iter().filter(|(count, _)| *count > 0).map(|(count, sum_ns)| sum_ns / count);
        // What is faster than a reading can hardly be told from it.
        let cpu_ns = means.min().map_or(u64::MAX, |cpu_ns| cpu_ns.max(reading_ns));
        ((READINGS * reading_ns as f64 / SHARE / cpu_ns.max(1) as f64).ceil() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Stretches of arms by turns, in which statements take so long: of each arm executions, those that were read, and their mean.
    fn sampled(seed: u64, reading_ns: u64, cpu_ns: [u64; 2], per_stretch: u64) -> [(u64, u64, f64); 2] {
        let mut samples = ProcessorSamples::new(seed, reading_ns, 3);
        let mut counts = [(0, 0, 0.0); 2];
        for stretch in 0..200_000 / per_stretch {
            for place in 0..per_stretch {
                let arm = (stretch % 2) as usize;
                let (executions, read, mean) = &mut counts[arm];
                *executions += 1;
                if samples.is_read(2, arm) {
                    *read += 1;
                    // The first one of a stretch pays for the other arm's.
                    let cold_ns = if place == 0 { cpu_ns[arm] } else { 0 };
                    let ns = samples.record(2, arm, cpu_ns[arm] + cold_ns + reading_ns);
                    *mean += (ns as f64 - *mean) / *read as f64;
                }
            }
        }
        counts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn readings_take_a_hundredth_and_fall_on_both_arms_alike(
            seed: u64, reading_ns in 100..2_000u64, a_ns in 2_000..200_000u64, slower in 1..30u64, per_stretch in 1..40u64,
        ) {
            let cpu_ns = [a_ns, a_ns * slower];
            let [a, b] = sampled(seed, reading_ns, cpu_ns, per_stretch);
            let share = |(executions, read, _): (u64, u64, f64)| read as f64 / executions as f64;
            let needed = READINGS * reading_ns as f64 / SHARE / a.2;
            let spent = share(a) * needed * SHARE;
            prop_assert!(spent <= SHARE * 1.3 || share(a) == 1.0, "{spent}: {a:?} {b:?}");
            prop_assert!((share(a) / share(b) - 1.0).abs() < 0.25, "{a:?} {b:?}");
            // Where all are read, the readings take less.
            prop_assert!(share(a) > 0.6 / needed.max(1.0), "{a:?}");
            for ((_, read, mean), ns) in [a, b].into_iter().zip(cpu_ns) {
                let whole = ns as f64 * (1.0 + 1.0 / per_stretch as f64);
                prop_assert!((mean / whole - 1.0).abs() < 4.0 / (read as f64).sqrt(), "{mean} instead of {whole}, {read}");
            }
        }
    }

    #[test]
    fn what_is_faster_than_a_reading_is_read_seldom_and_never_less_than_nothing() {
        let mut samples = ProcessorSamples::new(1, 500, 1);
        assert!(samples.is_read(0, 0));
        assert_eq!(samples.record(0, 0, 400), 0);
        let read = (0..100_000).filter(|_| samples.is_read(0, 0)).count();
        assert!((400..600).contains(&read), "{read}");
        assert!(!samples.is_read(1, 0), "there is no such statement");
    }

    #[test]
    fn a_clock_that_costs_nothing_is_always_read() {
        let mut samples = ProcessorSamples::new(1, 0, 1);
        for _ in 0..100 {
            assert!(samples.is_read(0, 1));
            assert_eq!(samples.record(0, 1, 7), 7);
        }
    }
}
