//! The leader of a segment's workers, as others see it.

use std::sync::atomic::Ordering::*;

use super::{Header, RunState, Segment, StopReason};
use crate::server::process::{cancel, is_backend, wake};

/// Asks the leader of a segment's workers to end the work.
pub fn ask_to_stop(header: &Header, reason: StopReason) {
    header.request_stop(reason);
    let pid = header.coordinator_pid.load(Acquire);
    if header.interruptible.load(Relaxed) == 0 || !cancel(pid) {
        wake(pid);
    }
}

/// Whether the leader of a segment's workers is alive and has not finished.
pub fn is_under_way(segment: &Segment) -> bool {
    let header = segment.header();
    header.state() != RunState::Finished && is_backend(header.coordinator_pid.load(Acquire))
}
