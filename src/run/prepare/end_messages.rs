//! What is said at the end of a run.

use bench_base::error::{UserError, is_of_data};

use crate::error::{notice, warn};
use crate::shm::Work;
use crate::store;

/// Says when a run is not what was asked for, or its samples are not what they should be.
pub fn warn_of_status(run_id: i64) -> Result<(), UserError> {
    if let Some(misplaced) = store::misplaced(run_id)? {
        warn(
            format!("run {run_id} counted {misplaced} transactions in the sample of an earlier interval"),
            "The coordinator was delayed. The results of the whole run are correct; a longer sample_interval makes the samples correct, too.",
        );
    }
    let status = store::status(Work::Run(run_id))?;
    if status != "completed" {
        let why = store::error_line(run_id)?;
        let (columns, view) = if store::has_errors(run_id)? { ("*", "errors") } else { ("error", "runs") };
        let hint = store::error_hint(run_id)?.map(|hint| hint + "\n").unwrap_or_default();
        warn(
            format!("run {run_id} is {status}: {}", why.unwrap_or_default()),
            format!("{hint}See SELECT {columns} FROM bench.{view} WHERE run_id = {run_id}."),
        );
    }
    Ok(())
}

/// Says how many transactions of a capture failed, with the client going on, and why.
pub fn tell_of_errors(run_id: i64) -> Result<(), UserError> {
    let errors = store::failures(run_id)?.into_iter().filter(|(state, _)| is_of_data(state));
    let (mut sum, mut states) = (0, Vec::new());
    for (state, failed) in errors {
        sum += failed;
        states.push(format!("{state} ({failed})"));
    }
    if sum > 0 {
        notice(
            format!(
                "{sum} transactions of run {run_id} failed with data errors: SQLSTATE {}",
                states.join(", ")
            ),
            "Clients of a capture continue after such errors. Typical causes are rows that runs have deleted and \
             keys that they have inserted: run it on a fresh copy of the data. See bench.errors and bench.fidelity.",
        );
    }
    Ok(())
}

/// What pgbench prints at its end, for a run.
pub fn closing_report(run_id: i64) -> Result<String, UserError> {
    Ok(bench_report::closing(&store::headline(run_id)?))
}
