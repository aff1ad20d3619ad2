//! Reads the clock and records what a client did, in the client's loop.

use std::sync::atomic::AtomicI64;

use bench_base::error::SqlError;

use crate::transaction_log::{LogRecord, LoggedOutcome};

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Given up after an error that its client survives, such as a deadlock, or the connection was lost before the commit.
    Failed,
    /// Another error ended the client.
    Aborted,
    /// The script ended in a transaction block, which ended the client. Like pgbench, counted as processed.
    LeftOpen,
    /// The connection was lost, possibly after the commit.
    Unknown,
}

/// A transaction that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its script's place in the mix.
    pub script: usize,
    /// The scheduled start under a rate, otherwise the actual one.
    pub due_ns: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub tries: u64,
    pub outcome: Outcome,
}

impl Transaction {
    /// Returns the log record of the transaction; `template` has the fields that the log sets.
    pub(super) fn entry(&self, template: LogRecord) -> LogRecord {
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
            ..template
        }
    }
}

/// The consequence of an error for its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// It was tried again.
    Retried,
    /// It was given up.
    Failed,
    /// Counted by no transaction: the client had started none, or ended within one.
    Uncounted,
}

/// The clock and the counters of a client. A command's place is its index among the commands of all scripts of the run.
pub trait TransactionRecorder {
    /// Reads CLOCK_MONOTONIC in nanoseconds.
    fn now_ns(&mut self) -> i64;

    /// Reads the clock at the end of a transaction or a try. [`record`](Self::record), [`skip`](Self::skip) or
    /// [`pass`](Self::pass) must follow at once.
    fn end_clock(&mut self) -> i64;

    /// Counts nothing for the last [`end_clock`](Self::end_clock).
    fn pass(&mut self);

    /// Returns the clock's reading at which the client must stop; it may decrease.
    fn end_ns(&self) -> i64;

    /// Returns the latency in ns above which a transaction is late; `i64::MAX` without a limit.
    fn limit_ns(&self) -> i64;

    /// The last of the run's arrivals that a client took, as [`Schedule`](crate::schedule::Schedule) counts them.
    fn arrivals(&self) -> &AtomicI64;

    /// Nanoseconds of a duel's stretches, shared by all clients; 0 until one needs more than the minimum.
    fn stretch_ns(&self) -> &AtomicI64;

    /// Returns the clock's reading at which the ramp ends.
    fn ramp_end_ns(&self) -> i64;

    /// Returns whether the end of the run has been requested.
    fn is_stopped(&self) -> bool;

    /// Returns whether transactions that end at this time count as measured.
    fn is_measured(&mut self, end_ns: i64) -> bool;

    /// Counts a transaction that ended at the last [`end_clock`](Self::end_clock). Returns whether it counts as measured.
    fn record(&mut self, transaction: &Transaction) -> bool;

    /// Counts a transaction skipped because it was late at the last [`end_clock`](Self::end_clock). Returns whether it counts as
    /// measured.
    fn skip(&mut self, script: usize, now_ns: i64) -> bool;

    /// Logs a sampled transaction, measured or skipped.
    fn log(&mut self, entry: &LogRecord);

    /// Counts the latency of a command in a measured transaction.
    fn lap(&mut self, place: usize, latency_ns: u64);

    /// Counts a command whose error ended a measured try; `again`: another try follows.
    fn command_failed(&mut self, place: usize, again: bool);

    /// Counts a meta command; the driver counts statements.
    fn performed(&mut self, place: usize, succeeded: bool);

    /// Counts an error that ended a try.
    fn error(&mut self, error: &SqlError, consequence: Consequence);

    /// Reports a line of `debug()`.
    fn debug(&mut self, line: &str);
}
