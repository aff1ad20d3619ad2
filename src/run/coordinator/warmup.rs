//! The end of a warm-up that lasts until throughput is steady.

use std::sync::atomic::Ordering::*;
use std::sync::atomic::fence;

use super::run_under_way::RunUnderWay;
use crate::server::process::{now_ns, wake};
use crate::shm::WarmupEnd;

/// How long before it comes the measurement's begin is made known, at least: by then every client can know of it. Nobody
/// has to be told: a client reads the time line when an interval has ended, and it begins with one.
const AHEAD_NS: i64 = 20_000_000;

impl RunUnderWay<'_> {
    /// Judges the interval that was read last.
    pub(super) fn judge_warmup(&mut self) {
        let Some(series) = &mut self.until_steady else { return };
        let Some(sample) = self.sampler.newest().filter(|sample| sample.in_warmup) else { return };
        let lag_secs = sample.totals.lag_avg_ms().map(|ms| ms / 1e3);
        if series.add(sample.secs, sample.tps(), lag_secs) {
            self.end_warmup();
        }
    }

    /// Lets the measurement begin with the next interval.
    fn end_warmup(&mut self) {
        let header = self.segment.header();
        let longest = *self.sampler.timeline();
        let timeline = loop {
            let timeline = longest.with_warmup_until(now_ns() + AHEAD_NS);
            header.timeline.store(&timeline);
            // A client whose clock shows the begin reads the time line after that.
            fence(SeqCst);
            // This process may have lost its processor before that, and a client have gone on with the warm-up: then a later
            // interval. Up to the begin all clients count into the same intervals by either time line.
            if now_ns() < timeline.measure_start_ns || timeline.measure_start_ns == longest.measure_start_ns {
                break timeline;
            }
        };
        self.sampler.move_measurement(timeline);
        self.warmup_has_ended(WarmupEnd::Steady);
    }

    /// Gives up waiting for steady throughput with the last interval of the longest warm-up. Under a rate, what was due
    /// before that and nobody has taken is dropped: what clients took of it ends within the warm-up, and is not measured.
    pub(super) fn limit_warmup(&mut self, now_ns: i64) {
        let timeline = self.sampler.timeline();
        if self.until_steady.is_some() && now_ns >= timeline.measure_start_ns - timeline.warmup_interval_ns {
            let due = now_ns - timeline.warmup_start_ns;
            self.segment.header().arrivals.0.fetch_max(due, Relaxed);
            self.warmup_has_ended(WarmupEnd::Unsteady);
        }
    }

    fn warmup_has_ended(&mut self, how: WarmupEnd) {
        self.until_steady = None;
        let header = self.segment.header();
        header.set_warmup_end(how);
        wake(header.caller_pid.load(Relaxed));
    }
}
