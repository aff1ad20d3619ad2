//! Whether the nodes have the connections that a run needs.

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};

use super::{NodeSpec, Nodes, place};

/// What a node has to give; as its configuration and its statistics say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub max_connections: u32,
    /// Connections of `max_connections` that are kept for superusers and other reserved roles.
    pub reserved: u32,
    /// Client sessions that are there already.
    pub in_use: u32,
    /// citus.max_shared_pool_size as it is set: 0 stands for the limit of clients, -1 for none.
    pub max_shared_pool_size: i32,
    /// citus.max_client_connections, as far as it counts for the role: it does not for superusers; -1: max_connections.
    pub max_client_connections: i32,
    /// citus.max_cached_conns_per_worker: connections to each other node that a session keeps.
    pub cached_connections: u32,
    /// citus.max_adaptive_executor_pool_size: connections to each other node that a statement takes at most.
    pub executor_pool: u32,
    pub max_worker_processes: u32,
    /// Background workers that are there already.
    pub workers_in_use: u32,
}

/// What a run's statements need of the connections to each other node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Whether a client keeps a connection to one node while it waits for one to another: in a block of several statements, and
    /// in a statement of several steps.
    pub holds: bool,
    /// The most tasks that a statement has on one node at once.
    pub tasks: u32,
    /// The script with that statement, where a plan has told it.
    pub script: Option<String>,
}

impl Demand {
    /// Whatever the statements may be.
    pub fn most() -> Self {
        Self { holds: true, tasks: u32::MAX, script: None }
    }

    /// Connections to each other node for which a client waits until it has them, and which it does not give back before it
    /// ends: Citus waits for a statement's first connection to a node, and for others as long as the session keeps fewer than
    /// `citus.max_cached_conns_per_worker` (ShouldWaitForConnection, connection/shared_connection_stats.c); what it keeps stays
    /// open after the transaction (ShouldShutdownConnection, connection/connection_management.c). Without any that stay open,
    /// clients take turns, for a step of a statement takes those to all nodes in one order (AssignTasksToConnectionsOrWorkerPool,
    /// executor/adaptive_executor.c); but not where they hold some from one step to the next.
    pub fn connections(&self, limits: &Limits) -> u32 {
        match limits.cached_connections {
            0 => u32::from(self.holds),
            cached => cached.min(limits.executor_pool.max(1)).min(self.tasks).max(1),
        }
    }
}

/// Connections of the pool beside one for each client, without which clients wait for each other: those of Citus' own
/// maintenance and of this extension's questions.
const POOL_RESERVE: u32 = 5;

/// Sessions of this extension's questions and of Citus' maintenance on a node, at most.
const SESSIONS_RESERVE: u32 = 3;

/// Compares what a run needs with what the nodes have. Each client has at least one connection to every other node as
/// soon as its transactions have been there, and keeps it, by a cache that outlasts its transactions or by a block of several
/// statements. One that waits for a connection while others keep those that there are waits for ever, for no detector of
/// deadlocks sees it.
///
/// # Errors
/// 53300 with the numbers, for the first node that has too few.
pub fn check_connections(nodes: &[(NodeSpec, Limits)], demand: &Demand) -> Result<(), UserError> {
    for (node, limits) in nodes {
        check_pool(node, limits, nodes.len(), demand)?;
        check_sessions(node, limits, nodes)?;
    }
    Ok(())
}

/// Compares what a run on several nodes needs with the nodes' slots of background workers: one for each client and one that
/// leads them; on the node that was asked also one for each node, and one that leads the whole.
///
/// # Errors
/// 53400 with the numbers, for the first node that has too few.
pub fn check_worker_slots(nodes: &[(NodeSpec, Limits)]) -> Result<(), UserError> {
    for (node, limits) in nodes {
        let served = if node.clients > 0 { node.clients + 1 } else { 0 };
        let led = if node.is_local { nodes.len() as u32 + 1 } else { 0 };
        let (needed, in_use) = (served + led, limits.workers_in_use);
        if needed + in_use > limits.max_worker_processes {
            return Err(UserError::new(
                sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
                format!("node {} does not have enough background worker slots for the run", node.name()),
            )
            .detail(format!(
                "Needed: {needed}; configured: {}; in use: {in_use}.",
                limits.max_worker_processes
            ))
            .hint(format!(
                "Set max_worker_processes to at least {} on that node and restart it, or use fewer clients.",
                needed + in_use
            )));
        }
    }
    Ok(())
}

/// The most clients on each of the chosen nodes, up to `wanted`, that a run passes [`check_connections`] and
/// [`check_worker_slots`] with, where a sweep's leader takes a slot more on the node that was asked; 1 where none do.
pub fn room_for(wanted: u32, nodes: &[(NodeSpec, Limits)], chosen: Nodes) -> u32 {
    let fits = |clients: u32| {
        let (mut placed, mut limits): (Vec<NodeSpec>, Vec<Limits>) = nodes.iter().cloned().unzip();
        let asked = placed.iter().position(|node| node.is_local);
        asked.into_iter().for_each(|index| limits[index].workers_in_use += 1);
        place(&mut placed, chosen, clients)?;
        let placed: Vec<_> = placed.into_iter().zip(limits).collect();
        check_connections(&placed, &Demand::most()).and_then(|()| check_worker_slots(&placed))
    };
    (1..=wanted).rev().find(|clients| fits(*clients).is_ok()).unwrap_or(1)
}

