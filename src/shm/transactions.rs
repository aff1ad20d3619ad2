//! How a client counts its transactions: of a phase, of an interval, of a script. What makes the sum of the samples
//! exactly the total, and each sample that of its own interval, is in [`bench_model::intervals`].

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::*;

use bench_base::error::SqlError;
use bench_model::client::{Consequence, Outcome, Transaction, TransactionRecorder};
use bench_model::intervals::IntervalWriter;
use bench_model::timeline::{Phase, Timeline};
use bench_model::transaction_log::{LogQueue, LogRecord};
use bench_stats::duel::BATCHES;

use super::{
    BatchOfArms, ClientSlot, CommandCounters, CommandTimes, Header, PhaseTotals, Segment, StopReason, Tally,
    TotalsOf,
};
use crate::server::process::{
    Usage, cpu_ns, current_timestamp, now_ns, own_cpu_ns, own_minor_faults, own_switches,
};

/// One client's pen.
pub struct ClientCounters<'a> {
    header: &'a Header,
    slot: &'a ClientSlot,
    intervals: IntervalWriter<'a>,
    /// One for each script of a mix; none where there is only one.
    scripts: &'a [Tally],
    /// One for each script, which all clients share.
    drained: &'a [Tally],
    timeline: Timeline,
    /// Where the last transaction was counted: while the clock stays below `until_ns`, the next
    /// one belongs there as well.
    until_ns: i64,
    phase: Phase,
    /// Latency above which a transaction is late, ns.
    limit_ns: i64,
    /// The last reading of the clock.
    read_ns: i64,
    /// Whether the processor time of what comes next is of the measurement.
    counts_cpu: bool,
    /// Where transactions are logged one by one.
    log: Option<LogQueue<'a>>,
    commands: &'a [CommandCounters],
    times: &'a [CommandTimes],
    /// The batches of a duel; none of another run.
    arms: &'a [BatchOfArms],
    /// How long they are together, whenever the run ends.
    batches_ns: i64,
    /// In a duel, of each client of this process: the stretch under way.
    stretches: Vec<Option<Stretch>>,
    /// The client whose transaction is recorded, among those of this process.
    client: usize,
    ramp_middle_ns: i64,
    /// Processor time and minor page faults of the process when a transaction of the ramp's second half ended.
    alone: Option<(i64, i64)>,
    /// The next transaction counts for no arm: it replaces plans that were dropped at the switch.
    is_settling: bool,
    /// Transactions of each arm's last stretch.
    in_last_stretch: [u64; 2],
    /// Of the try under way: places of commands whose processor time was read, and its nanoseconds.
    cpu_laps: Vec<(usize, u64)>,
}

/// What a client does for one arm, between two switches.
struct Stretch {
    arm: usize,
    session: MeasuredSession,
    /// At its beginning, or at the end of the transaction that settled the session.
    began: Readings,
    transactions: u64,
    measured: u64,
    /// Whether it has transactions that are not measured.
    has_others: bool,
    batch: usize,
}

/// The session whose use of the machine belongs to a client's stretches.
#[derive(Clone, Copy, Debug)]
pub enum MeasuredSession {
    /// That of this process.
    Own,
    /// At the other end of a connection, this process of the same machine, of which only the processor time is known.
    Backend(i32),
}

/// What a session has used so far.
struct Readings {
    usage: Usage,
    /// Rows of all statements.
    rows: u64,
    minor_faults: i64,
    cpu_ns: i64,
}

impl Readings {
    /// Reads the counters of a session; its processor time last, so that the others are not in it. `None` of a backend that has
    /// ended. `commands` are those of the run, with their rows.
    fn of(session: MeasuredSession, commands: &[CommandCounters]) -> Option<Self> {
        Some(match session {
            MeasuredSession::Own => Self {
                usage: Usage::of_session(),
                rows: commands.iter().map(|command| command.rows.get()).sum(),
                minor_faults: own_minor_faults(),
                cpu_ns: own_cpu_ns(),
            },
            MeasuredSession::Backend(pid) => {
                Self { usage: Usage::default(), rows: 0, minor_faults: 0, cpu_ns: cpu_ns(pid)? }
            }
        })
    }
}

