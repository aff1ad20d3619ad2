//! The session that asked for a run or a load, while it waits.
//!
//! The segment's detach callback is its last will: an error, a termination, a disconnect all end
//! in a detach, and the callback asks for a stop. The work itself goes on in the workers.

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

/// How often a waiting session looks up when nobody wakes it.
const LOOK_MS: i64 = 200;

/// How often it looks whether its client is still there and whether it is in its own way.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// Work that a worker leads: a coordinator's or a load leader's.
pub struct LaunchHandle {
    pub segment: Segment,
    leader: Worker,
}

impl LaunchHandle {
    /// Starts the leader of a segment's workers.
    ///
    /// # Errors
    /// 53400 when there is no slot for it; 25006 in a session that answers questions.
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

    /// Waits until `done` says so or the leader has finished, however long it takes.
    ///
    /// # Errors
    /// What the leader reports, or that it has died.
    pub fn wait(
        &self,
        releasable: Option<Releasable>,
        done: impl FnMut(&Segment) -> bool,
    ) -> Result<(), UserError> {
        self.wait_until_canceled(releasable, done).unwrap_or_else(|canceled| crate::error::raise(canceled))
    }

    /// Waits as [`wait`](Self::wait), for a caller that has something to do before a cancel of this session ends its
    /// statement; the outer error is that cancel.
    ///
    /// # Errors
    /// 57014.
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

    /// How the work has ended, if it has; only when its leader's process has gone, and with it its worker slot and its
    /// locks.
    pub fn outcome(&self) -> Option<Result<(), UserError>> {
        if !self.leader.has_stopped() {
            return None;
        }
        // A leader that ends has written its state first.
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

    /// Waits until the work has an id, and leaves it to itself from then on. The id, or 0 without one, and what has kept the
    /// work from going on.
    pub fn until_known(self) -> (Result<(), UserError>, i64) {
        let id_of = |segment: &Segment| segment.announced().map_or(0, Work::id);
        let result = self.wait(None, |segment| id_of(segment) != 0);
        self.segment.header().caller_pid.store(0, Relaxed);
        let id = id_of(&self.segment);
        self.leave();
        (result, id)
    }

    /// From now on the end of this session's wait is the end of the work.
    pub fn tie(&self) {
        self.segment.on_detach(&CALLER_GONE);
    }

    /// Lets go of the segment, with the work done or in others' hands.
    pub fn leave(self) {
        self.segment.cancel_on_detach(&CALLER_GONE);
        self.segment.detach();
    }
}

/// How long a stop waits for the work to have ended.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Stops work that is under way and waits for its end; false when it was not under way.
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

/// What a waiting session looks at: interrupts, its client, its own locks, its snapshot.
pub struct Watch {
    /// The right to let the xmin horizon go meanwhile.
    releasable: Option<Releasable>,
    /// Whether the end of this wait is the end of the work.
    owns_the_work: bool,
    checked: Instant,
    /// Each client's attempts at the last check.
    attempts: Vec<u64>,
}

impl Watch {
    /// Begins to wait; `owns_the_work` where the end of the wait is the end of the work.
    pub fn new(releasable: Option<Releasable>, owns_the_work: bool) -> Self {
        Self { releasable, owns_the_work, checked: Instant::now(), attempts: Vec::new() }
    }

    /// Waits a moment. A termination of this session leaves from here.
    ///
    /// # Errors
    /// 57014: a cancel of this session.
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

    /// Whether somebody at work in the segment waits for a lock of this session; not looked at each time that it is called.
    pub fn is_in_the_way_at_times(&mut self, segment: &Segment) -> bool {
        let is_due = self.checked.elapsed() >= CHECK_EVERY;
        if is_due {
            self.checked = Instant::now();
        }
        is_due && self.is_in_the_way(segment)
    }

    /// A client that waits for a lock of this very session would wait for ever: the server's
    /// deadlock detector sees no cycle, for this session waits for no lock.
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

    /// Ends the work, or this wait, for a lock of this session.
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

/// Making the call a statement of its own is of no use where this is the session's default.
const READ_COMMITTED: &str = "Meanwhile, dead rows cannot be removed, which slows update workloads. \
     Call it at isolation level READ COMMITTED: SET default_transaction_isolation = 'read committed'.";

/// The right to let the horizon go while this session waits; where it has to be held back, a WARNING with what to do.
pub fn releasable_or_warn(hint: &str) -> Option<Releasable> {
    match can_release() {
        Ok(releasable) => Some(releasable),
        Err(why) => {
            let hint = if why == ISOLATION { READ_COMMITTED } else { hint };
            warn(format!("this call holds back the xmin horizon while it waits, because {why}"), hint);
            None
        }
    }
}
