//! How a client counts its transactions: of a phase, of an interval, of a script. What makes the sum of the samples
//! exactly the total, and each sample that of its own interval, is in [`bench_core::intervals`].

use std::sync::atomic::Ordering::*;

use bench_core::intervals::Writer;
use bench_core::timeline::{Phase, Timeline};
use bench_core::transaction_log::{Entry, LogWriter, LoggedOutcome};

use super::{ClientSlot, Header, Segment, Tally, Totals, TotalsOf};
use crate::server::process::now_ns;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Given up at a serialization failure or deadlock.
    Failed,
    /// Another error ended the client.
    Aborted,
    /// The script ended within a block, which ended the client: pgbench counts such a transaction as processed.
    LeftOpen,
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
    header: &'a Header,
    slot: &'a ClientSlot,
    intervals: Writer<'a>,
    /// One for each script of a mix; none where there is only one.
    scripts: &'a [Tally],
    timeline: Timeline,
    /// Where the last transaction was counted: while the clock stays below `until_ns`, the next
    /// one belongs there as well.
    until_ns: i64,
    phase: Phase,
    /// Latency above which a transaction is late, ns.
    limit_ns: i64,
    /// Where transactions are logged one by one.
    log: Option<LogWriter<'a>>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a client that has passed the gate: the time line is in place.
    pub fn new(segment: &'a Segment, client: u32, limit_ns: Option<i64>, log: Option<LogWriter<'a>>) -> Self {
        let header = segment.header();
        let slot = segment.slot(client);
        Self {
            header,
            slot,
            intervals: Writer::new(segment.intervals(client), segment.ring()),
            scripts: segment.tallies(client),
            timeline: header.timeline.load(),
            until_ns: i64::MIN,
            phase: Phase::Ramp,
            limit_ns: limit_ns.unwrap_or(i64::MAX),
            log,
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

    /// The clock at the end of a transaction, or of a try of one. [`Recorder::record`], [`Recorder::skip`] or
    /// [`Recorder::pass`] is to follow at once: without it the interval is not read.
    #[inline]
    pub fn end_clock(&mut self) -> i64 {
        self.intervals.announce();
        now_ns()
    }

    /// Nothing is counted of what ended at the last [`Recorder::end_clock`].
    #[inline]
    pub fn pass(&mut self) {
        self.intervals.pass();
    }

    /// Whether what ends at this moment counts as measured.
    #[inline]
    pub fn is_measured(&mut self, end_ns: i64) -> bool {
        matches!(self.phase_at(end_ns), Phase::Interval(interval) if !self.timeline.is_warmup(interval))
    }

    /// Counts a transaction that has ended at the last [`Recorder::end_clock`].
    #[inline]
    pub fn record(&mut self, t: &Transaction) {
        let of = match self.phase_at(t.end_ns) {
            Phase::Ramp => TotalsOf::Ramp,
            Phase::Drain => TotalsOf::Drain,
            Phase::Interval(interval) => {
                let limit_ns = self.limit_ns;
                self.write(interval, t.script, |tally| count_in(tally, t, limit_ns))
            }
        };
        count(&self.slot.totals[of as usize], t);
        self.intervals.pass();
        if let Some(log) = &mut self.log
            && of == TotalsOf::Measured
        {
            log_ended(log, t);
        }
    }

    /// Counts a transaction that was not started, because it was late already at the last [`Recorder::end_clock`].
    pub fn skip(&mut self, script: usize, due_ns: i64, now_ns: i64) {
        let mut of = TotalsOf::Drain;
        if let Phase::Interval(interval) = self.phase_at(now_ns) {
            of = self.write(interval, script, |tally| tally.skipped.add(1));
        }
        self.intervals.pass();
        if let Some(log) = &mut self.log
            && of == TotalsOf::Measured
        {
            log.log(Entry {
                script: script as u32,
                outcome: LoggedOutcome::Skipped,
                start_ns: now_ns,
                lag_ns: (now_ns - due_ns).max(0).unsigned_abs(),
                ..Entry::default()
            });
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

    /// Lets `write` count into an interval, and into the script's tally where there is one and the interval is measured.
    /// Returns which it is.
    #[inline]
    fn write(&mut self, interval: u32, script: usize, write: impl Fn(&Tally)) -> TotalsOf {
        write(self.intervals.tally(interval));
        if self.timeline.is_warmup(interval) {
            return TotalsOf::Warmup;
        }
        if let Some(tally) = self.scripts.get(script) {
            write(tally);
        }
        TotalsOf::Measured
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
        Outcome::Committed | Outcome::LeftOpen => {
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
        Outcome::Aborted => tally.aborted.add(1),
    }
    if t.outcome == Outcome::LeftOpen {
        tally.aborted.add(1);
    }
}

#[inline]
fn count(totals: &Totals, t: &Transaction) {
    match t.outcome {
        Outcome::Committed => totals.committed.add(1),
        Outcome::Failed | Outcome::Aborted => totals.failed.add(1),
        Outcome::LeftOpen => {
            totals.committed.add(1);
            // Its work was rolled back, which the audit has to know.
            totals.failed.add(1);
        }
    }
    if t.tries > 1 {
        totals.retries.add(t.tries - 1);
    }
}

#[inline(never)]
fn log_ended(log: &mut LogWriter, t: &Transaction) {
    log.log(Entry {
        transaction: 0,
        script: t.script as u32,
        retries: u32::try_from(t.tries - 1).unwrap_or(u32::MAX),
        outcome: match t.outcome {
            Outcome::Committed => LoggedOutcome::Processed,
            Outcome::LeftOpen => LoggedOutcome::LeftOpen,
            Outcome::Failed => LoggedOutcome::Failed,
            Outcome::Aborted => LoggedOutcome::Aborted,
        },
        start_ns: t.start_ns,
        lag_ns: (t.start_ns - t.due_ns).max(0).unsigned_abs(),
        latency_ns: (t.end_ns - t.due_ns).max(0).unsigned_abs(),
    });
}
