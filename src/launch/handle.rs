//! The wait of a session for a run or a load that it has called.
//!
//! The work goes on in the workers. If the session ends its wait by an error, a termination or a disconnect, the segment is
//! detached, and the detach callback asks for a stop.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::role_session::check_may_start;
use crate::error::warn;
use crate::server::background_worker::{self, Worker, WorkerKind};
use crate::server::horizon::{ISOLATION, Releasable, can_release};
use crate::server::process::{
    check_client_connection, forget_cancel_request, is_backend, nap, serve_interrupts, wait_for_latch,
};
use crate::server::relations::is_blocked_by_me;
use crate::server::signals;
use crate::shm::{DetachCallback, RunState, Segment, StopReason, Work, ask_to_stop, is_under_way};

/// The longest sleep of a waiting session between two looks.
const LOOK_MS: i64 = 200;

/// The time between two checks of the client's connection, and of locks that block the work.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// Work led by a background worker, such as a coordinator or a load leader.
pub struct LaunchHandle {
    pub segment: Segment,
    leader: Worker,
}

impl LaunchHandle {
    /// Starts the leader of a segment's workers.
    ///
    /// # Errors
    /// 53400 if there is no worker slot; 25006 in a session that answers questions.
    pub fn start(
        segment: Segment,
        kind: WorkerKind,
        database: u32,
        role: u32,
        workers: u32,
    ) -> Result<Self, UserError> {
        check_may_start()?;
        match Worker::register(kind, segment.handle(), 0, database, role) {
            Some(leader) => Ok(Self { segment, leader }),
            None => {
                segment.header().secret.wipe();
                segment.detach();
                Err(background_worker::no_slots(u64::from(workers) + 1, kind.noun))
            }
        }
    }

    /// Waits until `done` returns true or the leader has finished, without a time limit.
    ///
    /// # Errors
    /// The leader's, or 55000 if it died.
    pub fn wait(
        &self,
        releasable: Option<Releasable>,
        done: impl FnMut(&Segment) -> bool,
    ) -> Result<(), UserError> {
        self.wait_until_canceled(releasable, done).unwrap_or_else(|canceled| crate::error::raise(canceled))
    }

    /// As [`wait`](Self::wait), for a caller that has something to do before a cancel ends its statement: the cancel is the
    /// outer error.
    ///
    /// # Errors
    /// 57014 for a cancel of this session.
    pub fn wait_until_canceled(
        &self,
        releasable: Option<Releasable>,
        mut done: impl FnMut(&Segment) -> bool,
    ) -> Result<Result<(), UserError>, UserError> {
        let mut watch = Watch::new(releasable, true);
        let result = loop {
            let outcome = self.outcome();
            let is_done = done(&self.segment);
            if let Some(outcome) = outcome {
                break outcome;
            }
            if is_done {
                break self.segment.header().failure().map_or(Ok(()), Err);
            }
            if let Err(canceled) = watch.pause(&self.segment) {
                forget_cancel_request();
                watch.end();
                return Err(signals::explain(canceled));
            }
        };
        watch.end();
        Ok(result)
    }

    /// Returns the result of the work once its leader's process is gone, and with it its worker slot and locks.
    pub fn outcome(&self) -> Option<Result<(), UserError>> {
        if !self.leader.has_stopped() {
            return None;
        }
        // A leader writes its state before it ends.
        let header = self.segment.header();
        Some(match (header.failure(), header.state()) {
            (Some(error), _) => Err(error),
            (None, RunState::Finished) => Ok(()),
            (None, _) => Err(self.segment.check_refusal().err().unwrap_or_else(|| {
                UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    "the leading background worker ended unexpectedly",
                )
                .hint("See the server log.")
            })),
        })
    }

    /// Waits until the work has an id, and detaches from it. Returns its error if it failed before, and the id, 0 without one.
    pub fn until_known(self) -> (Result<(), UserError>, i64) {
        let id_of = |segment: &Segment| segment.announced().map_or(0, Work::id);
        let result = self.wait(None, |segment| id_of(segment) != 0);
        self.segment.header().caller_pid.store(0, Relaxed);
        let id = id_of(&self.segment);
        self.leave();
        (result, id)
    }

    /// Makes the end of this session's wait stop the work.
    pub fn tie(&self) {
        self.segment.on_detach(&CALLER_GONE);
    }

    /// Detaches from the segment without stopping the work.
    pub fn leave(self) {
        self.segment.cancel_on_detach(&CALLER_GONE);
        self.segment.detach();
    }
}

