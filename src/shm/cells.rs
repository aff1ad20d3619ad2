//! The plain shapes that the segment is made of. Every field is atomic, so that a shared
//! reference is all that anyone ever needs; on the usual machines a relaxed load and store of a
//! word is an ordinary move, and each word has one writer.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::*};

use bench_base::error::{UserError, sqlstate};
use bench_model::timeline::Timeline;

use super::Counter;

/// Text of at most N bytes, written once.
#[repr(C)]
pub struct Text<const N: usize> {
    /// Length + 1; 0 while nothing is there.
    length: AtomicU32,
    bytes: [AtomicU8; N],
}

impl<const N: usize> Text<N> {
    /// Publishes the text, cut at a character's boundary if it is too long. The first one stays.
    pub fn set(&self, text: &str) {
        if self.length.load(Relaxed) != 0 {
            return;
        }
        let mut end = text.len().min(N);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for (to, from) in self.bytes.iter().zip(&text.as_bytes()[..end]) {
            to.store(*from, Relaxed);
        }
        // Release: whoever sees the length sees the bytes.
        self.length.store(end as u32 + 1, Release);
    }

    /// The text, once it has been set.
    pub fn get(&self) -> Option<String> {
        let length = (self.length.load(Acquire) as usize).checked_sub(1)?.min(N);
        let bytes: Vec<u8> = self.bytes[..length].iter().map(|b| b.load(Relaxed)).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What the workers of a run have to know and nobody else: the password of their connections.
#[repr(C)]
pub struct Secret(Text<16384>);

impl Secret {
    /// Leaves it for the workers.
    ///
    /// # Errors
    /// 54000 where it is too long.
    pub fn set(&self, text: &str) -> Result<(), UserError> {
        let most = self.0.bytes.len();
        if text.len() > most {
            return Err(UserError::new(
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                format!("the password of a user mapping may have at most {most} bytes"),
            ));
        }
        self.0.set(text);
        Ok(())
    }

    /// It, until it has been wiped.
    pub fn get(&self) -> Option<String> {
        self.0.get()
    }

    /// Overwrites it.
    pub fn wipe(&self) {
        self.0.bytes.iter().for_each(|byte| byte.store(0, Relaxed));
        self.0.length.store(0, Release);
    }
}

/// Where a run stands, for those who wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum RunState {
    /// The clients are being launched; nothing has been counted.
    Starting = 0,
    Running = 1,
    /// Everything is written. The header's error says whether it went well.
    Finished = 2,
}

/// Why a run is to end early. A higher one overrules a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum StopReason {
    None = 0,
    /// The leader itself gives up: what went wrong is in the header's error, or in its log.
    Abandoned = 1,
    /// An error has ended a client of a run with exit_on_abort.
    ClientAborted = 2,
    /// bench.stop.
    Requested = 3,
    /// The caller of bench.run was canceled, terminated or disconnected.
    CallerGone = 4,
    /// The extension is being dropped.
    Dropped = 5,
    /// A client waits for a lock that the waiting caller holds.
    BlockedByCaller = 6,
}

impl StopReason {
    /// Whether a call that waits for the work fails with it.
    pub fn is_raised(self) -> bool {
        matches!(self, Self::Dropped | Self::BlockedByCaller)
    }
}

/// A number that many processes change, on cache lines of its own.
#[repr(C, align(128))]
pub struct OwnLine(pub AtomicI64);

/// "pgbench1" in ASCII: a segment whose head is as `build` has it.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"pgbench1");

