//! bench.run, bench.start, bench.wait and bench.stop.

use std::time::{Duration, Instant};

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::required;
use crate::error::OrRaise;
use crate::run::prepare::start::{run_to_the_end, start};
use crate::run::prepare::under_way;
use crate::shm::Work;
use crate::store::{current_status, is_open};

/// The arguments with a workload and clients.
pub(super) fn run_of(workload: Option<String>, clients: Option<i32>, run: RunArguments) -> RunArguments {
    RunArguments { workload, clients, ..run }
}

run_functions! {
    /// Runs a workload and waits for it. See the COMMENT ON.
    bench_run,
    /// Starts a run and returns at once. See the COMMENT ON.
    bench_start(workload: [Option<String>], clients: [Option<i32>])
        -> [i64] = |workload, clients, run| Ok(run_of(workload, clients, run)), run_to_the_end, start
}

/// Waits for a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait(run_id: Option<i64>, timeout: Option<f64>) -> String {
    required("run_id", run_id)
        .and_then(|run_id| under_way::wait(Work::Run(run_id), deadline(timeout)?, |_| {}))
        .or_raise()
}

/// When a wait of so many seconds is over; `None`: never.
///
/// # Errors
/// 22023.
pub fn deadline(timeout: Option<f64>) -> Result<Option<Instant>, UserError> {
    if timeout.is_some_and(|t| !(0.0..=1e9).contains(&t)) {
        return Err(UserError::invalid("timeout must be a number of seconds and not negative"));
    }
    Ok(timeout.map(|secs| Instant::now() + Duration::from_secs_f64(secs)))
}

/// Ends a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop(run_id: Option<i64>) -> bool {
    required("run_id", run_id).and_then(|run_id| under_way::stop(Work::Run(run_id))).or_raise()
}

/// A run's status: what its row says, unless its coordinator is gone. See the COMMENT ON.
#[pg_extern(sql = false)]
fn status_of(status: Option<String>, segment: Option<i64>, run_id: Option<i64>) -> Option<String> {
    status_shown(status, segment, run_id.map(Work::Run))
}

/// What a view shows of what its row says.
pub(super) fn status_shown(
    status: Option<String>,
    segment: Option<i64>,
    work: Option<Work>,
) -> Option<String> {
    let status = status?;
    if !is_open(&status) {
        return Some(status);
    }
    Some(current_status(work?, status, segment? as u32).or_raise())
}
