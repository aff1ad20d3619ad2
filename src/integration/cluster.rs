//! What a run has to know of the Citus cluster that it is on, found out before it starts.

use bench_core::cluster::{ClusterSpec, Limits, NodeSpec, Nodes, check_connections, place};
use bench_core::error::UserError;
use bench_core::spec::RunOptions;
use pgrx::pg_sys;

use super::citus;
use crate::catalog;
use crate::error::{internal, warn};
use crate::observe::node::{self, NodeState};

/// The nodes with their clients, and the run's distributed tables; `None` for a run that has nothing to do with Citus. Each
/// node is asked once, and so is the way to it.
///
/// # Errors
/// 55000 where there are no such nodes, 53300 with the numbers where one has too few connections, 08006 where one that is
/// to have clients does not answer.
pub fn of_run(
    options: &RunOptions,
    tables: &[pg_sys::Oid],
    has_blocks: bool,
) -> Result<Option<ClusterSpec>, UserError> {
    let is_local = options.nodes == Nodes::Local;
    if is_local && (tables.is_empty() || !citus::is_installed()?) {
        return Ok(None);
    }
    let distributed = citus::distributed(tables)?;
    if is_local && distributed.is_empty() {
        return Ok(None);
    }
    let mut nodes = citus::nodes()?;
    place(&mut nodes, options.nodes, options.clients)?;
    if is_local {
        // As for any run on one node, whatever Citus calls it.
        nodes.iter_mut().filter(|node| node.is_local).for_each(|node| node.node = 0);
    }
    let mut asked = Vec::with_capacity(nodes.len());
    for node in nodes {
        match limits(&node) {
            Ok(limits) => asked.push((node, limits)),
            Err(error) if node.clients > 0 => return Err(error),
            // Its processors are not told of; the clients' statements may get there all the same.
            Err(error) => warn(error.message, error.hint.unwrap_or_default()),
        }
    }
    // Clients that stay on their node need no connections.
    if !distributed.is_empty() {
        check_connections(&asked, has_blocks)?;
    }
    Ok(Some(ClusterSpec { nodes: asked.into_iter().map(|(node, _)| node).collect(), tables: distributed }))
}

fn limits(node: &NodeSpec) -> Result<Limits, UserError> {
    if node.is_local {
        // SAFETY: looks up the current role.
        let is_superuser = unsafe { pg_sys::superuser() };
        return Ok(catalog::as_owner(|| node::read(&[], is_superuser))?.limits);
    }
    let answer = citus::ask(node, "SELECT bench.node_state('{}')")?;
    let state: NodeState = serde_json::from_str(&answer).map_err(|e| internal(e.to_string()))?;
    Ok(state.limits)
}