impl Limits {
    /// As they are in sessions with these settings of a run's.
    pub fn set(&mut self, settings: &[(String, String)]) {
        for (name, value) in settings {
            let Ok(number) = value.trim().parse::<u32>() else { continue };
            match name.to_ascii_lowercase().as_str() {
                "citus.max_cached_conns_per_worker" => self.cached_connections = number,
                "citus.max_adaptive_executor_pool_size" => self.executor_pool = number,
                _ => {}
            }
        }
    }

    /// Connections that sessions without privileges may still open, with a few left to others.
    pub fn free_connections(&self) -> u32 {
        self.max_connections.saturating_sub(self.reserved + self.in_use + SESSIONS_RESERVE)
    }
}

fn too_few(message: String) -> UserError {
    UserError::new(sqlstate::TOO_MANY_CONNECTIONS, message)
}

/// What a node may open to each other one, of so many nodes.
///
/// # Errors
/// 53300 with the numbers.
pub fn check_pool(node: &NodeSpec, limits: &Limits, nodes: usize, demand: &Demand) -> Result<(), UserError> {
    let pool = match (limits.max_shared_pool_size, limits.max_client_connections) {
        (-1, _) => return Ok(()),
        (0, -1) => limits.max_connections,
        (0, clients) => clients.unsigned_abs(),
        (size, _) => size.unsigned_abs(),
    };
    let each = demand.connections(limits);
    let needed = node.clients.saturating_mul(each).saturating_add(POOL_RESERVE);
    if nodes < 2 || node.clients == 0 || each == 0 || pool >= needed {
        return Ok(());
    }
    let automatic =
        |counts| format!("citus.max_shared_pool_size is 0, so that {counts} counts, which is {pool}");
    let setting = match (limits.max_shared_pool_size, limits.max_client_connections) {
        (0, -1) => automatic("max_connections"),
        (0, _) => automatic("citus.max_client_connections"),
        _ => format!("citus.max_shared_pool_size is {pool}"),
    };
    let kept = match &demand.script {
        _ if each == 1 => String::new(),
        None => format!(
            " With citus.max_cached_conns_per_worker = {}, a client keeps up to {each}.",
            limits.cached_connections
        ),
        Some(script) => format!(
            " A statement of script \"{script}\" has {} tasks on one node, and with citus.max_cached_conns_per_worker = {} a client keeps {each} connections for them.",
            demand.tasks, limits.cached_connections
        ),
    };
    let fewer = match pool.saturating_sub(POOL_RESERVE) / each {
        0 => String::new(),
        clients => format!(", or use at most {clients} clients"),
    };
    let cache = if each > 1 { ", or a lower citus.max_cached_conns_per_worker in settings" } else { "" };
    Err(too_few(format!(
        "the clients on node {} would wait forever for connections to other nodes",
        node.name()
    ))
    .detail(format!(
        "Needed to each other node: {needed} ({} for each of {} clients and {POOL_RESERVE} more); {setting}.{kept}",
        if each == 1 { "one".to_owned() } else { each.to_string() },
        node.clients
    ))
    .hint(format!("Set citus.max_shared_pool_size to at least {needed} on that node{fewer}{cache}.")))
}

/// What a node has to accept from the others.
fn check_sessions(node: &NodeSpec, limits: &Limits, nodes: &[(NodeSpec, Limits)]) -> Result<(), UserError> {
    let incoming: u32 =
        nodes.iter().filter(|(other, _)| other.node != node.node).map(|(other, _)| other.clients).sum();
    let needed = incoming + SESSIONS_RESERVE;
    let free = limits.max_connections.saturating_sub(limits.reserved + limits.in_use);
    if incoming == 0 || free >= needed {
        return Ok(());
    }
    Err(too_few(format!("node {} does not have enough connections for the run", node.name()))
        .detail(format!(
            "Needed: {needed} (one for each of {incoming} clients on other nodes and {SESSIONS_RESERVE} more); max_connections is {}, of which {} are reserved and {} in use.",
            limits.max_connections, limits.reserved, limits.in_use
        ))
        .hint(format!(
            "Set max_connections to at least {} on that node, or use fewer clients.",
            needed + limits.reserved + limits.in_use
        )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(cached_connections: u32, executor_pool: u32) -> Limits {
        Limits { cached_connections, executor_pool, ..Limits::default() }
    }

    fn demand(holds: bool, tasks: u32) -> Demand {
        Demand { holds, tasks, script: None }
    }

    #[test]
    fn a_client_keeps_a_connection_for_each_task_up_to_what_its_session_caches() {
        assert_eq!(demand(false, 1).connections(&limits(1, 16)), 1);
        assert_eq!(demand(false, 9).connections(&limits(1, 16)), 1, "the others are optional");
        assert_eq!(demand(false, 9).connections(&limits(4, 16)), 4);
        assert_eq!(demand(false, 5).connections(&limits(32, 16)), 5);
        assert_eq!(demand(false, 40).connections(&limits(32, 16)), 16, "no more than the executor opens");
        assert_eq!(Demand::most().connections(&limits(32, 16)), 16);
        assert_eq!(demand(false, 0).connections(&limits(1, 16)), 1);
    }

    #[test]
    fn without_a_cache_a_client_holds_one_where_it_waits_for_another() {
        assert_eq!(demand(false, 9).connections(&limits(0, 16)), 0);
        assert_eq!(demand(true, 9).connections(&limits(0, 16)), 1);
    }
}