impl<'a> ClientCounters<'a> {
    /// A recorder into this slot, where transactions that take longer than this are late; [`ClientCounters::begin`] is to follow.
    pub fn new(segment: &'a Segment, slot: u32, latency_limit_ms: Option<f64>) -> Self {
        let header = segment.header();
        Self {
            header,
            slot: segment.slot(slot),
            intervals: IntervalWriter::new(segment.intervals(slot), segment.ring()),
            scripts: segment.tallies(slot),
            drained: segment.drained(),
            timeline: header.timeline.load(),
            until_ns: i64::MIN,
            phase: Phase::Ramp,
            limit_ns: latency_limit_ms.map_or(i64::MAX, |ms| (ms * 1e6) as i64),
            read_ns: i64::MIN,
            counts_cpu: false,
            log: segment.log(slot),
            commands: segment.commands(slot),
            times: segment.times(slot),
            arms: segment.arms(slot),
            batches_ns: 1,
            stretches: segment.clients_of(slot).map(|_| None).collect(),
            client: 0,
            ramp_middle_ns: i64::MAX,
            alone: None,
            is_settling: false,
            in_last_stretch: [0; 2],
            cpu_laps: Vec::new(),
        }
    }

    /// What the process does from here on counts as processor time of the measurement.
    #[cold]
    fn count_cpu(&mut self) {
        self.counts_cpu = true;
        self.slot.count_cpu_from(own_cpu_ns(), own_switches());
    }

    /// The gate has opened: the time line is in place.
    pub fn begin(&mut self) {
        self.timeline = self.header.timeline.load();
        self.batches_ns = (self.timeline.measure_end_ns - self.timeline.measure_start_ns).max(1);
        let now_ns = now_ns();
        self.ramp_middle_ns = now_ns.midpoint(self.timeline.warmup_start_ns);
        if now_ns >= self.timeline.measure_start_ns {
            self.count_cpu();
        }
    }

    /// Whether the run is a duel.
    pub fn is_of_duel(&self) -> bool {
        !self.arms.is_empty()
    }

    /// What is recorded from here on is this client's, of those of this process.
    pub fn turn_to(&mut self, client: usize) {
        self.client = client;
    }

    /// In a duel: the client's stretch under way is over.
    pub fn end_stretch(&mut self) {
        let Some(stretch) = self.stretches[self.client].take() else { return };
        self.in_last_stretch[stretch.arm] = stretch.transactions;
        let Some(batch) = self.arms.get(stretch.batch) else { return };
        if stretch.measured == 0 || stretch.has_others {
            return;
        }
        let Some(now) = Readings::of(stretch.session, self.commands) else { return };
        let (sums, before) = (&batch[stretch.arm], stretch.began);
        sums.timed.add(stretch.measured);
        sums.cpu_ns.add((now.cpu_ns - before.cpu_ns).max(0).unsigned_abs());
        if let MeasuredSession::Own = stretch.session {
            sums.counted.add(stretch.measured);
            sums.blocks.add(now.usage.blocks.saturating_sub(before.usage.blocks));
            sums.wal_bytes.add(now.usage.wal_bytes.saturating_sub(before.usage.wal_bytes));
            sums.rows.add(now.rows - before.rows);
            sums.minor_faults.add((now.minor_faults - before.minor_faults).max(0).unsigned_abs());
        }
    }

    /// In a duel: what comes next of the client is of this arm; where the session has to `settle`, from the end of the next
    /// transaction on, unless the arm's transactions are longer than a stretch, so that none would be left.
    pub fn begin_stretch(&mut self, session: MeasuredSession, arm: usize, settle: bool) {
        self.is_settling = settle && self.in_last_stretch[arm] > 1;
        let (transactions, measured, has_others, batch) = (0, 0, false, 0);
        self.stretches[self.client] = Readings::of(session, self.commands).map(|began| Stretch {
            arm,
            session,
            began,
            transactions,
            measured,
            has_others,
            batch,
        });
    }

    /// Records the processor time of a command in a duel; it counts if the try does.
    pub fn cpu_lap(&mut self, place: usize, cpu_ns: u64) {
        self.cpu_laps.push((place, cpu_ns));
    }

    /// Shows which arm the session of this process is in.
    pub fn show_arm(&self, arm: usize) {
        self.slot.arm.store(arm as u32 + 1, Relaxed);
    }

