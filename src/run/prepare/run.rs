//! Runs: from arguments to a started coordinator.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_findings::preflight::PlannedRun;
use bench_model::cluster::Nodes;
use bench_model::spec::{
    Before, Driver, FixtureSpec, Observation, RunArguments, RunOptions, RunSpec, ScriptSpec, Share, Starter,
};
use bench_protocol::foreign_server::Secrets;
use bench_stats::duel::BATCHES;
use pgrx::pg_sys;

use super::run_progress::RunReporter;
use super::sessions::{as_sessions_of, check_sessions, role_of_captured, session_role, slots_of, workers_of};
use super::workload::FoundFixture;
use super::{duel, end_messages, preflight, settings, workload};
use crate::cluster::citus;
use crate::launch::checks::{
    check_connection_limit, check_length, check_own_locks, check_role, check_server, check_terminals, lock_of,
};
use crate::launch::handle::{LaunchHandle, stop_and_wait};
use crate::launch::horizon::releasable_or_warn;
use crate::launch::role_limit;
use crate::load::prepare::load;
use crate::observe::counters;
use crate::run::before;
use crate::run::client::variables::SCALE;
use crate::run::coordinator;
use crate::run::feeders;
use crate::run::feeders::{RowLimit, RunFeeders};
use crate::run::nodes::cluster_spec;
use crate::run::nodes::node_connectivity::NodePairs;
use crate::run::target_server;
use crate::run::target_server::{Examined, PlanOfCommand, Reached};
use crate::server::process::{my_pid, random_seed};
use crate::server::roles::{self, current_role_oid};
use crate::server::{database, worker_slots};
use crate::shm::{Segment, SegmentShape, StopReason, log_for, ring_for};
use crate::store;

/// What the arguments of a run mean here, as far as that holds for a later run as well.
pub struct Request {
    pub options: RunOptions,
    scripts: Vec<ScriptSpec>,
    checked: workload::CheckedScripts,
    fixture_names: Vec<String>,
    /// For each script, whether it came with the extension.
    builtin: Vec<bool>,
}

/// Everything that can be found wrong with the arguments themselves, by this role and in this database.
pub fn check(arguments: RunArguments) -> Result<Request, UserError> {
    let role = session_role(&arguments)?;
    as_sessions_of(role.as_ref(), || check_here(arguments))
}

fn check_here(arguments: RunArguments) -> Result<Request, UserError> {
    if arguments.workload.is_none() && arguments.script.is_none() {
        return Err(workload::missing()?);
    }
    let mut options = RunOptions::new(arguments)?;
    check_server()?;
    if let Some(duel) = &mut options.duel {
        duel::take_role_settings(duel)?;
    }
    let mut fixture_names: Vec<String> = Vec::new();
    let scripts = scripts_of(options.script.as_deref(), &options.mix, &options, &mut fixture_names)?;
    let scripts = match &options.duel {
        Some(duel) => {
            duel::scripts(scripts, duel, |script, mix| scripts_of(script, mix, &options, &mut fixture_names))?
        }
        None => scripts,
    };
    let (scripts, builtin): (Vec<ScriptSpec>, Vec<bool>) = scripts.into_iter().unzip();
    check_terminals(&scripts, &options)?;
    check_length(scripts.iter().map(|script| script.source.as_str()))?;
    let checked = workload::check_scripts(&scripts, &options)?;
    // Which variables feeders set is known when they are read.
    if scripts.iter().all(|script| script.feeders.is_empty()) {
        workload::check_variables(&scripts, &fixture_names, &options, &[])?;
    }
    if options.driver == Driver::Wire {
        settings::check_startup(&options.settings)?;
    }
    // What another server says of them, it says when it is asked.
    if options.target.is_none() {
        settings::check(&options.settings, options.driver)?;
        check_role()?;
        check_connection_limit(options.clients)?;
    }
    check_before(&options)?;
    Ok(Request { options, scripts, checked, fixture_names, builtin })
}

