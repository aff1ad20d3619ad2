//! What a client counts: of each command, of each interval, of each script of a mix.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use bench_core::stats::histogram::{BUCKETS, bucket_of};
use bench_core::stats::{Histogram, Moments};

use super::Counter;

/// One command of one script as one client executed it, over all phases.
#[derive(Default)]
#[repr(C)]
pub struct CommandCounters {
    /// Executions that ended without an error.
    pub executions: Counter,
    /// Executions that ended with one.
    pub errors: Counter,
    /// Rows inserted, updated, deleted or returned.
    pub rows: Counter,
    /// Index scans that the plans stood for, while every plan was simple enough to tell.
    pub index_scans: Counter,
    /// 1 when a plan was not.
    pub index_scans_unknown: AtomicU32,
    /// 1 when the statement touches a relation that is not a table of the fixture.
    pub outside: AtomicU32,
    /// What the statement does: a `CmdType` of the server's; 0: unknown or a utility.
    pub command_type: AtomicU32,
    /// The server's query identifier, where it computes one.
    pub query_id: AtomicU64,
}

/// How many buckets of a run's histogram make one of [`CommandTimes`], which so is at most 1.6 % wide.
const COARSENESS: usize = 2;

/// One command of one script as one client executed it while measuring.
#[repr(C)]
pub struct CommandTimes {
    /// Executions that ended without an error.
    pub count: Counter,
    /// Tries that ended at this command and were followed by another one.
    pub retried: Counter,
    /// Transactions that were given up at this command.
    pub failed: Counter,
    latency_sum_ns: Counter,
    histogram: [AtomicU32; BUCKETS / COARSENESS],
}

impl CommandTimes {
    /// Counts an execution.
    #[inline]
    pub fn record(&self, latency_ns: u64) {
        self.count.add(1);
        self.latency_sum_ns.add(latency_ns);
        let bucket = &self.histogram[bucket_of(latency_ns) / COARSENESS];
        bucket.store(bucket.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// Nanoseconds of all executions together.
    pub fn latency_sum_ns(&self) -> u64 {
        self.latency_sum_ns.get()
    }

    /// Adds the latencies to a histogram, in the middle of where they may lie.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (bucket, count) in self.histogram.iter().enumerate() {
            let count = count.load(Relaxed);
            if count > 0 {
                histogram.add(bucket * COARSENESS + COARSENESS / 2, count.into());
            }
        }
    }
}

/// Transactions of one client: those of an interval, or those of a script.
#[repr(C)]
pub struct Tally {
    pub committed: Counter,
    pub failed: Counter,
    /// Transactions that took more than one try.
    pub retried: Counter,
    /// Committed above the limit of latency.
    pub late: Counter,
    /// Not started, being late already when they were due.
    pub skipped: Counter,
    /// How far behind their schedule the committed ones started, together.
    pub lag_sum_ns: Counter,
    pub lag_max_ns: Counter,
    latency_sum_ns: Counter,
    latency_sum_sq_ns2: AtomicU64,
    latency_max_ns: Counter,
    histogram: [Counter; BUCKETS],
}

impl Tally {
    /// The latencies, summed up.
    pub fn moments(&self) -> Moments {
        Moments {
            count: self.committed.get(),
            sum_ns: self.latency_sum_ns.get() as f64,
            sum_sq_ns2: self.latency_sum_sq_ns2(),
            max_ns: self.latency_max_ns.get(),
        }
    }

    /// Adds the latencies to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        for (bucket, count) in self.histogram.iter().enumerate() {
            histogram.add(bucket, count.get());
        }
    }

    fn latency_sum_sq_ns2(&self) -> f64 {
        f64::from_bits(self.latency_sum_sq_ns2.load(Relaxed))
    }

    fn clear(&self) {
        let counters = [
            &self.committed,
            &self.failed,
            &self.retried,
            &self.late,
            &self.skipped,
            &self.lag_sum_ns,
            &self.lag_max_ns,
            &self.latency_sum_ns,
            &self.latency_max_ns,
        ];
        for counter in counters.into_iter().chain(&self.histogram) {
            counter.set(0);
        }
        self.latency_sum_sq_ns2.store(0, Relaxed);
    }

    /// Counts a committed transaction.
    #[inline]
    pub fn commit(&self, latency_ns: u64) {
        self.committed.add(1);
        self.latency_sum_ns.add(latency_ns);
        let latency = latency_ns as f64;
        self.latency_sum_sq_ns2.store((self.latency_sum_sq_ns2() + latency * latency).to_bits(), Relaxed);
        if latency_ns > self.latency_max_ns.get() {
            self.latency_max_ns.set(latency_ns);
        }
        self.histogram[bucket_of(latency_ns)].add(1);
    }

    /// Counts how late a committed transaction started.
    #[inline]
    pub fn lag(&self, lag_ns: u64) {
        self.lag_sum_ns.add(lag_ns);
        if lag_ns > self.lag_max_ns.get() {
            self.lag_max_ns.set(lag_ns);
        }
    }
}

/// What one client did in one interval.
#[repr(C)]
pub struct IntervalCell {
    /// The interval + 1; 0: never used.
    label: AtomicU32,
    pub tally: Tally,
}

impl IntervalCell {
    pub fn holds(&self, interval: u32) -> bool {
        self.label.load(Relaxed) == interval + 1
    }

    /// Makes the cell stand for this interval. Whatever it held has been read before.
    pub fn start(&self, interval: u32) {
        self.tally.clear();
        self.label.store(interval + 1, Relaxed);
    }
}
