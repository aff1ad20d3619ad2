//! The preparation of all kinds of runs: arguments are parsed into a [`Request`], resolved with the fixtures into a
//! [`Resolved`] run, and checked with these, which gives a [`PreparedRun`] that is ready to start.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_findings::preflight::PlannedRun;
use bench_model::cluster::{ClusterSpec, Nodes, room_for};
use bench_model::part::{KeptRows, PartRequest};
use bench_model::spec::{
    Before, Driver, FixtureSpec, Role, RunArguments, RunOptions, RunSpec, ScriptSpec, Share, Starter,
};
use bench_protocol::foreign_server::Secrets;
use pgrx::pg_sys;

use super::sessions::{Sessions, check_sessions, slots_of};
use super::workload::{self, FoundFixture};
use super::{duel, settings};
use crate::cluster::citus;
use crate::guard::session_role::{is_client_role, is_special, special};
use crate::launch::checks::{
    self, check_connection_limit, check_length, check_own_locks, check_role, check_server, check_terminals,
    connection_limit, lock_of,
};
use crate::load::prepare;
use crate::observe::counters;
use crate::observe::machine::{self, processors_granted};
use crate::run::client::workload::SCALE;
use crate::run::feeders::{self, RowLimit, RunFeeders};
use crate::run::nodes::cluster_spec;
use crate::run::nodes::node_connectivity::NodePairs;
use crate::run::target_server::{self, Examined, PlanOfCommand, Reached};
use crate::run::{before, coordinator};
use crate::server::background_worker::{self, free_slots};
use crate::server::database;
use crate::server::process::{my_pid, random_seed};
use crate::server::roles::{self, superuser};
use crate::store;

/// The parsed arguments of a run, which stay valid for later runs.
pub struct Request {
    pub options: RunOptions,
    scripts: Vec<ScriptSpec>,
    checked: workload::CheckedScripts,
    fixture_names: Vec<String>,
    /// For each script, whether it is built in.
    builtin: Vec<bool>,
}

/// Parses the arguments of a run and checks them as far as possible without its fixtures.
pub fn check(arguments: RunArguments) -> Result<Request, UserError> {
    let sessions = Sessions::of(&arguments)?;
    sessions.as_role(|| parse(arguments, &sessions))
}

fn parse(arguments: RunArguments, sessions: &Sessions) -> Result<Request, UserError> {
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
    let checked = check_clients(&options, &scripts, &fixture_names, sessions.other_caller().as_ref())?;
    check_before(&options, &sessions.caller)?;
    Ok(Request { options, scripts, checked, fixture_names, builtin })
}

/// Checks clients that execute these scripts in sessions of the current role. `caller` as in [`settings::check`].
fn check_clients(
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixture_names: &[String],
    caller: Option<&Role>,
) -> Result<workload::CheckedScripts, UserError> {
    check_terminals(scripts, options)?;
    check_length(scripts.iter().map(|script| script.source.as_str()))?;
    let checked = workload::check_scripts(scripts, options)?;
    // With feeders, variables are checked after these have been read.
    if scripts.iter().all(|script| script.feeders.is_empty()) {
        workload::check_variables(scripts, fixture_names, options, &[])?;
    }
    if options.driver == Driver::Wire {
        settings::check_startup(&options.settings)?;
    }
    // A target checks these itself when it is reached.
    if options.target.is_none() {
        settings::check(&options.settings, options.driver, options.nodes, caller)?;
        check_role()?;
        check_connection_limit(options.clients)?;
    }
    Ok(checked)
}

/// Returns the scripts of a mix, or the one that is given instead, each with whether it is built in. Adds the names of their
/// fixtures to `fixture_names`.
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

/// Checks that the steps before the run are supported, and that the caller may do them.
fn check_before(options: &RunOptions, caller: &Role) -> Result<(), UserError> {
    if options.nodes != Nodes::Local && !options.before.is_empty() {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("before is not supported with nodes => '{}'", options.nodes.as_str()),
        )
        .hint("A sweep performs these steps for all nodes: bench.sweep(…, before => 'vacuum')."));
    }
    // A target checks the other steps itself.
    match &options.target {
        Some(target) => before::refuse_load(target, &options.before),
        None => before::check(&options.before, caller),
    }
}

/// A checked run, ready to start.
pub struct PreparedRun {
    pub spec: RunSpec,
    /// The number of commands of all scripts together.
    pub commands: u32,
    /// The secrets of its connections; the second are those of arm b in a duel of two targets.
    pub secrets: [Secrets; 2],
    /// The rows of its feeders; none if other nodes read them.
    pub fed: RunFeeders,
}

