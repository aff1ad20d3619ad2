//! From the clients' logs to bench.transactions.

use std::collections::VecDeque;

use bench_base::error::UserError;

use crate::server::process::now_ns;
use crate::shm::Segment;
use crate::store::extension_owner::LockTimeout;
use crate::store::recorder::{self, Logged};

/// Rows of one transaction, which takes some 20 ms: for so long nothing is read.
const WRITTEN_AT_ONCE: usize = 4096;

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
        let is_due = |kept: usize| kept >= WRITTEN_AT_ONCE || all && kept > 0;
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
        let count = self.kept.len().min(WRITTEN_AT_ONCE);
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