/// The scripts of a mix, or the one that is given instead; and of each, whether it came with the extension. Their fixtures are
/// added to those that are known.
fn scripts_of(
    script: Option<&str>,
    mix: &[Share],
    options: &RunOptions,
    fixture_names: &mut Vec<String>,
) -> Result<Vec<(ScriptSpec, bool)>, UserError> {
    let mix = match script {
        Some(script) => vec![(workload::unnamed(script), mix[0].clone())],
        None => workload::resolve(mix)?,
    };
    let mut scripts = Vec::with_capacity(mix.len());
    for (workload, share) in mix {
        let role = if workload.captured { role_of_captured(&workload, options)? } else { None };
        let fixture = workload.fixture.map(|name| match fixture_names.iter().position(|n| *n == name) {
            Some(index) => index,
            None => {
                fixture_names.push(name);
                fixture_names.len() - 1
            }
        });
        let feeders =
            if workload.builtin || script.is_some() { Vec::new() } else { store::feeders(&workload.name)? };
        let spec = ScriptSpec {
            feeders,
            captured_ms: if workload.captured { store::captured_ms(&workload.name)? } else { None },
            role,
            name: workload.name,
            source: workload.script,
            weight: share.weight,
            is_dealt: share.is_dealt,
            terminal: workload.terminal.map(|times| times.scaled(&options.variables)).transpose()?,
            fixture,
            captured: workload.captured,
            arm: None,
            plans: BTreeMap::new(),
            query_ids: BTreeMap::new(),
        };
        scripts.push((spec, workload.builtin));
    }
    Ok(scripts)
}

/// What the steps before the run need of the role, and where they cannot be done.
fn check_before(options: &RunOptions) -> Result<(), UserError> {
    if options.nodes != Nodes::Local && !options.before.is_empty() {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("before is not supported with nodes => '{}'", options.nodes.as_str()),
        )
        .hint("A sweep performs these steps for all nodes: bench.sweep(…, before => 'vacuum')."));
    }
    // What else they need on another server, it says when it is asked.
    match &options.target {
        Some(target) => before::refuse_load(target, &options.before),
        None => before::check(&options.before),
    }
}

/// A run in which nothing was found wrong.
pub struct PreparedRun {
    pub spec: RunSpec,
    /// Commands of all scripts together.
    pub commands: u32,
    /// What its connections are let in with; those of arm b in a duel of two targets by the second.
    pub secrets: [Secrets; 2],
    /// The rows of its feeders; none where other nodes read them.
    pub fed: RunFeeders,
}

/// Everything that can be found wrong before any worker is started. Fixtures that are missing are loaded first. For a run that
/// is not to start now, [`RowLimit::First`] is enough.
pub fn prepare(arguments: RunArguments, rows: RowLimit, pairs: NodePairs) -> Result<PreparedRun, UserError> {
    let role = session_role(&arguments)?;
    let caller = roles::current();
    let mut prepared = as_sessions_of(role.as_ref(), || prepare_as(arguments, rows, pairs))?;
    prepared.spec.caller = role.map(|_| caller);
    // Of whoever calls, whosever sessions the clients are.
    prepared.spec.max_clients = role_limit::limit();
    if prepared.spec.options.nodes == Nodes::Local {
        role_limit::check(prepared.spec.options.clients.into())?;
    }
    Ok(prepared)
}

/// As [`prepare`], for sessions of the current role.
fn prepare_as(arguments: RunArguments, rows: RowLimit, pairs: NodePairs) -> Result<PreparedRun, UserError> {
    let request = check_here(arguments)?;
    if let Some(name) = &request.options.target {
        let reached = Reached::new(name)?;
        return prepare_remote(request, reached, rows);
    }
    check_room(&request)?;
    let Request { options, fixture_names, .. } = &request;
    if options.before.contains(&Before::Reload) {
        fixture_names.iter().try_for_each(|name| reload(name))?;
    }
    let fixtures = fixture_names
        .iter()
        .map(|name| workload::find_fixture(name, &options.settings, options.clients))
        .collect::<Result<Vec<FixtureSpec>, _>>()?;
    prepare_here(request, fixtures, rows, pairs)
}

