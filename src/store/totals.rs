//! Totals of an interval, of a script and of a whole run, and their rows in the tables of results.

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::{RunSpec, ScriptSpec};
use bench_model::views::Standby;
use bench_results::Event;
use bench_stats::histogram::bucket_bounds_ns;
use bench_stats::{Histogram, Moments};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::observe::Observed;
use crate::observe::waits::split;
use crate::server::jsonb::{json_of, merged};
use crate::server::spi::{run, timestamp};
use crate::shm::Tally;

/// The sample of one interval, of all clients.
#[derive(Clone)]
pub struct RunSample {
    pub in_warmup: bool,
    /// The interval's end, counted from the begin of the warm-up or of the measurement.
    pub elapsed_secs: f64,
    pub secs: f64,
    /// The interval's end, a TimestampTz.
    pub at: i64,
    pub clients: u32,
    pub totals: Totals,
    pub observed: Observed,
}

impl RunSample {
    /// Extends the interval by the next one.
    pub fn join(&mut self, next: &RunSample) {
        self.elapsed_secs = next.elapsed_secs;
        self.secs += next.secs;
        self.at = next.at;
        self.clients = self.clients.max(next.clients);
        self.totals.merge(&next.totals);
        self.observed.merge(&next.observed);
    }

    /// Returns the transactions per second.
    pub fn tps(&self) -> f64 {
        self.totals.moments.count as f64 / self.secs
    }
}

/// Transactions of all clients: of an interval, of a script, or of the whole.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Transactions given up at a serialization failure or deadlock.
    pub failed: u64,
    /// Clients ended by other errors.
    pub aborted: u64,
    /// Transactions whose connection was lost when they might have been committed.
    pub unknown: u64,
    /// Transactions that took more than one try.
    pub retried: u64,
    pub late: u64,
    pub skipped: u64,
    /// Committed transactions that ended after the measured time, whose latencies are included.
    drained: u64,
    /// Not an integer: under an overloading rate the sum would exceed 64 bits within an hour.
    lag_sum_ns: f64,
    pub lag_max_ns: u64,
    /// Latencies of committed transactions in nanoseconds, including drained ones.
    pub moments: Moments,
    pub histogram: Histogram,
}

impl Totals {
    /// Adds the counts of an interval, or of one client.
    pub fn add(&mut self, tally: &Tally) {
        self.failed += tally.failed.get();
        self.aborted += tally.aborted.get();
        self.unknown += tally.unknown.get();
        self.retried += tally.retried.get();
        self.late += tally.late.get();
        self.skipped += tally.skipped.get();
        self.add_latencies(tally);
    }

    /// Adds only the latencies of transactions that ended after the measured time.
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

    /// Returns the values of columns by their names.
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

    /// Returns the values of the columns for latencies.
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

    /// Returns the number of transactions committed in the measured time.
    pub fn transactions(&self) -> u64 {
        self.moments.count - self.drained
    }

    /// Returns the mean lag of committed transactions behind their schedule.
    pub fn lag_avg_ms(&self) -> Option<f64> {
        (self.moments.count > 0).then(|| ms(self.lag_sum_ns / self.moments.count as f64))
    }

    /// Returns the greatest latency of committed transactions.
    pub fn latency_max_ms(&self) -> Option<f64> {
        (self.moments.count > 0).then(|| ms(self.moments.max_ns as f64))
    }
}

/// Returns a percentile of latencies in milliseconds.
pub fn percentile_ms(histogram: &Histogram, p: f64) -> Option<f64> {
    histogram.percentile_ns(p).map(ms)
}

/// Converts nanoseconds to milliseconds.
pub fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// Writes a script's histogram of latencies into bench.latencies.
pub fn latencies(run_id: i64, script: i32, histogram: &Histogram) -> Result<(), UserError> {
    let mut lows = Vec::new();
    let mut highs = Vec::new();
    let mut counts = Vec::new();
    for (bucket, count) in histogram.iter_nonzero() {
        let (low, high) = bucket_bounds_ns(bucket);
        lows.push(ms(low as f64));
        highs.push(ms(high as f64));
        counts.push(count.cast_signed());
    }
    run(
        "INSERT INTO bench.latencies (run_id, script, low_ms, high_ms, count) \
         SELECT $1, $2, * FROM ROWS FROM (unnest($3), unnest($4), unnest($5))",
        &[run_id.into(), script.into(), lows.into(), highs.into(), counts.into()],
    )
    .map(drop)
}

/// Returns a row of bench_internal.script_log.
pub fn script_line(index: i32, script: &ScriptSpec, totals: &Totals, spec: &RunSpec) -> Map<String, Value> {
    let fixture = script.fixture.and_then(|index| spec.fixtures.get(index));
    let of_script = json!({
        "script": index,
        "workload": script.name,
        "weight": script.weight,
        "fixture": fixture.map(|fixture| &fixture.name),
        "transactions": totals.transactions(),
    });
    merged([of_script, totals.columns().into()])
}

