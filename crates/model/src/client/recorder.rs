//! Reads the clock and records what a client did, in the client's loop.

use std::sync::atomic::AtomicI64;

use bench_base::error::SqlError;

use crate::transaction_log::{LogRecord, LoggedOutcome};

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Given up at a serialization failure or deadlock, or at another error that its client outlives; or the connection was
    /// lost before it could be committed.
    Failed,
    /// Another error ended the client.
    Aborted,
    /// The script ended within a block, which ended the client: pgbench counts such a transaction as processed.
    LeftOpen,
    /// The connection was lost, and whether it was committed is not known.
    Unknown,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its script's place in the mix.
    pub script: usize,
    /// When it was to start: under a rate by the schedule, otherwise when it did.
    pub due_ns: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub tries: u64,
    pub outcome: Outcome,
}

impl Transaction {
    /// As it is logged, in the place that `of` has.
    pub(super) fn entry(&self, of: LogRecord) -> LogRecord {
        LogRecord {
            script: self.script as u32,
            retries: u32::try_from(self.tries - 1).unwrap_or(u32::MAX),
            outcome: match self.outcome {
                Outcome::Committed => LoggedOutcome::Processed,
                Outcome::LeftOpen => LoggedOutcome::LeftOpen,
                Outcome::Failed => LoggedOutcome::Failed,
                Outcome::Aborted => LoggedOutcome::Aborted,
                Outcome::Unknown => LoggedOutcome::Unknown,
            },
            start_ns: self.start_ns,
            lag_ns: (self.start_ns - self.due_ns).max(0).unsigned_abs(),
            latency_ns: (self.end_ns - self.due_ns).max(0).unsigned_abs(),
            ..of
        }
    }
}

/// What an error meant to its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// It was tried again.
    Retried,
    /// It was given up.
    Failed,
    /// No transaction counts it: the client had not started one, or was ended in the middle of one.
    Uncounted,
}

/// The clock and the counters of a client. A command's place is its index among the commands of all scripts of the run.
pub trait TransactionRecorder {
    /// The clock, CLOCK_MONOTONIC in nanoseconds.
    fn now_ns(&mut self) -> i64;

    /// The clock at the end of a transaction, or of a try of one. [`record`](Self::record), [`skip`](Self::skip) or
    /// [`pass`](Self::pass) follows at once: without it the interval is not read.
    fn end_clock(&mut self) -> i64;

    /// Nothing is counted of what ended at the last [`end_clock`](Self::end_clock).
    fn pass(&mut self);

    /// The reading of the clock at which the client has to stop; it may come nearer.
    fn end_ns(&self) -> i64;

    /// Latency above which a transaction is late, ns; `i64::MAX` where there is no limit.
    fn limit_ns(&self) -> i64;

    /// The last of the run's arrivals that a client took, as [`Schedule`](crate::schedule::Schedule) counts them.
    fn arrivals(&self) -> &AtomicI64;

    /// Nanoseconds that a stretch of a duel's arms takes, of all clients; 0 as long as none has asked for more than the least.
    fn stretch_ns(&self) -> &AtomicI64;

    /// When the ramp ends, by the clock.
    fn ramp_end_ns(&self) -> i64;

    /// Whether the end of the run has been requested.
    fn is_stopped(&self) -> bool;

    /// Whether what ends at this moment counts as measured.
    fn is_measured(&mut self, end_ns: i64) -> bool;

    /// Counts a transaction that has ended at the last [`end_clock`](Self::end_clock).
    /// Whether it counts as measured.
    fn record(&mut self, transaction: &Transaction) -> bool;

    /// Counts a transaction that was not started, because it was late already at the last [`end_clock`](Self::end_clock).
    /// Whether it counts as measured.
    fn skip(&mut self, script: usize, now_ns: i64) -> bool;

    /// Logs a measured or skipped transaction whose turn it is.
    fn log(&mut self, entry: &LogRecord);

    /// A command of a measured transaction took so long.
    fn lap(&mut self, place: usize, latency_ns: u64);

    /// A command ended a measured try with an error, after which there was another try, or none.
    fn command_failed(&mut self, place: usize, again: bool);

    /// A meta command was performed, or failed. The driver counts statements itself.
    fn performed(&mut self, place: usize, succeeded: bool);

    /// An error ended a try.
    fn error(&mut self, error: &SqlError, consequence: Consequence);

    /// A line of `debug()`.
    fn debug(&mut self, line: &str);
}
