//! Which nodes had the work, and which had none.
//!
//! Shares of processors are of a whole run, its begin and end included, so that they are a little further from full
//! than those of the intervals.

use bench_base::sentence::{counted, first_few, grouped, percent};
use bench_results::{Document, Finding, Node, Severity, Topic};
use serde_json::json;

use crate::finding::finding;

/// The idle share below which a node's processors are saturated, and from which on they have much to spare.
const SATURATED_IDLE: f64 = 0.1;
const SPARE_IDLE: f64 = 0.5;
/// The stolen share from which on the hypervisor is to be named, not the load.
const MOSTLY_STOLEN: f64 = 0.25;
/// Measured seconds below which the begin and the end are too great a part of the run for its processors' shares.
const LEAST_SECS: f64 = 5.0;
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
pub fn findings(document: &Document) -> Vec<Finding> {
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
    document.summary.secs.is_none_or(|secs| secs < LEAST_SECS)
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
