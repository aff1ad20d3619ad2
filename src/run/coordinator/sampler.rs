//! The coordinator's work during a run: samples, the log of transactions, and the watch over transaction ids.

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
    /// The next interval to read, counted from the begin of the warm-up.
    next_interval: u32,
    /// The intervals being read.
    opened: Option<Opened>,
    /// The last sample, to which a short rest may be joined.
    last: Option<RunSample>,
    /// The sum of all measured samples.
    pub measured: Totals,
    /// Clients ended by errors so far, including the warm-up.
    aborted: u64,
    /// Samples read and not yet written, oldest first.
    unwritten: VecDeque<Unwritten>,
    lock_timeout: LockTimeout,
    /// When the run began, by CLOCK_MONOTONIC in nanoseconds and as a TimestampTz.
    began: (i64, i64),
    pub observer: Observer<'a>,
    /// Waits in the measured intervals.
    pub waits: WaitTimes,
}

/// The intervals from the next one through `through`, which have ended but into which clients may still count. All that are
/// due are read together: among many clients, the coordinator rarely gets a processor.
struct Opened {
    through: u32,
    /// The observations of the first of them, until it is read.
    observed: Option<Observed>,
    /// Clients that may still count into them.
    behind: Vec<u32>,
}

/// The most samples written in one transaction. Each takes about 1 ms of processor time; among 1000 clients the coordinator
/// waits about 1 s for that, during which it reads nothing.
const WRITTEN_AT_ONCE: usize = 16;

/// A sample to be written. `replaces`: the elapsed seconds of an already written sample that it replaces.
struct Unwritten {
    sample: RunSample,
    replaces: Option<f64>,
}

impl<'a> Sampler<'a> {
    /// Creates a sampler for a run that has not begun.
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

    /// Sets the begin of the run: its time line, and now by CLOCK_MONOTONIC in nanoseconds and as a TimestampTz.
    pub fn begin(&mut self, timeline: Timeline, began: (i64, i64)) {
        self.timeline = timeline;
        self.began = began;
    }

    /// Starts observing the server, at the begin of the first interval.
    pub fn observe(&mut self) {
        // Microseconds since 2000, as a TimestampTz counts, to seconds since 1970.
        let epoch = self.began.1 as f64 / 1e6 + SECS_FROM_1970_TO_2000;
        self.observer.begin(now_ns(), &self.timeline, epoch - self.began.0 as f64 / NS_PER_SEC);
    }

    /// Ends the measurement earlier than planned.
    pub fn end_at(&mut self, end_ns: i64) {
        self.timeline.measure_end_ns = end_ns;
    }

    /// Returns the run's time line.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Replaces the time line by one whose measurement begins earlier than planned, but later than now.
    pub fn move_measurement(&mut self, timeline: Timeline) {
        self.timeline = timeline;
        self.observer.move_measurement(&timeline);
    }

    /// Returns the last sample.
    pub fn newest(&self) -> Option<&RunSample> {
        self.last.as_ref()
    }

    /// Returns the end of the next interval.
    pub fn interval_end_ns(&self) -> i64 {
        self.timeline.bounds(self.next_interval).1
    }

    /// Reads the next interval, whose end has passed. Returns false while a client may still count into it that lost its
    /// processor at the end of a transaction; the caller then tries again, and nothing is lost.
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

    /// Whether all intervals that were due together have been read.
    pub fn has_read_what_was_due(&self) -> bool {
        self.opened.is_none()
    }

    /// Adds a sample: announces it and queues it to be written.
    fn take(&mut self, sample: RunSample) {
        self.announce(&sample);
        self.last = Some(sample.clone());
        self.unwritten.push_back(Unwritten { sample, replaces: None });
    }

    /// Writes the queued samples, until the next interval is due. A lock on the tables of results delays writing for a
    /// while, but not reading, so that the ring of intervals does not overflow.
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

