//! How a client counts, and how the coordinator takes the counts of an interval without either
//! waiting for the other in the usual case.
//!
//! The client makes its sequence number odd, then looks which intervals are closed, then writes,
//! then makes it even again. The coordinator closes an interval, then waits until it has seen
//! each client's sequence even or changed. The two full fences order each side's announcement
//! before its look (Dekker's way), so a client either sees the interval closed and counts into
//! the next one, or is seen writing and waited for. So a late coordinator moves no transaction
//! from one sample to another, and the sum of the samples is exactly the total.

use std::sync::atomic::{Ordering::*, fence};

use bench_core::timeline::{Phase, Timeline};

use super::{ClientSlot, Header, IntervalCell, Segment, Tally, Totals, TotalsOf};

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    Failed,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    pub script: usize,
    /// When it was to start: under a rate by the schedule, otherwise when it did.
    pub due_ns: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub tries: u64,
    pub outcome: Outcome,
}

/// One client's pen.
pub struct Recorder<'a> {
    segment: &'a Segment,
    header: &'a Header,
    slot: &'a ClientSlot,
    client: u32,
    timeline: Timeline,
    /// Where the last transaction was counted: while the clock stays below `until_ns`, the next
    /// one belongs there as well.
    until_ns: i64,
    phase: Phase,
    sequence: u32,
    /// Latency above which a transaction is late, ns.
    limit_ns: i64,
}

impl<'a> Recorder<'a> {
    /// A recorder for a client that has passed the gate: the time line is in place.
    pub fn new(segment: &'a Segment, client: u32, limit_ns: Option<i64>) -> Self {
        let header = segment.header();
        let slot = segment.slot(client);
        Self {
            segment,
            header,
            slot,
            client,
            timeline: header.timeline.load(),
            until_ns: i64::MIN,
            phase: Phase::Ramp,
            sequence: slot.sequence.load(Relaxed),
            limit_ns: limit_ns.unwrap_or(i64::MAX),
        }
    }

    /// The reading of the clock at which the client has to stop.
    #[inline]
    pub fn end_ns(&self) -> i64 {
        self.header.timeline.measure_end_ns.load(Relaxed)
    }

    /// Latency above which a transaction is late, ns; `i64::MAX` where there is no limit.
    #[inline]
    pub fn limit_ns(&self) -> i64 {
        self.limit_ns
    }

    /// Whether what ends at this moment counts as measured.
    #[inline]
    pub fn is_measured(&mut self, end_ns: i64) -> bool {
        matches!(self.phase_at(end_ns), Phase::Interval(interval) if !self.timeline.is_warmup(interval))
    }

    /// Counts a transaction that has ended.
    #[inline]
    pub fn record(&mut self, t: &Transaction) {
        match self.phase_at(t.end_ns) {
            Phase::Ramp => count(&self.slot.totals[TotalsOf::Ramp as usize], t),
            Phase::Drain => count(&self.slot.totals[TotalsOf::Drain as usize], t),
            Phase::Interval(interval) => {
                let limit_ns = self.limit_ns;
                let of = self.write(interval, t.script, |tally| count_in(tally, t, limit_ns));
                count(&self.slot.totals[of as usize], t);
            }
        }
    }

    /// Counts a transaction that was not started, because it was late already.
    pub fn skip(&mut self, script: usize, now_ns: i64) {
        if let Phase::Interval(interval) = self.phase_at(now_ns) {
            self.write(interval, script, |tally| tally.skipped.add(1));
        }
    }

    #[inline]
    fn phase_at(&mut self, end_ns: i64) -> Phase {
        if end_ns >= self.until_ns {
            self.find_phase(end_ns);
        }
        // The end may have come nearer since the time line was read.
        if end_ns >= self.end_ns() { Phase::Drain } else { self.phase }
    }

    /// Lets `write` count into an interval's cell, see the module's head, and into the script's tally
    /// where there is one and the interval is measured. Returns which it is.
    #[inline]
    fn write(&mut self, interval: u32, script: usize, write: impl Fn(&Tally)) -> TotalsOf {
        self.sequence = self.sequence.wrapping_add(1);
        self.slot.sequence.store(self.sequence, Relaxed);
        fence(SeqCst);
        let closed = self.header.closed.load(Relaxed);
        // Late for a closed interval: the first open one. Too far ahead of a coordinator that is
        // very late: the last one there is room for. The cell of the interval that was closed last
        // is not free: it may be being read.
        let last = closed + self.segment.shape().ring - 2;
        if interval > last {
            self.slot.misplaced.add(1);
        }
        let interval = interval.clamp(closed, last);
        let of = if self.timeline.is_warmup(interval) { TotalsOf::Warmup } else { TotalsOf::Measured };
        write(&self.cell(interval).tally);
        if of == TotalsOf::Measured
            && let Some(tally) = self.segment.tallies(self.client).get(script)
        {
            write(tally);
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.slot.sequence.store(self.sequence, Release);
        of
    }

    #[inline]
    fn cell(&self, interval: u32) -> &'a IntervalCell {
        let cell = self.segment.cell(self.client, interval);
        if !cell.holds(interval) {
            cell.start(interval);
        }
        cell
    }

    #[cold]
    fn find_phase(&mut self, now_ns: i64) {
        self.timeline = self.header.timeline.load();
        self.phase = self.timeline.phase_at(now_ns);
        self.until_ns = match self.phase {
            Phase::Ramp => self.timeline.warmup_start_ns,
            Phase::Interval(interval) => self.timeline.bounds(interval).1,
            Phase::Drain => i64::MAX,
        };
    }
}

#[inline]
fn count_in(tally: &Tally, t: &Transaction, limit_ns: i64) {
    if t.tries > 1 {
        tally.retried.add(1);
    }
    match t.outcome {
        Outcome::Committed => {
            let latency_ns = t.end_ns - t.due_ns;
            tally.commit(latency_ns.max(0).unsigned_abs());
            if t.start_ns > t.due_ns {
                tally.lag((t.start_ns - t.due_ns).unsigned_abs());
            }
            if latency_ns > limit_ns {
                tally.late.add(1);
            }
        }
        Outcome::Failed => tally.failed.add(1),
    }
}

#[inline]
fn count(totals: &Totals, t: &Transaction) {
    match t.outcome {
        Outcome::Committed => totals.committed.add(1),
        Outcome::Failed => totals.failed.add(1),
    }
    if t.tries > 1 {
        totals.retries.add(t.tries - 1);
    }
}

impl Segment {
    /// Closes an interval and waits until no client is writing into it any more; afterwards its
    /// cells can be read at leisure. `pause` is called between looks.
    pub fn close_interval(&self, interval: u32, mut pause: impl FnMut()) {
        self.header().closed.store(interval + 1, Relaxed);
        fence(SeqCst);
        for slot in self.slots() {
            let seen = slot.sequence.load(Acquire);
            if seen % 2 == 1 {
                // Writing takes nanoseconds; a client that was preempted in the middle of it
                // needs a processor first.
                while slot.sequence.load(Acquire) == seen {
                    pause();
                }
            }
        }
    }
}
