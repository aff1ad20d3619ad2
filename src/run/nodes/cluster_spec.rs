//! What a run has to know of the Citus cluster that it is on, found out before it starts.

use bench_base::error::{UserError, sqlstate};
use bench_findings::preflight::{NodeFailure, NodesSeen};
use bench_model::cluster::{
    ClusterSpec, Limits, NodeSpec, Nodes, check_worker_slots, place, sample_interval_secs,
};
use bench_model::spec::{Extent, FixtureSpec, RunOptions, ScriptSpec};
use pgrx::pg_sys;

use super::connections;
use super::node_connectivity::{self, NodePairs};
use crate::cluster::{citus, distributed};
use crate::error::{notice, warn};
use crate::load::fixture;
use crate::observe::machine;
use crate::run::prepare::settings;
use crate::server::roles::superuser;
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
    let placed = distributed::placed(tables)?;
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
    settings::judge_connections(connections::check(&asked, &placed, options, scripts, fixtures))?;
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
    let checked = connections::check_unknown(node, &limits, nodes.len(), options, scripts, fixtures);
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
    let placed = distributed::placed(tables)?;
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
