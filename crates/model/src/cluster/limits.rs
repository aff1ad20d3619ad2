//! Checks that the nodes of a cluster have enough connections, pool sizes and worker slots for a run.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{NodeSpec, Nodes, place};

/// A node's limits and their current use, from its configuration and statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub max_connections: u32,
    /// Connections of `max_connections` that are kept for superusers and other reserved roles.
    pub reserved: u32,
    /// Existing client sessions.
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
    /// Existing background workers.
    pub workers_in_use: u32,
}

/// The connections to each other node that a run's statements need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Whether a client keeps a connection to one node while it waits for one to another: in a block of several statements, and
    /// in a statement of several steps.
    pub holds: bool,
    /// The most tasks that a statement has on one node at once.
    pub tasks: u32,
    /// The script with that statement, if a plan shows it.
    pub script: Option<String>,
}

impl Demand {
    /// Returns the demand of arbitrary statements.
    pub fn most() -> Self {
        Self { holds: true, tasks: u32::MAX, script: None }
    }

    /// Returns the connections to each other node that a client waits for and keeps until it ends. Citus waits for a statement's
    /// first connection to a node, and for more while the session keeps fewer than `citus.max_cached_conns_per_worker`
    /// (ShouldWaitForConnection, connection/shared_connection_stats.c); cached ones stay open after the transaction
    /// (ShouldShutdownConnection, connection/connection_management.c). Without cached ones, clients cannot deadlock unless they
    /// hold connections between steps: a step takes those to all nodes in one order (AssignTasksToConnectionsOrWorkerPool,
    /// executor/adaptive_executor.c).
    pub fn connections(&self, limits: &Limits) -> u32 {
        match limits.cached_connections {
            0 => u32::from(self.holds),
            cached => cached.min(limits.executor_pool.max(1)).min(self.tasks).max(1),
        }
    }
}

/// Connections of the pool that Citus' maintenance and this extension's queries use, beside the clients'.
const POOL_RESERVE: u32 = 5;

/// The most sessions of this extension's queries and of Citus' maintenance on a node.
const SESSIONS_RESERVE: u32 = 3;

/// Checks that the nodes have enough connections for a run. Once its transactions have used another node, each client keeps at
/// least one connection to it, by Citus' cache or within a transaction block. Clients that wait while others keep all connections
/// wait for ever, which no deadlock detector notices.
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

/// Checks that the nodes have enough background worker slots for a run: one for each client and one for their leader; on the
/// coordinating node also one for each node, and one for the leader of the whole run.
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

/// Checks the connections that a node may open to each other one of `nodes`.
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

/// How a statement is spread over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanOut {
    /// The most tasks on one node of any step; 0 for a statement that Citus has nothing to do with.
    pub tasks: u32,
    /// Tasks of all steps, on all nodes.
    pub all: u32,
    /// Steps that are done one after the other.
    pub steps: u32,
}

impl FanOut {
    /// Of a statement by `EXPLAIN (FORMAT JSON)` with `citus.explain_all_tasks`. Where the plan does not list a step's tasks, or
    /// where each is done on several nodes (`has_copies`), all of them may be on one.
    pub fn of_plan(plan: &Value, has_copies: bool) -> Self {
        let mut sum = Self::default();
        sum.add(plan, has_copies);
        sum
    }

    fn add(&mut self, plan: &Value, has_copies: bool) {
        match plan {
            Value::Array(parts) => parts.iter().for_each(|part| self.add(part, has_copies)),
            Value::Object(members) => {
                let count = |name: &str| members.get(name).and_then(Value::as_u64).unwrap_or(0);
                let counted =
                    ["Task Count", "Map Task Count", "Merge Task Count"].map(count).into_iter().max();
                let counted = u32::try_from(counted.unwrap_or(0)).unwrap_or(u32::MAX);
                let own = match members.get("Tasks").and_then(Value::as_array) {
                    Some(tasks) if !has_copies => most_on_a_node(tasks, counted),
                    _ => counted,
                };
                self.tasks = self.tasks.max(own);
                self.all = self.all.saturating_add(counted);
                self.steps += u32::from(counted > 0);
                // A task's own plan is the other node's business.
                let others = members.iter().filter(|(name, _)| *name != "Tasks");
                others.for_each(|(_, part)| self.add(part, has_copies));
            }
            _ => {}
        }
    }

    /// Of an INSERT of several rows, which Citus puts into one shard after the other (ShouldRunTasksSequentially,
    /// executor/adaptive_executor.c).
    pub fn one_by_one(self) -> Self {
        Self { tasks: self.tasks.min(1), steps: self.all, ..self }
    }
}

/// The most tasks on one node. Tasks that are not listed, or without a node, may be on any.
fn most_on_a_node(tasks: &[Value], counted: u32) -> u32 {
    let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
    for node in tasks.iter().filter_map(|task| task.get("Node")?.as_str()) {
        *nodes.entry(node).or_default() += 1;
    }
    let unknown = counted.saturating_sub(nodes.values().sum());
    nodes.into_values().max().unwrap_or(0) + unknown
}