    /// Begins to measure the stretch: its first transaction has replaced the plans that were dropped.
    #[cold]
    fn settle(&mut self) {
        if let Some(stretch) = &mut self.stretches[self.client]
            && let Some(began) = Readings::of(stretch.session, self.commands)
        {
            (stretch.began, stretch.measured, stretch.has_others) = (began, 0, false);
        }
        self.is_settling = false;
    }

    /// Counts what a transaction used of the ramp, in which the session executes one arm only; not in its first half, in which the
    /// session makes its plans and fills its caches.
    #[cold]
    fn count_alone(&mut self, arm: usize, end_ns: i64) {
        if end_ns < self.ramp_middle_ns || end_ns >= self.timeline.warmup_start_ns {
            return;
        }
        let now = (own_cpu_ns(), own_minor_faults());
        if let Some((cpu_ns, minor_faults)) = self.alone.replace(now) {
            let sums = &self.slot.alone[arm];
            sums.transactions.add(1);
            let cpu_us = ((now.0 - cpu_ns) / 1000).max(0).unsigned_abs();
            let minor_faults = (now.1 - minor_faults).max(0).unsigned_abs();
            sums.cpu_us.add(cpu_us);
            sums.cpu_us_squared.add(cpu_us * cpu_us);
            sums.minor_faults.add(minor_faults);
            sums.minor_faults_squared.add(minor_faults * minor_faults);
        }
    }

    /// Counts a transaction of a duel, whose scripts are each arm's by turns.
    fn count_for_arm(&mut self, t: &Transaction, is_measured: bool) {
        let stretch = &mut self.stretches[self.client];
        if let Some(stretch) = stretch {
            stretch.transactions += 1;
        }
        if !is_measured {
            if let Some(Stretch { arm, session, has_others, .. }) = stretch {
                *has_others = true;
                if let MeasuredSession::Own = session {
                    let arm = *arm;
                    self.count_alone(arm, t.end_ns);
                }
            }
            return;
        }
        let since_ns = t.end_ns - self.timeline.measure_start_ns;
        let batch = i128::from(since_ns) * BATCHES as i128 / i128::from(self.batches_ns);
        let batch = (batch.max(0) as usize).min(self.arms.len() - 1);
        if let Some(stretch) = &mut self.stretches[self.client] {
            stretch.batch = batch;
            stretch.measured += 1;
        }
        let sums = &self.arms[batch][t.script % 2];
        if t.tries > 1 {
            sums.retried.add(1);
        }
        if t.outcome == Outcome::Committed {
            sums.transactions.add(1);
            // Under a rate the arms share the queue: what waits in it may be the other one's fault.
            sums.latency_ns.add((t.end_ns - t.start_ns).max(0).unsigned_abs());
        } else {
            sums.failed.add(1);
        }
    }

    /// What the clock showed when it was last read for a transaction.
    #[inline]
    pub fn read_ns(&self) -> i64 {
        self.read_ns
    }

    /// So many transactions that were due before the run's end were taken and neither started nor skipped.
    pub fn backlog(&self, transactions: u64) {
        self.slot.backlog.add(transactions);
    }

    #[inline]
    fn phase_at(&mut self, end_ns: i64) -> Phase {
        if end_ns >= self.until_ns {
            self.find_phase(end_ns);
        }
        // The end may have come nearer since the time line was read.
        if end_ns >= self.end_ns() { Phase::Drain } else { self.phase }
    }

    /// A client has ended before the first interval, or in one of the warm-up: it is missing from then on, and counts in its
    /// script's tally all the same; from before the first interval, in that one.
    #[cold]
    fn count_early_abort(&mut self, of: TotalsOf, script: usize) {
        if of == TotalsOf::Ramp {
            self.intervals.tally(0).aborted.add(1);
        }
        if let Some(tally) = self.scripts.get(script) {
            tally.aborted.add(1);
        }
    }

