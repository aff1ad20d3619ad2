//! What one client shows to the others, where it is, its transactions and its errors; and what a link to a node of a Citus
//! cluster shows to the coordinator.

use std::sync::atomic::Ordering::*;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

use bench_base::error::{SqlError, UserError};
use bench_model::client::{Consequence, Lateness};
use bench_model::cluster::ClockOffset;

use super::{Counter, Progress, Text};

/// Where a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ClientState {
    Starting = 0,
    /// Compiled its scripts and stands at the gate.
    Ready = 1,
    Running = 2,
    /// Ended by itself, its statistics flushed.
    Done = 3,
    /// Ended at an error, its statistics flushed.
    Aborted = 4,
    /// Ended by a termination or a FATAL error, as the coordinator has found.
    Lost = 5,
}

impl ClientState {
    /// From its number in shared memory.
    pub(super) fn of(number: u32) -> Self {
        match number {
            0 => Self::Starting,
            1 => Self::Ready,
            2 => Self::Running,
            3 => Self::Done,
            4 => Self::Aborted,
            _ => Self::Lost,
        }
    }

    /// Ended, in whatever way.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Aborted | Self::Lost)
    }
}

/// Phases of a run, as an index of [`ClientSlot::totals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum TotalsOf {
    Ramp = 0,
    Warmup = 1,
    Measured = 2,
    Drain = 3,
}

/// Transactions of one client in one phase.
#[repr(C)]
pub struct PhaseTotals {
    pub committed: Counter,
    /// Given up after max_tries, or ended with its client by an error.
    pub failed: Counter,
    /// Tries beyond each transaction's first.
    pub retries: Counter,
}

/// Errors of one client with one SQLSTATE.
#[repr(C)]
pub struct ErrorEntry {
    /// As PostgreSQL packs it (MAKE_SQLSTATE); 0: unused.
    pub sqlstate: AtomicI32,
    pub count: Counter,
    /// Tries that were followed by another one.
    pub retried: Counter,
    /// Transactions that were given up, or ended with their client.
    pub failed: Counter,
    /// When the first of them came: microseconds since 2000-01-01, a TimestampTz.
    pub first_at: AtomicI64,
    pub message: Text<480>,
    /// Where in the script, and what the server adds.
    pub detail: Text<480>,
    /// What to do about it.
    pub hint: Text<320>,
    /// The server's CONTEXT.
    pub context: Text<480>,
}

/// Measured transactions of one arm of a duel, in one of the batches that the measured time is divided into.
#[repr(C)]
pub struct ArmSums {
    /// That ended without an error.
    pub transactions: Counter,
    /// Of these.
    pub latency_ns: Counter,
    /// That were given up at an error.
    pub failed: Counter,
    /// That took more than one try.
    pub retried: Counter,
    /// Of stretches at whose ends processor time was read.
    pub timed: Counter,
    pub cpu_ns: Counter,
    /// Of stretches at whose ends the rest was read: those of a session in this process.
    pub counted: Counter,
    pub blocks: Counter,
    pub wal_bytes: Counter,
    pub rows: Counter,
    pub minor_faults: Counter,
}

/// Both arms in one batch, of one client.
pub type BatchOfArms = [ArmSums; 2];

/// A job's [`Lateness`].
#[repr(C)]
struct JobLateness {
    served: Counter,
    waited_ns: Counter,
    longest_ns: Counter,
    longest_round_ns: Counter,
}

/// What one client shows to the others, apart from its commands and intervals.
#[repr(C, align(128))]
pub struct ClientSlot {
    pub pid: AtomicI32,
    state: AtomicU32,
    /// When the client left its loop, by CLOCK_MONOTONIC; 0 before.
    pub ended_ns: AtomicI64,
    /// Under a rate: transactions due before the run's end that were neither started nor skipped.
    pub backlog: Counter,
    /// Processor time that the process had used when the client left its loop, in nanoseconds; 0 before.
    pub cpu_ns: AtomicI64,
    /// That time before the first transaction that began in the measurement; 0 until then.
    cpu_before_ns: AtomicI64,
    /// Context switches of the process by then, voluntary or not; 0 before.
    pub switches: AtomicI64,
    /// Those before the first transaction that began in the measurement.
    switches_before: AtomicI64,
    /// Of a job: how long connections that were ready waited for it while measuring.
    lateness: JobLateness,
    /// Of a job: sessions that the server had not ended when it did, whose statistics may come later.
    pub unended: AtomicU32,
    /// Transactions that it had committed by then, in all phases.
    committed_before: Counter,
    /// 1 when the FATAL error that ended the process is among its errors.
    pub told_fatal: AtomicU32,
    pub totals: [PhaseTotals; 4],
    pub errors: [ErrorEntry; 8],
    /// Of a duel: the arm whose stretch is under way, from 1; 0 before.
    pub arm: AtomicU32,
    /// Of a duel: what each arm did in the ramp, where the session has executed no other.
    pub alone: [ArmAlone; 2],
}

