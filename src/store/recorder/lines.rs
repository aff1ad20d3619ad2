//! The lines of each table of results.

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::{RunSpec, ScriptSpec};
use bench_model::views::Standby;
use bench_results::Event;
use bench_stats::histogram::{Histogram, bucket_bounds_ns};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::observe::waits::split;
use crate::server::jsonb::{json_of, merged};
use crate::server::spi::{run, timestamp};
use crate::store::totals::{Totals, ms};

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

/// A row of bench_internal.script_log.
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

/// A row of bench_internal.call_log.
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

/// A row of bench_internal.wait_log.
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
