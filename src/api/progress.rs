//! How far a run under way is: bench.progress, and the NOTICEs of bench.run.

use std::sync::atomic::Ordering::*;

use bench_core::spec::RunSpec;
use pgrx::prelude::*;

use crate::catalog;
use crate::engine::unserved;
use crate::error::warn;
use crate::shm::{RunState, Segment};
use crate::worker::is_under_way;

/// How often bench.run reports its progress, at most.
const REPORT_EVERY_SECS: f64 = 5.0;

/// The NOTICEs of a run under way, in the manner of pgbench's.
pub struct Reporter {
    every_secs: f64,
    next_secs: f64,
    in_warmup: bool,
    warned: bool,
    warned_of_xids: bool,
    has_rate: bool,
    has_limit: bool,
}

impl Reporter {
    pub fn new(spec: &RunSpec) -> Self {
        let every_secs = REPORT_EVERY_SECS.max(spec.options.sample_interval_secs);
        let o = &spec.options;
        Self {
            every_secs,
            next_secs: every_secs,
            in_warmup: o.warmup_secs > 0.0,
            warned: false,
            warned_of_xids: false,
            has_rate: o.rate.is_some(),
            has_limit: o.latency_limit_ms.is_some(),
        }
    }

    /// Says what is new.
    pub fn report(&mut self, segment: &Segment) {
        let header = segment.header();
        if header.state() != RunState::Starting && !self.warned {
            self.warned = true;
            self.warn_of_unserved(header.unserved.load(Relaxed));
        }
        let age = header.xid_age.load(Relaxed);
        if age > 0 && !self.warned_of_xids {
            self.warned_of_xids = true;
            warn(
                format!("transaction ids are running out: the oldest database is {age} transactions old"),
                "VACUUM FREEZE its oldest tables. Runs end at 1.8 billion.",
            );
        }
        let progress = &header.progress;
        if progress.samples.load(Acquire) == 0 {
            return;
        }
        let figures = progress.figures();
        let in_warmup = progress.in_warmup.load(Relaxed) != 0;
        if self.in_warmup && !in_warmup {
            self.in_warmup = false;
            self.next_secs = self.every_secs;
        }
        if figures.elapsed_secs + 1e-9 < self.next_secs {
            return;
        }
        self.next_secs = figures.elapsed_secs + self.every_secs;
        let mut schedule = String::new();
        if self.has_rate {
            schedule += &format!(", lag {:.3} ms", figures.lag_avg_ms);
        }
        if self.has_rate && self.has_limit {
            schedule += &format!(", {} skipped", progress.skipped.get());
        }
        pgrx::notice!(
            "progress: {}{:.1} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed{schedule}",
            if in_warmup { "warm-up " } else { "" },
            figures.elapsed_secs,
            figures.tps,
            figures.latency_avg_ms,
            figures.latency_stddev_ms,
            progress.failed.get()
        );
    }

    fn warn_of_unserved(&self, bits: u32) {
        let names = unserved::names(bits);
        if !names.is_empty() {
            warn(
                format!("parameters without effect on the engine's sessions: {}", names.join(", ")),
                "The results of this run do not include their cost, which sessions of real clients would pay.",
            );
        }
    }
}

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
            .filter(|_| catalog::check_visible(run_id).is_ok()),
        _ => None,
    };
    TableIterator::new(row)
}

type ProgressRow = (String, f64, Option<f64>, Option<f64>, Option<f64>, i64, i32);

fn progress_row(segment: &Segment, run_id: i64) -> Option<ProgressRow> {
    let header = segment.header();
    if !segment.is_of_run(run_id) || !is_under_way(segment) {
        return None;
    }
    let clients = match segment.shape().clients {
        // They are other nodes'.
        0 => header.progress.clients.load(Relaxed).cast_signed(),
        _ => segment.slots().filter(|slot| !slot.is_over()).count() as i32,
    };
    if header.state() == RunState::Starting {
        return Some(("starting".to_owned(), 0.0, None, None, None, 0, clients));
    }
    let timeline = header.timeline.load();
    let now = crate::worker::now_ns();
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
    let remaining =
        (timeline.measure_end_ns != i64::MAX).then(|| secs((timeline.measure_end_ns - now).max(0)));
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