/// Prepares a run: checks everything that can be checked before any worker starts, and loads missing fixtures. For a run that
/// does not start now, [`RowLimit::First`] is enough.
pub fn prepare(arguments: RunArguments, rows: RowLimit, pairs: NodePairs) -> Result<PreparedRun, UserError> {
    let sessions = Sessions::of(&arguments)?;
    let mut prepared = sessions.as_role(|| prepare_as(arguments, &sessions, rows, pairs))?;
    // The caller's limit, even if the sessions are of another role.
    prepared.spec.max_clients = checks::limit()?;
    if prepared.spec.options.nodes == Nodes::Local {
        checks::check(prepared.spec.options.clients.into())?;
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
    let request = parse(arguments, sessions)?;
    check_room(&request)?;
    if request.options.target.is_some() {
        return request.resolve_on_target(sessions)?.ready(rows);
    }
    let Request { options, fixture_names, .. } = &request;
    if options.before.contains(&Before::Reload) {
        fixture_names.iter().try_for_each(|name| reload(name))?;
    }
    let fixtures = fixture_names
        .iter()
        .map(|name| workload::find_fixture(name, &options.settings, options.clients))
        .collect::<Result<Vec<FixtureSpec>, _>>()?;
    request.resolve(fixtures, sessions, Site::Here(pairs))?.ready(rows)
}

/// Prepares a part of another node's run, with sessions of the current role.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_part(request: PartRequest) -> Result<PreparedRun, UserError> {
    let PartRequest { spec, tables, kept } = request.checked()?;
    check_server()?;
    // Special rights are allowed only if a superuser of this node has named the role.
    let role = roles::current();
    let may_be_special = is_client_role(&role.name);
    if is_special(role.oid.into())? && !may_be_special {
        return Err(special(&role.name));
    }
    let names: Vec<String> = spec.fixtures.iter().map(|fixture| fixture.name.clone()).collect();
    // The requesting node's session here has the clients' role, so there is no other caller.
    let checked = check_clients(&spec.options, &spec.scripts, &names, None)?;
    checks::check(spec.options.clients.into())?;
    check_slots(&spec.options, None)?;
    let fixtures = spec.fixtures.into_iter().zip(tables).map(|(fixture, names)| {
        Ok(FixtureSpec { tables: workload::tables_on_node(&fixture, &names)?, ..fixture })
    });
    let spec = RunSpec {
        fixtures: fixtures.collect::<Result<Vec<_>, UserError>>()?,
        may_be_special,
        role: role.name,
        role_oid: role.oid,
        database_oid: database::oid().to_u32(),
        starter: Starter::default(),
        max_clients: checks::limit()?,
        ..spec
    };
    Resolved { spec, checked, builtin: Vec::new(), site: Site::Part(kept) }.ready(RowLimit::All)
}

/// A run as it would be prepared now.
pub struct DryRun {
    pub plan: PlannedRun,
    /// The fixtures that are loaded.
    pub fixtures: Vec<FixtureSpec>,
}

/// As [`prepare`], for a run that will not be started: loads nothing.
///
/// # Errors
/// Those of [`prepare`]; if a fixture is missing, without those that need its tables.
pub fn dry_run(arguments: RunArguments) -> Result<DryRun, UserError> {
    let sessions = Sessions::of(&arguments)?;
    sessions.as_role(|| dry_run_as(arguments, &sessions))
}

fn dry_run_as(arguments: RunArguments, sessions: &Sessions) -> Result<DryRun, UserError> {
    let request = parse(arguments, sessions)?;
    let mut plan = plan_of(&request.options, &request.scripts);
    check_room(&request)?;
    let mut fixtures = Vec::new();
    if request.options.target.is_some() {
        request.resolve_on_target(sessions)?.ready(RowLimit::All)?;
        return Ok(DryRun { plan, fixtures });
    }
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
        let site = Site::Here(NodePairs::Known);
        request.resolve(fixtures.clone(), sessions, site)?.ready(RowLimit::All)?;
    }
    Ok(DryRun { plan, fixtures })
}

/// Returns the properties of a run that matter to bench.preflight.
pub fn plan_of(options: &RunOptions, scripts: &[ScriptSpec]) -> PlannedRun {
    PlannedRun::new(options, lock_of(scripts) != pg_sys::AccessShareLock.cast_signed())
}