/// A run as it would be prepared now.
pub struct DryRun {
    pub plan: PlannedRun,
    /// The fixtures that are loaded.
    pub fixtures: Vec<FixtureSpec>,
}

/// As [`prepare`], for a run that is not to be made: nothing is loaded.
///
/// # Errors
/// Those of [`prepare`]; where a fixture is missing, without what its tables would have to say.
pub fn dry_run(arguments: RunArguments) -> Result<DryRun, UserError> {
    let role = session_role(&arguments)?;
    as_sessions_of(role.as_ref(), || dry_run_as(arguments))
}

fn dry_run_as(arguments: RunArguments) -> Result<DryRun, UserError> {
    let request = check_here(arguments)?;
    let mut plan = plan_of(&request.options, &request.scripts);
    if let Some(name) = &request.options.target {
        let reached = Reached::new(name)?;
        prepare_remote(request, reached, RowLimit::All)?;
        return Ok(DryRun { plan, fixtures: Vec::new() });
    }
    check_room(&request)?;
    let mut fixtures = Vec::new();
    for name in &request.fixture_names {
        match workload::look_for_fixture(name, &request.options.settings, request.options.clients)? {
            FoundFixture::Loaded(fixture) => fixtures.push(fixture),
            FoundFixture::Missing(missing) => plan.missing.push((missing.name, missing.rows)),
        }
    }
    let tables: Vec<pg_sys::Oid> = fixtures.iter().flat_map(|f| &f.tables).map(|&t| t.into()).collect();
    plan.nodes = cluster_spec::look(&request.options, &tables)?;
    let is_reached = plan.nodes.iter().flat_map(|seen| &seen.failures).all(|failure| !failure.is_needed);
    if plan.missing.is_empty() && is_reached {
        prepare_here(request, fixtures.clone(), RowLimit::All, NodePairs::Known)?;
    }
    Ok(DryRun { plan, fixtures })
}

/// What of a run matters to a look at the server before it.
pub fn plan_of(options: &RunOptions, scripts: &[ScriptSpec]) -> PlannedRun {
    PlannedRun::new(options, lock_of(scripts) != pg_sys::AccessShareLock.cast_signed())
}

/// Room for the run's workers, here or on the nodes.
fn check_room(request: &Request) -> Result<(), UserError> {
    let Request { options, fixture_names, .. } = request;
    if options.nodes == Nodes::Local {
        return worker_slots::check_slots(slots_of(options, None), coordinator::KIND.noun);
    }
    citus::check_installed(&format!("nodes => '{}'", options.nodes.as_str()))?;
    cluster_spec::check_loaded(fixture_names)
}

/// The rest of [`prepare`], once the fixtures are there.
fn prepare_here(
    request: Request,
    fixtures: Vec<FixtureSpec>,
    rows: RowLimit,
    pairs: NodePairs,
) -> Result<PreparedRun, UserError> {
    let Request { mut options, scripts, checked, fixture_names, builtin } = request;
    workload::check_rows(&fixtures, &scripts, &checked)?;
    workload::check_shards(&fixtures, &scripts, &checked)?;
    let own_scale = options.variables.get(SCALE);
    let of_arms = options.duel.iter().flat_map(|duel| &duel.arms).filter_map(|arm| arm.variables.get(SCALE));
    for given in own_scale.into_iter().chain(of_arms) {
        workload::check_scale(&fixtures, &scripts, &builtin, given)?;
    }
    workload::check_names(&fixtures, &options.settings)?;
    duel::check(&mut options, &fixtures)?;
    let tables: Vec<pg_sys::Oid> = fixtures.iter().flat_map(|f| &f.tables).map(|&t| t.into()).collect();
    if !tables.is_empty() {
        check_own_locks(&tables, lock_of(&scripts), "the workload", OWN_LOCKS_HINT)?;
    }
    let cluster = cluster_spec::of_run(&options, &tables, &scripts, &fixtures, pairs)?;
    if cluster.is_some() {
        worker_slots::check_slots(slots_of(&options, cluster.as_ref()), coordinator::KIND.noun)?;
    }
    cluster_spec::thin(&mut options, cluster.as_ref());
    let mut spec = RunSpec {
        observation: settings::observation(),
        cluster,
        starter: Starter { pid: my_pid(), has_unsent: counters::has_unsent_itself(&tables)? },
        ..unobserved(options, scripts, fixtures)?
    };
    check_sessions(&spec)?;
    before::check_run(&spec.options.before, &spec, &Secrets::default())?;
    for step in &spec.options.before {
        let (tables, lock) = before::locks_of(*step, &spec)?;
        let what = format!("before => '{}'", step.as_str());
        check_own_locks(&tables, lock, &what, OWN_LOCKS_HINT)?;
    }
    // Each node reads its own.
    let fed =
        if spec.is_of_several_nodes() { RunFeeders::default() } else { feeders::read(&mut spec, rows)? };
    if fed.feeders > 0 {
        workload::check_variables(&spec.scripts, &fixture_names, &spec.options, &fed.variables)?;
    }
    let secrets = match spec.options.driver {
        Driver::Engine => Secrets::default(),
        Driver::Wire => target_server::local_password()?,
    };
    let secrets = [secrets, Secrets::default()];
    Ok(PreparedRun { spec, commands: checked.commands, secrets, fed })
}

