//! Waiting for runs, loads and sweeps, and stopping them; and the NOTICEs of bench.run.

use std::cell::Cell;
use std::sync::atomic::Ordering::*;
use std::time::Instant;

use bench_base::error::{UserError, sqlstate};
use bench_model::progress::{SampleFigures, Window};
use bench_model::spec::RunSpec;
use bench_stats::until_steady::LONGEST_SECS;

use crate::driver::session::unsupported_settings;
use crate::error::{OrRaise, notice, warn};
use crate::launch::handle::{Watch, releasable_or_warn, stop_and_wait};
use crate::server::database::is_standby;
use crate::server::roles;
use crate::server::transaction::rolled_back;
use crate::shm::{RunState, Segment, StopReason, WarmupEnd, Work, is_under_way};
use crate::store::{self, is_open};

/// Waits for the end of `work`, or until a point in time, and returns its status. Calls `look` with its segment at every check.
///
/// # Errors
/// 42704 if it does not exist, 42501 if the caller may not see it, 25006 on a standby, 55000 if another build of the library
/// leads it, 40P01 if it waits for this session, 57014.
pub fn wait(work: Work, until: Option<Instant>, mut look: impl FnMut(&Segment)) -> Result<String, UserError> {
    // Rolled back to release the lock on the extension's tables: DROP EXTENSION must not wait for this call.
    let handle = rolled_back(|| store::visible(work))?;
    let is_open = is_open(&handle.status);
    if is_open && is_standby() {
        let message = format!("cannot wait for a {} on a standby", work.noun());
        return Err(
            UserError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, message).hint("Wait for it on the primary.")
        );
    }
    handle.check_build()?;
    if is_open && let Some(segment) = Segment::attach(handle.segment) {
        if segment.is_of(work) {
            let call = match work {
                Work::Run(_) => "bench.wait".to_owned(),
                _ => format!("bench.wait_{}", work.noun()),
            };
            let releasable = releasable_or_warn(&format!("Call {call} as a separate top-level statement."));
            if releasable.is_none() && roles::acts_for(handle.owner_oid) {
                segment.header().horizon_held.store(1, Relaxed);
            }
            let mut watch = Watch::new(releasable, false);
            while is_under_way(&segment) && until.is_none_or(|until| Instant::now() < until) {
                look(&segment);
                watch.pause(&segment).or_raise();
            }
            watch.end();
        }
        segment.detach();
    }
    store::status(work)
}

/// Stops `work`, and returns false if it was not under way.
///
/// # Errors
/// 42704 if it does not exist, 42501 if the caller may not stop it, 55000 if another build of the library leads it.
pub fn stop(work: Work) -> Result<bool, UserError> {
    let handle = rolled_back(|| store::handle_of(work))?;
    handle.check_may_stop()?;
    if !is_open(&handle.status) {
        return Ok(false);
    }
    handle.check_build()?;
    let stopped = Segment::peek(handle.segment, |segment| {
        segment.is_of(work) && stop_and_wait(segment, StopReason::Requested)
    });
    Ok(stopped.unwrap_or(false))
}

thread_local! {
    /// Whether this session has seen the NOTICE about bench.help. Misspelt arguments give only the server's "No function
    /// matches".
    static HELP_SHOWN: Cell<bool> = const { Cell::new(false) };
}

/// The least time between two progress NOTICEs of bench.run.
const REPORT_EVERY_SECS: f64 = 5.0;

/// The NOTICEs of a run under way, in the form of pgbench's.
pub struct RunReporter {
    workload: String,
    announced: bool,
    every_secs: f64,
    next_secs: f64,
    /// The samples since the last progress NOTICE.
    window: Window,
    /// Samples seen.
    samples: u32,
    /// Seconds seen of the current phase, warm-up or measurement.
    seen_secs: f64,
    in_warmup: bool,
    /// The last reported state of a warm-up until steady throughput.
    warmup_end: WarmupEnd,
    warned: bool,
    warned_of_xids: bool,
    has_rate: bool,
    has_limit: bool,
}

impl RunReporter {
    /// Starts without having reported anything.
    pub fn new(spec: &RunSpec) -> Self {
        let every_secs = REPORT_EVERY_SECS.max(spec.options.sample_interval_secs);
        let options = &spec.options;
        Self {
            workload: options.workload.clone(),
            announced: false,
            every_secs,
            next_secs: every_secs,
            window: Window::default(),
            samples: 0,
            seen_secs: 0.0,
            in_warmup: options.warmup_secs != Some(0.0),
            warmup_end: WarmupEnd::Given,
            warned: false,
            warned_of_xids: false,
            has_rate: options.rate.is_some(),
            has_limit: options.latency_limit_ms.is_some(),
        }
    }

