//! What a run has to know of the Citus cluster that it is on, found out before it starts.

use bench_base::error::{UserError, sqlstate};
use bench_findings::preflight::{NodeFailure, NodesSeen};
use bench_model::cluster::{
    ClusterSpec, Demand, FanOut, Limits, NodeSpec, Nodes, check_connections, check_pool, check_worker_slots,
    place, sample_interval_secs,
};
use bench_model::spec::{Extent, FixtureSpec, RunOptions, ScriptSpec};
use bench_script as script;
use bench_script::{Symbols, Variables};
use pgrx::{Json, pg_sys};
use serde::{Deserialize, Serialize};

use super::node_connectivity::{self, NodePairs};
use crate::cluster::citus::{self, Placed};
use crate::driver::parameters::analyse;
use crate::error::{notice, warn};
use crate::guard::session_role::own_settings_of;
use crate::launch::checks::{has_blocks, lock_of};
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::load::fixture;
use crate::observe::machine;
use crate::run::client::workload::{fixture_values, values_of_one};
use crate::run::prepare::settings;
use crate::server::background_worker::WorkerKind;
use crate::server::process::random_seed;
use crate::server::roles::{self, superuser};
use crate::server::{guc, spi};
use crate::store;

/// The nodes with their clients, and the run's distributed tables; `None` for a run that has nothing to do with Citus. Each
/// node is asked once.
///
/// # Errors
/// 55000 where there are no such nodes, 53300 with the numbers where one has too few connections, 08006 where one that is
/// to have clients does not answer.
pub fn of_run(
    options: &RunOptions,
    tables: &[pg_sys::Oid],
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
    pairs: NodePairs,
) -> Result<Option<ClusterSpec>, UserError> {
    let is_local = options.nodes == Nodes::Local;
    let placed = citus::placed(tables)?;
    if is_local && placed.names.is_empty() {
        return check_alone(options, scripts, fixtures).map(|()| None);
    }
    if !is_local && let Some(other) = placed.others.first() {
        return Err(UserError::new(
            sqlstate::WRONG_OBJECT_TYPE,
            format!("nodes => '{}' needs distributed tables, but the run has others", options.nodes.as_str()),
        )
        .detail(format!("Table {other} is on this node only."))
        .hint(DISTRIBUTE));
    }
    let mut nodes = citus::nodes()?;
    place(&mut nodes, options.nodes, options.clients)?;
    if is_local {
        // Where all shards are here, as those of local tables in Citus' metadata, nobody else has to do with the run.
        nodes.retain(|node| node.is_local || placed.is_remote);
        // As for any run on one node, whatever Citus calls it.
        nodes.iter_mut().filter(|node| node.is_local).for_each(|node| node.node = 0);
    }
    let answers = node_connectivity::ask(&nodes, pairs)?;
    let mut asked = Vec::with_capacity(nodes.len());
    let mut silent = 0;
    for (node, limits) in nodes.into_iter().zip(answers.limits) {
        match limits {
            Ok(limits) => asked.push((node, limits)),
            Err(error) if node.clients > 0 => return Err(error),
            // Its processors are not told of; the clients' statements may get there all the same.
            Err(error) => {
                silent += 1;
                warn(error.message, error.hint.unwrap_or_default());
            }
        }
    }
    if let Some(error) = first_of(answers.apart) {
        return Err(error);
    }
    asked.iter_mut().for_each(|(_, limits)| limits.set(&options.settings));
    settings::judge_connections(check(&asked, &placed, options, scripts, fixtures))?;
    if !is_local {
        check_worker_slots(&asked)?;
    }
    let nodes = asked.into_iter().map(|(node, _)| node).collect();
    Ok(Some(ClusterSpec { nodes, tables: placed.names, silent }))
}

