//! A client's pace under a rate.

use super::recorder::TransactionRecorder;
use crate::schedule::Schedule;
use crate::transaction_log::{LogRecord, LoggedOutcome, Sampling};

/// When the client's transactions are due.
pub(super) struct Pace {
    schedule: Schedule,
    /// When the last one that it took was due.
    taken_ns: i64,
    /// One that it took and did not start.
    held_ns: Option<i64>,
    /// Whether transactions that are too late are skipped.
    skips: bool,
}

impl Pace {
    /// `skips`: those that would be too late even if they took no time are skipped, as pgbench does it under a limit.
    pub fn new(schedule: Schedule, skips: bool) -> Self {
        Self { schedule, taken_ns: 0, held_ns: None, skips }
    }

    /// When the next transaction is due; `None` when none is `left`. Skipped ones count as transactions of those.
    pub fn next_due<L: TransactionRecorder>(
        &mut self,
        ledger: &mut L,
        script: usize,
        left: &mut u64,
        log: &mut Option<Sampling>,
    ) -> Option<i64> {
        loop {
            let due_ns = self.held_ns.take().unwrap_or_else(|| self.schedule.take(ledger.arrivals()));
            self.taken_ns = due_ns;
            if !self.skips {
                return Some(due_ns);
            }
            let now = ledger.end_clock();
            if due_ns >= now - ledger.limit_ns() || now >= ledger.end_ns() {
                ledger.pass();
                return Some(due_ns);
            }
            let is_measured = ledger.skip(script, now);
            if is_measured && let Some(sampling) = log {
                let lag_ns = (now - due_ns).max(0).unsigned_abs();
                let (script, outcome) = (script as u32, LoggedOutcome::Skipped);
                sampling
                    .log(|entry| ledger.log(&LogRecord { script, outcome, start_ns: now, lag_ns, ..entry }));
            }
            *left -= u64::from(is_measured);
            if *left == 0 {
                return None;
            }
        }
    }

    /// The last one was due and not started.
    pub fn put_back(&mut self) {
        self.held_ns = Some(self.taken_ns);
    }

    /// Transactions that the client took, due before `end_ns`, and neither started nor skipped.
    pub fn backlog(&self, end_ns: i64) -> u64 {
        u64::from(self.held_ns.is_some_and(|due_ns| due_ns < end_ns))
    }
}
