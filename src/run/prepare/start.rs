//! The start of a prepared run's coordinator, the wait of the calling session, its report, and the risks before a run.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, is_of_data, sqlstate};
use bench_findings::preflight::{
    FixtureState, LOOK_MS, PlannedRun, Risk, ServerState, Situation, announced, risks,
};
use bench_model::part::PartRequest;
use bench_model::spec::{Before, Driver, FixtureSpec, RunArguments, RunSpec};
use bench_stats::duel::BATCHES;
use pgrx::pg_sys;

use super::prepared::{PreparedRun, dry_run, plan_of, prepare, prepare_part};
use super::sessions::{tell_role, workers_of};
use super::settings;
use super::under_way::RunReporter;
use crate::error::{notice, warn};
use crate::launch::handle::{LaunchHandle, releasable_or_warn, stop_and_wait};
use crate::observe::environment::{self, MachineLook, known};
use crate::run::coordinator;
use crate::run::feeders::RowLimit;
use crate::run::nodes::node_connectivity::{self, NodePairs};
use crate::server::process::my_pid;
use crate::server::signals;
use crate::shm::{Segment, SegmentShape, StopReason, Work, log_for, ring_for};
use crate::store;

/// The most shared memory of a run, in bytes. All of it is allocated at the start, for the worst case.
const MAX_SEGMENT: usize = 1 << 30;

/// Starts the coordinator.
pub fn launch(prepared: &PreparedRun, caller_pid: i32) -> Result<LaunchHandle, UserError> {
    let PreparedRun { spec, commands, secrets, fed } = prepared;
    let commands = *commands;
    let json = serde_json::to_string(spec).unwrap_or_default();
    // The coordinator of a run on several nodes has no clients of its own.
    let has_clients = !spec.is_of_several_nodes();
    let shape = SegmentShape {
        slots: if has_clients { workers_of(&spec.options) } else { 0 },
        connections: if has_clients && spec.options.driver == Driver::Wire {
            spec.options.clients
        } else {
            0
        },
        scripts: if has_clients { spec.scripts.len() as u32 } else { 0 },
        commands: if has_clients { commands } else { 0 },
        ring: ring_for(spec.options.sample_interval_secs),
        log: if has_clients && spec.options.log_rate > 0.0 { log_for(workers_of(&spec.options)) } else { 0 },
        nodes: spec.cluster.as_ref().map_or(0, |cluster| cluster.nodes.len() as u32),
        feeders: fed.feeders,
        batches: if spec.options.duel.is_some() { BATCHES as u32 } else { 0 },
        spec_bytes: json.len() as u32,
        fed_bytes: fed.bytes.len() as u32,
    };
    if shape.bytes() > MAX_SEGMENT {
        return Err(UserError::new(
            sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
            format!("the run would need {} MB of shared memory", shape.bytes() >> 20),
        )
        .detail(format!(
            "For {} clients with {commands} commands in {} scripts, and samples every {} s; the limit is {} MB.",
            spec.options.clients,
            spec.scripts.len(),
            spec.options.sample_interval_secs,
            MAX_SEGMENT >> 20
        ))
        .hint("Use fewer clients, a smaller mix, or a longer sample_interval."));
    }
    let segment = Segment::create(shape, &json, &fed.bytes);
    segment.header().caller_pid.store(caller_pid, Relaxed);
    segment.header().horizon_held.store(spec.horizon_held.into(), Relaxed);
    segment.header().exit_on_abort.store(spec.options.exit_on_abort.into(), Relaxed);
    if spec.options.driver == Driver::Wire {
        segment.header().secret.set(&serde_json::to_string(secrets).unwrap_or_default())?;
    }
    // Role 0: the coordinator is the bootstrap superuser, because it writes the results.
    LaunchHandle::start(segment, coordinator::KIND, spec.database_oid, 0, workers_of(&spec.options))
}

/// Prepares a run that starts now, with NOTICEs for its caller.
fn prepare_to_start(arguments: RunArguments, is_waited_for: bool) -> Result<PreparedRun, UserError> {
    let prepared = prepare(arguments, RowLimit::All, NodePairs::Try)?;
    tell_role(&prepared.spec)?;
    settings::tell_what_does_not_apply(&prepared.spec.options)?;
    tell_risks(&prepared.spec, &prepared.spec.options.before, is_waited_for)?;
    Ok(prepared)
}

/// Runs a workload, waits for its end with NOTICEs, and returns the run's id.
pub fn run_to_the_end(arguments: RunArguments) -> Result<i64, UserError> {
    let mut prepared = prepare_to_start(arguments, true)?;
    let releasable = releasable_or_warn(
        "Meanwhile, dead rows cannot be removed, which slows update workloads. Call bench.run as a separate top-level statement, or use bench.start.",
    );
    prepared.spec.horizon_held = releasable.is_none();
    let launched = launch(&prepared, my_pid())?;
    launched.tie();
    let mut reporter = RunReporter::new(&prepared.spec);
    let waited = launched.wait_until_canceled(releasable, |segment| {
        reporter.report(segment);
        false
    });
    if waited.is_err() {
        stop_and_wait(&launched.segment, StopReason::CallerGone);
    }
    let run_id = launched.segment.run_id();
    let measured = launched.segment.header().gate.load(Relaxed) != 0;
    launched.leave();
    // After a cancel, report what was measured before raising it, as pgbench does at SIGINT.
    if waited.is_err()
        && measured
        && let Ok(report) = closing_report(run_id)
    {
        pgrx::notice!("{report}");
    }
    waited??;
    pgrx::notice!("{}", closing_report(run_id)?);
    if prepared.spec.scripts.iter().any(|script| script.captured) {
        report_data_errors(run_id)?;
    }
    warn_of_status(run_id)?;
    Ok(run_id)
}

