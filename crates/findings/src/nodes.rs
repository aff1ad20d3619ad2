//! What there is to say of a Citus cluster: nodes that were lost, that began late or were left with something to clear
//! up, which of them had the work, and what their talking to each other cost.

use bench_base::sentence::{counted, figure, first_few, grouped, listed, milliseconds, percent};
use bench_results::{Document, Finding, Node, Severity, Topic};
use serde_json::json;

use crate::intervals::finding;

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
    findings.extend(balance(document));
    findings.extend(traffic(document));
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

// Shares of processors are of a whole run, its begin and end included, so that they are a little further from full than
// those of the intervals.

/// The idle share below which a node's processors are saturated, and from which on they have much to spare.
const SATURATED_IDLE: f64 = 0.1;
const SPARE_IDLE: f64 = 0.5;
/// The stolen share from which on the hypervisor is to be named, not the load.
const MOSTLY_STOLEN: f64 = 0.25;
/// Measured seconds below which the begin and the end are too great a part of the run for its processors' shares.
const LEAST_BALANCE_SECS: f64 = 5.0;
/// How many times the throughput per client of the slowest node the fastest must have.
const UNEVEN_TPS: f64 = 1.5;
/// Transactions of the fastest below which a ratio may be chance: at this one it is eight standard deviations of
/// counts off (Poisson's, the square root of a count).
const LEAST_TRANSACTIONS: u64 = 1000;
/// By how much of its time the busiest node must be busier than the least busy one, and how busy it must be: two that
/// are both bored keep nobody waiting.
const UNEVEN_BUSY: f64 = 0.25;
const LEAST_BUSY: f64 = 0.5;

/// The findings on the work's distribution.
pub fn balance(document: &Document) -> Vec<Finding> {
    [one_sided(document), uneven_processors(document), uneven_throughput(document)]
        .into_iter()
        .flatten()
        .collect()
}

/// What a node's processors had left, those waiting for a disk included.
fn idle(node: &Node) -> Option<f64> {
    let waiting = node.cpu_iowait.unwrap_or(0.0);
    node.cpu_idle.map(|idle| idle + waiting).filter(|idle| idle.is_finite())
}

fn is_saturated(node: &Node) -> bool {
    idle(node).is_some_and(|idle| idle < SATURATED_IDLE) && node.cpu_steal.unwrap_or(0.0) < MOSTLY_STOLEN
}

/// The mean idle share, where that of every node is known.
fn mean_idle(nodes: &[&Node]) -> Option<f64> {
    let sum: f64 = nodes.iter().map(|node| idle(node)).sum::<Option<f64>>()?;
    (!nodes.is_empty()).then(|| sum / nodes.len() as f64)
}

/// The idle shares of two groups of which each node of the first is saturated and the second has much to spare.
fn contrast(busy: &[&Node], spare: &[&Node]) -> Option<(f64, f64)> {
    let all_saturated = busy.iter().all(|node| is_saturated(node));
    let (busy, spare) = (mean_idle(busy)?, mean_idle(spare)?);
    (all_saturated && spare >= SPARE_IDLE).then_some((busy, spare))
}

fn is_too_short(document: &Document) -> bool {
    document.summary.secs.is_none_or(|secs| secs < LEAST_BALANCE_SECS)
}

fn names(nodes: &[&Node]) -> String {
    first_few(&nodes.iter().map(|node| node.label()).collect::<Vec<_>>())
}

/// One side saturated while the other has much to spare: the nodes that clients run on, and those that only serve
/// their statements; where clients run on all workers, these and the coordinator.
pub fn one_sided(document: &Document) -> Option<Finding> {
    if is_too_short(document) {
        return None;
    }
    let (asking, others): (Vec<&Node>, Vec<&Node>) = document.nodes.iter().partition(|node| node.clients > 0);
    let serving: Vec<&Node> = others.into_iter().filter(|node| !node.is_coordinator).collect();
    if serving.is_empty() {
        let (coordinator, workers): (Vec<&Node>, Vec<&Node>) =
            document.nodes.iter().partition(|node| node.is_coordinator);
        let shares = contrast(&workers, &coordinator)?;
        return Some(serving_saturated(&workers, &coordinator, shares));
    }
    if let Some(shares) = contrast(&asking, &serving) {
        return Some(asking_saturated(&asking, &serving, shares));
    }
    let shares = contrast(&serving, &asking)?;
    Some(serving_saturated(&serving, &asking, shares))
}

