//! The end of the warm-up, when throughput is steady, and the end of the clients, in steps from waiting for them to abandoning
//! those that cannot be ended.

use std::sync::atomic::Ordering::*;
use std::sync::atomic::fence;

use bench_model::spec::Driver;

use super::RunUnderWay;
use crate::server::process::{cancel, nap, now_ns, wake};
use crate::shm::{ClientSlot, StopReason, WarmupEnd};
use crate::worker::workers;

/// The time that transactions have to end after the measurement.
const DRAIN_NS: i64 = 60_000_000_000;

/// After a stop, the time until statements are canceled, and from then until clients are terminated.
const STOP_CANCEL_NS: i64 = 200_000_000;
const STOP_TERMINATE_NS: i64 = 300_000_000;

/// As above, for clients of a target, to which messages take longer.
const STOP_CANCEL_TARGET_NS: i64 = 1_000_000_000;
const STOP_TERMINATE_TARGET_NS: i64 = 1_500_000_000;

/// After a stop, the time that the server has to end the sessions of connections whose clients are over. Thousands take
/// longer: they end after the run, and the audit reports that their statistics are missing.
const STOP_SESSIONS_NS: i64 = 1_000_000_000;

/// The time from the clients' termination until their connections to other nodes are broken: a rollback or commit on a node
/// that does not answer waits where signals do not end it.
const SEVER_NS: i64 = 400_000_000;

/// The time from the clients' termination until those still there are abandoned: nothing can end them.
const GIVE_UP_NS: i64 = 1_000_000_000;

/// How long the processes of clients that have ended are waited for.
const EXIT_NS: i64 = 5_000_000_000;

impl RunUnderWay<'_> {
    /// Waits for the transactions under way, and ends clients that do not end by themselves.
    pub(super) fn dismiss(&mut self) {
        let header = self.segment.header();
        let stop = self.stop_reason();
        self.sampler.observer.end(now_ns());
        let end_ns = &header.timeline.measure_end_ns;
        let now = now_ns();
        if header.gate.load(Relaxed) == 0 {
            header.request_stop(StopReason::Abandoned);
            self.stopped_at_ns = Some(now);
            self.segment.slots().for_each(|slot| wake(slot.pid.load(Relaxed)));
        } else if now < end_ns.load(Relaxed) {
            // If all clients have ended, the run has ended with the last of them.
            let last = self.segment.slots().map(|slot| slot.ended_ns.load(Relaxed)).max();
            let end = if self.all_over() { last.unwrap_or(now).clamp(1, now) } else { now };
            end_ns.store(end, Relaxed);
            self.sampler.end_at(end);
        }
        self.stopped_at_ns = self.stopped_at_ns.or(stop.map(|_| now));
        let (cancel_ns, terminate_ns) = match self.spec.target {
            Some(_) => (STOP_CANCEL_TARGET_NS, STOP_TERMINATE_TARGET_NS),
            None => (STOP_CANCEL_NS, STOP_TERMINATE_NS),
        };
        let began = now;
        let mut terminated_ns = None;
        while !self.all_over() {
            if self.stopped_at_ns.is_none() && self.stop_reason().is_some() {
                self.stopped_at_ns = Some(now_ns());
            }
            let now = now_ns();
            let since_stop = self.stopped_at_ns.map_or(0, |at| now - at);
            if since_stop > cancel_ns && !self.canceled {
                self.canceled = true;
                self.cancel_statements();
            }
            let only_sessions_are_left = self.spec.options.driver == Driver::Wire
                && self.segment.slots().all(ClientSlot::has_left_its_loop);
            if only_sessions_are_left && since_stop > STOP_SESSIONS_NS {
                // The jobs wait for these sessions' ends.
                workers::forget();
                return;
            }
            let must_end = since_stop > cancel_ns + terminate_ns && !only_sessions_are_left;
            let overdue = must_end || now - began > DRAIN_NS;
            if overdue && !self.terminated {
                self.terminated = true;
                terminated_ns = Some(now);
                workers::terminate();
            }
            let since_end = terminated_ns.map_or(0, |at| now - at);
            if since_end > SEVER_NS && !self.severed {
                self.severed = true;
                workers::sever();
            }
            if since_end > GIVE_UP_NS {
                self.give_up();
            }
            nap(20);
        }
        // When the processes have ended, their statistics are flushed and their locks released.
        let deadline = now_ns() + EXIT_NS;
        while self.given_up == 0 && !workers::all_stopped() && now_ns() < deadline {
            nap(10);
        }
    }

    /// Abandons the clients that have not ended.
    fn give_up(&mut self) {
        for slot in 0..self.segment.shape().slots {
            if !self.segment.slot(slot).is_over() {
                self.stuck.push(self.segment.slot(slot).pid.load(Relaxed));
                let lost = self.segment.lose_clients(slot, now_ns());
                self.lost += lost;
                self.given_up += lost;
            }
        }
    }

    fn cancel_statements(&self) {
        if self.spec.target.is_some() {
            self.segment.header().cancels.store(1, Relaxed);
            return;
        }
        for slot in (0..self.segment.shape().slots).filter(|&slot| !workers::has_stopped(slot)) {
            let sessions = self.segment.clients_of(slot).map(|client| self.segment.session(client));
            for session in sessions.filter(|session| !session.is_over()) {
                cancel(session.pid);
            }
        }
    }
}

/// The least time between the publication of the measurement's begin and that begin. Clients read the time line at the end of
/// each interval, and the measurement begins with an interval.
const AHEAD_NS: i64 = 20_000_000;

impl RunUnderWay<'_> {
    /// Ends the warm-up if throughput is steady with the last interval.
    pub(super) fn judge_warmup(&mut self) {
        let Some(series) = &mut self.until_steady else { return };
        let Some(sample) = self.sampler.newest().filter(|sample| sample.in_warmup) else { return };
        let lag_secs = sample.totals.lag_avg_ms().map(|ms| ms / 1e3);
        if series.add(sample.secs, sample.tps(), lag_secs) {
            self.end_warmup();
        }
    }

    /// Begins the measurement with the next interval that is at least [`AHEAD_NS`] away.
    fn end_warmup(&mut self) {
        let header = self.segment.header();
        let longest = *self.sampler.timeline();
        let timeline = loop {
            let timeline = longest.with_warmup_until(now_ns() + AHEAD_NS);
            header.timeline.store(&timeline);
            // A client that reads the clock after the begin then sees this time line.
            fence(SeqCst);
            // If this process lost its processor before the store, a client may have continued with the warm-up: take a later
            // interval. Until the begin, both time lines have the same intervals.
            if now_ns() < timeline.measure_start_ns || timeline.measure_start_ns == longest.measure_start_ns {
                break timeline;
            }
        };
        self.sampler.move_measurement(timeline);
        self.warmup_has_ended(WarmupEnd::Steady);
    }

    /// Stops waiting for steady throughput in the last interval of the longest warm-up. Under a rate, drops arrivals that are due
    /// and not taken, so that no backlog of the warm-up is measured.
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
