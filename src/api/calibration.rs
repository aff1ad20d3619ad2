//! bench.calibrate: equal runs against each other.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::RunArguments;
use bench_questions::calibration::{CalibrationLine, LEAST_RUNS, calibrate};
use bench_questions::sweep::SweepArguments;
use pgrx::prelude::*;
use serde_json::json;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::required;
use crate::error::{OrRaise, for_client, notice};
use crate::experiment::launch::answer;
use crate::server::rows::{Rows, rows};
use crate::store;

run_function! {
    /// Makes equal runs and says how much they vary. See the COMMENT ON.
    bench_calibrate(workload: [Option<String>], rounds: [Option<i32>], clients: [Option<i32>]) -> [Rows] = |workload, rounds, clients, run| {
        let lines = of_runs(SweepArguments {
            clients: Some(vec![clients]),
            rounds,
            variants: Some(json!({})),
            run: RunArguments { workload, ..run },
            calibrates: true,
            ..SweepArguments::default()
        });
        let line = |line: CalibrationLine| CalibrationLine { advice: line.advice.map(for_client), ..line };
        rows(lines.or_raise().into_iter().map(line))
    }
}

/// Makes the runs, which are kept as a sweep.
///
/// # Errors
/// Those of a sweep; 22023 for too few rounds, 55000 where too few of the runs were completed.
fn of_runs(arguments: SweepArguments) -> Result<Vec<CalibrationLine>, UserError> {
    let rounds = required("rounds", arguments.rounds)?;
    if i64::from(rounds) < LEAST_RUNS as i64 {
        return Err(UserError::invalid(format!("rounds must be at least {LEAST_RUNS}, not {rounds}"))
            .hint("Fewer runs show no spread; 10 or more are better."));
    }
    let sweep_id = answer(arguments)?;
    notice(
        format!("the runs belong to sweep {sweep_id}"),
        format!("For a report: SELECT bench.sweep_report({sweep_id})."),
    );
    let mut runs = Vec::new();
    for run in store::sweep_document(sweep_id)?.runs {
        pgrx::check_for_interrupts!();
        if let (Some(run_id), Some("completed"), None) = (run.run_id, run.status.as_deref(), run.error) {
            runs.push(store::document(run_id)?);
        }
    }
    if runs.len() < LEAST_RUNS {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("only {} of {rounds} runs were completed", runs.len()),
        )
        .hint(format!("See SELECT * FROM bench.sweep_runs WHERE sweep_id = {sweep_id}.")));
    }
    Ok(calibrate(&runs))
}
