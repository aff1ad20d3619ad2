//! The questions to the nodes of a Citus cluster before a run: asked of all nodes at once, over one connection to each, and
//! whether each node reaches the others, for its clients' statements have to get there.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::{Limits, NodeSpec};
use bench_model::part::UnreachedNode;

use crate::cluster::citus::{self, ask_all, check_version, failure, other_version, version_question};
use crate::cluster::sessions::{Sessions, directions};
use crate::error::{internal, warn};
use crate::guard::extension::LIBRARY_VERSION;
use crate::observe::machine::{self, NodeState};
use crate::server::roles::{current_role, current_role_oid, superuser};
use crate::server::{database, spi};
use crate::shm::Work;
use crate::store;

/// How long the nodes have for an answer, all of them together.
const LIMIT: Duration = Duration::from_secs(5);

/// How long a node has to reach all others: it answers within the limit of who asks.
const LIMIT_OF_PAIRS: Duration = Duration::from_secs(4);

/// What the nodes have answered.
pub struct NodeAnswers {
    /// What each node has to give, or why that is not known, in the nodes' order.
    pub limits: Vec<Result<Limits, UserError>>,
    /// For each node with clients that has tried others, what keeps it from reaching one.
    pub apart: Vec<UserError>,
    /// How long all that took, in milliseconds.
    pub took_ms: f64,
}

/// Whether nodes are to try each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePairs {
    /// Each node with clients tries all others.
    Try,
    /// They have done so a short time ago: before another run of the same sweep, which went well.
    Known,
}

/// Asks the nodes what they have to give; and if all of those with clients say that, whether each of these reaches all others.
///
/// # Errors
/// Those of this server.
pub fn ask(nodes: &[NodeSpec], pairs: NodePairs) -> Result<NodeAnswers, UserError> {
    let began = Instant::now();
    let others: Vec<NodeSpec> = nodes.iter().filter(|node| !node.is_local).cloned().collect();
    let mut sessions = sessions_to(&others)?;
    let mut from_others = states(&mut sessions, &others)?.into_iter();
    let limits: Vec<Result<Limits, UserError>> = nodes
        .iter()
        .map(|node| match node.is_local {
            true => own_limits(),
            false => from_others.next().unwrap_or_else(|| Err(internal("a node was not asked"))),
        })
        .collect();
    let all_answered = nodes.iter().zip(&limits).all(|(node, limits)| node.clients == 0 || limits.is_ok());
    let apart =
        if all_answered && pairs == NodePairs::Try { apart(&mut sessions, &others)? } else { Vec::new() };
    Ok(NodeAnswers { limits, apart, took_ms: began.elapsed().as_secs_f64() * 1e3 })
}

/// Sessions of the current role in this database.
///
/// # Errors
/// Those of this server.
fn sessions_to(nodes: &[NodeSpec]) -> Result<Sessions, UserError> {
    let (role, database) = (current_role(), database::name()?);
    let ways = store::as_owner(|| directions(nodes, &role, &database))?;
    Sessions::new(nodes, &ways)
}

fn own_limits() -> Result<Limits, UserError> {
    let is_superuser = superuser();
    Ok(store::as_owner(|| machine::read_node(&[], is_superuser))?.limits)
}

/// What other nodes have to give, when they are such as can have clients.
fn states(sessions: &mut Sessions, nodes: &[NodeSpec]) -> Result<Vec<Result<Limits, UserError>>, UserError> {
    // Not asked of what somebody else may have put in the extension's place.
    let questions = vec![Some(version_question()); nodes.len()];
    let versions = sessions.ask(&questions, LIMIT, ask_all)?;
    let checked: Vec<Result<(), UserError>> = nodes
        .iter()
        .zip(versions)
        .map(|(node, version)| check_version(node, &version.unwrap_or_else(|| Ok(String::new()))?))
        .collect();
    let question = |is_good: &Result<(), UserError>| {
        is_good.is_ok().then(|| "SELECT bench_internal.node_state('{}')".to_owned())
    };
    let questions: Vec<Option<String>> = checked.iter().map(question).collect();
    let states = sessions.ask(&questions, LIMIT, ask_all)?;
    let state = |((node, checked), state): ((&NodeSpec, Result<(), UserError>), Option<_>)| {
        checked?;
        limits_of(node, &state.unwrap_or_else(|| Ok(String::new()))?)
    };
    Ok(nodes.iter().zip(checked).zip(states).map(state).collect())
}

fn limits_of(node: &NodeSpec, answer: &str) -> Result<Limits, UserError> {
    let state: NodeState = serde_json::from_str(answer).map_err(|e| internal(e.to_string()))?;
    if node.clients > 0 && state.extension_version != LIBRARY_VERSION {
        return Err(other_version(node, &state.extension_version));
    }
    if node.clients > 0 && !state.may_run {
        let error = may_not_run();
        return Err(UserError { message: format!("node {}: {}", node.name(), error.message), ..error });
    }
    Ok(state.limits)
}

/// What keeps nodes with clients from reaching others.
fn apart(sessions: &mut Sessions, nodes: &[NodeSpec]) -> Result<Vec<UserError>, UserError> {
    let question =
        |node: &NodeSpec| (node.clients > 0).then(|| "SELECT bench_internal.unreached_nodes()".to_owned());
    let questions: Vec<Option<String>> = nodes.iter().map(question).collect();
    let mut found = Vec::new();
    for (node, answer) in nodes.iter().zip(sessions.ask(&questions, LIMIT, ask_all)?) {
        match answer {
            None => {}
            Some(Err(error)) => found.push(error),
            Some(Ok(answer)) => {
                let unreached: Vec<UnreachedNode> =
                    serde_json::from_str(&answer).map_err(|e| internal(e.to_string()))?;
                found.extend(unreached.into_iter().map(|there| failure(node, there.error)));
            }
        }
    }
    Ok(found)
}