/// Transactions of one arm in a session that has executed no other.
#[repr(C)]
pub struct ArmAlone {
    pub transactions: Counter,
    pub cpu_us: Counter,
    pub cpu_us_squared: Counter,
    pub minor_faults: Counter,
    pub minor_faults_squared: Counter,
}

impl ClientSlot {
    /// How far the client is.
    pub fn state(&self) -> ClientState {
        ClientState::of(self.state.load(Acquire))
    }

    /// Says how far the client is.
    pub fn set_state(&self, state: ClientState) {
        self.state.store(state as u32, Release);
    }

    /// Ended, in whatever way.
    pub fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// All of its transactions have ended; of a job, sessions may still have to.
    pub fn has_left_its_loop(&self) -> bool {
        self.is_over() || self.ended_ns.load(Acquire) != 0
    }

    /// Transactions ended so far, in all phases.
    pub fn attempts(&self) -> u64 {
        self.totals.iter().map(|t| t.committed.get() + t.failed.get()).sum()
    }

    /// Transactions committed so far, in all phases.
    fn committed(&self) -> u64 {
        self.totals.iter().map(|t| t.committed.get()).sum()
    }

    /// The next transaction is the first that begins in the measurement; `cpu_ns` is the processor time so far,
    /// `switches` the context switches.
    pub fn count_cpu_from(&self, cpu_ns: i64, switches: i64) {
        self.switches_before.store(switches, Relaxed);
        self.committed_before.set(self.committed());
        self.cpu_before_ns.store(cpu_ns, Relaxed);
    }

    /// Processor time, in nanoseconds, of the transactions that began in the measurement, and how many of them were
    /// committed. The last one may have ended after it, and takes the place of the one that was under way at its start:
    /// a part of a transaction counts nowhere. `None` of a client that had none, of one that was ended from outside, and
    /// where the platform has no such clock.
    pub fn cpu_of_transactions(&self) -> Option<(i64, u64)> {
        self.measured_cpu_ns().map(|cpu_ns| (cpu_ns, self.committed() - self.committed_before.get()))
    }

    /// Processor time, in nanoseconds, that its process used from the beginning of the measurement to its end.
    pub fn measured_cpu_ns(&self) -> Option<i64> {
        let (before_ns, after_ns) = (self.cpu_before_ns.load(Relaxed), self.cpu_ns.load(Relaxed));
        (before_ns > 0 && after_ns > 0).then(|| after_ns - before_ns)
    }

    /// Context switches of its process from the beginning of the measurement to its end; `None` where those of the
    /// processor time are not known.
    pub fn measured_switches(&self) -> Option<i64> {
        self.measured_cpu_ns().map(|_| self.switches.load(Relaxed) - self.switches_before.load(Relaxed))
    }

    /// Tells how long connections have waited for the job.
    pub fn tell_lateness(&self, lateness: &Lateness) {
        self.lateness.served.set(lateness.served);
        self.lateness.waited_ns.set(lateness.waited_ns);
        self.lateness.longest_ns.set(lateness.longest_ns);
        self.lateness.longest_round_ns.set(lateness.longest_round_ns);
    }

    /// How long connections have waited for the job, when it has told it.
    pub fn lateness(&self) -> Lateness {
        Lateness {
            served: self.lateness.served.get(),
            waited_ns: self.lateness.waited_ns.get(),
            longest_ns: self.lateness.longest_ns.get(),
            longest_round_ns: self.lateness.longest_round_ns.get(),
        }
    }

    /// Counts an error; a ninth SQLSTATE goes to the last entry.
    pub fn count_error(&self, error: &SqlError, at: i64, consequence: Consequence) {
        let sqlstate = error.sqlstate;
        let last = self.errors.len() - 1;
        let entry = self.errors[..last]
            .iter()
            .find(|e| matches!(e.sqlstate.load(Relaxed), s if s == 0 || s == sqlstate))
            .unwrap_or(&self.errors[last]);
        if entry.count.get() == 0 {
            entry.first_at.store(at, Relaxed);
            entry.message.set(&error.message);
            if let Some(detail) = &error.detail {
                entry.detail.set(detail);
            }
            if let Some(hint) = &error.hint {
                entry.hint.set(hint);
            }
            if let Some(context) = &error.context {
                entry.context.set(context);
            }
            entry.sqlstate.store(sqlstate, Release);
        }
        entry.count.add(1);
        match consequence {
            Consequence::Retried => entry.retried.add(1),
            Consequence::Failed => entry.failed.add(1),
            Consequence::Uncounted => {}
        }
    }
}

