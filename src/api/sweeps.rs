//! bench.sweep, and what asks a question by a sweep: bench.capacity, bench.calibrate, bench.screen, bench.index_worth and their
//! kin.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_base::words::Word;
use bench_findings::findings;
use bench_model::spec::{RunArguments, check_text};
use bench_questions::calibration::{CalibrationLine, LEAST_RUNS, calibrate};
use bench_questions::capacity::SearchArguments;
use bench_questions::comparison::check_margin;
use bench_questions::rehearsal::sentences;
use bench_questions::screen::{ScreenMetric, screen_of, variants as variants_of_screen};
use bench_questions::sweep::{Asked, Question, Resumption, SweepArguments, SweepSpec};
use bench_report::experiment::{Experiment, answer_sentence, rehearsal_junit, render, schema};
use bench_report::{Format, with_unreplayed};
use bench_results::Finding;
use bench_results::experiment::{
    ExperimentDocument, ExperimentRun, FactorKind, IndexLine, RunFinding, RunSamples, ScreenLine,
};
use bench_results::rehearsal::RehearsalLine;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::comparisons::margin_of;
use super::reports::format_of;
use super::required;
use super::runs::{deadline, run_of, status_shown};
use crate::error::{OrRaise, for_client, notice};
use crate::experiment::launch::{answer, check, look_at_run, spec_of, start, start_spec};
use crate::experiment::rehearse::ask::RehearsalArguments;
use crate::experiment::{index_worth, parameters, rehearse};
use crate::guard::session_role::check_stored_run_as;
use crate::launch::handle::Watch;
use crate::run::prepare::pauses::leave_out;
use crate::run::prepare::{prepared, under_way};
use crate::server::jsonb::Jsonb;
use crate::server::roles;
use crate::server::rows::{Rows, rows};
use crate::server::spi::quote_identifier;
use crate::shm::{Segment, Work, is_under_way};
use crate::store::fidelity::unreplayed_of_sweep;
use crate::store::{self, sweeps};

run_functions! {
    /// Runs a workload at several rungs of clients and waits for it.
    bench_sweep,
    /// Starts a sweep and returns at once.
    bench_start_sweep(
        workload: [Option<String>], clients: [Option<Vec<Option<i32>>>], rounds: [Option<i32>],
        variants: [Option<Jsonb>]
    ) -> [i64] = |workload, clients, rounds, variants: Option<Jsonb>, run| {
        let (variants, run) = (variants.map(|variants| variants.0), RunArguments { workload, ..run });
        Ok(SweepArguments { clients, rounds, variants, run, ..SweepArguments::default() })
    }, answer, start
}

/// Waits for a sweep.
#[pg_extern(sql = false)]
fn wait_sweep(sweep_id: Option<i64>, timeout: Option<f64>) -> String {
    let mut watch = Watch::new(None, false);
    required("sweep_id", sweep_id)
        .and_then(|sweep_id| {
            let look = |segment: &Segment| look_at_run(segment, &mut watch);
            under_way::wait(Work::Sweep(sweep_id), deadline(timeout)?, look)
        })
        .or_raise()
}

/// A sweep's status: what its row says, unless its leader is gone.
#[pg_extern(sql = false)]
fn sweep_status_of(status: Option<String>, segment: Option<i64>, sweep_id: Option<i64>) -> Option<String> {
    status_shown(status, segment, sweep_id.map(Work::Sweep))
}

/// Where a sweep stands: a row for bench.sweeps, or none when it is over.
#[pg_extern(sql = false)]
fn sweep_progress(segment: Option<i64>, sweep_id: Option<i64>) -> Rows {
    let row = segment.zip(sweep_id).and_then(|(segment, sweep_id)| {
        Segment::peek(segment as u32, |segment| {
            let progress = &segment.header().sweep;
            (segment.is_of(Work::Sweep(sweep_id)) && is_under_way(segment)).then(|| {
                // How many runs a search makes is not known.
                let total = Some(progress.total.load(Relaxed)).filter(|total| *total > 0);
                json!({ "done": progress.done.load(Acquire), "total": total })
            })
        })
        .flatten()
        .filter(|_| store::visible(Work::Sweep(sweep_id)).is_ok())
    });
    rows(row)
}

/// Ends a sweep.
#[pg_extern(sql = false)]
fn stop_sweep(sweep_id: Option<i64>) -> bool {
    (|| {
        let work = Work::Sweep(required("sweep_id", sweep_id)?);
        if under_way::stop(work)? {
            return Ok(true);
        }
        if store::status(work)? != WAITING {
            return Ok(false);
        }
        // What it has written is put back by a leader: ALTER SYSTEM stands in no function.
        let options = store::sweep_options(work.id())?;
        parameters::check(&options)?;
        start_spec(&SweepSpec { resumption: Resumption::GivesUp, ..spec_of(options, Some(work.id())) })?;
        under_way::wait(work, None, |_| {}).map(|status| status != WAITING)
    })()
    .or_raise()
}