/// As [`prepare`], where the connections lead to another server: what of it there is to be seen is seen there.
fn prepare_remote(request: Request, mut reached: Reached, rows: RowLimit) -> Result<PreparedRun, UserError> {
    let Request { options, scripts, checked, fixture_names, builtin } = request;
    worker_slots::check_slots(slots_of(&options, None), coordinator::KIND.noun)?;
    let fixtures =
        fixture_names.iter().map(|name| reached.fixture(name)).collect::<Result<Vec<FixtureSpec>, _>>()?;
    workload::check_rows(&fixtures, &scripts, &checked)?;
    let own_scale = options.variables.get(SCALE);
    own_scale.map_or(Ok(()), |given| workload::check_scale(&fixtures, &scripts, &builtin, given))?;
    let mut spec =
        RunSpec { observation: settings::observation(), ..unobserved(options, scripts, fixtures)? };
    let RunSpec { scripts, fixtures, options, seed, .. } = &mut spec;
    let fed = feeders::collect(scripts, *seed, rows, |feeder, take| {
        reached.read(fixtures, &options.settings, &feeder.query, take)
    })?;
    if fed.feeders > 0 {
        workload::check_variables(&spec.scripts, &fixture_names, &spec.options, &fed.variables)?;
    }
    let other = spec.options.duel.as_ref().and_then(|duel| duel.other_target());
    let other = other.map(|name| duel::reach_other(name, &spec)).transpose()?;
    let Examined { target, secrets, plans } = reached.examine(&spec, other.is_some().then_some(0))?;
    let (other_target, other_secrets, other_plans) = match other {
        Some(other) => (Some(other.target), other.secrets, other.plans),
        None => (None, Secrets::default(), Vec::new()),
    };
    for PlanOfCommand { script, command, plan, query_id } in plans.into_iter().chain(other_plans) {
        let script = &mut spec.scripts[script];
        script.plans.insert(command, plan);
        script.query_ids.extend(query_id.map(|id| (command, id)));
    }
    if let Some(duel) = &mut spec.options.duel {
        duel.versions = other_target.as_ref().map(|other| [target.version.clone(), other.version.clone()]);
        for target in [&target].into_iter().chain(&other_target) {
            duel::check_target(duel, target)?;
        }
    }
    (spec.target, spec.other_target) = (Some(target), other_target);
    let secrets = [secrets, other_secrets];
    before::check_run(&spec.options.before, &spec, &secrets[0])?;
    Ok(PreparedRun { spec, commands: checked.commands, secrets, fed })
}

