//! The session that asked for a run or a load, while it waits.
//!
//! The segment's detach callback is its last will: an error, a termination, a disconnect all end
//! in a detach, and the callback asks for a stop. The work itself goes on in the workers.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::{Kind, Worker, ask_to_stop, crew, horizon, is_backend, is_under_way};
use crate::shm::{RunState, Segment, StopReason};

/// How often a waiting session looks up when nobody wakes it.
const LOOK_MS: i64 = 200;

/// How often it looks whether its client is still there and whether it is in its own way.
const CHECK_EVERY: Duration = Duration::from_millis(500);

unsafe extern "C-unwind" {
    fn pq_check_connection() -> bool;
}

/// Work that a worker leads: a coordinator's or a load leader's.
pub struct Errand {
    pub segment: Segment,
    leader: Worker,
}

impl Errand {
    /// Starts the leader of a segment's workers.
    ///
    /// # Errors
    /// 53400 when there is no slot for it.
    pub fn start(
        segment: Segment,
        kind: Kind,
        database: u32,
        role: u32,
        workers: u32,
    ) -> Result<Self, UserError> {
        match Worker::register(kind, segment.handle(), 0, database, role) {
            Some(leader) => Ok(Self { segment, leader }),
            None => {
                segment.detach();
                Err(crew::no_slots(u64::from(workers) + 1, kind.noun))
            }
        }
    }

    /// Waits until `done` says so or the leader has finished, however long it takes.
    ///
    /// # Errors
    /// What the leader reports, or that it has died.
    pub fn wait(
        &self,
        release_horizon: bool,
        mut done: impl FnMut(&Segment) -> bool,
    ) -> Result<(), UserError> {
        let mut watch = Watch::new(release_horizon, true);
        let result = loop {
            let outcome = self.outcome();
            let is_done = done(&self.segment);
            if let Some(outcome) = outcome {
                break outcome;
            }
            if is_done {
                break self.segment.header().failure().map_or(Ok(()), Err);
            }
            watch.pause(&self.segment);
        };
        watch.end();
        result
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

    /// From now on the end of this session's wait is the end of the work.
    pub fn tie(&self) {
        self.segment.on_detach(caller_gone);
    }

    /// Lets go of the segment, with the work done or in others' hands.
    pub fn leave(self) {
        self.segment.cancel_on_detach(caller_gone);
        self.segment.detach();
    }
}

/// How long a stop waits for the work to have ended.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Stops work that is under way and waits for its end; false when it was not under way.
pub fn stop_and_wait(segment: &Segment) -> bool {
    if !is_under_way(segment) {
        return false;
    }
    ask_to_stop(segment.header(), StopReason::Requested);
    let began = Instant::now();
    while is_under_way(segment) && began.elapsed() < STOP_PATIENCE {
        super::nap(20);
    }
    true
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn caller_gone(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    // SAFETY: called by the server with the segment that the callback was registered on.
    let header = unsafe { Segment::header_in_callback(segment) };
    if header.state() != RunState::Finished {
        ask_to_stop(header, StopReason::CallerGone);
    }
}

/// A waiting session's eyes: interrupts, its client, its own locks, its snapshot.
pub struct Watch {
    release_horizon: bool,
    /// Whether the end of this wait is the end of the work.
    owns_the_work: bool,
    checked: Instant,
    /// Each client's attempts at the last check.
    attempts: Vec<u64>,
}

impl Watch {
    pub fn new(release_horizon: bool, owns_the_work: bool) -> Self {
        Self { release_horizon, owns_the_work, checked: Instant::now(), attempts: Vec::new() }
    }

    /// Waits a moment. A cancel or a termination of this session leaves from here by an ERROR.
    pub fn pause(&mut self, segment: &Segment) {
        pgrx::check_for_interrupts!();
        if self.checked.elapsed() >= CHECK_EVERY {
            check_connection();
        }
        if self.is_in_the_way_at_times(segment) {
            self.give_way(segment);
        }
        if self.release_horizon {
            // SAFETY: the caller of `new` has asked `horizon::can_release`.
            unsafe { horizon::release() };
        }
        super::nap(LOOK_MS);
    }

    /// Ends the wait.
    pub fn end(&self) {
        if self.release_horizon {
            horizon::resume();
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
        let attempts: Vec<u64> = segment.slots().map(|slot| slot.attempts()).collect();
        let stuck = |client: usize| self.attempts.get(client) == attempts.get(client);
        let blocked = segment
            .slots()
            .enumerate()
            .filter(|(client, slot)| stuck(*client) && !slot.is_over())
            .map(|(_, slot)| slot.pid.load(Relaxed))
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
            crate::error::raise(
                UserError::new(
                    sqlstate::DEADLOCK_DETECTED,
                    "the run waits for a lock of this session, which waits for the run",
                )
                .hint("Commit before calling bench.wait."),
            );
        }
    }
}

/// Whether the other session waits for a lock that this one holds, or for a session that does.
pub fn is_blocked_by_me(pid: i32) -> bool {
    // Asked again and again within one transaction, whose memory must not grow.
    let mut context = pgrx::PgMemoryContexts::new("pgbench_ext blockers");
    // SAFETY: nothing of what is allocated is used afterwards.
    unsafe { context.switch_to(|_| find_me_in_the_way_of(pid)) }
}

fn find_me_in_the_way_of(pid: i32) -> bool {
    // SAFETY: this process's own pid.
    let mine = unsafe { pg_sys::MyProcPid };
    let mut seen = vec![pid];
    let mut next = 0;
    while let Some(&waiting) = seen.get(next) {
        next += 1;
        // SAFETY: pg_blocking_pids reads shared lock tables only and returns an int4 array without
        // NULLs, or raises an error, which leaves by the usual way.
        let blockers: Option<Vec<i32>> = unsafe {
            pgrx::direct_function_call(pg_sys::pg_blocking_pids, &[Some(pg_sys::Datum::from(waiting))])
        };
        for blocker in blockers.unwrap_or_default() {
            if blocker == mine {
                return true;
            }
            // 0 stands for a prepared transaction.
            if blocker != 0 && !seen.contains(&blocker) {
                seen.push(blocker);
            }
        }
    }
    false
}

/// Ends this session if its client has gone, as the server does between the messages of one that
/// is still there.
fn check_connection() {
    // SAFETY: MyProcPort is set in sessions that have a client, and only there is the socket looked
    // at. The guard turns an ERROR into the usual unwinding.
    unsafe {
        if super::has_client() && !pg_sys::ffi::pg_guard_ffi_boundary(|| pq_check_connection()) {
            pg_sys::ClientConnectionLost = 1;
            pg_sys::InterruptPending = 1;
            pgrx::check_for_interrupts!();
        }
    }
}
