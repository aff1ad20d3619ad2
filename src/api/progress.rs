//! How far runs and loads under way are: bench.progress.

use std::sync::atomic::Ordering::*;

use pgrx::prelude::*;

use crate::load::prepare::load_progress::{Standing, title};
use crate::server::process::now_ns;
use crate::shm::{ClientState, RunState, Segment, WarmupEnd, Work, is_under_way};
use crate::store;

/// Where a run stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn run_progress(
    segment: Option<i64>,
    run_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(phase, String),
        name!(elapsed, f64),
        name!(remaining, Option<f64>),
        name!(tps, Option<f64>),
        name!(latency_avg_ms, Option<f64>),
        name!(transactions, i64),
        name!(clients, i32),
    ),
> {
    let row = match (segment, run_id) {
        (Some(segment), Some(run_id)) => Segment::peek(segment as u32, |s| progress_row(s, run_id))
            .flatten()
            .filter(|_| store::check_visible(run_id).is_ok()),
        _ => None,
    };
    TableIterator::new(row)
}

type ProgressRow = (String, f64, Option<f64>, Option<f64>, Option<f64>, i64, i32);

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
        return Some(("starting".to_owned(), 0.0, None, None, None, 0, clients));
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
    Some((
        phase.to_owned(),
        secs((now - since).max(0)),
        remaining,
        sampled.then_some(figures.tps),
        sampled.then_some(figures.latency_avg_ms),
        header.progress.transactions.get().cast_signed(),
        clients,
    ))
}

/// Where a load stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn load_progress(
    segment: Option<i64>,
    load_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(phase, String),
        name!(elapsed, f64),
        name!(remaining, Option<f64>),
        name!(rows, i64),
        name!(rows_per_sec, Option<f64>),
        name!(loaders, i32),
    ),
> {
    let row = |segment: &Segment, load_id: i64| {
        if !segment.is_of(Work::Load(load_id)) || !is_under_way(segment) {
            return None;
        }
        let standing = Standing::of(segment);
        let at_work = |state| state == ClientState::Done;
        let loaders = segment.slots().filter(|slot| slot.pid.load(Relaxed) != 0 && !at_work(slot.state()));
        Some((
            title(standing.phase).to_owned(),
            standing.elapsed_secs,
            standing.remaining_secs,
            standing.rows.cast_signed(),
            (standing.rows_per_sec > 0.0).then_some(standing.rows_per_sec),
            loaders.count() as i32,
        ))
    };
    let found = match (segment, load_id) {
        (Some(segment), Some(load_id)) => Segment::peek(segment as u32, |s| row(s, load_id))
            .flatten()
            .filter(|_| store::may_see_load(load_id) == Ok(true)),
        _ => None,
    };
    TableIterator::new(found)
}
