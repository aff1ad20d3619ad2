//! When transactions are due under a rate: an open loop, whose arrivals do not wait for the server.
//!
//! As in pgbench (`CSTATE_PREPARE_THROTTLE` in pgbench.c), the times between arrivals are exponentially distributed,
//! which makes the arrivals a Poisson process, and each is counted from when the one before was due, not from when
//! it was started: a stall delays what comes after it, and does not thin it out.
//!
//! pgbench rounds each of these times to a microsecond, which at a million a second on one client makes arrivals 4 % too
//! frequent. Here they are the same times, from the same random numbers, rounded to a nanosecond.

use crate::script::Prng;

/// The arrivals of one client.
#[derive(Clone, Debug)]
pub struct Schedule {
    random: Prng,
    /// Mean time between two arrivals, ns.
    mean_ns: f64,
    /// When the last arrival was due, ns.
    last_ns: i64,
}

impl Schedule {
    /// The share of one client out of `clients` in `rate` transactions per second, from `start_ns` on. As pgbench with
    /// a thread for each client, `random` is the client's own sequence for it.
    pub fn new(random: Prng, rate: f64, clients: u32, start_ns: i64) -> Schedule {
        Schedule { random, mean_ns: 1e9 / rate * f64::from(clients), last_ns: start_ns }
    }

    /// When the next transaction is due, ns.
    #[inline]
    pub fn next_ns(&mut self) -> i64 {
        self.last_ns = self.last_ns.saturating_add(self.random.poisson(self.mean_ns));
        self.last_ns
    }

    /// How many transactions are due before `end_ns` after the last one: those that a client has not come to. Exact
    /// up to a million, and from there on by the mean.
    pub fn rest_until(mut self, end_ns: i64) -> u64 {
        const EXACT: u64 = 1_000_000;
        for count in 0..EXACT {
            if self.next_ns() >= end_ns {
                return count;
            }
        }
        EXACT + ((end_ns - self.last_ns) as f64 / self.mean_ns) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn arrivals_come_at_the_rate() {
        let mut schedule = Schedule::new(Prng::from_seed(42), 1000.0, 4, 5 * SECOND);
        let mut last = 5 * SECOND;
        let mut squares = 0.0;
        const COUNT: i64 = 100_000;
        for _ in 0..COUNT {
            let next = schedule.next_ns();
            assert!(next >= last);
            squares += ((next - last) as f64 / 4e6).powi(2);
            last = next;
        }
        // A client out of four has 250 a second, and an exponential distribution's second moment is twice the
        // square of its mean.
        let mean_secs = (last - 5 * SECOND) as f64 / 1e9 / COUNT as f64;
        assert!((mean_secs / 0.004 - 1.0).abs() < 0.02, "{mean_secs}");
        assert!((squares / COUNT as f64 / 2.0 - 1.0).abs() < 0.05, "{squares}");
    }

    #[test]
    fn a_million_a_second_are_a_million() {
        let mut schedule = Schedule::new(Prng::from_seed(42), 1e6, 1, 0);
        const COUNT: u32 = 10_000_000;
        for _ in 0..COUNT {
            schedule.next_ns();
        }
        // The mean of so many has a standard error of 0.03 %.
        let rate = f64::from(COUNT) / (schedule.next_ns() as f64 / 1e9);
        assert!((rate / 1e6 - 1.0).abs() < 1e-3, "{rate}");
    }

    /// Which its own tests hold against pgbench's numbers.
    #[test]
    fn delays_are_pgbenchs_but_for_its_rounding() {
        let mut pgbench = Prng::from_seed(7);
        let mut schedule = Schedule::new(pgbench, 500.0, 2, 0);
        let mut last_ns = 0;
        for _ in 0..10_000 {
            let next_ns = schedule.next_ns();
            let rounded_us = pgbench.poisson(4000.0);
            assert!((next_ns - last_ns - 1000 * rounded_us).abs() <= 501);
            last_ns = next_ns;
        }
    }

    #[test]
    fn the_rest_is_what_is_due_before_the_end() {
        let mut schedule = Schedule::new(Prng::from_seed(1), 100.0, 1, 0);
        let rest = schedule.clone().rest_until(10 * SECOND);
        let mut count = 0;
        while schedule.next_ns() < 10 * SECOND {
            count += 1;
        }
        assert_eq!(rest, count);
        let many = Schedule::new(Prng::from_seed(1), 1e6, 1, 0).rest_until(100 * SECOND);
        assert!((many as f64 / 1e8 - 1.0).abs() < 0.01, "{many}");
    }
}