/// The head of the segment.
#[repr(C)]
pub struct Header {
    /// Tells the segment from anybody else's; written last. This and the fields up to `database` stay where they are in
    /// all builds: see `shm::build`.
    pub magic: AtomicU64,
    /// The build of the library that has made it.
    pub build: AtomicU64,
    /// The build of a worker that could not serve it; 0: none.
    pub refused_by: AtomicU64,
    /// The id that the segment's row in the catalog has, from before its commit.
    pub(super) claimed: AtomicI64,
    /// The id of the row once that is committed, for those who wait for the work.
    pub(super) announced: AtomicI64,
    pub coordinator_pid: AtomicI32,
    /// OID of the database that the run belongs to: another's run may have the same id.
    pub database: AtomicU32,
    /// The session inside bench.run; 0 when nobody waits from the start.
    pub caller_pid: AtomicI32,
    pub slots: AtomicU32,
    pub connections: AtomicU32,
    pub scripts: AtomicU32,
    pub commands: AtomicU32,
    /// Intervals that there is room for before the coordinator has read them.
    pub ring: AtomicU32,
    /// Nodes of the cluster that the coordinator has links to.
    pub nodes: AtomicU32,
    /// Entries that each client's log has room for.
    pub log: AtomicU32,
    pub spec_bytes: AtomicU32,
    /// Feeders of all scripts together, and the bytes of their rows.
    pub feeders: AtomicU32,
    /// Batches of a duel.
    pub batches: AtomicU32,
    pub fed_bytes: AtomicU32,
    state: AtomicU32,
    stop: AtomicU32,
    /// 1 as soon as the clients may begin.
    pub gate: AtomicU32,
    /// 1 for a run that ends as soon as an error ends a client.
    pub exit_on_abort: AtomicU32,
    /// 1 to end the measurement of a run before its time, as if this was its end.
    pub ends_early: AtomicU32,
    /// Intervals below this one are read: nothing may be added to them.
    pub closed: AtomicU32,
    /// The caller could not release its snapshot while waiting.
    pub horizon_held: AtomicU32,
    /// Of a run on several nodes: when the clients' time is to begin, by the calendar, in microseconds as a timestamptz
    /// counts them; 0 while it has not been said.
    pub begins_us: AtomicI64,
    /// 1 when all is done that is to be done before the run.
    pub prepared: AtomicU32,
    /// Of a run over connections: 1 when its scripts have been looked at, and nothing is wrong with them.
    pub examined: AtomicU32,
    /// Of a run over connections to another server: 1 when its jobs are to cancel the statements under way.
    pub cancels: AtomicU32,
    /// Of a question to another role's session: the handle of the segment that has the answer; 0: there is none yet.
    pub answer: AtomicU32,
    /// Of a question to another role's session: how many of its parts have been answered.
    pub answered: AtomicU32,
    /// 1 when its clients stand at the gate.
    pub is_ready: AtomicU32,
    /// When the node that asked for this part was last heard of, by CLOCK_MONOTONIC.
    pub heard_ns: AtomicI64,
    /// 1 when the links are to read their nodes' state at the end, and to fetch what there is.
    pub collects: AtomicU32,
    /// 1 when the leader runs long statements itself, and so has to be canceled to be stopped.
    pub interruptible: AtomicU32,
    /// Server defaults that a session would honour and the engine does not: bits of `engine::defaults`.
    pub unsupported: AtomicU32,
    /// Transactions since the oldest unfrozen one, when they are so many that a user should know; else 0.
    pub xid_age: AtomicI64,
    /// 1 when the clients' track_counts is off; 2, added to it: when pg_stat_statements leaves out
    /// their statements.
    pub untracked: AtomicU32,
    pub timeline: SharedTimeline,
    warmup_end: AtomicU32,
    /// Under a rate: the last arrival that a client has taken, as [`Schedule`](bench_model::schedule::Schedule) counts them.
    pub arrivals: OwnLine,
    /// Of a duel: how long the stretches of its arms are for all clients; 0 as long as none has asked for more than the least.
    pub stretch_ns: AtomicI64,
    pub progress: Progress,
    pub load: LoadProgress,
    pub capture: CaptureProgress,
    pub sweep: SweepProgress,
    /// Of a run over connections: the clients' search_path, where it is not the role's own.
    pub search_path: Text<4096>,
    /// Of a run over connections, until they stand at the gate.
    pub secret: Secret,
    /// The clients' configuration, as `observe::environment` has it; written by one of them.
    pub settings: Text<49152>,
    /// A `UserError` as JSON, when the run as a whole failed.
    error: Text<16384>,
}

impl Header {
    /// How far the work is.
    pub fn state(&self) -> RunState {
        match self.state.load(Acquire) {
            0 => RunState::Starting,
            1 => RunState::Running,
            _ => RunState::Finished,
        }
    }

    /// Says how far the work is.
    pub fn set_state(&self, state: RunState) {
        self.state.store(state as u32, Release);
    }

    /// How the run's warm-up ends, or has ended.
    pub fn warmup_end(&self) -> WarmupEnd {
        match self.warmup_end.load(Acquire) {
            0 => WarmupEnd::Given,
            1 => WarmupEnd::Awaited,
            2 => WarmupEnd::Steady,
            _ => WarmupEnd::Unsteady,
        }
    }

    /// Says how the run's warm-up ends, or has ended.
    pub fn set_warmup_end(&self, how: WarmupEnd) {
        self.warmup_end.store(how as u32, Release);
    }

