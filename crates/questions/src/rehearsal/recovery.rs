//! When the load is as before the change, so that its run can end.

/// Intervals in a row that show that throughput is back.
const INTERVALS_BACK: usize = 3;

/// The share of the throughput before the change that counts as back.
const BACK: f64 = 0.9;

/// Transactions of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its end, in seconds since the measurement began.
    pub end: f64,
    pub secs: f64,
    pub transactions: u64,
}

/// The throughput of a run before and after a change.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    quiet_secs: f64,
    quiet_transactions: u64,
    /// Intervals in a row with enough transactions.
    in_a_row: usize,
}

impl Recovery {
    /// Adds an interval that ended before the change began.
    pub fn add_quiet(&mut self, interval: Interval) {
        self.quiet_secs += interval.secs;
        self.quiet_transactions += interval.transactions;
    }

    /// Adds an interval after the change.
    pub fn add(&mut self, interval: Interval) {
        self.in_a_row = if self.is_as_before(interval) { self.in_a_row + 1 } else { 0 };
    }

    /// Whether throughput is back.
    pub fn is_back(&self) -> bool {
        self.in_a_row >= INTERVALS_BACK
    }

    /// Whether an interval has as many transactions as before the change, within two standard deviations of a Poisson process,
    /// which arrivals are.
    fn is_as_before(&self, interval: Interval) -> bool {
        let expected =
            self.quiet_transactions as f64 / self.quiet_secs.max(f64::MIN_POSITIVE) * interval.secs;
        interval.transactions as f64 >= BACK * expected - 2.0 * expected.sqrt()
    }
}
