//! The course of a rehearsal's run: quiet, blocker, change, recovery.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::atomic::Ordering::*;

use bench_base::error::UserError;
use bench_model::spec::RunSpec;
use bench_model::timeline::Timeline;
use bench_questions::rehearsal::{Interval, Recovery};
use bench_results::experiment::Variant;
use bench_results::rehearsal::{
    ChangedPlan, PhaseErrors, QueuedSession, RECOVERY_QUIETS, Rehearsal, RehearsalPlan,
};
use bench_script::{Action, Symbols, parse};

use super::look::{Waiter, blocking_session, failures, has_lock, waiters};
use crate::experiment::changes::Changes;
use crate::experiment::hand::{self, Task};
use crate::launch::handle::LaunchHandle;
use crate::observe::waits::LockWatch;
use crate::server::files::free_bytes;
use crate::server::process::{NS_PER_SEC, cancel, current_timestamp, now_ns, wake};
use crate::server::spi::{fetch, timestamp};
use crate::server::transaction::transaction;
use crate::shm::{CommandPlans, RunState, Segment, StopReason, ask_to_stop};

/// The longest time between two looks at the run.
pub const LOOK_MS: i64 = 20;

/// The data directory is the server's working directory.
const DATA_DIRECTORY: &CStr = c".";

/// Arrivals that are due for so long and not taken are a backlog.
const BACKLOG_NS: i64 = 20_000_000;

/// The most waits for locks that are kept.
const MAX_QUEUED: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Quiet,
    Blocking,
    Changing,
    Recovering,
    Ending,
}

/// A rehearsal's run under way.
pub struct Course<'a> {
    plan: &'a RehearsalPlan,
    variant: &'a Variant,
    round: u32,
    /// The blocker's task; `None` without a blocker.
    blocker_task: Option<Task>,
    blocker: Option<LaunchHandle>,
    /// When the blocker had its first lock.
    blocks_since_ns: Option<i64>,
    step: Step,
    recovery: Recovery,
    /// The measured samples seen so far, and the end and transactions of the last one.
    samples: u32,
    last_sample: (f64, u64),
    watch: Option<LockWatch>,
    failures_before: BTreeMap<String, u64>,
    failures_at_end: BTreeMap<String, u64>,
    record: Rehearsal,
}

