//! From the arguments of a run to one in which nothing was found wrong.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_findings::preflight::PlannedRun;
use bench_model::cluster::Nodes;
use bench_model::spec::{
    Before, Driver, FixtureSpec, Observation, Role, RunArguments, RunOptions, RunSpec, ScriptSpec, Share,
    Starter,
};
use bench_protocol::foreign_server::Secrets;
use pgrx::pg_sys;

use crate::cluster::citus;
use crate::launch::checks::{
    check_connection_limit, check_length, check_own_locks, check_role, check_server, check_terminals, lock_of,
};
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
use crate::run::prepare::sessions::{Sessions, check_sessions, slots_of};
use crate::run::prepare::workload::FoundFixture;
use crate::run::prepare::{duel, settings, workload};
use crate::run::target_server;
use crate::run::target_server::{Examined, PlanOfCommand, Reached};
use crate::server::process::{my_pid, random_seed};
use crate::server::{database, worker_slots};
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
    let sessions = Sessions::of(&arguments)?;
    sessions.as_role(|| check_here(arguments, &sessions))
}

fn check_here(arguments: RunArguments, sessions: &Sessions) -> Result<Request, UserError> {
    if arguments.workload.is_none() && arguments.script.is_none() {
        return Err(workload::missing()?);
    }
    let mut options = RunOptions::new(arguments)?;
    check_server()?;
    if let Some(duel) = &mut options.duel {
        duel::take_role_settings(duel)?;
    }
    let mut fixture_names: Vec<String> = Vec::new();
    let scripts =
        scripts_of(options.script.as_deref(), &options.mix, &options, sessions, &mut fixture_names)?;
    let scripts = match &options.duel {
        Some(duel) => duel::scripts(scripts, duel, |script, mix| {
            scripts_of(script, mix, &options, sessions, &mut fixture_names)
        })?,
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
        let caller = sessions.other_caller();
        settings::check(&options.settings, options.driver, options.nodes, caller.as_ref())?;
        check_role()?;
        check_connection_limit(options.clients)?;
    }
    check_before(&options, &sessions.caller)?;
    Ok(Request { options, scripts, checked, fixture_names, builtin })
}

/// The scripts of a mix, or the one that is given instead; and of each, whether it came with the extension. Their fixtures are
/// added to those that are known.
fn scripts_of(
    script: Option<&str>,
    mix: &[Share],
    options: &RunOptions,
    sessions: &Sessions,
    fixture_names: &mut Vec<String>,
) -> Result<Vec<(ScriptSpec, bool)>, UserError> {
    let mix = match script {
        Some(script) => vec![(workload::unnamed(script, &sessions.caller), mix[0].clone())],
        None => workload::resolve(mix)?,
    };
    let mut scripts = Vec::with_capacity(mix.len());
    for (workload, share) in mix {
        let role = sessions.of_script(&workload, options)?;
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
fn check_before(options: &RunOptions, caller: &Role) -> Result<(), UserError> {
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
        None => before::check(&options.before, caller),
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
    let sessions = Sessions::of(&arguments)?;
    let mut prepared = sessions.as_role(|| prepare_as(arguments, &sessions, rows, pairs))?;
    // Of whoever calls, whosever sessions the clients are.
    prepared.spec.max_clients = role_limit::limit()?;
    if prepared.spec.options.nodes == Nodes::Local {
        role_limit::check(prepared.spec.options.clients.into())?;
    }
    Ok(prepared)
}

/// As [`prepare`], for sessions of the current role.
fn prepare_as(
    arguments: RunArguments,
    sessions: &Sessions,
    rows: RowLimit,
    pairs: NodePairs,
) -> Result<PreparedRun, UserError> {
    let request = check_here(arguments, sessions)?;
    if let Some(name) = &request.options.target {
        let reached = Reached::new(name)?;
        return prepare_remote(request, reached, sessions, rows);
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
    prepare_here(request, fixtures, sessions, rows, pairs)
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
    let sessions = Sessions::of(&arguments)?;
    sessions.as_role(|| dry_run_as(arguments, &sessions))
}

fn dry_run_as(arguments: RunArguments, sessions: &Sessions) -> Result<DryRun, UserError> {
    let request = check_here(arguments, sessions)?;
    let mut plan = plan_of(&request.options, &request.scripts);
    if let Some(name) = &request.options.target {
        let reached = Reached::new(name)?;
        prepare_remote(request, reached, sessions, RowLimit::All)?;
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
        prepare_here(request, fixtures.clone(), sessions, RowLimit::All, NodePairs::Known)?;
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
    sessions: &Sessions,
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
    duel::check(&mut options, &fixtures, sessions.other_caller().as_ref())?;
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
        ..unobserved(options, scripts, fixtures, sessions)?
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
fn prepare_remote(
    request: Request,
    mut reached: Reached,
    sessions: &Sessions,
    rows: RowLimit,
) -> Result<PreparedRun, UserError> {
    let Request { options, scripts, checked, fixture_names, builtin } = request;
    worker_slots::check_slots(slots_of(&options, None), coordinator::KIND.noun)?;
    let fixtures =
        fixture_names.iter().map(|name| reached.fixture(name)).collect::<Result<Vec<FixtureSpec>, _>>()?;
    workload::check_rows(&fixtures, &scripts, &checked)?;
    let own_scale = options.variables.get(SCALE);
    own_scale.map_or(Ok(()), |given| workload::check_scale(&fixtures, &scripts, &builtin, given))?;
    let mut spec =
        RunSpec { observation: settings::observation(), ..unobserved(options, scripts, fixtures, sessions)? };
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
    sessions: &Sessions,
) -> Result<RunSpec, UserError> {
    Ok(RunSpec {
        seed: options.seed.unwrap_or_else(random_seed),
        options,
        scripts,
        fixtures,
        observation: Observation::Off,
        role: sessions.role.name.clone(),
        role_oid: sessions.role.oid,
        database_oid: database::oid().to_u32(),
        database: database::name()?,
        horizon_held: false,
        caller: sessions.other_caller(),
        may_be_special: sessions.may_be_special(),
        answering: sessions.answering(),
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
