//! Stops of a sweep: the leader's waits and statements that they end, and their errors.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};

use crate::launch::handle::LaunchHandle;
use crate::server::process::{cancel, forget_cancel, nap_until_canceled};
use crate::shm::{Header, StopReason, ask_to_stop};
use crate::worker::drop_extension;

/// Returns the error of a stop, if there was one.
pub(super) fn stop_error(header: &Header) -> Option<UserError> {
    let canceled = |message| Some(UserError::new(sqlstate::QUERY_CANCELED, message));
    match header.stop() {
        StopReason::None | StopReason::Abandoned | StopReason::ClientAborted => None,
        StopReason::CallerGone => canceled("canceled with the call to bench.sweep"),
        StopReason::Dropped => Some(drop_extension::error()),
        StopReason::Requested => canceled("stopped by bench.stop_sweep, or its leader was canceled"),
        StopReason::BlockedByCaller => Some(
            UserError::new(
                sqlstate::DEADLOCK_DETECTED,
                "the sweep waits for a lock of the session that waits for the sweep",
            )
            .hint("Commit before calling it, or use bench.start_sweep."),
        ),
    }
}

/// Runs work with statements of this session, which a stop of the sweep with this header cancels.
pub(super) fn interruptibly<T>(
    header: &Header,
    work: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    header.interruptible.store(1, SeqCst);
    let result = match stop_error(header) {
        Some(error) => Err(error),
        None => work().inspect_err(|error| stop_if_canceled(header, error)),
    };
    header.interruptible.store(0, SeqCst);
    forget_cancel();
    result
}

/// Stops the sweep if the error is a cancel of this session, which has no timeouts.
pub(super) fn stop_if_canceled(header: &Header, error: &UserError) {
    if error.sqlstate == sqlstate::QUERY_CANCELED {
        header.request_stop(StopReason::Requested);
    }
}

/// The longest time between two looks at what is awaited.
pub(super) const LOOK_MS: i64 = 200;

/// Waits for a load, a run or a hand, and stops it when the sweep is stopped.
pub(super) fn await_launched(header: &Header, launched: &LaunchHandle) -> Result<(), UserError> {
    await_launched_until(header, launched, LOOK_MS, &mut |_| Ok(false))
}

/// As [`await_launched`], until `look`, which is called at least every `look_ms`, returns true.
pub(super) fn await_launched_until(
    header: &Header,
    launched: &LaunchHandle,
    look_ms: i64,
    look: &mut dyn FnMut(&LaunchHandle) -> Result<bool, UserError>,
) -> Result<(), UserError> {
    header.sweep.under_way.store(launched.segment.handle(), Release);
    let mut looked = Ok(false);
    let result = loop {
        let outcome = launched.outcome();
        if looked.is_ok() {
            looked = look(launched);
        }
        if let Some(outcome) = outcome {
            break outcome;
        }
        if matches!(looked, Ok(true)) {
            break Ok(());
        }
        // A cancel of this session is a stop as well.
        match nap_until_canceled(look_ms) {
            Err(_) => header.request_stop(StopReason::Requested),
            Ok(()) if drop_extension::is_coming() => header.request_stop(StopReason::Dropped),
            Ok(()) => {}
        }
        if header.stop() != StopReason::None || looked.is_err() {
            ask_to_stop(launched.segment.header(), StopReason::Requested);
        }
    };
    header.sweep.under_way.store(0, Release);
    result.and(looked.map(drop))
}

/// Waits for the end of a hand, even if the sweep is stopped. A cancel of this session cancels the hand's statement.
pub(super) fn await_end(header: &Header, hand: &LaunchHandle) -> Result<(), UserError> {
    header.sweep.under_way.store(hand.segment.handle(), Release);
    let result = loop {
        if let Some(outcome) = hand.outcome() {
            break outcome;
        }
        if nap_until_canceled(200).is_err() {
            cancel(hand.segment.header().coordinator_pid.load(Acquire));
        }
    };
    header.sweep.under_way.store(0, Release);
    result
}