/// Checks that there are worker slots, or, with other nodes, that these can have clients.
fn check_room(request: &Request) -> Result<(), UserError> {
    let Request { options, fixture_names, .. } = request;
    if options.nodes == Nodes::Local {
        return check_slots(options, None);
    }
    citus::check_installed(&format!("nodes => '{}'", options.nodes.as_str()))?;
    cluster_spec::check_loaded(fixture_names)
}

fn check_slots(options: &RunOptions, cluster: Option<&ClusterSpec>) -> Result<(), UserError> {
    background_worker::check_slots(slots_of(options, cluster), coordinator::KIND.noun)
}

/// The server that a run's fixtures are on.
enum Site {
    /// This server, or the cluster that it is a node of.
    Here(NodePairs),
    /// This server, for another node's run, with the captured values of that node.
    Part(Vec<KeptRows>),
    Target(Box<Reached>),
}

/// A run whose scripts and fixtures are known.
struct Resolved {
    spec: RunSpec,
    checked: workload::CheckedScripts,
    /// For each script, whether it is built in; empty in a part of another node's run.
    builtin: Vec<bool>,
    site: Site,
}

impl Request {
    /// Builds the run of the current role in this database with these fixtures.
    fn resolve(
        self,
        fixtures: Vec<FixtureSpec>,
        sessions: &Sessions,
        site: Site,
    ) -> Result<Resolved, UserError> {
        let Self { options, scripts, checked, builtin, .. } = self;
        let spec = RunSpec {
            seed: options.seed.unwrap_or_else(random_seed),
            options,
            scripts,
            fixtures,
            observation: settings::observation(),
            role: sessions.role.name.clone(),
            role_oid: sessions.role.oid,
            database_oid: database::oid().to_u32(),
            database: database::name()?,
            caller: sessions.other_caller(),
            may_be_special: sessions.may_be_special(),
            answering: sessions.answering(),
            ..RunSpec::default()
        };
        Ok(Resolved { spec, checked, builtin, site })
    }

    /// As [`resolve`](Self::resolve), with the fixtures of a target.
    fn resolve_on_target(self, sessions: &Sessions) -> Result<Resolved, UserError> {
        let mut reached = Reached::new(self.options.target.as_deref().unwrap_or_default())?;
        let fixtures = self.fixture_names.iter().map(|name| reached.fixture(name));
        let fixtures = fixtures.collect::<Result<Vec<FixtureSpec>, _>>()?;
        self.resolve(fixtures, sessions, Site::Target(Box::new(reached)))
    }
}

impl Resolved {
    /// Makes the checks that need fixtures, and reads the feeders.
    fn ready(self, rows: RowLimit) -> Result<PreparedRun, UserError> {
        let Self { mut spec, checked, builtin, mut site } = self;
        workload::check_rows(&spec.fixtures, &spec.scripts, &checked)?;
        let arm_variables = spec.options.duel.iter().flat_map(|duel| &duel.arms).map(|arm| &arm.variables);
        let all_variables = arm_variables.chain([&spec.options.variables]);
        for scale in all_variables.filter_map(|variables| variables.get(SCALE)) {
            workload::check_scale(&spec.fixtures, &spec.scripts, &builtin, scale)?;
        }
        let fed = match &mut site {
            Site::Here(pairs) => {
                workload::check_shards(&spec.fixtures, &spec.scripts, &checked)?;
                check_here(&mut spec, *pairs)?;
                // Each node reads its own.
                if spec.is_of_several_nodes() {
                    RunFeeders::default()
                } else {
                    feeders::read(&mut spec, rows)?
                }
            }
            Site::Part(kept) => feeders::read_lent(&mut spec, rows, std::mem::take(kept))?,
            Site::Target(reached) => {
                let RunSpec { scripts, fixtures, options, seed, .. } = &mut spec;
                feeders::collect(scripts, *seed, rows, |feeder, take| {
                    reached.read(fixtures, &options.settings, &feeder.query, take)
                })?
            }
        };
        if fed.feeders > 0 {
            let names: Vec<String> = spec.fixtures.iter().map(|fixture| fixture.name.clone()).collect();
            workload::check_variables(&spec.scripts, &names, &spec.options, &fed.variables)?;
        }
        let secrets = match site {
            Site::Target(reached) => examine(&mut spec, *reached)?,
            Site::Here(_) if spec.options.driver == Driver::Wire => {
                [target_server::local_password()?, Secrets::default()]
            }
            _ => Default::default(),
        };
        Ok(PreparedRun { spec, commands: checked.commands, secrets, fed })
    }
}

