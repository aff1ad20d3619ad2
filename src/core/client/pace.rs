//! A client's pace under a rate.

use super::ledger::Ledger;
use crate::schedule::Schedule;
use crate::transaction_log::{Entry, LoggedOutcome, Sampling};

/// When the client's transactions are due.
pub(super) struct Pace {
    schedule: Schedule,
    /// The schedule before its last arrival was drawn.
    before: Schedule,
    /// Whether transactions that are too late are skipped.
    skips: bool,
    measure_start_ns: i64,
}

impl Pace {
    /// `skips`: those that would be too late even if they took no time are skipped, as pgbench does it under a limit.
    pub fn new(schedule: Schedule, skips: bool, measure_start_ns: i64) -> Self {
        Self { before: schedule.clone(), schedule, skips, measure_start_ns }
    }

    /// When the next transaction is due; `None` when none is `left`. Skipped ones count as transactions of those.
    pub fn next_due<L: Ledger>(
        &mut self,
        ledger: &mut L,
        script: usize,
        left: &mut u64,
        log: &mut Option<Sampling>,
    ) -> Option<i64> {
        loop {
            self.before = self.schedule.clone();
            let due_ns = self.schedule.next_ns();
            if !self.skips {
                return Some(due_ns);
            }
            let now = ledger.end_clock();
            if due_ns >= now - ledger.limit_ns() || now >= ledger.end_ns() {
                ledger.pass();
                return Some(due_ns);
            }
            if ledger.skip(script, now)
                && let Some(sampling) = log
            {
                let lag_ns = (now - due_ns).max(0).unsigned_abs();
                let (script, outcome) = (script as u32, LoggedOutcome::Skipped);
                sampling.log(|entry| ledger.log(&Entry { script, outcome, start_ns: now, lag_ns, ..entry }));
            }
            *left -= u64::from(now >= self.measure_start_ns);
            if *left == 0 {
                return None;
            }
        }
    }

    /// The last one was due and not started.
    pub fn put_back(&mut self) {
        self.schedule = self.before.clone();
    }

    /// Transactions due before `end_ns` that were neither started nor skipped.
    pub fn backlog(&self, end_ns: i64) -> u64 {
        self.schedule.clone().rest_until(end_ns)
    }
}