/// The nodes that this one does not reach as the current role.
///
/// # Errors
/// Those of this server.
pub fn unreached() -> Result<Vec<UnreachedNode>, UserError> {
    let mut nodes = crate::cluster::citus::nodes()?;
    nodes.retain(|node| !node.is_local);
    let questions = vec![Some("SELECT 'here'".to_owned()); nodes.len()];
    let answers = sessions_to(&nodes)?.ask(&questions, LIMIT_OF_PAIRS, ask_all)?;
    let unreached = |(node, answer): (NodeSpec, Option<Result<String, UserError>>)| {
        Some(UnreachedNode { node: node.node, error: answer?.err()? })
    };
    Ok(nodes.into_iter().zip(answers).filter_map(unreached).collect())
}

/// The error for a role that may not start runs on a node.
pub fn may_not_run() -> UserError {
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, "permission denied for function run").hint(
        "Privileges on the extension's functions are each node's own: SELECT run_command_on_all_nodes('GRANT EXECUTE ON FUNCTION bench.run TO …').",
    )
}

// What other nodes have measured of a run and still have, because they could not be reached at its end.

/// How long a node has for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// How long it has for a part of what it has measured.
const DOCUMENT: Duration = Duration::from_secs(30);

/// Fetches what nodes still have of a run of the current role; how many nodes that were. A WARNING for each node that could
/// not be asked.
///
/// # Errors
/// 42809 for a run whose clients were on one node, 55000 for one that is under way, 42501 for another role's.
pub fn fetch(run_id: i64) -> Result<i64, UserError> {
    let work = Work::Run(run_id);
    let handle = store::visible(work)?;
    if handle.owner_oid != current_role_oid() {
        let message = format!("run {run_id} belongs to role \"{}\"", handle.role);
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .hint("Nodes return their results only to the run's role: SET ROLE to it first."));
    }
    let status = store::status(work)?;
    if store::is_open(&status) {
        let message = format!("run {run_id} is under way");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint(format!("Wait for it: SELECT bench.wait({run_id}).")));
    }
    if !store::is_of_several_nodes(run_id)? {
        let message = format!("run {run_id} had its clients on this node only");
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message));
    }
    let mut nodes = citus::nodes()?;
    let asking = nodes.iter().find(|node| node.is_local).map_or(0, |node| node.node);
    let here = store::fetched(run_id)?;
    nodes.retain(|node| !here.contains(&node.node));
    let mut fetched = Vec::new();
    for node in nodes {
        match PartSource::new(&node).and_then(|mut source| source.fetch(run_id, asking)) {
            Ok(true) => fetched.push(node),
            Ok(false) => {}
            Err(error) => warn(error.message, error.hint.unwrap_or_default()),
        }
    }
    if !fetched.is_empty() {
        store::add_up_again(run_id, &fetched, &status)?;
    }
    Ok(fetched.len() as i64)
}

/// A node that may have a part of the run.
struct PartSource<'a> {
    node: &'a NodeSpec,
    sessions: Sessions,
}

impl<'a> PartSource<'a> {
    fn new(node: &'a NodeSpec) -> Result<Self, UserError> {
        let others = if node.is_local { &[] } else { std::slice::from_ref(node) };
        let mut source = Self { node, sessions: sessions_to(others)? };
        if !node.is_local {
            check_version(node, &source.ask(&version_question(), ANSWER)?)?;
        }
        Ok(source)
    }

    /// Asks a query for one text.
    fn ask(&mut self, query: &str, limit: Duration) -> Result<String, UserError> {
        if self.node.is_local {
            return Ok(spi::call::<String>(query, &[])?.unwrap_or_default());
        }
        let answer = self.sessions.ask(&[Some(query.to_owned())], limit, ask_all)?.into_iter().next();
        answer.flatten().unwrap_or_else(|| Ok(String::new()))
    }

    /// Takes over the part that the node has of the run; false where it has none.
    fn fetch(&mut self, run_id: i64, asking: i32) -> Result<bool, UserError> {
        let part = self.ask(&part_question(run_id, asking), ANSWER)?;
        if part.is_empty() {
            return Ok(false);
        }
        let count = format!("SELECT bench_internal.export_part_count('{{{part}}}')::pg_catalog.text");
        let of: i32 = self.ask(&count, ANSWER)?.parse().unwrap_or_default();
        for number in 1..=of {
            let question =
                format!("SELECT bench_internal.export_part('{{{part}}}', {number})::pg_catalog.text");
            let document = self.ask(&question, DOCUMENT)?;
            store::take_part(run_id, self.node.node, &document, (number, of))?;
        }
        // The node keeps it until its bench.prune: this transaction may still be rolled back.
        Ok(of > 0)
    }
}

/// Asks a node for the id that the part of a run has there, once that is over.
fn part_question(run_id: i64, asking: i32) -> String {
    format!(
        "SELECT pg_catalog.max(r.run_id)::pg_catalog.text FROM bench.runs r \
         WHERE r.part_of OPERATOR(pg_catalog.@>) '{{\"run_id\": {run_id}, \"node\": {asking}}}' \
           AND r.status OPERATOR(pg_catalog.<>) ALL ('{{starting,running}}'::pg_catalog.text[])"
    )
}
