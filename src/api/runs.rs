//! bench.run, bench.start, bench.wait and bench.stop.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::RunArguments;
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::required;
use crate::catalog::{self, current_status, is_open};
use crate::error::OrRaise;
use crate::launch::handle::{Watch, stop_and_wait};
use crate::launch::horizon::releasable_or_warn;
use crate::launch::run::{run_to_the_end, start};
use crate::server::database::is_standby;
use crate::server::roles;
use crate::shm::{Segment, StopReason, Work, build, is_under_way};

/// The arguments with a workload and clients.
pub(super) fn run_of(workload: Option<String>, clients: Option<i32>, run: RunArguments) -> RunArguments {
    RunArguments { workload, clients, ..run }
}

run_function! {
    /// Runs a workload and waits for it. See the COMMENT ON.
    bench_run(workload: [Option<String>], clients: [Option<i32>]) -> [i64] =
        |workload, clients, run| run_to_the_end(run_of(workload, clients, run)).or_raise()
}

run_function! {
    /// Starts a run and returns at once. See the COMMENT ON.
    bench_start(workload: [Option<String>], clients: [Option<i32>]) -> [i64] =
        |workload, clients, run| start(run_of(workload, clients, run)).or_raise()
}

/// Waits for a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait(run_id: Option<i64>, timeout: Option<f64>) -> String {
    wait_for(run_id, timeout).or_raise()
}

/// When a wait of so many seconds is over; `None`: never.
///
/// # Errors
/// 22023.
pub fn deadline(timeout: Option<f64>) -> Result<Option<Instant>, UserError> {
    if timeout.is_some_and(|t| !(0.0..=1e9).contains(&t)) {
        return Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            "timeout must be a number of seconds and not negative",
        ));
    }
    Ok(timeout.map(|secs| Instant::now() + Duration::from_secs_f64(secs)))
}

fn wait_for(run_id: Option<i64>, timeout: Option<f64>) -> Result<String, UserError> {
    let run_id = required("run_id", run_id)?;
    let deadline = deadline(timeout)?;
    let handle = catalog::visible_run(run_id)?;
    let is_open = is_open(&handle.status);
    if is_open && is_standby() {
        return Err(UserError::new(
            sqlstate::READ_ONLY_SQL_TRANSACTION,
            "cannot wait for a run on a standby",
        )
        .hint("Wait for it on the primary."));
    }
    if is_open && build::is_led_by_other(handle.segment, Work::Run(run_id)) {
        return Err(build::started_by_other(&format!("run {run_id}")));
    }
    if is_open && let Some(segment) = Segment::attach(handle.segment) {
        let mine = segment.is_of(Work::Run(run_id));
        if mine {
            let releasable = releasable_or_warn("Call bench.wait as a separate top-level statement.");
            if releasable.is_none() && roles::acts_for(handle.owner_oid) {
                segment.header().horizon_held.store(1, Relaxed);
            }
            let mut watch = Watch::new(releasable, false);
            while is_under_way(&segment) && deadline.is_none_or(|d| Instant::now() < d) {
                watch.pause(&segment).or_raise();
            }
            watch.end();
        }
        segment.detach();
    }
    catalog::status(run_id)
}

/// Ends a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop(run_id: Option<i64>) -> bool {
    stop_run(run_id).or_raise()
}

pub(super) fn stop_run(run_id: Option<i64>) -> Result<bool, UserError> {
    let run_id = required("run_id", run_id)?;
    let handle = catalog::run_handle(run_id)?;
    if !catalog::may_stop(handle.owner_oid) {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("run {run_id} belongs to role \"{}\"", handle.role),
        )
        .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."));
    }
    if !is_open(&handle.status) {
        return Ok(false);
    }
    if build::is_led_by_other(handle.segment, Work::Run(run_id)) {
        return Err(build::started_by_other(&format!("run {run_id}")));
    }
    Ok(Segment::peek(handle.segment, |segment| {
        segment.is_of(Work::Run(run_id)) && stop_and_wait(segment, StopReason::Requested)
    })
    .unwrap_or(false))
}

/// A run's status: what its row says, unless its coordinator is gone. See the COMMENT ON.
#[pg_extern(sql = false)]
fn status_of(status: Option<String>, segment: Option<i64>, run_id: Option<i64>) -> Option<String> {
    let status = status?;
    if !is_open(&status) {
        return Some(status);
    }
    Some(current_status(status, segment? as u32, run_id?).or_raise())
}