impl<'a> Course<'a> {
    /// Creates the course of a run that has not begun.
    pub fn new(
        plan: &'a RehearsalPlan,
        (variant, round): (&'a Variant, u32),
        blocker_task: Option<Task>,
    ) -> Self {
        Self {
            plan,
            variant,
            round,
            blocker_task,
            blocker: None,
            blocks_since_ns: None,
            step: Step::Quiet,
            recovery: Recovery::default(),
            samples: 0,
            last_sample: (0.0, 0),
            watch: None,
            failures_before: BTreeMap::new(),
            failures_at_end: BTreeMap::new(),
            record: Rehearsal::default(),
        }
    }

    /// Takes the next step if it is due.
    ///
    /// # Errors
    /// Those of the blocker, of the change's start, and of queries.
    pub fn follow(&mut self, run: &Segment, changes: &mut Changes<'a>) -> Result<(), UserError> {
        let timeline = run.header().timeline.load();
        let now = now_ns();
        if timeline.measure_start_ns == 0 || now < timeline.measure_start_ns {
            return Ok(());
        }
        self.read_samples(run);
        self.end_blocker_in_time(&timeline, now)?;
        match self.step {
            Step::Quiet if self.secs_of(&timeline, now) < self.plan.quiet_secs => {}
            Step::Quiet => match self.blocker_task.take() {
                Some(task) => {
                    self.record.blocker_begin = Some(self.secs_of(&timeline, now));
                    self.blocker = Some(transaction(|| hand::start_session(&task))?);
                    self.step = Step::Blocking;
                }
                None => self.begin_change(run, changes)?,
            },
            Step::Blocking => {
                if self.blocker_has_lock()? {
                    self.blocks_since_ns = Some(now);
                    self.begin_change(run, changes)?;
                }
            }
            Step::Changing => self.watch_change(run, changes, &timeline)?,
            Step::Recovering => self.watch_recovery(run, changes, &timeline)?,
            Step::Ending => {}
        }
        Ok(())
    }

    /// Whether the change has waited for a session.
    pub fn has_waited_for(&self, pid: i32) -> bool {
        self.record.blocked_by.iter().any(|session| session.pid == pid)
    }

    fn secs_of(&self, timeline: &Timeline, ns: i64) -> f64 {
        (ns - timeline.measure_start_ns) as f64 / NS_PER_SEC
    }

    /// Takes the newest sample into the throughput before or after the change.
    fn read_samples(&mut self, run: &Segment) {
        let progress = &run.header().progress;
        let samples = progress.samples.load(Acquire);
        if samples == self.samples || progress.in_warmup.load(Relaxed) != 0 {
            return;
        }
        self.samples = samples;
        let (last_end, last_transactions) = self.last_sample;
        let (end, transactions) = (progress.figures().elapsed_secs, progress.transactions.get());
        self.last_sample = (end, transactions);
        let interval = Interval {
            end,
            secs: end - last_end,
            transactions: transactions.saturating_sub(last_transactions),
        };
        match self.step {
            Step::Quiet | Step::Blocking => self.recovery.add_quiet(interval),
            Step::Recovering if last_end >= self.record.change_end => self.recovery.add(interval),
            _ => {}
        }
    }

    /// Whether the blocker has a lock, or has executed its text.
    fn blocker_has_lock(&self) -> Result<bool, UserError> {
        let Some(blocker) = &self.blocker else { return Ok(false) };
        if let Some(outcome) = blocker.outcome() {
            return outcome.map(|()| true);
        }
        let header = blocker.segment.header();
        let pid = header.coordinator_pid.load(Acquire);
        Ok(header.state() == RunState::Running || pid != 0 && has_lock(pid)?)
    }

    fn begin_change(&mut self, run: &Segment, changes: &mut Changes<'a>) -> Result<(), UserError> {
        self.failures_before = failures(run);
        changes.begin(self.variant, self.round)?;
        self.record.run_id = run.run_id();
        self.record.least_disk_free_bytes = free_bytes(DATA_DIRECTORY);
        self.step = Step::Changing;
        Ok(())
    }

    fn watch_change(
        &mut self,
        run: &Segment,
        changes: &Changes,
        timeline: &Timeline,
    ) -> Result<(), UserError> {
        let Some(change) = changes.progress() else { return Ok(()) };
        if self.record.change_began_at.is_none() && change.began_ns != 0 {
            let ago_us = (now_ns() - change.began_ns) / 1000;
            let began_at = timestamp(current_timestamp() - ago_us);
            self.record.change_began_at =
                transaction(|| fetch::<String>("SELECT $1::text", &[began_at.into()]))?;
            self.record.change_begin = self.secs_of(timeline, change.began_ns);
            self.watch = Some(LockWatch::new(run, change.pid));
        }
        let free = free_bytes(DATA_DIRECTORY);
        self.record.least_disk_free_bytes = self.record.least_disk_free_bytes.min(free).or(free);
        if change.ended_ns != 0 || change.is_over {
            let ended_ns = if change.ended_ns == 0 { now_ns() } else { change.ended_ns };
            self.record.change_end = self.secs_of(timeline, ended_ns);
            self.failures_at_end = failures(run);
            self.end_blocker(timeline);
            self.step = Step::Recovering;
            return Ok(());
        }
        if self.watch.as_ref().is_some_and(LockWatch::anyone_waits) {
            self.look_at_queue(run, change.pid, timeline)?;
        }
        self.cancel_in_time(run, change.pid, timeline)
    }

    /// Looks at who waits for whom.
    fn look_at_queue(&mut self, run: &Segment, change: i32, timeline: &Timeline) -> Result<(), UserError> {
        let all = waiters()?;
        let now = self.secs_of(timeline, now_ns());
        let clients: Vec<i32> = run.sessions().map(|session| session.pid).collect();
        let is_client = |waiter: &&Waiter| clients.contains(&waiter.pid);
        let queued = all.iter().filter(is_client).count() as u32;
        self.record.most_queued = self.record.most_queued.max(queued);
        for waiter in &all {
            pgrx::check_for_interrupts!();
            let session = if waiter.pid == change {
                "change"
            } else if is_client(&waiter) {
                "client"
            } else {
                "other"
            };
            self.note_wait(waiter.queued(session, now));
            if waiter.pid == change {
                self.note_blockers(waiter)?;
            }
        }
        Ok(())
    }

    /// Continues a known wait, or adds one.
    fn note_wait(&mut self, wait: QueuedSession) {
        // Two readings of the same wait differ by the time of the query.
        let is_same = |known: &QueuedSession| {
            known.pid == wait.pid
                && (known.begin - wait.begin).abs() < SAME_WAIT_SECS
                && known.locked == wait.locked
        };
        let queue = &mut self.record.queue;
        match queue.iter().position(is_same) {
            Some(place) => queue[place].end = wait.end,
            None if queue.len() < MAX_QUEUED => queue.push(wait),
            None => {}
        }
    }

    fn note_blockers(&mut self, change: &Waiter) -> Result<(), UserError> {
        for pid in &change.blocked_by {
            if !self.record.blocked_by.iter().any(|known| known.pid == *pid) {
                self.record.blocked_by.push(blocking_session(*pid)?);
            }
        }
        Ok(())
    }

    /// Cancels a change that takes too long, or that a client has waited for too long.
    fn cancel_in_time(&mut self, run: &Segment, change: i32, timeline: &Timeline) -> Result<(), UserError> {
        if self.record.canceled_by.is_some() || self.record.change_began_at.is_none() {
            return Ok(());
        }
        let now = now_ns();
        let secs = self.secs_of(timeline, now);
        let waits = self.record.queue.iter().filter(|wait| wait.session == "client" && wait.end > secs - 1.0);
        let longest_secs = waits
            .map(|wait| secs - wait.begin)
            .fold(backlog_ns(run, timeline, now) as f64 / NS_PER_SEC, f64::max);
        let reason = if longest_secs > self.plan.give_up_secs {
            "give_up"
        } else if secs - self.record.change_begin > self.plan.change_limit_secs {
            "change_limit"
        } else {
            return Ok(());
        };
        self.record.canceled_by = Some(reason.to_owned());
        cancel(change);
        Ok(())
    }

    fn watch_recovery(
        &mut self,
        run: &Segment,
        changes: &Changes,
        timeline: &Timeline,
    ) -> Result<(), UserError> {
        let now = now_ns();
        let since_change = self.secs_of(timeline, now) - self.record.change_end;
        let is_back = self.recovery.is_back() && backlog_ns(run, timeline, now) < BACKLOG_NS;
        if is_back && self.record.back.is_none() {
            self.record.back = Some(self.last_sample.0);
        }
        // A change that failed is undone by its hand before the run ends.
        let is_settled = changes.progress().is_none_or(|change| change.is_over || change.is_applied);
        if is_settled && (is_back || since_change > RECOVERY_QUIETS * self.plan.quiet_secs) {
            self.step = Step::Ending;
            run.header().ends_early.store(1, Relaxed);
            wake(run.header().coordinator_pid.load(Relaxed));
        }
        Ok(())
    }

    /// Ends the blocker once it has blocked for its time.
    fn end_blocker_in_time(&mut self, timeline: &Timeline, now: i64) -> Result<(), UserError> {
        let is_due = |since: i64| (now - since) as f64 / NS_PER_SEC >= self.plan.blocker_secs;
        if self.blocks_since_ns.is_some_and(is_due) {
            self.end_blocker(timeline);
        }
        Ok(())
    }

    fn end_blocker(&mut self, timeline: &Timeline) {
        if let Some(blocker) = self.blocker.take() {
            ask_to_stop(blocker.segment.header(), StopReason::Requested);
            self.record.blocker_end = Some(self.secs_of(timeline, now_ns()));
            blocker.leave();
        }
    }

    /// Ends the blocker if the run ended before, and returns the record, with what the run's segment shows at its end.
    pub fn finish(mut self, run: &Segment, spec: &RunSpec) -> Rehearsal {
        let timeline = run.header().timeline.load();
        self.end_blocker(&timeline);
        if self.step == Step::Changing {
            self.record.change_end = self.secs_of(&timeline, now_ns());
            self.failures_at_end = failures(run);
        }
        self.record.lock_wait_secs = self.lock_wait_secs();
        let waits = self.record.queue.iter().filter(|wait| wait.session == "change");
        let waited_until = waits.map(|wait| wait.end).fold(self.record.change_begin, f64::max);
        self.record.held_secs = Some((self.record.change_end - waited_until).max(0.0));
        self.record.errors = self.errors(&failures(run));
        self.record.plans = self.changed_plans(run, spec, &timeline);
        self.record
    }

    /// Returns the time that the change waited for locks.
    fn lock_wait_secs(&self) -> f64 {
        let waits = self.record.queue.iter().filter(|wait| wait.session == "change");
        waits.map(|wait| (wait.end - wait.begin).max(0.0)).sum()
    }

    fn errors(&self, failures_now: &BTreeMap<String, u64>) -> Vec<PhaseErrors> {
        let count = |failures: &BTreeMap<String, u64>, sqlstate: &str| {
            failures.get(sqlstate).copied().unwrap_or_default()
        };
        let errors_of = |(sqlstate, all): (&String, &u64)| {
            let (before, at_end) =
                (count(&self.failures_before, sqlstate), count(&self.failures_at_end, sqlstate));
            PhaseErrors {
                sqlstate: sqlstate.clone(),
                before,
                during: at_end.saturating_sub(before),
                after: all.saturating_sub(at_end),
            }
        };
        failures_now.iter().map(errors_of).collect()
    }

    /// Returns the statements that had another plan after the change began than before.
    fn changed_plans(&self, run: &Segment, spec: &RunSpec, timeline: &Timeline) -> Vec<ChangedPlan> {
        let mut symbols = Symbols::new();
        let mut statements = Vec::new();
        for script in &spec.scripts {
            // The scripts were parsed without errors before the run.
            let Ok(script) = parse(&script.name, &script.source, &mut symbols) else { continue };
            statements.extend(script.commands.iter().map(|command| match &command.action {
                Action::Sql(_) => Some(command.source.clone()),
                _ => None,
            }));
        }
        let begin_ns = timeline.measure_start_ns + (self.record.change_begin * NS_PER_SEC) as i64;
        let changed = |(statement, plans): (Option<String>, &CommandPlans)| {
            let (before, after): (Vec<_>, Vec<_>) =
                plans.described().into_iter().partition(|(first_ns, _)| *first_ns < begin_ns);
            let (before, after) = (before.last()?.1.clone(), after.last()?.1.clone());
            Some(ChangedPlan { statement: statement?, before, after })
        };
        statements.into_iter().zip(run.plans()).filter_map(changed).collect()
    }
}

/// Waits of a session for one object that begin within this time are the same wait.
const SAME_WAIT_SECS: f64 = 0.01;

/// Returns the time for which the next arrival has been due and not taken.
fn backlog_ns(run: &Segment, timeline: &Timeline, now_ns: i64) -> i64 {
    now_ns - timeline.warmup_start_ns - run.header().arrivals.0.load(Relaxed)
}
