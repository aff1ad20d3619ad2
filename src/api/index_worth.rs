//! bench.index_worth and its kin: what indexes save, and what they cost.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::RunArguments;
use bench_questions::comparison::check_margin;
use bench_questions::sweep::SweepArguments;
use bench_results::experiment::IndexLine;
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::required;
use super::runs::run_of;
use super::sides::margin_of;
use crate::error::{OrRaise, for_client, notice};
use crate::experiment::index_worth;
use crate::experiment::launch::{answer, start};
use crate::server::rows::{Rows, rows};
use crate::store;

fn index_rows(lines: Vec<IndexLine>) -> Rows {
    rows(lines.into_iter().map(|line| IndexLine { error: line.error.map(for_client), ..line }))
}

/// The sweep that answers it.
fn asked(
    workload: Option<String>,
    (index, rounds, margin): (Option<String>, Option<i32>, Option<f64>),
    clients: Option<i32>,
    run: RunArguments,
) -> Result<SweepArguments, UserError> {
    let margin = margin_of(margin)?;
    let rounds = required("rounds", rounds)?;
    let run = run_of(workload, clients, run);
    if run.target.is_some() {
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, "indexes cannot be hidden on a target")
            .hint("Install the extension there."));
    }
    let asked = index_worth::ask(index.as_deref(), margin, &run)?;
    Ok(SweepArguments::of_asked(asked, clients, rounds, run))
}

run_functions! {
    /// Says what indexes are worth, and waits for it. See the COMMENT ON.
    bench_index_worth,
    /// Starts to look at indexes and returns its id as a sweep. See the COMMENT ON.
    bench_start_index_worth(
        workload: [Option<String>], index: [Option<String>], rounds: [Option<i32>], margin: [Option<f64>],
        clients: [Option<i32>]
    ) -> [Rows] = |workload, index, rounds, margin, clients, run| {
        asked(workload, (index, rounds, margin), clients, run)
    }, ask_and_wait, start
}

fn ask_and_wait(arguments: SweepArguments) -> Result<Rows, UserError> {
    let sweep_id = answer(arguments)?;
    let lines = store::index_lines(sweep_id, false, None)?;
    notice(
        for_client(bench_questions::index_worth::sentence(&lines)),
        format!(
            "See bench.index_worth_results({sweep_id}, 'server_cpu_us'), and bench.duel_statements(reads_run_id)."
        ),
    );
    Ok(index_rows(lines))
}

/// What has been found of indexes. See the COMMENT ON.
#[pg_extern(sql = false)]
fn index_worth_results(sweep_id: Option<i64>, metric: Option<String>, margin: Option<f64>) -> Rows {
    let lines = (|| {
        let of_processor = match required("metric", metric)?.as_str() {
            "latency_avg_ms" => false,
            "server_cpu_us" => true,
            other => {
                let message = format!("unrecognized metric \"{other}\"");
                return Err(UserError::invalid(message).hint("Known metrics: latency_avg_ms, server_cpu_us."));
            }
        };
        margin.map_or(Ok(()), check_margin)?;
        store::index_lines(required("sweep_id", sweep_id)?, of_processor, margin)
    })();
    index_rows(lines.or_raise())
}