/// Of a run that has nothing to do with Citus as far as its fixtures tell.
fn check_alone(
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
) -> Result<(), UserError> {
    if !citus::is_installed()? {
        return Ok(());
    }
    let mut nodes = citus::nodes()?;
    place(&mut nodes, options.nodes, options.clients)?;
    let Some(node) = nodes.iter().find(|node| node.is_local) else { return Ok(()) };
    let is_superuser = superuser();
    let mut limits = store::as_owner(|| machine::limits(is_superuser))?;
    limits.set(&options.settings);
    let checked = check_unknown(node, &limits, nodes.len(), options, scripts, fixtures);
    settings::judge_connections(checked)
}

/// The nodes with what they have to give to a run on the chosen ones; `None` where there is no cluster, or one of them cannot
/// have clients.
pub fn limits(chosen: Nodes) -> Result<Option<Vec<(NodeSpec, Limits)>>, UserError> {
    if !citus::is_installed()? {
        return Ok(None);
    }
    let mut nodes = citus::nodes()?;
    if place(&mut nodes, chosen, 1).is_err() {
        return Ok(None);
    }
    let answers = node_connectivity::ask(&nodes, NodePairs::Known)?;
    let mut asked = Vec::with_capacity(nodes.len());
    for (node, limits) in nodes.into_iter().zip(answers.limits) {
        match limits {
            Ok(limits) => asked.push((node, limits)),
            Err(_) if node.clients > 0 => return Ok(None),
            Err(_) => {}
        }
    }
    Ok(Some(asked))
}

/// The first of the errors, which says how many more there are.
fn first_of(errors: Vec<UserError>) -> Option<UserError> {
    let more = errors.len().saturating_sub(1);
    let first = errors.into_iter().next()?;
    if more == 0 {
        return Some(first);
    }
    let told = format!("Between nodes, {more} more connections failed; bench.preflight shows each.");
    let detail = first.detail.as_ref().map_or_else(|| told.clone(), |detail| format!("{detail} {told}"));
    Some(first.detail(detail))
}

/// Puts more time between the samples of a run on so many nodes that they would be too many, and says so.
pub fn thin(options: &mut RunOptions, cluster: Option<&ClusterSpec>) {
    let Some(cluster) = cluster.filter(|_| options.nodes != Nodes::Local) else { return };
    let nodes = cluster.nodes.iter().filter(|node| node.clients > 0).count() as u32;
    let secs = match options.extent {
        Extent::Secs(secs) => Some(secs + options.warmup_secs.unwrap_or_default()),
        Extent::Transactions(_) => None,
    };
    let wanted = options.sample_interval_secs;
    options.sample_interval_secs = sample_interval_secs(wanted, nodes, secs);
    if options.sample_interval_secs > wanted {
        notice(
            format!("samples are {} s long instead of {wanted} s", options.sample_interval_secs),
            format!(
                "On {nodes} nodes, shorter samples would be too many to fetch. Totals and percentiles are not \
                 affected."
            ),
        );
    }
}

/// What the nodes answer to the questions before a run, for bench.preflight; `None` for a run that has nothing to do with
/// Citus.
///
/// # Errors
/// As [`of_run`], but for what a node says, or that it says nothing.
pub fn look(options: &RunOptions, tables: &[pg_sys::Oid]) -> Result<Option<NodesSeen>, UserError> {
    let is_local = options.nodes == Nodes::Local;
    let placed = citus::placed(tables)?;
    if is_local && placed.names.is_empty() {
        return Ok(None);
    }
    let mut nodes = citus::nodes()?;
    place(&mut nodes, options.nodes, options.clients)?;
    if is_local {
        nodes.retain(|node| node.is_local || placed.is_remote);
    }
    let answers = node_connectivity::ask(&nodes, NodePairs::Try)?;
    let silent = nodes.iter().zip(answers.limits).filter_map(|(node, limits)| Some((node, limits.err()?)));
    let mut failures: Vec<NodeFailure> =
        silent.map(|(node, error)| of_node(error, node.clients > 0)).collect();
    failures.extend(answers.apart.into_iter().map(|error| of_node(error, true)));
    let with_clients = nodes.iter().filter(|node| node.clients > 0).count() as u32;
    Ok(Some(NodesSeen { nodes: nodes.len() as u32, with_clients, took_ms: answers.took_ms, failures }))
}

