//! What other nodes have measured of a run and still have, because they could not be reached at its end.

use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::NodeSpec;

use super::node_connectivity::sessions_to;
use crate::cluster::citus;
use crate::cluster::citus::{ask_all, check_version, version_question};
use crate::cluster::sessions::Sessions;
use crate::error::warn;
use crate::server::roles::current_role_oid;
use crate::server::spi;
use crate::shm::Work;
use crate::store;

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
