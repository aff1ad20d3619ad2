//! When transactions are due under a rate: an open loop, whose arrivals do not wait for the server.
//!
//! As in pgbench (`CSTATE_PREPARE_THROTTLE` in pgbench.c), the times between arrivals are exponentially distributed,
//! which makes the arrivals a Poisson process, and each is counted from when the one before was due, not from when
//! it was started: a stall delays what comes after it, and does not thin it out.

use crate::script::Prng;

const NS_PER_US: i64 = 1_000;

/// The arrivals of one client.
#[derive(Clone, Debug)]
pub struct Schedule {
    random: Prng,
    /// Mean time between two arrivals, µs.
    mean_us: f64,
    /// When the last arrival was due, ns.
    last_ns: i64,
}

impl Schedule {
    /// The share of one client out of `clients` in `rate` transactions per second, from `start_ns` on. As pgbench with
    /// a thread for each client, `random` is the client's own sequence for it.
    pub fn new(random: Prng, rate: f64, clients: u32, start_ns: i64) -> Schedule {
        Schedule { random, mean_us: 1e6 / rate * f64::from(clients), last_ns: start_ns }
    }

    /// When the next transaction is due, ns.
    #[inline]
    pub fn next_ns(&mut self) -> i64 {
        let delay_us = self.random.poisson(self.mean_us);
        self.last_ns = self.last_ns.saturating_add(delay_us.saturating_mul(NS_PER_US));
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
        EXACT + ((end_ns - self.last_ns) as f64 / NS_PER_US as f64 / self.mean_us) as u64
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