/// The status of a sweep that waits for a restart of the server.
const WAITING: &str = "waiting for restart";

/// Takes up a sweep that ended early.
#[pg_extern(sql = false)]
fn bench_resume_sweep(sweep_id: Option<i64>, start_failure: Option<String>) -> i64 {
    (|| {
        let sweep_id = required("sweep_id", sweep_id)?;
        start_failure.iter().try_for_each(|text| check_text("start_failure", text))?;
        let handle = store::handle_of(Work::Sweep(sweep_id))?;
        // A workload runs as the role that called, and all of a sweep's as the same.
        if handle.owner_oid != roles::current_role_oid() {
            return Err(UserError::new(
                sqlstate::INSUFFICIENT_PRIVILEGE,
                format!("sweep {sweep_id} belongs to role \"{}\"", handle.role),
            )
            .hint(format!("SET ROLE {} before the call.", quote_identifier(&handle.role))));
        }
        let status = store::status(Work::Sweep(sweep_id))?;
        match status.as_str() {
            "running" => return Err(store::under_way(sweep_id)),
            "completed" => {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    format!("sweep {sweep_id} is completed"),
                ));
            }
            WAITING => {}
            _ if start_failure.is_some() => {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    format!("sweep {sweep_id} does not wait for a restart"),
                )
                .hint("Leave start_failure out."));
            }
            _ => {}
        }
        crate::launch::checks::check_server()?;
        let options = store::sweep_options(sweep_id)?;
        let run_as = options.setup.run.get("run_as").and_then(Value::as_str);
        check_stored_run_as(run_as)
            .map_err(|error| error.hint("Start the sweep anew, with run_as in that call."))?;
        check(&options)?;
        let resumption = start_failure.map_or(Resumption::GoesOn, Resumption::DoesNotStart);
        start_spec(&SweepSpec { resumption, ..spec_of(options, Some(sweep_id)) })
    })()
    .or_raise()
}

/// A report of a rehearsal.
#[pg_extern(sql = false)]
fn rehearse_report(sweep_id: Option<i64>, format: Option<String>) -> String {
    if format.as_deref() != Some("junit") {
        return sweep_report(sweep_id, format);
    }
    let document = required("sweep_id", sweep_id).and_then(|sweep_id| {
        store::rehearsal_lines(sweep_id)?;
        store::sweep_document(sweep_id)
    });
    for_client(rehearsal_junit(&document.or_raise()))
}

/// A report of a sweep.
#[pg_extern(sql = false)]
fn sweep_report(sweep_id: Option<i64>, format: Option<String>) -> String {
    (|| {
        let format = format_of(format)?;
        if format == Format::Schema {
            return Ok(schema());
        }
        let document = store::sweep_document(required("sweep_id", sweep_id)?)?;
        Ok(for_client(render(&Experiment::new(with_findings(document)?, None), format)))
    })()
    .or_raise()
}

/// The sweep with the findings on each of its completed runs, and what else is known of these.
fn with_findings(mut document: ExperimentDocument) -> Result<ExperimentDocument, UserError> {
    let is_rehearsal = !document.rehearsals.is_empty();
    for run in document.runs.iter_mut().filter(|run| run.is_completed()) {
        let Some(run_id) = run.run_id else { continue };
        let of_run = store::document(run_id)?;
        let found = findings(&of_run).into_iter();
        let findings = found
            .map(|Finding { severity, topic, finding, .. }| RunFinding { severity, topic, finding })
            .collect();
        *run = ExperimentRun { findings, ..std::mem::take(run).with_figures(&of_run) };
        if is_rehearsal {
            run.samples = RunSamples { elapsed: of_run.samples.elapsed, tps: of_run.samples.tps };
        }
    }
    Ok(document)
}

run_functions! {
    /// Searches for the rate that a server sustains and waits for the end.
    bench_capacity,
    /// Starts a search and returns at once.
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

run_function! {
    /// Makes equal runs and says how much they vary.
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
    let run = leave_out(arguments.run, &[])?;
    let sweep_id = answer(SweepArguments { run, ..arguments })?;
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
    let run = leave_out(RunArguments { workload, ..run }, &[])?;
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
    /// Finds which settings matter, and waits for it.
    bench_screen,
    /// Starts a screen and returns its id as a sweep.
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
    let sentence = bench_questions::screen::sentence(&lines).unwrap_or_default();
    notice(
        for_client(with_unreplayed(sentence, unreplayed_of_sweep(sweep_id)?.as_ref())),
        format!(
            "See SELECT bench.sweep_report({sweep_id}), and bench.screen_results({sweep_id}, 'server_cpu_us')."
        ),
    );
    Ok(screen_rows(lines))
}

/// The effects that a screen has found.
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
    let run = leave_out(run, &[])?;
    let asked = index_worth::ask(index.as_deref(), margin, &run)?;
    Ok(SweepArguments::of_asked(asked, clients, rounds, run))
}

