//! The early end of a leader's work.

use super::drop_extension;
use crate::server::signals::termination_requested;
use crate::shm::{Header, StopReason};

/// Why a coordinator is to end its run early.
pub fn stop_reason(header: &Header) -> Option<StopReason> {
    if termination_requested() {
        return Some(StopReason::Requested);
    }
    match header.stop() {
        StopReason::None | StopReason::Abandoned if drop_extension::is_coming() => {
            header.request_stop(StopReason::Dropped);
            Some(StopReason::Dropped)
        }
        StopReason::None | StopReason::Abandoned => None,
        reason => Some(reason),
    }
}