/// The specification of a run of the current role in this database, of which nothing is observed.
fn unobserved(
    options: RunOptions,
    scripts: Vec<ScriptSpec>,
    fixtures: Vec<FixtureSpec>,
) -> Result<RunSpec, UserError> {
    Ok(RunSpec {
        seed: options.seed.unwrap_or_else(random_seed),
        options,
        scripts,
        fixtures,
        observation: Observation::Off,
        role: roles::current_role(),
        role_oid: current_role_oid().to_u32(),
        database_oid: database::oid().to_u32(),
        database: database::name()?,
        horizon_held: false,
        caller: None,
        sweep_id: None,
        system: Default::default(),
        applied: Vec::new(),
        cluster: None,
        part_of: None,
        target: None,
        other_target: None,
        starter: Starter::default(),
        max_clients: None,
    })
}

const OWN_LOCKS_HINT: &str = "Commit or roll back before the call, or use bench.start.";

/// Loads a fixture anew as it was loaded. One that is not is loaded later, with its defaults.
fn reload(name: &str) -> Result<(), UserError> {
    let Some(loaded) = load::loaded_as(name)? else { return Ok(()) };
    load::load(name, &loaded.options, Some(loaded.rows), None).map(drop)
}

/// The most shared memory that a run may take, in bytes: it is taken at once, for the worst case.
const MAX_SEGMENT: usize = 1 << 30;

/// Starts the coordinator.
pub fn launch(prepared: &PreparedRun, caller_pid: i32) -> Result<LaunchHandle, UserError> {
    let PreparedRun { spec, commands, secrets, fed } = prepared;
    let commands = *commands;
    let json = serde_json::to_string(spec).unwrap_or_default();
    // The coordinator of a run on several nodes has no clients of its own.
    let is_here = !spec.is_of_several_nodes();
    let shape = SegmentShape {
        slots: if is_here { workers_of(&spec.options) } else { 0 },
        connections: if is_here && spec.options.driver == Driver::Wire { spec.options.clients } else { 0 },
        scripts: if is_here { spec.scripts.len() as u32 } else { 0 },
        commands: if is_here { commands } else { 0 },
        ring: ring_for(spec.options.sample_interval_secs),
        log: if is_here && spec.options.log_rate > 0.0 { log_for(workers_of(&spec.options)) } else { 0 },
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
    // 0: the coordinator is the bootstrap superuser, for only the recorder may write results.
    LaunchHandle::start(segment, coordinator::KIND, spec.database_oid, 0, workers_of(&spec.options))
}

/// Runs a workload and waits for it, with NOTICEs; the run's id.
pub fn run_to_the_end(arguments: RunArguments) -> Result<i64, UserError> {
    let mut prepared = prepare(arguments, RowLimit::All, NodePairs::Try)?;
    settings::tell_what_does_not_apply(&prepared.spec.options)?;
    preflight::tell(&prepared.spec, &prepared.spec.options.before, true)?;
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
    // What was measured up to a cancel is told before the cancel goes on, as pgbench does at SIGINT.
    if waited.is_err()
        && measured
        && let Ok(report) = end_messages::closing_report(run_id)
    {
        pgrx::notice!("{report}");
    }
    waited??;
    pgrx::notice!("{}", end_messages::closing_report(run_id)?);
    if prepared.spec.scripts.iter().any(|script| script.captured) {
        end_messages::tell_of_errors(run_id)?;
    }
    end_messages::warn_of_status(run_id)?;
    Ok(run_id)
}

/// Starts a run and returns its id as soon as it has one.
pub fn start(arguments: RunArguments) -> Result<i64, UserError> {
    let prepared = prepare(arguments, RowLimit::All, NodePairs::Try)?;
    settings::tell_what_does_not_apply(&prepared.spec.options)?;
    preflight::tell(&prepared.spec, &prepared.spec.options.before, false)?;
    let (result, run_id) = start_prepared(&prepared)?;
    result.map(|()| run_id)
}

/// Starts a run in which nothing was found wrong, and returns when it has an id, or 0 where it did not get that far, with
/// what has kept it from going on.
pub fn start_prepared(prepared: &PreparedRun) -> Result<(Result<(), UserError>, i64), UserError> {
    let launched = launch(prepared, my_pid())?;
    // Until the run has an id it is this call's to give up.
    launched.tie();
    Ok(launched.until_known())
}
