//! What was measured, added up: of an interval, of a script, of the whole.

use bench_stats::{Histogram, Moments};
use serde_json::{Map, Value, json};

use crate::observe::Observed;
use crate::server::jsonb::merged;
use crate::shm::Tally;

/// An interval's worth of all clients.
#[derive(Clone)]
pub struct RunSample {
    pub in_warmup: bool,
    /// The interval's end, since the warm-up or the measuring began.
    pub elapsed_secs: f64,
    pub secs: f64,
    /// The interval's end, a TimestampTz.
    pub at: i64,
    pub clients: u32,
    pub totals: Totals,
    pub observed: Observed,
}

impl RunSample {
    /// Makes the interval longer by the one after it.
    pub fn join(&mut self, next: &RunSample) {
        self.elapsed_secs = next.elapsed_secs;
        self.secs += next.secs;
        self.at = next.at;
        self.clients = self.clients.max(next.clients);
        self.totals.merge(&next.totals);
        self.observed.merge(&next.observed);
    }

    /// Transactions per second.
    pub fn tps(&self) -> f64 {
        self.totals.moments.count as f64 / self.secs
    }
}

/// Transactions of all clients: of an interval, of a script, or of the whole.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Transactions given up at a serialization failure or deadlock.
    pub failed: u64,
    /// Clients that another error ended.
    pub aborted: u64,
    /// Transactions whose connection was lost when they may have been committed.
    pub unknown: u64,
    /// Transactions that took more than one try.
    pub retried: u64,
    pub late: u64,
    pub skipped: u64,
    /// Committed ones whose latencies are here although they ended after the measured time.
    drained: u64,
    /// No integer: that of an overloaded rate outgrows 64 bits within the hour.
    lag_sum_ns: f64,
    pub lag_max_ns: u64,
    /// Latencies of committed transactions, in nanoseconds; drained ones included.
    pub moments: Moments,
    pub histogram: Histogram,
}

impl Totals {
    /// Adds what was counted of an interval, or by one client.
    pub fn add(&mut self, tally: &Tally) {
        self.failed += tally.failed.get();
        self.aborted += tally.aborted.get();
        self.unknown += tally.unknown.get();
        self.retried += tally.retried.get();
        self.late += tally.late.get();
        self.skipped += tally.skipped.get();
        self.add_latencies(tally);
    }

    /// Adds the latencies, and nothing else, of transactions that ended after the measured time.
    pub fn add_drained(&mut self, tally: &Tally) {
        self.drained += tally.committed.get();
        self.add_latencies(tally);
    }

    fn add_latencies(&mut self, tally: &Tally) {
        let (lag_sum_ns, lag_max_ns) = tally.lags_ns();
        self.lag_sum_ns += lag_sum_ns;
        self.lag_max_ns = self.lag_max_ns.max(lag_max_ns);
        self.moments.merge(&tally.moments());
        tally.add_to(&mut self.histogram);
    }

    /// Adds other transactions.
    pub fn merge(&mut self, other: &Totals) {
        self.failed += other.failed;
        self.aborted += other.aborted;
        self.unknown += other.unknown;
        self.retried += other.retried;
        self.late += other.late;
        self.skipped += other.skipped;
        self.drained += other.drained;
        self.lag_sum_ns += other.lag_sum_ns;
        self.lag_max_ns = self.lag_max_ns.max(other.lag_max_ns);
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram);
    }

    /// The values of columns, by their names.
    pub fn columns(&self) -> Map<String, Value> {
        let counts = json!({
            "failed": self.failed,
            "aborted": self.aborted,
            "retried": self.retried,
            "skipped": self.skipped,
            "late": self.late,
        });
        merged([counts, self.latencies()])
    }

    /// Those of latencies.
    pub fn latencies(&self) -> Value {
        json!({
            "latency_avg_ms": self.moments.mean_ns().map(ms),
            "latency_stddev_ms": self.moments.stddev_ns().map(ms),
            "latency_p50_ms": percentile_ms(&self.histogram, 0.5),
            "latency_p95_ms": percentile_ms(&self.histogram, 0.95),
            "latency_p99_ms": percentile_ms(&self.histogram, 0.99),
            "latency_max_ms": self.latency_max_ms(),
        })
    }

    /// Transactions committed in the measured time.
    pub fn transactions(&self) -> u64 {
        self.moments.count - self.drained
    }

    /// How far behind their schedule the committed ones started, on average.
    pub fn lag_avg_ms(&self) -> Option<f64> {
        (self.moments.count > 0).then(|| ms(self.lag_sum_ns / self.moments.count as f64))
    }

    /// The greatest latency of the committed ones.
    pub fn latency_max_ms(&self) -> Option<f64> {
        (self.moments.count > 0).then(|| ms(self.moments.max_ns as f64))
    }
}

/// A percentile of latencies, in milliseconds.
pub fn percentile_ms(histogram: &Histogram, p: f64) -> Option<f64> {
    histogram.percentile_ns(p).map(ms)
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: f64) -> f64 {
    ns / 1e6
}