fn of_node(error: UserError, is_needed: bool) -> NodeFailure {
    NodeFailure { message: error.message, hint: error.hint.unwrap_or_default(), is_needed }
}

/// What to do for a run on several nodes.
const DISTRIBUTE: &str = "Load the fixture with option distribute if it has one, have Citus distribute the table (create_distributed_table, create_reference_table), or use nodes => 'local'.";

/// A fixture that is not there would be loaded as a local one.
///
/// # Errors
/// 55000.
pub fn check_loaded(fixtures: &[String]) -> Result<(), UserError> {
    for name in fixtures {
        if fixture::usable(name)?.is_none() {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("fixture \"{name}\" is not loaded"),
            )
            .hint(DISTRIBUTE));
        }
    }
    Ok(())
}

// Whether the nodes of a Citus cluster have the connections that a run's clients need to each other.

/// A statement that EXPLAIN takes begins with one of these words; so does a call of a procedure, which it does not take.
const EXAMINED: [&str; 8] = ["select", "insert", "update", "delete", "merge", "with", "values", "call"];

/// Compares what the run needs with what the nodes have. Plans are looked at only where they decide: where the pool has room
/// for one connection of each client, but not for as many as its session would keep for any statement.
///
/// # Errors
/// 53300 with the numbers.
pub fn check(
    nodes: &[(NodeSpec, Limits)],
    placed: &Placed,
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
) -> Result<(), UserError> {
    // Reference tables are read where the client is.
    if placed.are_all_copied && lock_of(scripts) == pg_sys::AccessShareLock.cast_signed() {
        return Ok(());
    }
    let holds = has_blocks(scripts);
    check_connections(nodes, &Demand { holds, tasks: 1, script: None })?;
    let most = if placed.most_shards > 0 { placed.most_shards } else { u32::MAX };
    let any = Demand { tasks: most, ..Demand::most() };
    if check_connections(nodes, &any).is_ok() {
        return Ok(());
    }
    check_connections(nodes, &planned(options, scripts, fixtures, placed.has_copies).unwrap_or(any))
}

/// As [`check`], for a run on this node whose tables are not known, or none of which Citus has: its statements may have to
/// do with others.
///
/// # Errors
/// 53300 with the numbers.
fn check_unknown(
    node: &NodeSpec,
    limits: &Limits,
    nodes: usize,
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
) -> Result<(), UserError> {
    let check = |demand: &Demand| check_pool(node, limits, nodes, demand);
    let Err(error) = check(&Demand::most()) else { return Ok(()) };
    match planned(options, scripts, fixtures, false) {
        Some(demand) if demand == Demand::most() => {
            let message = format!("{}, if functions in the scripts use distributed tables", error.message);
            let hint = [error.detail, error.hint].into_iter().flatten().collect::<Vec<_>>().join(" ");
            warn(message, hint);
            Ok(())
        }
        Some(demand) if demand.tasks > 0 => check(&demand),
        _ => Ok(()),
    }
}

/// What Citus plans for the scripts' statements; the most where they call functions, whose statements are not seen, and `None`
/// where it does not say.
fn planned(
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
    has_copies: bool,
) -> Option<Demand> {
    let mut demand = Demand { holds: has_blocks(scripts), ..Demand::default() };
    for script in scripts {
        let fixture = script.fixture.and_then(|index| fixtures.get(index));
        let statements = statements_of(script, fixture, options).ok()?;
        for planned in explained(script, statements, fixtures, options, has_copies).ok()? {
            let Some(planned) = planned else { return Some(Demand::most()) };
            demand.holds |= planned.steps > 1;
            if planned.tasks > demand.tasks {
                demand.tasks = planned.tasks;
                demand.script = Some(script.name.clone());
            }
        }
    }
    Some(demand)
}