run_functions! {
    /// Says what indexes are worth, and waits for it.
    bench_index_worth,
    /// Starts to look at indexes and returns its id as a sweep.
    bench_start_index_worth(
        workload: [Option<String>], index: [Option<String>], rounds: [Option<i32>], margin: [Option<f64>],
        clients: [Option<i32>]
    ) -> [Rows] = |workload, index, rounds, margin, clients, run| {
        asked(workload, (index, rounds, margin), clients, run)
    }, ask_and_wait, start
}

run_functions! {
    /// Rehearses a change under load, and waits for it.
    bench_rehearse,
    /// Starts a rehearsal and returns its id as a sweep.
    bench_start_rehearse(
        workload: [Option<String>], change: [Option<Json>], blocker: [Option<String>], blocker_secs: [Option<f64>],
        lock_timeout: [Option<f64>], tries: [Option<i32>], pause: [Option<f64>], quiet_secs: [Option<f64>],
        wait_limit: [Option<f64>], give_up: [Option<f64>], change_limit: [Option<f64>], alternative: [Option<bool>],
        undo: [Option<String>], clients: [Option<i32>]
    ) -> [Rows] = |workload, change: Option<Json>, blocker, blocker_secs, lock_timeout, tries, pause, quiet_secs,
                   wait_limit, give_up, change_limit, alternative, undo, clients, run| {
        let arguments = RehearsalArguments {
            change: change.map(|change| change.0), blocker, blocker_secs, lock_timeout, tries, pause, quiet_secs,
            wait_limit, give_up, change_limit, alternative, undo,
        };
        rehearsed(workload, arguments, clients, run)
    }, rehearse_and_wait, start
}

/// The sweep that a rehearsal is.
fn rehearsed(
    workload: Option<String>,
    arguments: RehearsalArguments,
    clients: Option<i32>,
    run: RunArguments,
) -> Result<SweepArguments, UserError> {
    let clients = match clients {
        Some(clients) => clients,
        None => prepared::clients(run.driver.as_deref(), run.target.is_some(), run.nodes.as_deref())?,
    };
    let (asked, run) = rehearse::ask::ask(arguments, RunArguments { workload, ..run })?;
    Ok(SweepArguments::of_asked(asked, Some(clients), 1, run))
}

fn rehearse_and_wait(arguments: SweepArguments) -> Result<Rows, UserError> {
    let sweep_id = answer(arguments)?;
    let lines = store::rehearsal_lines(sweep_id)?;
    for line in &lines {
        notice(
            for_client(format!("{}: {}", line.variant, sentences(line).join(" "))),
            format!("See SELECT bench.sweep_report({sweep_id}) and bench.rehearsal_queue."),
        );
    }
    Ok(rehearsal_rows(lines))
}

fn rehearsal_rows(lines: Vec<RehearsalLine>) -> Rows {
    rows(lines.into_iter().map(|line| {
        let answer = for_client(sentences(&line).join(" "));
        RehearsalRow { answer, line: RehearsalLine { error: line.error.map(for_client), ..line } }
    }))
}

/// A row of a rehearsal.
#[derive(Serialize)]
struct RehearsalRow {
    #[serde(flatten)]
    line: RehearsalLine,
    answer: String,
}

/// What a rehearsal has shown.
#[pg_extern(sql = false)]
fn rehearse_results(sweep_id: Option<i64>) -> Rows {
    rehearsal_rows(required("sweep_id", sweep_id).and_then(store::rehearsal_lines).or_raise())
}

fn ask_and_wait(arguments: SweepArguments) -> Result<Rows, UserError> {
    let sweep_id = answer(arguments)?;
    let lines = store::index_lines(sweep_id, None, None)?;
    let sentence = bench_questions::index_worth::sentence(&lines);
    notice(
        for_client(with_unreplayed(sentence, unreplayed_of_sweep(sweep_id)?.as_ref())),
        format!(
            "See bench.index_worth_results({sweep_id}, 'server_cpu_us'), and bench.duel_statements(reads_run_id)."
        ),
    );
    Ok(index_rows(lines))
}

/// What has been found of indexes.
#[pg_extern(sql = false)]
fn index_worth_results(sweep_id: Option<i64>, metric: Option<String>, margin: Option<f64>) -> Rows {
    let lines = (|| {
        let of_processor = match metric.as_deref() {
            None => None,
            Some("latency_avg_ms") => Some(false),
            Some("server_cpu_us") => Some(true),
            Some(other) => {
                let message = format!("unrecognized metric \"{other}\"");
                return Err(UserError::invalid(message).hint("Known metrics: latency_avg_ms, server_cpu_us."));
            }
        };
        margin.map_or(Ok(()), check_margin)?;
        store::index_lines(required("sweep_id", sweep_id)?, of_processor, margin)
    })();
    index_rows(lines.or_raise())
}
