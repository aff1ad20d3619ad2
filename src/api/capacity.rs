//! bench.capacity and bench.start_capacity: how much load a server sustains.

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use bench_questions::capacity::SearchArguments;
use bench_questions::sweep::SweepArguments;
use bench_report::experiment::answer_sentence;
use pgrx::prelude::*;
use serde_json::json;

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use crate::error::{OrRaise, notice};
use crate::experiment::launch::{answer, start};
use crate::run::prepare::prepared;
use crate::store::sweeps;

run_functions! {
    /// Searches for the rate that a server sustains and waits for the end. See the COMMENT ON.
    bench_capacity,
    /// Starts a search and returns at once. See the COMMENT ON.
    bench_start_capacity(
        workload: [Option<String>], latency_limits: [Option<Vec<Option<f64>>>], percentile: [Option<f64>],
        trials: [Option<i32>], margin: [Option<f64>], rounds: [Option<i32>], max_failed: [Option<f64>],
        clients: [Option<i32>]
    ) -> [i64] = |workload, latency_limits, percentile, trials, margin, rounds, max_failed, clients, run| {
        let search = SearchArguments { latency_limits, percentile, trials, margin, rounds, max_failed };
        search_for(workload, clients, search, run)
    }, search_and_wait, start
}

/// The sweep that a search is, of trials as a run's arguments have them.
fn search_for(
    workload: Option<String>,
    clients: Option<i32>,
    search: SearchArguments,
    run: RunArguments,
) -> Result<SweepArguments, UserError> {
    let (search, run) = search.of_trials(RunArguments { workload, ..run })?;
    let clients = match clients {
        Some(clients) => clients,
        None => prepared::clients(run.driver.as_deref(), run.target.is_some(), run.nodes.as_deref())?,
    };
    Ok(SweepArguments {
        clients: Some(vec![Some(clients)]),
        // Those of the search.
        rounds: Some(1),
        variants: Some(json!({})),
        run,
        search: Some(search),
        ..SweepArguments::default()
    })
}

fn search_and_wait(arguments: SweepArguments) -> Result<i64, UserError> {
    let sweep_id = answer(arguments)?;
    for found in sweeps::answers(sweep_id)? {
        notice(
            answer_sentence(&found),
            format!(
                "See SELECT * FROM bench.capacities WHERE sweep_id = {sweep_id}, and bench.sweep_report({sweep_id})."
            ),
        );
    }
    Ok(sweep_id)
}