/// What a client's first transaction sends, as far as it is examined.
fn statements_of(
    spec: &ScriptSpec,
    fixture: Option<&FixtureSpec>,
    options: &RunOptions,
) -> Result<Vec<String>, UserError> {
    let mut symbols = Symbols::new();
    let script = script::parse(&spec.name, &spec.source, &mut symbols)?;
    let seed = options.seed.unwrap_or_else(random_seed);
    let own = fixture_values(fixture, 0);
    let (seeds, values) = values_of_one(&options.variables, seed, options.clients, 0, own);
    let mut variables = Variables::new(symbols.len());
    for (name, value) in values {
        variables.set(symbols.intern(&name), value);
    }
    let mut statements = Vec::new();
    let mut keep = |line: script::PreviewLine| {
        if EXAMINED.contains(&first_word(&line.output).as_str()) {
            statements.push(line.output);
        }
    };
    let mut pulse = || {
        pgrx::check_for_interrupts!();
    };
    script::preview(&script, 0, variables, seeds.functions, 1, &mut |_, _| true, &mut keep, &mut pulse)?;
    Ok(statements)
}

/// The kind of worker that plans statements, for planning them calls functions.
const KIND: WorkerKind = kind(c"pgbench_ext_fan_out_main", c"pgbench_ext fan-out");

#[derive(Serialize, Deserialize)]
struct FanOutRequest {
    statements: Vec<String>,
    schemas: Vec<String>,
    settings: Vec<(String, String)>,
    has_copies: bool,
}

/// How Citus spreads each of a script's statements, as a session of the script's role plans it; `None` for a call of functions that
/// may do anything.
fn explained(
    script: &ScriptSpec,
    statements: Vec<String>,
    fixtures: &[FixtureSpec],
    options: &RunOptions,
    has_copies: bool,
) -> Result<Vec<Option<FanOut>>, UserError> {
    let role = script.role.clone().unwrap_or_else(roles::current);
    let request = FanOutRequest {
        statements,
        schemas: fixtures.iter().filter_map(|fixture| fixture.schema.clone()).collect(),
        settings: own_settings_of(role.oid.into(), &options.settings)?,
        has_copies,
    };
    ask(KIND, &role, options.run_as.as_deref(), &request).map(|(told, _)| told)
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_fan_out_main(segment: pg_sys::Datum) {
    answer(segment, |request: FanOutRequest| {
        read_only()?;
        let schemas: Vec<&str> = request.schemas.iter().map(String::as_str).collect();
        let path = guc::search_path_with(&schemas, &guc::current("search_path").unwrap_or_default());
        guc::set_as_session("search_path", &path)?;
        for (name, value) in own_settings_of(roles::current_role_oid(), &request.settings)? {
            guc::set_as_session(&name, &value)?;
        }
        guc::set_as_session("citus.explain_all_tasks", "on")?;
        guc::set_as_session("citus.explain_distributed_queries", "on")?;
        let statements = request.statements.iter();
        let plans = statements
            .map(|statement| explain(statement, request.has_copies))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((plans, Vec::new()))
    });
}

fn explain(statement: &str, has_copies: bool) -> Result<Option<FanOut>, UserError> {
    if first_word(statement) == "call" || analyse(statement)?.calls_others {
        return Ok(None);
    }
    let plan = spi::in_session::call::<Json>(&format!("EXPLAIN (COSTS off, FORMAT json) {statement}"), &[])?;
    let plan = plan.map_or(FanOut::default(), |plan| FanOut::of_plan(&plan.0, has_copies));
    let has_rows = first_word(statement) == "insert" && !statement.to_ascii_lowercase().contains("select");
    Ok(Some(if has_rows { plan.one_by_one() } else { plan }))
}

fn first_word(statement: &str) -> String {
    let word = statement.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
    word.unwrap_or_default().to_ascii_lowercase()
}
