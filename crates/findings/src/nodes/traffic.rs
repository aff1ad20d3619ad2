//! What nodes had to do with each other: connections, commits in two phases, encryption.

use bench_base::sentence::{figure, grouped, listed, percent};
use bench_results::{Document, Finding, Node, Severity, Topic};
use serde_json::json;

use crate::finding::finding;

/// The share of connections, beyond those that every session opens once, that may be new.
const NEW_CONNECTIONS: f64 = 0.05;
/// Connections per statement from which on statements need several: those for one shard have one at the most.
const SEVERAL_CONNECTIONS: f64 = 1.5;
/// Prepared transactions for each committed one that are worth a word.
const TWO_PHASE: f64 = 0.1;
const CACHED_CONNECTIONS: &str = "citus.max_cached_conns_per_worker";

/// The findings on what went between the nodes.
pub fn findings(document: &Document) -> Vec<Finding> {
    // The nodes' counters are of the warm-up as well, and what they are compared with is not.
    let counted = if document.run.warmed_up_secs() > 0.0 {
        [None, None]
    } else {
        [connections(document), two_phase(document)]
    };
    counted.into_iter().flatten().chain(encryption(document)).collect()
}

/// A count of all nodes that clients ran on; `None` where one of them has none.
fn sum(document: &Document, count: impl Fn(&Node) -> Option<u64>) -> Option<f64> {
    let nodes: Vec<&Node> = document.nodes_with_clients().collect();
    let sum = nodes.iter().map(|node| count(node).map(|count| count as f64)).sum::<Option<f64>>();
    sum.filter(|_| !nodes.is_empty())
}

/// Executions of SQL statements; meta commands need no connection.
fn executions(document: &Document) -> f64 {
    let sql = document.statements.iter().filter(|line| !line.statement.trim_start().starts_with('\\'));
    sql.map(|statement| statement.count as f64).sum()
}

/// Connections that a session keeps to each node: the least of the nodes' settings, where none is known Citus' default.
fn cached_connections(document: &Document) -> u32 {
    let settings =
        document.nodes_with_clients().filter_map(|node| node.settings.get(CACHED_CONNECTIONS)?.parse().ok());
    settings.min().unwrap_or(1)
}

fn connections(document: &Document) -> Option<Finding> {
    let opened = sum(document, |node| node.connections_opened)?;
    let reused = sum(document, |node| node.connections_reused)?;
    let cached = cached_connections(document);
    let first_ones = document.all_clients() as f64 * document.nodes.len() as f64 * f64::from(cached);
    let used = opened + reused;
    let per_statement = Some(used / executions(document)).filter(|ratio| ratio.is_finite());
    let many_new = (opened - first_ones) / used >= NEW_CONNECTIONS;
    let several = per_statement.is_some_and(|ratio| ratio >= SEVERAL_CONNECTIONS);
    if used <= 0.0 || !(many_new || several) {
        return None;
    }
    let share = opened / used;
    let for_each = per_statement.map_or(String::new(), |ratio| format!(", {} per statement", figure(ratio)));
    let kept = if cached == 1 {
        format!("; sessions keep one per node ({CACHED_CONNECTIONS} = 1)")
    } else {
        String::new()
    };
    let figures = json!({
        "opened": opened,
        "reused": reused,
        "share_opened": share,
        "per_statement": per_statement,
        "max_cached_conns_per_worker": cached,
    });
    Some(if many_new {
        finding(
            Severity::Warning,
            Topic::Connections,
            format!(
                "Statements opened new connections to other nodes: of {} used{for_each}, {} ({}) were new{kept}.",
                grouped(used),
                grouped(opened),
                percent(share)
            ),
            figures,
            "Each new connection costs a server process and an authentication. Raise \
             citus.max_cached_conns_per_worker (in settings) to the number that a statement uses on a node, and \
             citus.max_cached_connection_lifetime if it is shorter than the run. Or name the distribution column \
             in the statement, so that it needs one shard.",
        )
    } else {
        finding(
            Severity::Notice,
            Topic::Connections,
            format!(
                "Statements used several connections to other nodes: {} in all{for_each}{kept}.",
                grouped(used)
            ),
            figures,
            "A statement that names the distribution column needs one shard and one connection. If it needs \
             several, set citus.max_cached_conns_per_worker to the number that it uses on a node, so that they \
             stay open.",
        )
    })
}

fn two_phase(document: &Document) -> Option<Finding> {
    let prepared = sum(document, |node| node.prepared)?;
    let transactions = document.summary.transactions as f64;
    let share = prepared / transactions;
    if transactions <= 0.0 || share < TWO_PHASE {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::TwoPhase,
        format!(
            "Commits took two phases: other nodes prepared {} transactions, {} per committed transaction.",
            grouped(prepared),
            figure(share)
        ),
        json!({ "prepared": prepared, "transactions": transactions, "per_transaction": share }),
        "Citus uses two-phase commit whenever a transaction has written over several connections; Citus 11.0 \
         removed the one-phase protocol. Co-locate the tables that a transaction writes to and distribute them by \
         the same key, so that it writes to one node.",
    ))
}

/// The mode of encryption in a connection string of libpq, whose default is `prefer`.
fn ssl_mode(conninfo: &str) -> String {
    let value = conninfo.split_once("sslmode").and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    let value = value.and_then(|value| value.split_whitespace().next());
    value.map_or("prefer", |value| value.trim_matches('\'')).to_owned()
}

/// Connections between nodes that are encrypted, or may be.
fn encryption(document: &Document) -> Option<Finding> {
    let none_used =
        sum(document, |node| Some(node.connections_opened?.saturating_add(node.connections_reused?)))
            == Some(0.0);
    let mut modes: Vec<String> = document
        .nodes_with_clients()
        .filter_map(|node| Some(ssl_mode(node.settings.get("citus.node_conninfo")?)))
        // libpq encrypts under `allow` only where the server wants it so.
        .filter(|mode| mode != "disable" && mode != "allow")
        .collect();
    modes.sort_unstable();
    modes.dedup();
    if modes.is_empty() || none_used || document.nodes.len() < 2 {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Sslmode,
        format!(
            "Nodes connected to each other with sslmode={} (citus.node_conninfo): encryption has been measured to \
             cost 12 to 29 % of throughput.",
            listed(&modes)
        ),
        json!({ "sslmode": modes }),
        "Compare only with runs of the same setting. If the network between the nodes is trusted, a run with \
         sslmode=disable in citus.node_conninfo on every node shows the cost here.",
    ))
}

#[cfg(test)]
mod tests {
    use super::ssl_mode;

    #[test]
    fn the_mode_is_read_as_libpq_reads_it() {
        for (conninfo, mode) in [
            ("sslmode=require", "require"),
            ("sslrootcert=/etc/ca.crt sslmode = 'verify-full' sslcrl=x", "verify-full"),
            ("sslmode=disable", "disable"),
            ("sslrootcert=/etc/ca.crt", "prefer"),
            ("", "prefer"),
            ("sslmode", "prefer"),
            ("sslmode=", "prefer"),
        ] {
            assert_eq!(ssl_mode(conninfo), mode, "{conninfo}");
        }
    }
}