/// How long [`stop_and_wait`] waits for the end of the work.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Stops work and waits for its end; returns false if it was not under way.
pub fn stop_and_wait(segment: &Segment, reason: StopReason) -> bool {
    if !is_under_way(segment) {
        return false;
    }
    ask_to_stop(segment.header(), reason);
    let began = Instant::now();
    while is_under_way(segment) && began.elapsed() < STOP_PATIENCE {
        nap(20);
    }
    true
}

static CALLER_GONE: DetachCallback = DetachCallback(|segment| {
    if segment.header().state() != RunState::Finished {
        ask_to_stop(segment.header(), StopReason::CallerGone);
    }
});

/// The duties of a waiting session: interrupts, its client's connection, its locks, and its snapshot.
pub struct Watch {
    /// Permission to release the xmin horizon during the wait.
    releasable: Option<Releasable>,
    /// Whether the end of this wait stops the work.
    owns_the_work: bool,
    checked: Instant,
    /// Each client's number of attempts at the last check.
    attempts: Vec<u64>,
}

impl Watch {
    /// Begins a wait. `owns_the_work`: its end stops the work.
    pub fn new(releasable: Option<Releasable>, owns_the_work: bool) -> Self {
        Self { releasable, owns_the_work, checked: Instant::now(), attempts: Vec::new() }
    }

    /// Sleeps for [`LOOK_MS`], or until the latch is set. A termination ends the session in here.
    ///
    /// # Errors
    /// 57014 for a cancel of this session.
    pub fn pause(&mut self, segment: &Segment) -> Result<(), UserError> {
        serve_interrupts()?;
        if self.checked.elapsed() >= CHECK_EVERY {
            check_client_connection();
        }
        if self.is_in_the_way_at_times(segment) {
            self.give_way(segment);
        }
        if let Some(releasable) = self.releasable {
            releasable.release();
        }
        wait_for_latch(LOOK_MS, pg_sys::PG_WAIT_EXTENSION);
        serve_interrupts()
    }

    /// Ends the wait.
    pub fn end(&self) {
        if let Some(releasable) = self.releasable {
            releasable.resume();
        }
    }

    /// Whether a worker of the segment waits for a lock of this session; checks it every [`CHECK_EVERY`], and returns false in
    /// between.
    pub fn is_in_the_way_at_times(&mut self, segment: &Segment) -> bool {
        let is_due = self.checked.elapsed() >= CHECK_EVERY;
        if is_due {
            self.checked = Instant::now();
        }
        is_due && self.is_in_the_way(segment)
    }

    /// Whether a worker of the segment waits for a lock of this session. It would wait forever: the server's deadlock detector
    /// sees no cycle, because this session waits for no lock.
    fn is_in_the_way(&mut self, segment: &Segment) -> bool {
        let attempts: Vec<u64> = segment.sessions().map(|session| session.attempts).collect();
        let stuck = |client: usize| self.attempts.get(client) == attempts.get(client);
        let blocked = segment
            .sessions()
            .enumerate()
            .filter(|(client, session)| stuck(*client) && !session.is_over())
            .map(|(_, session)| session.pid)
            .chain([segment.header().coordinator_pid.load(Relaxed)])
            .any(|pid| pid != 0 && is_backend(pid) && is_blocked_by_me(pid));
        self.attempts = attempts;
        blocked
    }

    /// Stops the work, or ends this wait, because of a lock of this session.
    pub fn give_way(&self, segment: &Segment) {
        if self.owns_the_work {
            ask_to_stop(segment.header(), StopReason::BlockedByCaller);
        } else {
            let noun = segment.announced().map_or("run", Work::noun);
            let message = format!("the {noun} waits for a lock of this session, which waits for the {noun}");
            crate::error::raise(
                UserError::new(sqlstate::DEADLOCK_DETECTED, message).hint("Commit before the call."),
            );
        }
    }
}

/// The hint if the isolation level holds back the horizon: a separate statement would not help if it is the session's default.
const READ_COMMITTED: &str = "Meanwhile, dead rows cannot be removed, which slows update workloads. \
     Call it at isolation level READ COMMITTED: SET default_transaction_isolation = 'read committed'.";

/// Returns the permission to release the xmin horizon while this session waits; otherwise `None`, with a WARNING and `hint`.
pub fn releasable_or_warn(hint: &str) -> Option<Releasable> {
    match can_release() {
        Ok(releasable) => Some(releasable),
        Err(reason) => {
            let hint = if reason == ISOLATION { READ_COMMITTED } else { hint };
            warn(format!("this call holds back the xmin horizon while it waits, because {reason}"), hint);
            None
        }
    }
}
