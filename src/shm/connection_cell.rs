//! What a client of the wire driver shows to the others.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, Ordering::*};

use super::{ClientState, Counter};

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
    /// As of a [`ClientSlot`](super::ClientSlot).
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
