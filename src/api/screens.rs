//! bench.screen and its kin: which of several settings matter.

use bench_base::error::{UserError, sqlstate};
use bench_base::words::Word;
use bench_model::spec::RunArguments;
use bench_questions::comparison::check_margin;
use bench_questions::screen::{ScreenMetric, screen_of, variants as variants_of_screen};
use bench_questions::sweep::{Asked, Question, SweepArguments};
use bench_results::experiment::{FactorKind, ScreenLine};
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::required;
use super::sides::margin_of;
use crate::error::{OrRaise, for_client, notice};
use crate::experiment::launch::{answer, start};
use crate::experiment::parameters;
use crate::server::rows::{Rows, rows};
use crate::store;

fn screen_rows(lines: Vec<ScreenLine>) -> Rows {
    rows(lines.into_iter().map(|line| ScreenLine { error: line.error.map(for_client), ..line }))
}

/// The sweep that a screen is.
fn screened(
    workload: Option<String>,
    (factors, rounds, margin): (Option<Json>, Option<i32>, Option<f64>),
    clients: Option<i32>,
    run: RunArguments,
) -> Result<SweepArguments, UserError> {
    let margin = margin_of(margin)?;
    let rounds = required("rounds", rounds)?;
    let screen = screen_of(required("factors", factors)?.0, margin, &mut kind_of)?;
    let run = RunArguments { workload, ..run };
    let asked = Asked { variants: variants_of_screen(&screen)?, question: Question::Screen(screen) };
    Ok(SweepArguments::of_asked(asked, clients, rounds, run))
}

/// When a parameter can be set.
fn kind_of(name: &str) -> Result<FactorKind, UserError> {
    match parameters::context(name)?.as_str() {
        "user" | "superuser" => Ok(FactorKind::Session),
        "sighup" => Ok(FactorKind::System),
        "postmaster" => Ok(FactorKind::Restart),
        _ => Err(UserError::new(
            sqlstate::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{name}\" cannot be screened"),
        )
        .hint("It is set as a session begins, or not at all. Give it to runs of your own, and compare them with bench.compare.")),
    }
}

run_functions! {
    /// Finds which settings matter, and waits for it. See the COMMENT ON.
    bench_screen,
    /// Starts a screen and returns its id as a sweep. See the COMMENT ON.
    bench_start_screen(
        workload: [Option<String>], factors: [Option<Json>], rounds: [Option<i32>], margin: [Option<f64>],
        clients: [Option<i32>]
    ) -> [Rows] = |workload, factors, rounds, margin, clients, run| {
        screened(workload, (factors, rounds, margin), clients, run)
    }, screen_and_wait, start
}

/// The effects; none where the sweep waits for a restart.
fn screen_and_wait(arguments: SweepArguments) -> Result<Rows, UserError> {
    let sweep_id = answer(arguments)?;
    if store::waited_for(sweep_id)?.is_some() {
        return Ok(screen_rows(Vec::new()));
    }
    let lines = store::screen_lines(sweep_id, None, None)?;
    notice(
        for_client(bench_questions::screen::sentence(&lines).unwrap_or_default()),
        format!(
            "See SELECT bench.sweep_report({sweep_id}), and bench.screen_results({sweep_id}, 'server_cpu_us')."
        ),
    );
    Ok(screen_rows(lines))
}

/// The effects that a screen has found. See the COMMENT ON.
#[pg_extern(sql = false)]
fn screen_results(sweep_id: Option<i64>, metric: Option<String>, margin: Option<f64>) -> Rows {
    let lines = (|| {
        let metric = metric.map(metric_of).transpose()?;
        margin.map_or(Ok(()), check_margin)?;
        store::screen_lines(required("sweep_id", sweep_id)?, metric, margin)
    })();
    screen_rows(lines.or_raise())
}

fn metric_of(name: String) -> Result<ScreenMetric, UserError> {
    ScreenMetric::from_word(&name).ok_or_else(|| {
        let names = ScreenMetric::words().collect::<Vec<_>>().join(", ");
        UserError::invalid(format!("unrecognized metric \"{name}\"")).hint(format!("Known metrics: {names}."))
    })
}