    /// Reads the next interval, which is complete. `end_ns` is its actual end, earlier than planned if the run was stopped.
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
        let is_active = |session: &ClientSession| !session.is_over() || session.ended_ns > start_ns;
        sample.clients = self.segment.sessions().filter(is_active).count() as u32;
        self.next_interval += 1;
        sample
    }

    /// Adds a sample to the totals and shows it as progress to the waiting caller.
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

    /// Reads and writes the remaining intervals after the last client has ended. A rest shorter than half an interval is
    /// joined to the sample before it.
    pub fn write_rest(&mut self) -> Result<(), UserError> {
        let planned_end = self.timeline.measure_end_ns;
        let end = if planned_end == i64::MAX { now_ns() } else { planned_end };
        loop {
            let (start_ns, interval_end) = self.timeline.bounds(self.next_interval);
            // Transactions that ended in intervals after a stop still count: they are joined to the last sample.
            let is_past = start_ns >= end;
            if is_past && !self.holds_more() {
                break;
            }
            let end_ns = if is_past { start_ns } else { interval_end.min(end) };
            for client in 0..self.segment.shape().slots {
                // Even of an abandoned client that may be counting right now.
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

    /// Returns the totals of each script after all clients have ended, with aborted clients, and with the latencies of
    /// transactions under way at the end.
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

    /// Returns the totals after all clients have ended, with the latencies of transactions under way at the end: otherwise a
    /// stall until after the run would leave no trace.
    pub fn with_drained(&self) -> Totals {
        let mut whole = self.measured.clone();
        self.drained().iter().for_each(|tally| whole.add_drained(tally));
        whole
    }

    /// Returns for each script the transactions that ended after the measured time; none if the run was stopped before it.
    fn drained(&self) -> &[Tally] {
        let is_measured = self.timeline.measure_end_ns > self.timeline.measure_start_ns;
        if is_measured { self.segment.drained() } else { &[] }
    }

    /// Whether clients have counted anything that has not been read.
    fn holds_more(&self) -> bool {
        let clients = 0..self.segment.shape().slots;
        self.segment.ring().holds_more(clients.map(|client| self.segment.intervals(client)))
    }

    /// Joins a short rest to the sample before it, unless it is the first of its phase.
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

/// The most rows written in one transaction, which takes about 20 ms, during which nothing is read.
const LOG_WRITTEN_AT_ONCE: usize = 4096;

/// The most rows kept in memory until they are written. When these and the clients' queues are full, rows are lost.
const MAX_KEPT_ROWS: usize = 65_536;

/// The log of one run's transactions.
pub struct TransactionLog<'a> {
    segment: &'a Segment,
    run_id: i64,
    /// When the run began, by CLOCK_MONOTONIC in nanoseconds and as a TimestampTz.
    began: (i64, i64),
    /// Rows taken from the queues and not yet written, oldest first.
    kept: VecDeque<Logged>,
    lock_timeout: LockTimeout,
    /// Rows written.
    pub written: u64,
    /// Rows taken that could not be written in the end.
    cut: u64,
}

impl<'a> TransactionLog<'a> {
    /// Creates the log of a run that has not begun.
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

    /// Sets the begin of the run, by both clocks.
    pub fn begin(&mut self, began: (i64, i64)) {
        self.began = began;
    }

    /// Whether transactions are logged at all.
    pub fn is_on(&self) -> bool {
        self.segment.shape().log > 0
    }

    /// Takes rows from the clients' queues, up to [`MAX_KEPT_ROWS`].
    fn take(&mut self) {
        let Self { segment, began, kept, .. } = self;
        for slot in 0..segment.shape().slots {
            let Some(queue) = segment.log(slot) else { return };
            queue.take(MAX_KEPT_ROWS.saturating_sub(kept.len()), |entry| {
                let started = began.1 + (entry.start_ns - began.0).div_euclid(1000);
                kept.push_back(Logged { started, entry });
            });
        }
    }

    /// Takes rows, and writes up to [`LOG_WRITTEN_AT_ONCE`] of them if there are that many, or with `all` if there are any.
    /// Returns whether more rows are due.
    ///
    /// # Errors
    /// Those of writing, except for a lock on the tables of results, which is waited for.
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
        match self.write_rows() {
            Ok(()) => Ok(is_due(self.kept.len())),
            Err(error) if self.lock_timeout.allows_retry(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn write_rows(&mut self) -> Result<(), UserError> {
        let count = self.kept.len().min(LOG_WRITTEN_AT_ONCE);
        let rows = &self.kept.make_contiguous()[..count];
        recorder::transactions(self.run_id, rows)?;
        self.kept.drain(..count);
        self.written += count as u64;
        self.lock_timeout = LockTimeout::new();
        Ok(())
    }

    /// Writes the remaining rows after the last client has ended, until `deadline_ns` if there is one.
    ///
    /// # Errors
    /// Those of writing.
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
            match self.write_rows() {
                Ok(()) => self.take(),
                Err(error) if self.lock_timeout.allows_retry(&error) => {}
                Err(error) => result = Err(error),
            }
        }
        self.cut = self.kept.len() as u64;
        result
    }

    /// Returns the number of rows that were not written.
    pub fn lost(&self) -> u64 {
        let queues = (0..self.segment.shape().slots).filter_map(|slot| self.segment.log(slot));
        // Rows still in a queue will not be written either.
        queues.map(|queue| queue.ends.lost.get() + queue.left()).sum::<u64>() + self.cut
    }
}

// Transaction ids: a long run can use them up within hours. The server stops assigning them when the oldest database is two
// billion transactions old.

/// The age of the oldest database from which on a run warns.
const WARNING_AGE: i64 = 1_000_000_000;

/// The age at which a run ends, not far above the age at which the server changes how it vacuums (vacuum_failsafe_age,
/// 1.6 billion), and below that at which it refuses writes.
const MAX_AGE: i64 = 1_800_000_000;

/// The time between two readings of the databases' ages. In between only the next id is read, every [`CHECK_EVERY_NS`].
const READ_EVERY_NS: i64 = 60_000_000_000;
const CHECK_EVERY_NS: i64 = 500_000_000;

/// The age of the oldest database, watched during a run.
#[derive(Default)]
pub struct XidWatch {
    age: i64,
    /// The next id when `age` was read.
    next: u64,
    read_ns: i64,
    checked_ns: i64,
}

impl XidWatch {
    /// Checks the age of the oldest database, every [`CHECK_EVERY_NS`].
    ///
    /// # Errors
    /// 54000 for an age from [`MAX_AGE`] on.
    pub fn check(&mut self, header: &Header) -> Result<(), UserError> {
        let now = now_ns();
        if now - self.checked_ns < CHECK_EVERY_NS {
            return Ok(());
        }
        self.checked_ns = now;
        if self.read_ns == 0 || now - self.read_ns >= READ_EVERY_NS {
            self.read(now);
        }
        let mut age = self.age + database::next_xid().wrapping_sub(self.next).cast_signed();
        if age >= MAX_AGE {
            // The database may have been vacuumed since the last reading.
            self.read(now);
            age = self.age;
        }
        if age >= WARNING_AGE {
            header.xid_age.store(age, Relaxed);
        }
        if age < MAX_AGE { Ok(()) } else { Err(running_out(age)) }
    }

    fn read(&mut self, now: i64) {
        self.read_ns = now;
        self.next = database::next_xid();
        // After an error the last known age stays, until the next reading.
        if let Ok(Some(age)) = transaction(store::oldest_age) {
            self.age = age;
        }
    }
}

fn running_out(age: i64) -> UserError {
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "transaction ids are running out")
        .detail(format!("The oldest database is {age} transactions old; runs end at {MAX_AGE}."))
        .hint("VACUUM FREEZE the oldest tables (age(relfrozenxid) in pg_class) of the oldest database (age(datfrozenxid) in pg_database), and find out what holds back autovacuum: old transactions, prepared transactions or replication slots.")
}
