//! What is read of the clients and written while a run is under way: samples, their transactions' log, and how far transaction
//! ids are used up.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::intervals::Ring;
use bench_model::spec::RunSpec;
use bench_model::timeline::Timeline;

use crate::observe::waits::WaitTimes;
use crate::observe::{Observed, Observer};
use crate::server::database;
use crate::server::process::{NS_PER_SEC, now_ns, wake};
use crate::server::transaction::transaction;
use crate::shm::{ClientSession, Header, ProgressFigures, Segment, Tally};
use crate::store;
use crate::store::extension_owner::LockTimeout;
use crate::store::recorder::{self, Logged, RunSample, Totals};

const SECS_FROM_1970_TO_2000: f64 = 946_684_800.0;

/// The samples of one run.
pub struct Sampler<'a> {
    segment: &'a Segment,
    run_id: i64,
    timeline: Timeline,
    /// Intervals written so far, of the warm-up and of the measuring.
    next_interval: u32,
    /// The next intervals, while they are being read.
    opened: Option<Opened>,
    /// The last sample, in case a short rest has to be joined to it.
    last: Option<RunSample>,
    /// What was measured so far.
    pub measured: Totals,
    /// Clients that errors have ended so far, in the warm-up too.
    aborted: u64,
    /// Read and not yet written, oldest first.
    unwritten: VecDeque<Unwritten>,
    lock_timeout: LockTimeout,
    /// When the run began, by CLOCK_MONOTONIC in nanoseconds and as a TimestampTz.
    began: (i64, i64),
    pub observer: Observer<'a>,
    /// Waits in the measured intervals.
    pub waits: WaitTimes,
}

/// Intervals that have ended, the next one and those after it up to this one, while clients may still count into them.
/// All that are due are read at once, for where there are many clients the reader gets a processor rarely.
struct Opened {
    through: u32,
    /// What was observed in the first of them.
    observed: Option<Observed>,
    /// Clients that may still count into them.
    behind: Vec<u32>,
}

/// The most samples that are written in one transaction. Each takes about a millisecond of a processor, for which the
/// coordinator waits a second among a thousand clients, while it reads nothing.
const WRITTEN_AT_ONCE: usize = 16;

/// A sample to be written, over the one whose interval ended at `replaces`.
struct Unwritten {
    sample: RunSample,
    replaces: Option<f64>,
}

impl<'a> Sampler<'a> {
    /// A sampler for a run that has not begun.
    pub fn new(segment: &'a Segment, spec: &RunSpec, run_id: i64) -> Self {
        Self {
            segment,
            run_id,
            timeline: Timeline::new(0, 0, None, 1),
            next_interval: 0,
            opened: None,
            last: None,
            measured: Totals::default(),
            aborted: 0,
            unwritten: VecDeque::new(),
            lock_timeout: LockTimeout::new(),
            began: (0, 0),
            observer: Observer::new(segment, spec),
            waits: WaitTimes::default(),
        }
    }

    /// The run begins.
    /// `began` is now, by CLOCK_MONOTONIC in nanoseconds and as a TimestampTz.
    pub fn begin(&mut self, timeline: Timeline, began: (i64, i64)) {
        self.timeline = timeline;
        self.began = began;
    }

    /// The first interval begins, as far as it is observed.
    pub fn observe(&mut self) {
        // Microseconds since 2000, as a TimestampTz counts, to seconds since 1970.
        let epoch = self.began.1 as f64 / 1e6 + SECS_FROM_1970_TO_2000;
        self.observer.begin(now_ns(), &self.timeline, epoch - self.began.0 as f64 / NS_PER_SEC);
    }

    /// The measuring ends earlier than planned.
    pub fn end_at(&mut self, end_ns: i64) {
        self.timeline.measure_end_ns = end_ns;
    }