    /// A transaction has ended after the measured time: once for each client, so that it may allocate.
    #[cold]
    fn count_drained(&self, t: &Transaction) {
        if let Some(shared) = self.drained.get(t.script) {
            let own = Box::<Tally>::default();
            count_in(&own, t, self.limit_ns);
            own.move_to(shared);
        }
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

impl TransactionRecorder for ClientCounters<'_> {
    #[inline]
    fn now_ns(&mut self) -> i64 {
        self.read_ns = now_ns();
        self.read_ns
    }

    #[inline]
    fn end_clock(&mut self) -> i64 {
        self.intervals.announce();
        self.read_ns = now_ns();
        self.read_ns
    }

    #[inline]
    fn pass(&mut self) {
        self.cpu_laps.clear();
        self.intervals.pass();
    }

    #[inline]
    fn end_ns(&self) -> i64 {
        self.header.timeline.measure_end_ns.load(Relaxed)
    }

    #[inline]
    fn limit_ns(&self) -> i64 {
        self.limit_ns
    }

    #[inline]
    fn arrivals(&self) -> &AtomicI64 {
        &self.header.arrivals.0
    }

    #[inline]
    fn stretch_ns(&self) -> &AtomicI64 {
        &self.header.stretch_ns
    }

    #[inline]
    fn ramp_end_ns(&self) -> i64 {
        self.timeline.warmup_start_ns
    }

    fn is_stopped(&self) -> bool {
        self.header.stop() != StopReason::None
    }

    #[inline]
    fn is_measured(&mut self, end_ns: i64) -> bool {
        !self.is_settling
            && matches!(self.phase_at(end_ns), Phase::Interval(interval) if !self.timeline.is_warmup(interval))
    }

    #[inline]
    fn record(&mut self, t: &Transaction) -> bool {
        let of = match self.phase_at(t.end_ns) {
            Phase::Ramp => TotalsOf::Ramp,
            Phase::Drain => {
                self.count_drained(t);
                TotalsOf::Drain
            }
            // One that an error has ended counts as everywhere.
            Phase::Interval(_) if self.is_settling && t.outcome == Outcome::Committed => TotalsOf::Warmup,
            Phase::Interval(interval) => {
                let limit_ns = self.limit_ns;
                self.write(interval, t.script, |tally| count_in(tally, t, limit_ns))
            }
        };
        count(&self.slot.totals[of as usize], t);
        let is_early = matches!(of, TotalsOf::Ramp | TotalsOf::Warmup);
        if is_early && matches!(t.outcome, Outcome::Aborted | Outcome::LeftOpen) {
            self.count_early_abort(of, t.script);
        }
        self.intervals.pass();
        if of == TotalsOf::Measured && !self.counts_cpu {
            self.count_cpu();
        }
        if self.is_of_duel() {
            self.cpu_laps.clear();
            self.count_for_arm(t, of == TotalsOf::Measured);
            if self.is_settling {
                self.settle();
            }
        }
        of == TotalsOf::Measured
    }

    fn skip(&mut self, script: usize, now_ns: i64) -> bool {
        let mut of = TotalsOf::Drain;
        if let Phase::Interval(interval) = self.phase_at(now_ns) {
            of = self.write(interval, script, |tally| tally.skipped.add(1));
        }
        self.intervals.pass();
        of == TotalsOf::Measured
    }

    fn log(&mut self, entry: &LogRecord) {
        if let Some(queue) = self.log {
            queue.put(entry);
        }
    }

    #[inline]
    fn lap(&mut self, place: usize, latency_ns: u64) {
        let times = &self.times[place];
        times.record(latency_ns);
        for (_, cpu_ns) in self.cpu_laps.iter().filter(|(of, _)| *of == place) {
            times.timed.add(1);
            times.cpu_sum_ns.add(*cpu_ns);
        }
    }

    fn command_failed(&mut self, place: usize, again: bool) {
        let times = &self.times[place];
        if again { &times.retried } else { &times.failed }.add(1);
    }

    #[inline]
    fn performed(&mut self, place: usize, succeeded: bool) {
        let command = &self.commands[place];
        if succeeded { &command.executions } else { &command.errors }.add(1);
    }

    fn error(&mut self, error: &SqlError, consequence: Consequence) {
        self.slot.count_error(error, current_timestamp(), consequence);
    }

    fn debug(&mut self, line: &str) {
        pgrx::log!("{line}");
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
        Outcome::Unknown => tally.unknown.add(1),
    }
    if t.outcome == Outcome::LeftOpen {
        tally.aborted.add(1);
    }
}

#[inline]
fn count(totals: &PhaseTotals, t: &Transaction) {
    match t.outcome {
        Outcome::Committed => totals.committed.add(1),
        Outcome::Failed | Outcome::Aborted | Outcome::Unknown => totals.failed.add(1),
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