/// Checks a run on this server, or on the cluster that it is a node of, and adds the cluster to it.
fn check_here(spec: &mut RunSpec, pairs: NodePairs) -> Result<(), UserError> {
    let RunSpec { options, fixtures, caller, .. } = spec;
    workload::check_names(fixtures, &options.settings)?;
    duel::check(options, fixtures, caller.as_ref())?;
    let tables: Vec<pg_sys::Oid> = spec.tables().map(pg_sys::Oid::from).collect();
    if !tables.is_empty() {
        check_own_locks(&tables, lock_of(&spec.scripts), "the workload", OWN_LOCKS_HINT)?;
    }
    spec.cluster = cluster_spec::of_run(&spec.options, &tables, &spec.scripts, &spec.fixtures, pairs)?;
    if spec.cluster.is_some() {
        check_slots(&spec.options, spec.cluster.as_ref())?;
    }
    cluster_spec::thin(&mut spec.options, spec.cluster.as_ref());
    spec.starter = Starter { pid: my_pid(), has_unsent: counters::has_unsent_itself(&tables)? };
    check_sessions(spec)?;
    before::check_run(&spec.options.before, spec, &Secrets::default())?;
    for step in &spec.options.before {
        let (tables, lock) = before::locks_of(*step, spec)?;
        let what = format!("before => '{}'", step.as_str());
        check_own_locks(&tables, lock, &what, OWN_LOCKS_HINT)?;
    }
    Ok(())
}

/// Prepares a run's statements on its target, or on both arms' targets, adds their plans, and returns the secrets.
fn examine(spec: &mut RunSpec, reached: Reached) -> Result<[Secrets; 2], UserError> {
    let other = spec.options.duel.as_ref().and_then(|duel| duel.other_target());
    let other = other.map(|name| duel::reach_other(name, spec)).transpose()?;
    let Examined { target, secrets, plans } = reached.examine(spec, other.is_some().then_some(0))?;
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
    before::check_run(&spec.options.before, spec, &secrets)?;
    Ok([secrets, other_secrets])
}

const OWN_LOCKS_HINT: &str = "Commit or roll back before the call, or use bench.start.";

/// Reloads a fixture with the options of its last load. A missing one is loaded later, with its defaults.
fn reload(name: &str) -> Result<(), UserError> {
    let Some(loaded) = prepare::loaded_as(name)? else { return Ok(()) };
    prepare::load(name, &loaded.options, Some(loaded.rows), None).map(drop)
}

// The default for the number of clients.

/// Clients for each processor: enough to keep it busy while some of them wait.
const CLIENTS_PER_PROCESSOR: u32 = 8;

/// Workers besides the clients: the sweep's, the run's, and one in reserve.
const OTHER_WORKERS: u64 = 3;

/// Returns the default number of clients in a sweep's runs: [`CLIENTS_PER_PROCESSOR`], within the free worker slots or
/// connections and the role's CONNECTION LIMIT. The limits of a target are not known.
///
/// # Errors
/// Those of queries on the server. Wrong arguments are reported elsewhere.
pub fn clients(driver: Option<&str>, has_target: bool, nodes: Option<&str>) -> Result<i32, UserError> {
    let wanted = CLIENTS_PER_PROCESSOR.saturating_mul(processors_granted());
    let room = match (driver, nodes) {
        (Some("wire"), _) if has_target => wanted,
        (Some("wire"), _) => {
            let is_superuser = superuser();
            store::as_owner(|| machine::limits(is_superuser))?.free_connections()
        }
        (_, Some("all")) => on_nodes(wanted, Nodes::All)?,
        (_, Some("workers")) => on_nodes(wanted, Nodes::Workers)?,
        _ => u32::try_from(free_slots().saturating_sub(OTHER_WORKERS)).unwrap_or(u32::MAX),
    };
    let limit = if has_target { None } else { connection_limit()? };
    let clients = wanted.min(room).min(limit.unwrap_or(u32::MAX)).max(1);
    Ok(i32::try_from(clients).unwrap_or(i32::MAX))
}

/// Returns the number of clients for each of the chosen nodes; 1 if their limits are unknown: the run's checks report the reason.
fn on_nodes(wanted: u32, chosen: Nodes) -> Result<u32, UserError> {
    Ok(cluster_spec::limits(chosen)?.map_or(1, |nodes| room_for(wanted, &nodes, chosen)))
}
