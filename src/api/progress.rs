//! How far runs and loads under way are: bench.progress.

use std::sync::atomic::Ordering::*;

use pgrx::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::load::prepare::{Standing, title};
use crate::server::process::now_ns;
use crate::server::rows::{Rows, rows};
use crate::shm::{ClientState, RunState, Segment, WarmupEnd, Work, is_under_way};
use crate::store;

/// Where a run stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
fn run_progress(segment: Option<i64>, run_id: Option<i64>) -> Rows {
    let row = match (segment, run_id) {
        (Some(segment), Some(run_id)) => Segment::peek(segment as u32, |s| progress_row(s, run_id))
            .flatten()
            .filter(|_| store::check_visible(run_id).is_ok()),
        _ => None,
    };
    rows(row)
}

#[derive(Serialize)]
struct ProgressRow {
    phase: &'static str,
    elapsed: f64,
    remaining: Option<f64>,
    tps: Option<f64>,
    latency_avg_ms: Option<f64>,
    transactions: u64,
    clients: i32,
}

fn progress_row(segment: &Segment, run_id: i64) -> Option<ProgressRow> {
    let header = segment.header();
    if !segment.is_of(Work::Run(run_id)) || !is_under_way(segment) {
        return None;
    }
    let clients = match segment.shape().slots {
        // They are other nodes'.
        0 => header.progress.clients.load(Relaxed).cast_signed(),
        _ => segment.sessions().filter(|session| !session.is_over()).count() as i32,
    };
    if header.state() == RunState::Starting {
        return Some(ProgressRow {
            phase: "starting",
            elapsed: 0.0,
            remaining: None,
            tps: None,
            latency_avg_ms: None,
            transactions: 0,
            clients,
        });
    }
    let timeline = header.timeline.load();
    let now = now_ns();
    let (phase, since) = if now < timeline.warmup_start_ns {
        ("ramp", timeline.warmup_start_ns)
    } else if now < timeline.measure_start_ns {
        ("warm-up", timeline.warmup_start_ns)
    } else if now < timeline.measure_end_ns {
        ("measurement", timeline.measure_start_ns)
    } else {
        ("drain", timeline.measure_start_ns)
    };
    let secs = |ns: i64| ns as f64 / 1e9;
    let is_known = timeline.measure_end_ns != i64::MAX && header.warmup_end() != WarmupEnd::Awaited;
    let remaining = is_known.then(|| secs((timeline.measure_end_ns - now).max(0)));
    let figures = header.progress.figures();
    let sampled = header.progress.samples.load(Acquire) > 0;
    Some(ProgressRow {
        phase,
        elapsed: secs((now - since).max(0)),
        remaining,
        tps: sampled.then_some(figures.tps),
        latency_avg_ms: sampled.then_some(figures.latency_avg_ms),
        transactions: header.progress.transactions.get(),
        clients,
    })
}

/// Where a load stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
fn load_progress(segment: Option<i64>, load_id: Option<i64>) -> Rows {
    let row = |segment: &Segment, load_id: i64| {
        if !segment.is_of(Work::Load(load_id)) || !is_under_way(segment) {
            return None;
        }
        let standing = Standing::of(segment);
        let at_work = |state| state == ClientState::Done;
        let loaders = segment.slots().filter(|slot| slot.pid.load(Relaxed) != 0 && !at_work(slot.state()));
        Some(json!({
            "phase": title(standing.phase),
            "elapsed": standing.elapsed_secs,
            "remaining": standing.remaining_secs,
            "rows": standing.rows,
            "rows_per_sec": (standing.rows_per_sec > 0.0).then_some(standing.rows_per_sec),
            "loaders": loaders.count(),
        }))
    };
    let found = match (segment, load_id) {
        (Some(segment), Some(load_id)) => Segment::peek(segment as u32, |s| row(s, load_id))
            .flatten()
            .filter(|_| store::may_see_load(load_id) == Ok(true)),
        _ => None,
    };
    rows(found)
}