/// Returns a row of bench_internal.call_log.
pub fn call_line(script: i32, counts: &Counts) -> Value {
    json!({
        "script": script,
        "calls": counts.calls,
        "rows": counts.rows,
        "shared_blks_hit": counts.hit,
        "shared_blks_read": counts.read,
        "exec_ms": counts.exec_ms,
    })
}

/// A row of bench_internal.error_log.
#[derive(Serialize)]
pub struct ErrorRow {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub context: Option<String>,
    pub count: u64,
    pub retried: u64,
    pub failed: u64,
    /// A TimestampTz.
    #[serde(serialize_with = "as_timestamp")]
    pub first_at: i64,
}

fn as_timestamp<S: Serializer>(at: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    timestamp(*at).serialize(serializer)
}

/// Returns a row of bench_internal.wait_log.
pub fn wait_line(key: &str, share: f64) -> Value {
    let (kind, event) = split(key);
    json!({ "wait_event_type": kind, "wait_event": event, "share": share })
}

/// A row of bench_internal.event_log.
#[derive(Serialize)]
pub struct EventLine<'a> {
    /// Its place, from 1.
    pub event: u32,
    #[serde(flatten)]
    pub what: &'a Event,
}

/// Writes the lines of bench.standbys of an interval.
pub fn standby_lines(run_id: i64, elapsed_secs: f64, standbys: &[Standby]) -> Result<(), UserError> {
    run(
        "INSERT INTO bench.standbys (run_id, elapsed, pid, name, state, sync_state, write_lag_ms, flush_lag_ms, replay_lag_ms, \
             replay_lag_bytes) \
         SELECT $1, $2, s.pid, coalesce(s.name, ''), s.state, s.sync_state, greatest(s.write_lag_ms, 0), \
             greatest(s.flush_lag_ms, 0), greatest(s.replay_lag_ms, 0), greatest(s.replay_lag_bytes, 0) \
         FROM jsonb_populate_recordset(NULL::bench.standbys, $3) s",
        &[run_id.into(), elapsed_secs.into(), pgrx::JsonB(json_of(&standbys)).into()],
    )
    .map(drop)
}

/// The columns of a relation's reading that are monotonic counters.
const COUNTED: [&str; 11] = [
    "inserted",
    "updated",
    "hot_updated",
    "deleted",
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "vacuums",
    "autovacuums",
    "analyzes",
    "autoanalyzes",
];

/// Writes the differences of two readings, a row for each relation's name.
///
/// A relation may have been created or dropped in between, or both: a recreated index is another one of the same name. Its sizes
/// before and after are written, but its counts cannot be compared, nor can its table's index scans, which are a sum over the
/// indexes. A renamed relation has its new name; if that was the name of a dropped one, the dropped one is left out.
pub fn lines(
    run_id: i64,
    (before, after): (&serde_json::Value, &serde_json::Value),
) -> Result<(), UserError> {
    let jsonb = |reading: &serde_json::Value| pgrx::JsonB(reading.clone());
    // After a reset of the statistics, counts can be lower than before: then the difference is unknown.
    let since = |name: &&str| {
        let is_whole =
            if *name == "idx_scan" { " AND (a.kind <> 'table' OR c.all_indexes_stay)" } else { "" };
        format!("CASE WHEN a.oid = b.oid AND a.{name} >= b.{name}{is_whole} THEN a.{name} - b.{name} END")
    };
    let sql = format!(
        "WITH before AS MATERIALIZED (SELECT * FROM jsonb_populate_recordset(NULL::bench_internal.relation_reading, $2)), \
              after AS MATERIALIZED (SELECT * FROM jsonb_populate_recordset(NULL::bench_internal.relation_reading, $3)), \
              named AS (SELECT DISTINCT ON (coalesce(a.relation, b.relation)) b.*, coalesce(a.relation, b.relation) AS name \
                        FROM before b LEFT JOIN after a USING (oid) \
                        ORDER BY coalesce(a.relation, b.relation), a.oid IS NULL), \
              compared AS (SELECT NOT EXISTS (SELECT FROM before b LEFT JOIN after a USING (oid) \
                                              WHERE b.kind = 'index' AND a.oid IS NULL) AS all_indexes_stay) \
         INSERT INTO bench_internal.relation_log (run_id, relation, kind, bytes_before, bytes_after, live_before, live, dead_before, dead, \
             mod_since_analyze, last_vacuum, last_autovacuum, last_analyze, last_autoanalyze, {}) \
         SELECT $1, coalesce(a.relation, b.name), coalesce(a.kind, b.kind), b.bytes, a.bytes, b.live, a.live, b.dead, a.dead, \
             a.mod_since_analyze, a.last_vacuum, a.last_autovacuum, a.last_analyze, a.last_autoanalyze, {} \
         FROM named b FULL JOIN after a ON a.relation = b.name CROSS JOIN compared c",
        COUNTED.join(", "),
        COUNTED.iter().map(since).collect::<Vec<_>>().join(", "),
    );
    run(&sql, &[run_id.into(), jsonb(before).into(), jsonb(after).into()]).map(drop)
}