    /// Raises NOTICEs about everything new in the segment.
    pub fn report(&mut self, segment: &Segment) {
        let header = segment.header();
        if !self.announced && segment.run_id() != 0 {
            self.announced = true;
            let message = format!("run {} of {} starts", segment.run_id(), self.workload);
            if HELP_SHOWN.replace(true) {
                pgrx::notice!("{message}");
            } else {
                notice(message, "Arguments: SELECT * FROM bench.help('run').");
            }
        }
        if header.state() != RunState::Starting && !self.warned {
            self.warned = true;
            self.warn_of_unsupported(header.unsupported.load(Relaxed));
        }
        let age = header.xid_age.load(Relaxed);
        if age > 0 && !self.warned_of_xids {
            self.warned_of_xids = true;
            warn(
                format!("transaction ids are running out: the oldest database is {age} transactions old"),
                "VACUUM FREEZE its oldest tables. Runs end at 1.8 billion.",
            );
        }
        self.report_warmup(segment);
        let progress = &header.progress;
        let samples = progress.samples.load(Acquire);
        if samples == self.samples {
            return;
        }
        self.samples = samples;
        let figures = progress.figures();
        let in_warmup = progress.in_warmup.load(Relaxed) != 0;
        if self.in_warmup && !in_warmup {
            self.in_warmup = false;
            self.next_secs = self.every_secs;
            self.window = Window::default();
            self.seen_secs = 0.0;
        }
        let sample = SampleFigures {
            tps: figures.tps,
            latency_avg_ms: figures.latency_avg_ms,
            latency_stddev_ms: figures.latency_stddev_ms,
            lag_avg_ms: figures.lag_avg_ms,
        };
        self.window.add(figures.elapsed_secs - self.seen_secs, sample);
        self.seen_secs = figures.elapsed_secs;
        if figures.elapsed_secs + 1e-9 < self.next_secs {
            return;
        }
        self.next_secs = figures.elapsed_secs + self.every_secs;
        let since = self.window.take();
        let mut extra = String::new();
        let aborted = progress.aborted.get();
        if aborted > 0 {
            extra += &format!(", {aborted} aborted");
        }
        if self.has_rate {
            extra += &format!(", lag {:.3} ms", since.lag_avg_ms);
        }
        if self.has_rate && self.has_limit {
            extra += &format!(", {} skipped", progress.skipped.get());
        }
        pgrx::notice!(
            "progress: {}{:.1} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed{extra}",
            if in_warmup { "warm-up " } else { "" },
            figures.elapsed_secs,
            since.tps,
            since.latency_avg_ms,
            since.latency_stddev_ms,
            progress.failed.get()
        );
    }

    /// Reports the beginning and the end of a warm-up until steady throughput.
    fn report_warmup(&mut self, segment: &Segment) {
        let header = segment.header();
        let now = header.warmup_end();
        if std::mem::replace(&mut self.warmup_end, now) == now {
            return;
        }
        match now {
            WarmupEnd::Given => {}
            WarmupEnd::Awaited => {
                pgrx::notice!("warming up until throughput is steady, for at most {LONGEST_SECS} s");
            }
            WarmupEnd::Steady => {
                let timeline = header.timeline.load();
                // Rounded as in reports.
                let tenths = ((timeline.measure_start_ns - timeline.warmup_start_ns) as f64 / 1e8).round();
                pgrx::notice!("throughput was steady after {:.1} s of warm-up", tenths / 10.0);
            }
            WarmupEnd::Unsteady => warn(
                format!("throughput was not steady after {LONGEST_SECS} s of warm-up"),
                "The run continues. bench.warmup_samples shows the throughput of the warm-up; to warm up longer, \
                 set warmup to a number of seconds.",
            ),
        }
    }

    fn warn_of_unsupported(&self, bits: u32) {
        let names = unsupported_settings::names(bits);
        if !names.is_empty() {
            warn(
                format!("parameters without effect on the engine's sessions: {}", names.join(", ")),
                "The results of this run do not include their cost, which sessions of real clients would pay.",
            );
        }
    }
}