fn asking_saturated(asking: &[&Node], serving: &[&Node], (busy, spare): (f64, f64)) -> Finding {
    finding(
        Severity::Warning,
        Topic::Coordinator,
        format!(
            "{}, where the clients ran, was saturated (idle for {} of the time) while {} that served their \
             statements {} idle for {} of it: the run measured one coordinating node, not the cluster.",
            names(asking),
            percent(busy),
            counted(serving.len() as u64, "node"),
            if serving.len() == 1 { "was" } else { "were" },
            percent(spare)
        ),
        json!({ "idle": busy, "idle_of_others": spare, "others": serving.len() }),
        "Let every node coordinate: nodes => 'all' runs the clients on each node, nodes => 'workers' on each but \
         the coordinator. On one node, more clients only raise latency.",
    )
}

fn serving_saturated(serving: &[&Node], spare: &[&Node], (busy, idle): (f64, f64)) -> Finding {
    finding(
        Severity::Warning,
        Topic::Coordinator,
        format!(
            "{} that served the statements ({}) {} saturated (idle for {} of the time) while {} was idle for {} of it.",
            counted(serving.len() as u64, "node"),
            names(serving),
            if serving.len() == 1 { "was" } else { "were" },
            percent(busy),
            names(spare),
            percent(idle)
        ),
        json!({ "idle": busy, "idle_of_others": idle, "saturated": serving.len() }),
        "More clients only raise latency, and more coordinating nodes do not help. Check the statements' plans on \
         the shards, or add workers (citus_add_node, citus_rebalance_start).",
    )
}

/// The workers that do alike: those that only serve, or, where all run clients, all.
fn workers(document: &Document) -> Vec<&Node> {
    let (asking, serving): (Vec<&Node>, Vec<&Node>) =
        document.nodes.iter().filter(|node| !node.is_coordinator).partition(|node| node.clients > 0);
    if serving.is_empty() { asking } else { serving }
}

fn uneven_processors(document: &Document) -> Option<Finding> {
    if is_too_short(document) {
        return None;
    }
    let mut busy: Vec<(&Node, f64)> =
        workers(document).into_iter().filter_map(|node| Some((node, 1.0 - idle(node)?))).collect();
    busy.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((idlest, least), (busiest, most)) = (*busy.first()?, *busy.last()?);
    if most < LEAST_BUSY || most - least < UNEVEN_BUSY {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Balance,
        format!(
            "The workers were not equally busy: the processors of {} were busy for {} of the time, the processors \
             of {} for {}.",
            busiest.label(),
            percent(most),
            idlest.label(),
            percent(least)
        ),
        json!({ "busiest": busiest.name, "busy": most, "idlest": idlest.name, "busy_of_idlest": least }),
        "Check citus_shards for uneven placement (citus_rebalance_start() moves shards), and whether few values of \
         the distribution column have most of the rows or statements. Otherwise look for other load on the busy \
         node.",
    ))
}

fn uneven_throughput(document: &Document) -> Option<Finding> {
    let per_client = |node: &Node| {
        let tps = node.tps.filter(|tps| tps.is_finite() && *tps >= 0.0)?;
        Some((tps, tps / f64::from(node.clients)))
    };
    let mut nodes: Vec<(&Node, (f64, f64))> = document
        .nodes_with_clients()
        .filter(|node| node.lost_status().is_none())
        .filter_map(|node| Some((node, per_client(node)?)))
        .collect();
    nodes.sort_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let ((slowest, (low, least)), (fastest, (high, most))) = (*nodes.first()?, *nodes.last()?);
    let is_chance = fastest.transactions.unwrap_or(0) < LEAST_TRANSACTIONS;
    if most <= 0.0 || most < least * UNEVEN_TPS || is_chance {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Balance,
        format!(
            "Throughput differed between the nodes: {} reached {} tps with {}, {} reached {} tps with {}.",
            fastest.label(),
            grouped(high),
            counted(fastest.clients.into(), "client"),
            slowest.label(),
            grouped(low),
            counted(slowest.clients.into(), "client")
        ),
        json!({ "fastest": fastest.name, "tps": high, "slowest": slowest.name, "tps_of_slowest": low }),
        "Compare latencies and idle shares in bench.nodes. The slower node has a smaller machine, has more of the \
         shards, or is farther from the nodes that it queries.",
    ))
}

/// The share of connections, beyond those that every session opens once, that may be new.
const NEW_CONNECTIONS: f64 = 0.05;
/// Connections per statement from which on statements need several: those for one shard have one at the most.
const SEVERAL_CONNECTIONS: f64 = 1.5;
/// Prepared transactions for each committed one that are worth a word.
const TWO_PHASE: f64 = 0.1;
const CACHED_CONNECTIONS: &str = "citus.max_cached_conns_per_worker";

/// The findings on what went between the nodes.
fn traffic(document: &Document) -> Vec<Finding> {
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
    use super::*;

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
