//! When transactions are due under a rate: an open loop, whose arrivals do not wait for the server.
//!
//! As in a thread of pgbench (`CSTATE_PREPARE_THROTTLE` in pgbench.c), all clients take from one sequence of arrivals,
//! whoever is free the next one: one queue with as many servers as there are clients, as a pool of connections is. With a
//! sequence for each client, transactions would wait for one client while others are idle, which is no property of the
//! server.
//!
//! As there, the times between arrivals are exponentially distributed, which makes the arrivals a Poisson process, and
//! each is counted from when the one before was due, not from when it was started: a stall delays what comes after it, and
//! does not thin it out. pgbench rounds these times to a microsecond, which at a million a second makes arrivals too
//! frequent; here they are rounded to a nanosecond.
//!
//! The clients are processes, and none waits for another: an arrival is a function of the one before it and of the seed, so
//! that the last one taken is all that they share, and to take the next one is a compare-and-swap.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use bench_script::Prng;

use crate::rates::Rates;

/// Makes the seed of the arrivals another one than those of the clients.
const ARRIVALS: u64 = 0xA5A5_0F0F_3C3C_9696;

/// The arrivals of a run, of which those that share `last` (nanoseconds from the start to the last one taken, 0 at the
/// beginning) take each one once.
#[derive(Clone, Debug)]
pub struct Schedule {
    seed: u64,
    pace: Pace,
    start_ns: i64,
}

#[derive(Clone, Debug)]
enum Pace {
    /// Mean time between two arrivals, ns.
    Constant(f64),
    /// Rates whose time begins so many nanoseconds after the start.
    Varying(Arc<Rates>, i64),
}

const NS_PER_SEC: f64 = 1e9;

impl Schedule {
    /// `rate` transactions per second from `start_ns` on; the same ones for the same `seed`.
    pub fn new(seed: u64, rate: f64, start_ns: i64) -> Schedule {
        Schedule { seed: seed ^ ARRIVALS, pace: Pace::Constant(NS_PER_SEC / rate), start_ns }
    }

    /// As [`new`](Self::new), of rates that change, whose time begins `warmup_ns` after `start_ns`.
    pub fn varying(seed: u64, rates: Rates, start_ns: i64, warmup_ns: i64) -> Schedule {
        Schedule { seed: seed ^ ARRIVALS, pace: Pace::Varying(Arc::new(rates), warmup_ns), start_ns }
    }

    /// Takes the next arrival: when it is due, ns.
    #[inline]
    pub fn take(&self, last: &AtomicI64) -> i64 {
        let mut before = last.load(Relaxed);
        loop {
            let next = self.after(before);
            match last.compare_exchange_weak(before, next, Relaxed, Relaxed) {
                Ok(_) => return self.start_ns.saturating_add(next),
                Err(now) => before = now,
            }
        }
    }

    /// How many transactions are due before `end_ns` that nobody has taken. Exact up to a million, and from there on by the
    /// mean.
    pub fn rest_until(&self, last: &AtomicI64, end_ns: i64) -> u64 {
        const EXACT: u64 = 1_000_000;
        let end = end_ns.saturating_sub(self.start_ns);
        let mut before = last.load(Relaxed);
        for count in 0..EXACT {
            before = self.after(before);
            if before >= end {
                return count;
            }
        }
        let rest = match &self.pace {
            Pace::Constant(mean_ns) => (end - before) as f64 / mean_ns,
            Pace::Varying(rates, warmup_ns) => {
                let secs = |at: i64| at.saturating_sub(*warmup_ns) as f64 / NS_PER_SEC;
                rates.expected(secs(before), secs(end))
            }
        };
        EXACT + rest as u64
    }