/// Raises WARNINGs if samples are incorrect or the run is not completed.
fn warn_of_status(run_id: i64) -> Result<(), UserError> {
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

/// Raises a NOTICE with the number of a capture's transactions that failed with data errors, after which clients continue.
fn report_data_errors(run_id: i64) -> Result<(), UserError> {
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

/// Returns the report on a run in the form of pgbench's.
fn closing_report(run_id: i64) -> Result<String, UserError> {
    Ok(bench_report::closing(&store::headline(run_id)?))
}

/// Starts a run and returns its id as soon as it has one.
pub fn start(arguments: RunArguments) -> Result<i64, UserError> {
    let (result, run_id) = start_prepared(&prepare_to_start(arguments, false)?)?;
    result.map(|()| run_id)
}

/// Starts a prepared run, and returns as soon as it has an id, or its error and the id 0 if it failed before.
fn start_prepared(prepared: &PreparedRun) -> Result<(Result<(), UserError>, i64), UserError> {
    let launched = launch(prepared, my_pid())?;
    // Until the run has an id, the end of this call ends it.
    launched.tie();
    Ok(launched.until_known())
}

// This node's part of another node's run.

/// Starts this node's part of another node's run, and returns its id.
///
/// # Errors
/// That of a part that failed before it had an id.
pub fn start_part(request: serde_json::Value) -> Result<i64, UserError> {
    let request: PartRequest = serde_json::from_value(request).map_err(|e| invalid(&e.to_string()))?;
    if !store::may_run()? {
        return Err(node_connectivity::may_not_run());
    }
    if request.spec.part_of.is_none() {
        return Err(invalid("part_of is missing"));
    }
    // A part that failed later is asked for its error by its id.
    let (result, run_id) = start_prepared(&prepare_part(request)?)?;
    if run_id != 0 { Ok(run_id) } else { result.map(|()| run_id) }
}

fn invalid(message: &str) -> UserError {
    UserError::invalid(format!("invalid request for a part of a run: {message}"))
}

// Risks for a run's results: rows of bench.preflight, and NOTICEs of a run.

/// Finds the risks for a run with these arguments, without starting it.
///
/// # Errors
/// Those of [`dry_run`].
pub fn find_risks(arguments: RunArguments) -> Result<Vec<Risk>, UserError> {
    let dry_run = dry_run(arguments)?;
    let machine = MachineLook::begin();
    let mut server = ServerState::default();
    if dry_run.plan.target.is_none() {
        server = server_state(&dry_run.fixtures, true)?;
        server.fixtures = Some(fixture_states(&dry_run.fixtures)?);
    }
    server.statement_timeout_secs = signals::of_statement();
    let machine = machine.end(LOOK_MS);
    server.active = server.active.min(environment::active()?);
    Ok(risks(&Situation { plan: dry_run.plan, server, machine }))
}

/// Raises a NOTICE for each risk for a run that does the steps `before` first. Before runs of a second or more, this also
/// observes other sessions and the machine for a moment. `is_waited_for`: statement_timeout covers the run.
pub fn tell_risks(spec: &RunSpec, before: &[Before], is_waited_for: bool) -> Result<(), UserError> {
    let plan = PlannedRun { before: before.to_vec(), ..plan_of(&spec.options, &spec.scripts) };
    let look_ms = plan.look_ms();
    let begun = look_ms.map(|_| MachineLook::begin());
    let mut server = ServerState::default();
    if spec.target.is_none() {
        server = server_state(&spec.fixtures, look_ms.is_some())?;
    }
    server.statement_timeout_secs = is_waited_for.then(signals::of_statement).flatten();
    let machine = begun.zip(look_ms).map(|(look, ms)| look.end(ms)).unwrap_or_default();
    if server.active.is_some() {
        server.active = server.active.min(environment::active()?);
    }
    for risk in announced(&Situation { plan, server, machine }) {
        notice(risk.message(), risk.advice);
    }
    Ok(())
}

/// Reads the server's state; with `is_observed`, also the number of active sessions.
fn server_state(fixtures: &[FixtureSpec], is_observed: bool) -> Result<ServerState, UserError> {
    // Counted here and after the observation; the lower number excludes short statements.
    let active = if is_observed { environment::active()? } else { None };
    let tables: Vec<pg_sys::Oid> = fixtures.iter().flat_map(tables_of).collect();
    Ok(ServerState {
        active,
        checkpoint: environment::checkpoint()?,
        locks: environment::locks(&tables)?,
        tables: environment::tables(&tables)?,
        holders: environment::holders()?,
        slots: environment::slots()?,
        settings: environment::settings()?,
        runs: environment::runs()?,
        ..ServerState::default()
    })
}

fn tables_of(fixture: &FixtureSpec) -> Vec<pg_sys::Oid> {
    fixture.tables.iter().map(|&table| table.into()).collect()
}

/// Compares the fixtures' sizes now with those after their loads.
fn fixture_states(fixtures: &[FixtureSpec]) -> Result<Vec<FixtureState>, UserError> {
    let mut states = Vec::new();
    for fixture in fixtures {
        let Some(schema) = &fixture.schema else { continue };
        let growth = known(|| store::growth(&fixture.name, schema, &tables_of(fixture)))?;
        states.extend(growth.map(|growth| FixtureState {
            name: fixture.name.clone(),
            rows: fixture.rows as f64,
            loaded_bytes: Some(growth.loaded_bytes as f64),
            bytes: Some(growth.bytes as f64),
            live: Some(growth.live as f64),
        }));
    }
    Ok(states)
}