    /// Why the work is to end, if it is.
    pub fn stop(&self) -> StopReason {
        match self.stop.load(Acquire) {
            0 => StopReason::None,
            1 => StopReason::Abandoned,
            2 => StopReason::ClientAborted,
            3 => StopReason::Requested,
            4 => StopReason::CallerGone,
            5 => StopReason::Dropped,
            _ => StopReason::BlockedByCaller,
        }
    }

    /// Leaves the error that ended the work as a whole. The first one stays.
    pub fn fail(&self, error: &UserError) {
        self.error.set(&serde_json::to_string(&error.cut()).unwrap_or_default());
    }

    /// The error that ended the work as a whole.
    pub fn failure(&self) -> Option<UserError> {
        let json = self.error.get()?;
        Some(serde_json::from_str(&json).unwrap_or_else(|_| crate::error::internal(json)))
    }

    /// Asks for the end of the work. Of several reasons the one that comes last in [`StopReason`] stays.
    pub fn request_stop(&self, reason: StopReason) {
        self.stop.fetch_max(reason as u32, AcqRel);
    }

    /// Ends the run because an error has ended a client, if the run is to end then.
    pub fn client_aborted(&self) {
        if self.exit_on_abort.load(Relaxed) != 0 {
            self.request_stop(StopReason::ClientAborted);
        }
    }
}

/// What a load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LoadPhase {
    Starting = 0,
    Rows = 1,
    Indexes = 2,
    Vacuum = 3,
    Distribution = 4,
}

/// How far a load is.
#[repr(C)]
pub struct LoadProgress {
    phase: AtomicU32,
    /// When the phase began, by CLOCK_MONOTONIC.
    pub phase_began_ns: AtomicI64,
    /// When the load began, by CLOCK_MONOTONIC.
    pub began_ns: AtomicI64,
    /// The next share of the rows that nobody has taken.
    pub next_chunk: AtomicU64,
    /// Ids to be loaded.
    pub ids: Counter,
    /// Who kept VACUUM from marking all pages as all-visible.
    pub horizon_holder: Text<256>,
}

impl LoadProgress {
    /// The phase that the load is in.
    pub fn phase(&self) -> LoadPhase {
        match self.phase.load(Acquire) {
            1 => LoadPhase::Rows,
            2 => LoadPhase::Indexes,
            3 => LoadPhase::Vacuum,
            4 => LoadPhase::Distribution,
            _ => LoadPhase::Starting,
        }
    }

    /// Begins a phase.
    pub fn enter(&self, phase: LoadPhase, now_ns: i64) {
        self.phase_began_ns.store(now_ns, Relaxed);
        self.phase.store(phase as u32, Release);
    }
}

/// What a capture is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CapturePhase {
    /// The application is at work.
    Observation = 0,
    /// What the server has logged is read.
    Log = 1,
    /// Statements or transactions are analysed and tried.
    Analysis = 2,
}

/// How far a capture is.
#[repr(C)]
pub struct CaptureProgress {
    phase: AtomicU32,
    /// In seconds, bytes, or statements, by the phase.
    done: AtomicU64,
    total: AtomicU64,
}