/// What the job of a client's connection shows of it.
#[repr(C, align(64))]
pub struct ConnectionCell {
    /// The backend at its other end, if that is one of this server; 0: none.
    pub pid: AtomicI32,
    state: AtomicU32,
    /// When the client left its loop, by CLOCK_MONOTONIC; 0 before.
    pub ended_ns: AtomicI64,
    /// Processor time that the backend had used then, in nanoseconds; 0 before, or where it is not known.
    pub cpu_ns: AtomicI64,
    /// Context switches of the backend by then, voluntary or not; 0 before, or where they are not known.
    pub switches: AtomicI64,
    /// Transactions ended so far.
    pub attempts: Counter,
    /// The backend at its other end, if that is one of another server; 0: none.
    pub remote_pid: AtomicI32,
    /// As of a [`ClientSlot`].
    pub arm: AtomicU32,
}

impl ConnectionCell {
    /// How far the client is.
    pub fn state(&self) -> ClientState {
        ClientState::of(self.state.load(Acquire))
    }

    /// Shows the backend that serves it.
    pub fn show_backend(&self, pid: i32, is_remote: bool) {
        self.pid.store(if is_remote { 0 } else { pid }, Relaxed);
        self.remote_pid.store(if is_remote { pid } else { 0 }, Relaxed);
    }

    /// Shows that none serves it.
    pub fn hide_backend(&self) {
        self.show_backend(0, false);
    }

    /// Says how far the client is.
    pub fn set_state(&self, state: ClientState) {
        self.state.store(state as u32, Release);
    }
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum LinkState {
    Starting = 0,
    /// The node's state is read, and its clients, where it has any, stand at the gate.
    Ready = 1,
    /// Its clients have been told when to begin.
    Running = 2,
    /// They have ended.
    Over = 3,
    /// All that there is to know of it is here.
    Done = 4,
    /// See the error.
    Failed = 5,
}

/// One node.
#[repr(C)]
pub struct NodeCell {
    state: AtomicU32,
    /// Process id of the link, once it runs.
    pub pid: AtomicI32,
    /// Whether its part ended before its time, of itself, and so ended the run: 1.
    pub ended_early: AtomicU32,
    /// When the node was last heard of, by CLOCK_MONOTONIC.
    pub heard_ns: AtomicI64,
    /// The longest that an answer has taken before the start, in microseconds.
    pub slowest_us: AtomicI64,
    /// When its clients' time began, by the clock of this node, in microseconds as a timestamptz counts them.
    pub began_us: AtomicI64,
    clock_offset_us: AtomicU64,
    clock_error_us: AtomicU64,
    pub progress: Progress,
    /// Readings of `observe::node`, as JSON.
    pub before: Text<4096>,
    pub after: Text<4096>,
    error: Text<16384>,
}

impl NodeCell {
    /// Where the link stands.
    pub fn state(&self) -> LinkState {
        match self.state.load(Acquire) {
            0 => LinkState::Starting,
            1 => LinkState::Ready,
            2 => LinkState::Running,
            3 => LinkState::Over,
            4 => LinkState::Done,
            _ => LinkState::Failed,
        }
    }

    /// Says where the link stands.
    pub fn set_state(&self, state: LinkState) {
        self.state.store(state as u32, Release);
    }

    /// Leaves the error, the first of them, and fails.
    pub fn fail(&self, error: &UserError) {
        self.error.set(&serde_json::to_string(&error.cut()).unwrap_or_default());
        self.set_state(LinkState::Failed);
    }

    /// What [`Self::fail`] has left.
    pub fn failure(&self) -> Option<UserError> {
        serde_json::from_str(&self.error.get()?).ok()
    }

    /// The node's clock against this server's.
    pub fn clock(&self) -> ClockOffset {
        let read = |word: &AtomicU64| f64::from_bits(word.load(Relaxed));
        ClockOffset { offset_us: read(&self.clock_offset_us), error_us: read(&self.clock_error_us) }
    }

    /// Stores what [`Self::clock`] gives.
    pub fn set_clock(&self, clock: ClockOffset) {
        self.clock_offset_us.store(clock.offset_us.to_bits(), Relaxed);
        self.clock_error_us.store(clock.error_us.to_bits(), Relaxed);
    }
}
