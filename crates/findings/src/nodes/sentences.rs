//! The findings on nodes.

use bench_base::sentence::{counted, first_few, milliseconds};
use bench_results::{Document, Finding, Node, Severity, Topic};
use serde_json::json;

use crate::finding::finding;

/// Milliseconds, beyond the errors of the clocks, by which nodes may begin apart.
const APART_MS: f64 = 10.0;

/// The findings on the cluster; none where no nodes are listed.
pub fn findings(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(lost(document));
    findings.extend(unheard(document));
    findings.extend(stuck(document));
    findings.extend(starts(document));
    findings.extend(prepared_left(document));
    findings.extend(super::balance::findings(document));
    findings.extend(super::traffic::findings(document));
    findings
}

/// The nodes, told from others by a number, whose part did not end as it should.
pub fn lost_nodes(document: &Document) -> impl Iterator<Item = (&Node, &str)> {
    let nodes = document.nodes.iter().filter(|node| node.node != 0);
    nodes.filter_map(|node| Some((node, node.lost_status()?)))
}

fn lost(document: &Document) -> Option<Finding> {
    let lost: Vec<(&Node, &str)> = lost_nodes(document).collect();
    if lost.is_empty() {
        return None;
    }
    let described: Vec<String> = lost
        .iter()
        .map(|(node, status)| {
            let message = message(node).map(|message| format!(": {message}"));
            format!("{} ({status}{})", node.label(), message.unwrap_or_default())
        })
        .collect();
    Some(finding(
        Severity::Critical,
        Topic::Node,
        format!(
            "Some nodes did not complete the run: {}. The figures do not represent {} × {}.",
            first_few(&described),
            counted(document.client_nodes() as u64, "node"),
            counted(document.run.clients.into(), "client")
        ),
        json!({
            "nodes": lost
                .iter()
                .map(|(node, status)| json!({
                    "node": node.node,
                    "name": node.name,
                    "status": status,
                    "error": node.error,
                }))
                .collect::<Vec<_>>(),
        }),
        "Find the reason in that node's server log, and run again.",
    ))
}

fn message(node: &Node) -> Option<&str> {
    node.error.as_ref()?.get("message")?.as_str()
}

/// Nodes without clients that did not answer: statements that had to do with them may not have ended either.
fn unheard(document: &Document) -> Option<Finding> {
    let silent: Vec<&Node> =
        document.nodes.iter().filter(|node| node.clients == 0 && node.error.is_some()).collect();
    if silent.is_empty() {
        return None;
    }
    let messages: Vec<String> =
        silent.iter().map(|node| message(node).map_or_else(|| node.label(), str::to_owned)).collect();
    let number = if silent.len() == 1 { "it" } else { "them" };
    Some(finding(
        Severity::Warning,
        Topic::Node,
        format!(
            "{} that served statements did not answer at the end of the run: {}. Clients in transactions on {number} may have \
             waited for {number}.",
            counted(silent.len() as u64, "node"),
            first_few(&messages),
        ),
        json!({
            "nodes": silent
                .iter()
                .map(|node| json!({ "node": node.node, "name": node.name, "error": node.error }))
                .collect::<Vec<_>>(),
        }),
        "Make sure that the node runs and can be reached, and run again.",
    ))
}

/// Clients that could not be ended: they wait where neither a cancel nor a termination reaches them.
fn stuck(document: &Document) -> Option<Finding> {
    let nodes: Vec<&Node> = document.nodes.iter().filter(|node| !node.clients_stuck.is_empty()).collect();
    let count: usize = nodes.iter().map(|node| node.clients_stuck.len()).sum();
    if count == 0 {
        return None;
    }
    let named = |node: &&Node| {
        let processes: Vec<String> = node.clients_stuck.iter().map(i32::to_string).collect();
        format!("{} (processes {})", node.label(), first_few(&processes))
    };
    let lost = lost_nodes(document).next().is_some();
    Some(finding(
        Severity::Warning,
        Topic::Stuck,
        format!(
            "{} could not be ended: on {}. {}",
            counted(count as u64, "client"),
            first_few(&nodes.iter().map(named).collect::<Vec<_>>()),
            if lost {
                "A client that rolls back or commits on a node that does not answer waits for it. Until it answers, each \
                 of them keeps its worker slot and its locks."
            } else {
                "Until the disk or node that they wait for answers, each of them keeps its worker slot and its locks."
            }
        ),
        json!({
            "clients_stuck": count,
            "nodes": nodes
                .iter()
                .map(|node| json!({ "node": node.node, "name": node.name, "clients_stuck": node.clients_stuck }))
                .collect::<Vec<_>>(),
        }),
        "Bring the lost node back, or restart the servers that these processes are on. pg_stat_activity shows whether they \
         are still there.",
    ))
}

fn starts(document: &Document) -> Option<Finding> {
    let offset = |node: &Node| node.start_offset_ms.filter(|offset| offset.is_finite());
    let error = |node: &Node| node.clock_error_ms.filter(|error| error.is_finite()).map_or(0.0, f64::abs);
    let mut started: Vec<(&Node, f64)> =
        document.nodes_with_clients().filter_map(|node| Some((node, offset(node)?))).collect();
    started.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((first, first_ms), (last, last_ms)) = (*started.first()?, *started.last()?);
    let (apart_ms, error_ms) = (last_ms - first_ms, error(first) + error(last));
    if apart_ms <= APART_MS + error_ms {
        return None;
    }
    Some(finding(
        Severity::Warning,
        Topic::Start,
        format!(
            "The nodes did not start together: {} started {} after {} (clock error up to {}).",
            last.label(),
            milliseconds(apart_ms),
            first.label(),
            milliseconds(error_ms)
        ),
        json!({ "apart_ms": apart_ms, "clock_error_ms": error_ms, "first": first.name, "last": last.name }),
        "Find the cause of the delay on that node (processors, network, a clock adjustment) and run again, or \
         measure long enough to make the delay irrelevant.",
    ))
}

fn prepared_left(document: &Document) -> Option<Finding> {
    let left: Vec<(&Node, u64)> = document
        .nodes
        .iter()
        .filter_map(|node| Some((node, node.prepared_left.filter(|left| *left > 0)?)))
        .collect();
    let count = left.iter().fold(0u64, |sum, (_, left)| sum.saturating_add(*left));
    if left.is_empty() {
        return None;
    }
    let names: Vec<String> = left.iter().map(|(node, _)| node.label()).collect();
    Some(finding(
        Severity::Warning,
        Topic::Prepared,
        format!(
            "{} of Citus {} left on {}: locks and dead rows stay until recovery.",
            counted(count, "prepared transaction"),
            if count == 1 { "was" } else { "were" },
            first_few(&names)
        ),
        json!({
            "prepared_left": count,
            "nodes": left
                .iter()
                .map(|(node, left)| json!({ "node": node.node, "name": node.name, "prepared_left": left }))
                .collect::<Vec<_>>(),
        }),
        "Run SELECT recover_prepared_transactions() on each node that clients ran on, or wait for \
         citus.recover_2pc_interval. Then run again.",
    ))
}
