//! What is the same for runs, loads and sweeps under way: to wait for one, and to stop it.

use std::sync::atomic::Ordering::*;
use std::time::Instant;

use bench_base::error::{UserError, sqlstate};

use crate::error::OrRaise;
use crate::launch::handle::{Watch, releasable_or_warn, stop_and_wait};
use crate::server::database::is_standby;
use crate::server::roles;
use crate::server::transaction::rolled_back;
use crate::shm::{Segment, StopReason, Work, is_under_way};
use crate::store;
use crate::store::is_open;

/// Waits for its end, or until then, and looks at its segment now and then; its status.
///
/// # Errors
/// 42704 for what does not exist, 42501 for what the caller may not see, 25006 on a standby, 55000 for what another build of
/// the library leads, 40P01 where it waits for this session, 57014.
pub fn wait(work: Work, until: Option<Instant>, mut look: impl FnMut(&Segment)) -> Result<String, UserError> {
    // What waits for a lock on the rows' table, as a DROP EXTENSION may, must not wait for this wait.
    let handle = rolled_back(|| store::visible(work))?;
    let is_open = is_open(&handle.status);
    if is_open && is_standby() {
        let message = format!("cannot wait for a {} on a standby", work.noun());
        return Err(
            UserError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, message).hint("Wait for it on the primary.")
        );
    }
    handle.check_build()?;
    if is_open && let Some(segment) = Segment::attach(handle.segment) {
        if segment.is_of(work) {
            let call = match work {
                Work::Run(_) => "bench.wait".to_owned(),
                _ => format!("bench.wait_{}", work.noun()),
            };
            let releasable = releasable_or_warn(&format!("Call {call} as a separate top-level statement."));
            if releasable.is_none() && roles::acts_for(handle.owner_oid) {
                segment.header().horizon_held.store(1, Relaxed);
            }
            let mut watch = Watch::new(releasable, false);
            while is_under_way(&segment) && until.is_none_or(|until| Instant::now() < until) {
                look(&segment);
                watch.pause(&segment).or_raise();
            }
            watch.end();
        }
        segment.detach();
    }
    store::status(work)
}

/// Ends it; false where it was not under way.
///
/// # Errors
/// 42704 for what does not exist, 42501 for what the caller may not stop, 55000 for what another build of the library leads.
pub fn stop(work: Work) -> Result<bool, UserError> {
    let handle = rolled_back(|| store::handle_of(work))?;
    handle.check_may_stop()?;
    if !is_open(&handle.status) {
        return Ok(false);
    }
    handle.check_build()?;
    let stopped = Segment::peek(handle.segment, |segment| {
        segment.is_of(work) && stop_and_wait(segment, StopReason::Requested)
    });
    Ok(stopped.unwrap_or(false))
}