    /// The arrival after one, both counted from the start. No two are at the same nanosecond, for what follows would be the
    /// same as well.
    #[inline]
    fn after(&self, before: i64) -> i64 {
        let mut random = Prng::from_seed(self.seed.wrapping_add(before.cast_unsigned()));
        match &self.pace {
            Pace::Constant(mean_ns) => before.saturating_add(random.poisson(*mean_ns).max(1)),
            Pace::Varying(rates, warmup_ns) => {
                let secs = before.saturating_sub(*warmup_ns) as f64 / NS_PER_SEC;
                // Infinity becomes the greatest time there is.
                let next = (rates.after(secs, random.exponential()) * NS_PER_SEC).round() as i64;
                next.saturating_add(*warmup_ns).max(before.saturating_add(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// So many arrivals.
    fn arrivals(seed: u64, rate: f64, start_ns: i64, count: usize) -> Vec<i64> {
        let (schedule, last) = (Schedule::new(seed, rate, start_ns), AtomicI64::new(0));
        (0..count).map(|_| schedule.take(&last)).collect()
    }

    #[test]
    fn arrivals_come_at_the_rate() {
        const COUNT: usize = 100_000;
        let all = arrivals(42, 250.0, 5 * SECOND, COUNT);
        let gaps: Vec<f64> = std::iter::once(5 * SECOND)
            .chain(all.iter().copied())
            .zip(&all)
            .map(|(a, b)| (b - a) as f64 / 4e6)
            .collect();
        let mean = |of: &dyn Fn(usize) -> f64| (0..COUNT).map(of).sum::<f64>() / COUNT as f64;
        assert!(gaps.iter().all(|gap| *gap > 0.0));
        assert!((mean(&|at| gaps[at]) - 1.0).abs() < 0.02);
        // An exponential distribution's second moment is twice the square of its mean, and its third six times the cube.
        assert!((mean(&|at| gaps[at].powi(2)) / 2.0 - 1.0).abs() < 0.05);
        assert!((mean(&|at| gaps[at].powi(3)) / 6.0 - 1.0).abs() < 0.15);
        // Neighbours have nothing to do with each other: the correlation's standard error is 0.003.
        let product = mean(&|at| gaps[at] * gaps[(at + 1) % COUNT]);
        assert!((product - 1.0).abs() < 0.015, "{product}");
    }

    #[test]
    fn a_million_a_second_are_a_million() {
        const COUNT: usize = 10_000_000;
        let (schedule, last) = (Schedule::new(42, 1e6, 0), AtomicI64::new(0));
        let end = (0..COUNT).fold(0, |_, _| schedule.take(&last));
        // The mean of so many has a standard error of 0.03 %.
        let rate = COUNT as f64 / (end as f64 / 1e9);
        assert!((rate / 1e6 - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn arrivals_follow_rates_that_change() {
        use serde_json::json;
        for value in [
            json!({"0": 2000, "10": 20_000, "20": 0, "25": 5000}),
            json!({"0": 0, "10": 20_000, "25": 1000, "shape": "ramps"}),
        ] {
            let rates = Rates::parse(&value).expect("rates");
            let schedule = Schedule::varying(5, rates.clone(), 7 * SECOND, 2 * SECOND);
            let (last, mut counts) = (AtomicI64::new(0), [0u32; 32]);
            loop {
                let secs = (schedule.take(&last) - 7 * SECOND) / SECOND;
                let Some(count) = counts.get_mut(secs as usize) else { break };
                *count += 1;
            }
            for (second, count) in counts.into_iter().enumerate() {
                // Warming up at the first rate.
                let expected = rates.expected(second as f64 - 2.0, second as f64 - 1.0);
                let stray = (f64::from(count) - expected).abs();
                assert!(stray <= 4.5 * expected.sqrt(), "{value}: second {second}: {count} of {expected}");
            }
        }
        // Nothing comes after a rate that stays 0.
        let rates = Rates::parse(&json!({"0": 10, "1": 0})).expect("rates");
        let (schedule, last) = (Schedule::varying(5, rates, 0, 0), AtomicI64::new(0));
        assert!((0..100).map(|_| schedule.take(&last)).filter(|due| *due < SECOND).count() < 40);
        assert_eq!(schedule.take(&last), i64::MAX);
        assert_eq!(schedule.rest_until(&last, 100 * SECOND), 0);
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(arrivals(1, 1000.0, 0, 100), arrivals(1, 1000.0, 0, 100));
        assert_ne!(arrivals(1, 1000.0, 0, 100), arrivals(2, 1000.0, 0, 100));
        let shifted: Vec<i64> = arrivals(1, 1000.0, 0, 100).iter().map(|due| due + 7 * SECOND).collect();
        assert_eq!(arrivals(1, 1000.0, 7 * SECOND, 100), shifted);
    }

    #[test]
    fn each_arrival_is_taken_once_by_whoever_comes() {
        let (schedule, last) = (Schedule::new(3, 1e5, 0), AtomicI64::new(0));
        let mut taken: Vec<i64> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..10_000).map(|_| schedule.take(&last)).collect::<Vec<_>>()))
                .collect();
            takers.into_iter().flat_map(|taker| taker.join().expect("it takes")).collect()
        });
        taken.sort_unstable();
        assert_eq!(taken, arrivals(3, 1e5, 0, 40_000));
    }

    #[test]
    fn the_rest_is_what_is_due_before_the_end() {
        let (schedule, last) = (Schedule::new(1, 100.0, SECOND), AtomicI64::new(0));
        schedule.take(&last);
        let rest = schedule.rest_until(&last, 10 * SECOND);
        assert_eq!(rest, schedule.rest_until(&last, 10 * SECOND), "nothing is taken");
        let mut count = 0;
        while schedule.take(&last) < 10 * SECOND {
            count += 1;
        }
        assert_eq!(rest, count);
        let many = Schedule::new(1, 1e6, 0).rest_until(&AtomicI64::new(0), 100 * SECOND);
        assert!((many as f64 / 1e8 - 1.0).abs() < 0.01, "{many}");
    }
}
