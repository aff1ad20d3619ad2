//! From the clients' intervals to samples: read, written down, added up.

use std::sync::atomic::Ordering::*;

use bench_core::error::UserError;
use bench_core::spec::RunSpec;
use bench_core::stats::{Histogram, Moments};
use bench_core::timeline::Timeline;

use super::{nap, now_ns, wake};
use crate::catalog::recorder::{self, Sample};
use crate::shm::{ProgressFigures, Segment};

const NS_PER_SEC: f64 = 1e9;

/// The samples of one run.
pub struct Sampler<'a> {
    segment: &'a Segment,
    run_id: i64,
    timeline: Timeline,
    /// A rest shorter than this many seconds is joined to the sample before it.
    shortest_secs: f64,
    /// Intervals written so far, of the warm-up and of the measuring.
    next_interval: u32,
    /// The last sample, in case a short rest has to be joined to it.
    last: Option<Sample>,
    /// Latencies of the measured transactions, one histogram for each script.
    pub histograms: Vec<Histogram>,
    /// The same of all scripts, summed up.
    pub moments: Moments,
    failed: u64,
}

impl<'a> Sampler<'a> {
    /// A sampler for a run that has not begun.
    pub fn new(segment: &'a Segment, spec: &RunSpec, run_id: i64) -> Self {
        Self {
            segment,
            run_id,
            timeline: Timeline::new(0, 0, None, 1),
            shortest_secs: spec.options.sample_interval_secs / 2.0,
            next_interval: 0,
            last: None,
            histograms: vec![Histogram::new(); segment.shape().scripts as usize],
            moments: Moments::default(),
            failed: 0,
        }
    }

    /// The run begins.
    pub fn begin(&mut self, timeline: Timeline) {
        self.timeline = timeline;
    }

    /// The measuring ends earlier than planned.
    pub fn end_at(&mut self, end_ns: i64) {
        self.timeline.measure_end_ns = end_ns;
    }

    /// When the interval ends that is to be written next.
    pub fn interval_end_ns(&self) -> i64 {
        self.timeline.bounds(self.next_interval).1
    }

    /// Reads the next interval from all clients and writes it down.
    pub fn write_next(&mut self) -> Result<(), UserError> {
        let end_ns = self.interval_end_ns();
        let sample = self.read_interval(end_ns);
        recorder::sample(self.run_id, &sample, None)?;
        self.keep(sample);
        Ok(())
    }

    /// Reads the next interval. `end_ns` is where it ends in truth: earlier than planned when the
    /// run was stopped.
    fn read_interval(&mut self, end_ns: i64) -> Sample {
        let interval = self.next_interval;
        self.segment.close_interval(interval, || nap(1));
        let (start_ns, _) = self.timeline.bounds(interval);
        let in_warmup = self.timeline.is_warmup(interval);
        let origin = if in_warmup { self.timeline.warmup_start_ns } else { self.timeline.measure_start_ns };
        let mut sample = Sample {
            in_warmup,
            elapsed_secs: (end_ns - origin) as f64 / NS_PER_SEC,
            secs: (end_ns - start_ns) as f64 / NS_PER_SEC,
            clients: 0,
            failed: 0,
            retried: 0,
            moments: Moments::default(),
            histogram: Histogram::new(),
        };
        for client in 0..self.segment.shape().clients {
            let mut active = !self.segment.slot(client).is_over();
            for (script, cell) in self.segment.cells(client, interval).iter().enumerate() {
                if !cell.holds(interval) {
                    continue;
                }
                active = true;
                let counts = cell.counts();
                sample.failed += cell.failed.get();
                sample.retried += cell.retried.get();
                sample.moments.merge(&cell.moments());
                sample.histogram.merge_counts(&counts);
                if !in_warmup {
                    self.histograms[script].merge_counts(&counts);
                }
            }
            sample.clients += u32::from(active);
        }
        self.next_interval += 1;
        sample
    }

    fn keep(&mut self, sample: Sample) {
        let progress = &self.segment.header().progress;
        progress.set_figures(ProgressFigures {
            elapsed_secs: sample.elapsed_secs,
            tps: sample.tps(),
            latency_avg_ms: sample.moments.mean_ns().unwrap_or(0.0) / 1e6,
            latency_stddev_ms: sample.moments.stddev_ns().unwrap_or(0.0) / 1e6,
        });
        progress.in_warmup.store(sample.in_warmup.into(), Relaxed);
        progress.clients.store(sample.clients, Relaxed);
        if !sample.in_warmup {
            self.moments.merge(&sample.moments);
            self.failed += sample.failed;
            progress.transactions.set(self.moments.count);
            progress.failed.set(self.failed);
        }
        progress.samples.fetch_add(1, Release);
        wake(self.segment.header().caller_pid.load(Relaxed));
        self.last = Some(sample);
    }

    /// Reads and writes what is left of the intervals after the last client has ended. A rest
    /// shorter than half an interval is joined to the sample before it.
    pub fn write_rest(&mut self) -> Result<(), UserError> {
        let planned_end = self.timeline.measure_end_ns;
        let end = if planned_end == i64::MAX { now_ns() } else { planned_end };
        loop {
            let (start_ns, interval_end) = self.timeline.bounds(self.next_interval);
            if start_ns >= end {
                return self.write_stragglers(start_ns);
            }
            let end_ns = interval_end.min(end);
            let sample = self.read_interval(end_ns);
            let short = sample.secs < self.shortest_secs;
            match self.last.take() {
                Some(mut last) if short && last.in_warmup == sample.in_warmup => {
                    let elapsed = last.elapsed_secs;
                    let alone = sample.clone();
                    last.join(&sample);
                    recorder::sample(self.run_id, &last, Some(elapsed))?;
                    self.keep(alone);
                }
                _ => {
                    recorder::sample(self.run_id, &sample, None)?;
                    self.keep(sample);
                }
            }
        }
    }

    /// Transactions that ended just after a stop, in an interval that the run no longer has, still
    /// count: they go to the last sample.
    fn write_stragglers(&mut self, end_ns: i64) -> Result<(), UserError> {
        let interval = self.next_interval;
        let clients = 0..self.segment.shape().clients;
        let any = |client| self.segment.cells(client, interval).iter().any(|cell| cell.holds(interval));
        if !clients.into_iter().any(any) {
            return Ok(());
        }
        let mut rest = self.read_interval(end_ns);
        let Some(mut last) = self.last.take().filter(|last| last.in_warmup == rest.in_warmup) else {
            return Ok(());
        };
        rest.elapsed_secs = last.elapsed_secs;
        last.join(&rest);
        recorder::sample(self.run_id, &last, Some(last.elapsed_secs))?;
        self.keep(rest);
        Ok(())
    }
}
