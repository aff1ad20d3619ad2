//! What is said at the end of a run.

use bench_core::error::UserError;

use crate::catalog;
use crate::error::warn;

/// Says when a run is not what was asked for, or its samples are not what they should be.
pub fn warn_of_status(run_id: i64) -> Result<(), UserError> {
    if let Some(misplaced) = catalog::misplaced(run_id)? {
        warn(
            format!("run {run_id} counted {misplaced} transactions in the sample of an earlier interval"),
            "The coordinator was delayed. The results of the whole run are correct; a longer sample_interval makes the samples correct, too.",
        );
    }
    let status = catalog::status(run_id)?;
    if status != "completed" {
        let why = catalog::error_line(run_id)?;
        let (columns, view) = if catalog::has_errors(run_id)? { ("*", "errors") } else { ("error", "runs") };
        let hint = catalog::error_hint(run_id)?.map(|hint| hint + "\n").unwrap_or_default();
        warn(
            format!("run {run_id} is {status}: {}", why.unwrap_or_default()),
            format!("{hint}See SELECT {columns} FROM bench.{view} WHERE run_id = {run_id}."),
        );
    }
    Ok(())
}

/// What pgbench prints at its end, for a run.
pub fn closing_report(run_id: i64) -> Result<String, UserError> {
    Ok(bench_core::report::closing(&catalog::headline(run_id)?))
}