impl CaptureProgress {
    /// The phase that the capture is in, how much of it is done, and of how much; 0: that is not known.
    pub fn get(&self) -> (CapturePhase, u64, u64) {
        let phase = match self.phase.load(Acquire) {
            0 => CapturePhase::Observation,
            1 => CapturePhase::Log,
            _ => CapturePhase::Analysis,
        };
        (phase, self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// Says where the capture is.
    pub fn set(&self, phase: CapturePhase, done: u64, total: u64) {
        self.total.store(total, Relaxed);
        self.done.store(done, Relaxed);
        self.phase.store(phase as u32, Release);
    }
}

/// How a run's warm-up ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WarmupEnd {
    /// By the clock.
    Given = 0,
    /// When throughput is steady, which it has not been so far.
    Awaited = 1,
    /// Throughput was steady.
    Steady = 2,
    /// Throughput was not steady for as long as a warm-up may last.
    Unsteady = 3,
}

/// How far a sweep is.
#[repr(C)]
pub struct SweepProgress {
    /// Runs that are over, or that could not be run. Of a sweep's hand: statements that it has undone its change with.
    pub done: AtomicU32,
    /// All runs that there are to be.
    pub total: AtomicU32,
    /// The segment of the run or load under way; 0: none.
    pub under_way: AtomicU32,
    /// Place of the last one that is over; written before `done`.
    pub last_place: AtomicI32,
    /// Of a hand: when its first statement began, and when its last one ended, by CLOCK_MONOTONIC; 0 before.
    pub began_ns: AtomicI64,
    pub ended_ns: AtomicI64,
}

/// A [`Timeline`] in shared memory: written before the gate opens, except that the end, and that of the warm-up, can come
/// nearer.
#[repr(C)]
pub struct SharedTimeline {
    warmup_start_ns: AtomicI64,
    measure_start_ns: AtomicI64,
    pub measure_end_ns: AtomicI64,
    warmup_interval_ns: AtomicI64,
    interval_ns: AtomicI64,
    warmup_intervals: AtomicU32,
    measured_intervals: AtomicU32,
}

impl SharedTimeline {
    /// Stores the time line.
    pub fn store(&self, timeline: &Timeline) {
        self.warmup_start_ns.store(timeline.warmup_start_ns, Relaxed);
        self.measure_start_ns.store(timeline.measure_start_ns, Relaxed);
        self.measure_end_ns.store(timeline.measure_end_ns, Relaxed);
        self.warmup_interval_ns.store(timeline.warmup_interval_ns, Relaxed);
        self.interval_ns.store(timeline.interval_ns, Relaxed);
        self.measured_intervals.store(timeline.measured_intervals, Relaxed);
        // Last: see `load`.
        self.warmup_intervals.store(timeline.warmup_intervals, Release);
    }

    /// The time line that was stored. Where an earlier end of the warm-up is being stored, which is ahead, it may have the
    /// number of the warm-up's intervals as it was before: the interval that is the last one then ends where it did, and in
    /// both. The other way round, its last interval would end with the warm-up as it was.
    pub fn load(&self) -> Timeline {
        let warmup_intervals = self.warmup_intervals.load(Acquire);
        Timeline {
            warmup_start_ns: self.warmup_start_ns.load(Relaxed),
            measure_start_ns: self.measure_start_ns.load(Relaxed),
            measure_end_ns: self.measure_end_ns.load(Relaxed),
            warmup_interval_ns: self.warmup_interval_ns.load(Relaxed),
            interval_ns: self.interval_ns.load(Relaxed),
            warmup_intervals,
            measured_intervals: self.measured_intervals.load(Relaxed),
        }
    }
}

/// The newest sample, for bench.progress and the caller's NOTICEs. Fields of two samples may
/// mix in a reader's hand; nothing is computed from them.
#[repr(C)]
pub struct Progress {
    /// Samples written so far.
    pub samples: AtomicU32,
    pub in_warmup: AtomicU32,
    elapsed_secs: AtomicU64,
    tps: AtomicU64,
    latency_avg_ms: AtomicU64,
    latency_stddev_ms: AtomicU64,
    lag_avg_ms: AtomicU64,
    pub failed: Counter,
    pub aborted: Counter,
    pub skipped: Counter,
    /// Measured transactions so far.
    pub transactions: Counter,
    pub clients: AtomicU32,
}

/// The numbers of [`Progress`] that are not whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgressFigures {
    pub elapsed_secs: f64,
    pub tps: f64,
    pub latency_avg_ms: f64,
    pub latency_stddev_ms: f64,
    pub lag_avg_ms: f64,
}

impl Progress {
    /// Stores the figures of the newest sample.
    pub fn set_figures(&self, figures: ProgressFigures) {
        self.elapsed_secs.store(figures.elapsed_secs.to_bits(), Relaxed);
        self.tps.store(figures.tps.to_bits(), Relaxed);
        self.latency_avg_ms.store(figures.latency_avg_ms.to_bits(), Relaxed);
        self.latency_stddev_ms.store(figures.latency_stddev_ms.to_bits(), Relaxed);
        self.lag_avg_ms.store(figures.lag_avg_ms.to_bits(), Relaxed);
    }

    /// The figures of the newest sample.
    pub fn figures(&self) -> ProgressFigures {
        let read = |word: &AtomicU64| f64::from_bits(word.load(Relaxed));
        ProgressFigures {
            elapsed_secs: read(&self.elapsed_secs),
            tps: read(&self.tps),
            latency_avg_ms: read(&self.latency_avg_ms),
            latency_stddev_ms: read(&self.latency_stddev_ms),
            lag_avg_ms: read(&self.lag_avg_ms),
        }
    }
}
