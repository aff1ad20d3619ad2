//! What a run's links to the nodes of a Citus cluster share with the coordinator.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::*};

use bench_base::error::UserError;
use bench_model::cluster::ClockOffset;

use super::{Progress, Text};

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
