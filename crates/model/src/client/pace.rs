//! When the transactions of a client are due under a rate, and how late a driver serves its connections.

use super::recorder::TransactionRecorder;
use crate::schedule::Schedule;
use crate::transaction_log::{LogRecord, LoggedOutcome, Sampling};

/// The due times of a client's transactions under a rate.
pub(super) struct Pace {
    schedule: Schedule,
    /// The due time of the last transaction taken.
    taken_ns: i64,
    /// The due time of a transaction taken and not started.
    held_ns: Option<i64>,
    /// Whether transactions that are too late are skipped.
    skips: bool,
}

impl Pace {
    /// `skips`: like pgbench under a limit, skips transactions that would be late even if they took no time.
    pub fn new(schedule: Schedule, skips: bool) -> Self {
        Self { schedule, taken_ns: 0, held_ns: None, skips }
    }

    /// Returns when the next transaction is due; `None` if none is `left`. Skipped ones count.
    pub fn next_due<L: TransactionRecorder>(
        &mut self,
        ledger: &mut L,
        script: usize,
        left: &mut u64,
        log: &mut Option<Sampling>,
    ) -> Option<i64> {
        loop {
            let due_ns = self.held_ns.take().unwrap_or_else(|| self.schedule.take(ledger.arrivals()));
            self.taken_ns = due_ns;
            if !self.skips {
                return Some(due_ns);
            }
            let now = ledger.end_clock();
            if due_ns >= now - ledger.limit_ns() || now >= ledger.end_ns() {
                ledger.pass();
                return Some(due_ns);
            }
            let is_measured = ledger.skip(script, now);
            if is_measured && let Some(sampling) = log {
                let lag_ns = (now - due_ns).max(0).unsigned_abs();
                let (script, outcome) = (script as u32, LoggedOutcome::Skipped);
                let complete = |entry| LogRecord { script, outcome, start_ns: now, lag_ns, ..entry };
                sampling.log(complete, |entry| ledger.log(entry));
            }
            *left -= u64::from(is_measured);
            if *left == 0 {
                return None;
            }
        }
    }

    /// Puts back the last transaction, which was due and not started.
    pub fn put_back(&mut self) {
        self.held_ns = Some(self.taken_ns);
    }

    /// Returns the number of transactions taken, due before `end_ns`, and neither started nor skipped.
    pub fn backlog(&self, end_ns: i64) -> u64 {
        u64::from(self.held_ns.is_some_and(|due_ns| due_ns < end_ns))
    }
}

/// How long ready connections waited for a driver, in nanoseconds. A round begins when the kernel reports which connections are
/// ready, and ends when the driver has served the last of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Connections served.
    pub served: u64,
    /// The sum of their waits since their rounds began.
    pub waited_ns: u64,
    /// The longest wait.
    pub longest_ns: u64,
    /// The longest round. A connection that gets ready during a round is reported at the next one, so it may have waited longer by
    /// this.
    pub longest_round_ns: u64,
}

impl Lateness {
    /// Counts a connection served at `now_ns`.
    #[inline]
    pub fn serve(&mut self, round_began_ns: i64, now_ns: i64) {
        // A clock not read since the round began means the round's first connection.
        let waited_ns = now_ns.saturating_sub(round_began_ns).max(0).unsigned_abs();
        self.served += 1;
        self.waited_ns += waited_ns;
        self.longest_ns = self.longest_ns.max(waited_ns);
    }

    /// Counts a round that ends at `now_ns`.
    #[inline]
    pub fn end_round(&mut self, round_began_ns: i64, now_ns: i64) {
        let took_ns = now_ns.saturating_sub(round_began_ns).max(0).unsigned_abs();
        self.longest_round_ns = self.longest_round_ns.max(took_ns);
    }

    /// Adds another driver's waits.
    pub fn merge(&mut self, other: &Self) {
        self.served += other.served;
        self.waited_ns += other.waited_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.longest_round_ns = self.longest_round_ns.max(other.longest_round_ns);
    }

    /// Returns the mean wait in microseconds; `None` if no connection was served.
    pub fn avg_us(&self) -> Option<f64> {
        (self.served > 0).then(|| self.waited_ns as f64 / self.served as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_since_the_round_began() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.avg_us(), None);
        // The clock was last read before the round: the first one does not wait.
        lateness.serve(1_000, 900);
        lateness.serve(1_000, 4_000);
        lateness.serve(1_000, 7_000);
        lateness.end_round(1_000, 11_000);
        lateness.serve(20_000, 20_000);
        lateness.end_round(20_000, 21_000);
        let expected = Lateness { served: 4, waited_ns: 9_000, longest_ns: 6_000, longest_round_ns: 10_000 };
        assert_eq!(lateness, expected);
        assert_eq!(lateness.avg_us(), Some(2.25));
    }

    #[test]
    fn before_the_first_reading_of_the_clock_nobody_waits() {
        let mut lateness = Lateness::default();
        lateness.serve(1_000, i64::MIN);
        lateness.end_round(1_000, i64::MIN);
        assert_eq!(lateness, Lateness { served: 1, ..Lateness::default() });
    }

    #[test]
    fn of_several_drivers_the_longest_waits_are_told() {
        let mut one = Lateness { served: 3, waited_ns: 9_000, longest_ns: 6_000, longest_round_ns: 8_000 };
        let other = Lateness { served: 1, waited_ns: 7_000, longest_ns: 7_000, longest_round_ns: 7_500 };
        one.merge(&other);
        let both = Lateness { served: 4, waited_ns: 16_000, longest_ns: 7_000, longest_round_ns: 8_000 };
        assert_eq!(one, both);
        assert_eq!(one.avg_us(), Some(4.0));
    }
}