    /// The time line of the run that has begun.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The measuring begins earlier than planned, later than now; nothing else changes before that.
    pub fn move_measurement(&mut self, timeline: Timeline) {
        self.timeline = timeline;
        self.observer.move_measurement(&timeline);
    }

    /// The sample that was read last.
    pub fn newest(&self) -> Option<&RunSample> {
        self.last.as_ref()
    }

    /// When the interval ends that is to be written next.
    pub fn interval_end_ns(&self) -> i64 {
        self.timeline.bounds(self.next_interval).1
    }

    /// Reads the next interval, which has ended by the clock. False while a client may still count into it, one that lost
    /// its processor at the end of a transaction: nobody waits for it here, and nothing is lost if it takes long.
    pub fn read_next(&mut self) -> bool {
        let (segment, ring) = (self.segment, self.segment.ring());
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => {
                let now = now_ns();
                let next = self.next_interval;
                let due = |&interval: &u32| self.timeline.bounds(interval).1 <= now;
                let through = ring.readable_from(next).take_while(due).last().unwrap_or(next);
                let observed = Some(self.observer.cut(now));
                Opened { through, observed, behind: (0..segment.shape().slots).collect() }
            }
        };
        opened.behind.retain(|&client| {
            let intervals = segment.intervals(client);
            let is_over = segment.slot(client).is_over();
            let collect = if is_over { Ring::collect_rest } else { Ring::collect };
            !collect(ring, intervals, opened.through)
        });
        let is_complete = opened.behind.is_empty();
        if is_complete {
            let late = || self.observer.cut_late(now_ns());
            let observed = opened.observed.take().unwrap_or_else(late);
            let sample = self.read_interval(self.interval_end_ns(), observed);
            self.take(sample);
        }
        if self.next_interval <= opened.through {
            self.opened = Some(opened);
        }
        is_complete
    }

    /// Whether none is left of the intervals that were due together.
    pub fn has_read_what_was_due(&self) -> bool {
        self.opened.is_none()
    }

    /// A sample of its own: shown, kept for a rest that may follow, and due to be written.
    fn take(&mut self, sample: RunSample) {
        self.announce(&sample);
        self.last = Some(sample.clone());
        self.unwritten.push_back(Unwritten { sample, replaces: None });
    }

    /// Writes what has been read, until there is more to read. A lock on the tables of results only delays it, for a
    /// while: reading goes on meanwhile, so that the ring of intervals does not overflow.
    pub fn write(&mut self) -> Result<(), UserError> {
        while !self.unwritten.is_empty() {
            let count = self.unwritten.len().min(WRITTEN_AT_ONCE);
            let samples: Vec<_> =
                self.unwritten.iter().take(count).map(|next| (&next.sample, next.replaces)).collect();
            match recorder::samples(self.run_id, &samples) {
                Ok(()) => {
                    self.unwritten.drain(..count);
                    self.lock_timeout = LockTimeout::new();
                    if now_ns() >= self.interval_end_ns() {
                        return Ok(());
                    }
                }
                Err(error) if self.lock_timeout.allows_retry(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the next interval, which is complete. `end_ns` is where it ends in truth: earlier than planned when the
    /// run was stopped.
    fn read_interval(&mut self, end_ns: i64, observed: Observed) -> RunSample {
        let interval = self.next_interval;
        let (start_ns, _) = self.timeline.bounds(interval);
        let in_warmup = self.timeline.is_warmup(interval);
        let origin = if in_warmup { self.timeline.warmup_start_ns } else { self.timeline.measure_start_ns };
        let mut sample = RunSample {
            in_warmup,
            elapsed_secs: (end_ns - origin) as f64 / NS_PER_SEC,
            secs: (end_ns - start_ns) as f64 / NS_PER_SEC,
            at: self.began.1 + (end_ns - self.began.0) / 1000,
            clients: 0,
            totals: Totals::default(),
            observed,
        };
        self.segment.ring().read(|tally| sample.totals.add(tally));
        let at_work = |session: &ClientSession| !session.is_over() || session.ended_ns > start_ns;
        sample.clients = self.segment.sessions().filter(at_work).count() as u32;
        self.next_interval += 1;
        sample
    }

    /// Adds a sample to the totals and shows it to those who wait.
    fn announce(&mut self, sample: &RunSample) {
        let progress = &self.segment.header().progress;
        progress.set_figures(ProgressFigures {
            elapsed_secs: sample.elapsed_secs,
            tps: sample.tps(),
            latency_avg_ms: sample.totals.moments.mean_ns().unwrap_or(0.0) / 1e6,
            latency_stddev_ms: sample.totals.moments.stddev_ns().unwrap_or(0.0) / 1e6,
            lag_avg_ms: sample.totals.lag_avg_ms().unwrap_or(0.0),
        });
        progress.in_warmup.store(sample.in_warmup.into(), Relaxed);
        progress.clients.store(sample.clients, Relaxed);
        self.aborted += sample.totals.aborted;
        progress.aborted.set(self.aborted);
        if !sample.in_warmup {
            self.measured.merge(&sample.totals);
            self.waits.merge(&sample.observed.waits);
            progress.transactions.set(self.measured.moments.count);
            progress.failed.set(self.measured.failed);
            progress.skipped.set(self.measured.skipped);
        }
        progress.samples.fetch_add(1, Release);
        wake(self.segment.header().caller_pid.load(Relaxed));
    }

    /// Reads and writes what is left of the intervals after the last client has ended. A rest
    /// shorter than half an interval is joined to the sample before it.
    pub fn write_rest(&mut self) -> Result<(), UserError> {
        let planned_end = self.timeline.measure_end_ns;
        let end = if planned_end == i64::MAX { now_ns() } else { planned_end };
        loop {
            let (start_ns, interval_end) = self.timeline.bounds(self.next_interval);
            // Transactions that ended just after a stop, in intervals that the run no longer has, still count: they
            // go to the last sample.
            let is_past = start_ns >= end;
            if is_past && !self.holds_more() {
                break;
            }
            let end_ns = if is_past { start_ns } else { interval_end.min(end) };
            for client in 0..self.segment.shape().slots {
                // Given up as it may be, in the middle of a transaction's end.
                self.segment.ring().collect_rest(self.segment.intervals(client), self.next_interval);
            }
            let observed = self.opened.take().and_then(|opened| opened.observed);
            let observed = observed.unwrap_or_else(|| self.observer.cut(now_ns()));
            let shortest_secs = self.timeline.nominal_ns(self.next_interval) as f64 / NS_PER_SEC / 2.0;
            let sample = self.read_interval(end_ns, observed);
            if is_past || sample.secs < shortest_secs {
                self.join(sample);
            } else {
                self.take(sample);
            }
        }
        while !self.unwritten.is_empty() {
            self.write()?;
        }
        Ok(())
    }

    /// What was measured of each script, when all clients have ended, with all clients that errors have ended, and with the
    /// latencies of what was under way at the end.
    pub fn scripts(&self) -> Vec<Totals> {
        let scripts = self.segment.shape().scripts as usize;
        let mut totals = vec![Totals::default(); scripts];
        if scripts == 1 {
            totals[0] = self.measured.clone();
            totals[0].aborted = self.aborted;
        }
        for client in 0..self.segment.shape().slots {
            for (script, tally) in self.segment.tallies(client).iter().enumerate() {
                totals[script].add(tally);
            }
        }
        totals.iter_mut().zip(self.drained()).for_each(|(totals, tally)| totals.add_drained(tally));
        totals
    }

    /// What was measured, when all clients have ended, with the latencies of what was under way at the end: a stall that
    /// lasts longer than the run would leave none.
    pub fn with_drained(&self) -> Totals {
        let mut whole = self.measured.clone();
        self.drained().iter().for_each(|tally| whole.add_drained(tally));
        whole
    }

    /// By script, what ended after the measured time; nothing where a stop came before it.
    fn drained(&self) -> &[Tally] {
        let is_measured = self.timeline.measure_end_ns > self.timeline.measure_start_ns;
        if is_measured { self.segment.drained() } else { &[] }
    }

    /// Whether anything has been counted that is not read.
    fn holds_more(&self) -> bool {
        let clients = 0..self.segment.shape().slots;
        self.segment.ring().holds_more(clients.map(|client| self.segment.intervals(client)))
    }

    /// Joins a short rest to the sample before it; the first of its phase stays alone.
    fn join(&mut self, mut rest: RunSample) {
        match self.last.take() {
            Some(mut last) if last.in_warmup == rest.in_warmup => {
                let elapsed = last.elapsed_secs;
                rest.elapsed_secs = rest.elapsed_secs.max(elapsed);
                self.announce(&rest);
                last.join(&rest);
                self.last = Some(last.clone());
                match self.unwritten.back_mut() {
                    Some(unwritten) => unwritten.sample = last,
                    None => self.unwritten.push_back(Unwritten { sample: last, replaces: Some(elapsed) }),
                }
            }
            _ if rest.secs > 0.0 => self.take(rest),
            last => self.last = last,
        }
    }
}

/// Rows of one transaction, which takes some 20 ms: for so long nothing is read.
const LOG_WRITTEN_AT_ONCE: usize = 4096;

/// Rows that are taken and not written. What the clients log beyond that, and beyond the room that they have themselves, is
/// lost.
const KEPT: usize = 65_536;

/// The log of one run's transactions.
pub struct TransactionLog<'a> {
    segment: &'a Segment,
    run_id: i64,
    /// When the run began, by CLOCK_MONOTONIC in nanoseconds and as a TimestampTz.
    began: (i64, i64),
    /// Taken and not yet written, oldest first.
    kept: VecDeque<Logged>,
    lock_timeout: LockTimeout,
    /// Rows written.
    pub written: u64,
    /// Rows taken that could not be written in the end.
    cut: u64,
}

impl<'a> TransactionLog<'a> {
    /// A log of a run that has not begun.
    pub fn new(segment: &'a Segment, run_id: i64) -> Self {
        Self {
            segment,
            run_id,
            began: (0, 0),
            kept: VecDeque::new(),
            lock_timeout: LockTimeout::new(),
            written: 0,
            cut: 0,
        }
    }

    /// The run begins at this time, by both clocks.
    pub fn begin(&mut self, began: (i64, i64)) {
        self.began = began;
    }

    /// Whether transactions are logged at all.
    pub fn is_on(&self) -> bool {
        self.segment.shape().log > 0
    }

    /// Takes what the clients have logged, as far as there is room for it.
    fn take(&mut self) {
        let Self { segment, began, kept, .. } = self;
        for slot in 0..segment.shape().slots {
            let Some(queue) = segment.log(slot) else { return };
            queue.take(KEPT.saturating_sub(kept.len()), |entry| {
                let started = began.1 + (entry.start_ns - began.0).div_euclid(1000);
                kept.push_back(Logged { started, entry });
            });
        }
    }

    /// Takes what there is, and writes some of it: once there is a good deal, or `all` that there is is to be written. True
    /// where there is more to be written at once.
    ///
    /// # Errors
    /// What keeps it from being written, but for a lock that may go away.
    pub fn follow(&mut self, all: bool) -> Result<bool, UserError> {
        if !self.is_on() {
            return Ok(false);
        }
        self.take();
        let is_due = |kept: usize| kept >= LOG_WRITTEN_AT_ONCE || all && kept > 0;
        if !is_due(self.kept.len()) {
            self.lock_timeout = LockTimeout::new();
            return Ok(false);
        }
        match self.write_some() {
            Ok(()) => Ok(is_due(self.kept.len())),
            Err(error) if self.lock_timeout.allows_retry(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn write_some(&mut self) -> Result<(), UserError> {
        let count = self.kept.len().min(LOG_WRITTEN_AT_ONCE);
        let rows = &self.kept.make_contiguous()[..count];
        recorder::transactions(self.run_id, rows)?;
        self.kept.drain(..count);
        self.written += count as u64;
        self.lock_timeout = LockTimeout::new();
        Ok(())
    }

    /// Writes what is left after the last client has ended; until `deadline_ns`, where one is given.
    ///
    /// # Errors
    /// What keeps it from being written.
    pub fn write_rest(&mut self, deadline_ns: Option<i64>) -> Result<(), UserError> {
        if !self.is_on() {
            return Ok(());
        }
        self.take();
        let mut result = Ok(());
        while !self.kept.is_empty()
            && result.is_ok()
            && deadline_ns.is_none_or(|deadline| now_ns() < deadline)
        {
            match self.write_some() {
                Ok(()) => self.take(),
                Err(error) if self.lock_timeout.allows_retry(&error) => {}
                Err(error) => result = Err(error),
            }
        }
        self.cut = self.kept.len() as u64;
        result
    }

    /// Rows that were to be written and are not.
    pub fn lost(&self) -> u64 {
        let queues = (0..self.segment.shape().slots).filter_map(|slot| self.segment.log(slot));
        // What is still in a queue has been cut like what was taken.
        queues.map(|queue| queue.ends.lost.get() + queue.left()).sum::<u64>() + self.cut
    }
}

// Transaction ids: a soak uses up what the server has of them in hours, and the server stops assigning any when its oldest
// database is two billion behind.

/// The age from which on a run says that it is time to act.
const WARN: i64 = 1_000_000_000;

/// The age at which a run ends: before the server's own last resorts, of which the first changes how it vacuums
/// (vacuum_failsafe_age) and the last is to refuse all writing.
const LIMIT: i64 = 1_800_000_000;

/// How often the databases' ages are read; between, only the next id is.
const READ_EVERY_NS: i64 = 60_000_000_000;
const LOOK_EVERY_NS: i64 = 500_000_000;

/// The age of the oldest database, watched while a run goes on.
#[derive(Default)]
pub struct XidWatch {
    age: i64,
    /// The next id when `age` was read.
    next: u64,
    read_ns: i64,
    looked_ns: i64,
}

impl XidWatch {
    /// Looks, if it is time to; whether the run may go on.
    ///
    /// # Errors
    /// 54000 when it may not.
    pub fn look(&mut self, header: &Header) -> Result<(), UserError> {
        let now = now_ns();
        if now - self.looked_ns < LOOK_EVERY_NS {
            return Ok(());
        }
        self.looked_ns = now;
        if self.read_ns == 0 || now - self.read_ns >= READ_EVERY_NS {
            self.read(now);
        }
        let mut age = self.age + database::next_xid().wrapping_sub(self.next).cast_signed();
        if age >= LIMIT {
            // It may have been vacuumed meanwhile.
            self.read(now);
            age = self.age;
        }
        if age >= WARN {
            header.xid_age.store(age, Relaxed);
        }
        if age < LIMIT { Ok(()) } else { Err(running_out(age)) }
    }

    fn read(&mut self, now: i64) {
        self.read_ns = now;
        self.next = database::next_xid();
        // What cannot be read is tried again in a minute.
        if let Ok(Some(age)) = transaction(store::oldest_age) {
            self.age = age;
        }
    }
}

fn running_out(age: i64) -> UserError {
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "transaction ids are running out")
        .detail(format!("The oldest database is {age} transactions old; runs end at {LIMIT}."))
        .hint("VACUUM FREEZE the oldest tables (age(relfrozenxid) in pg_class) of the oldest database (age(datfrozenxid) in pg_database), and find out what holds back autovacuum: old transactions, prepared transactions or replication slots.")
}
