//! The rows that several nodes of a Citus cluster measured, merged into one run's.

use std::collections::BTreeMap;

use super::{CommandSummary, Document, Wait};

impl Document {
    /// The statements of all nodes, a row for each command: counts are added up, the mean latency is that of all
    /// executions, the 95th percentile the greatest of the nodes', the plan that of the first node that has one.
    pub fn merged_statements(&self) -> Vec<CommandSummary> {
        let statements = &self.statements;
        if is_of_one_node(statements.iter().map(|statement| statement.node)) {
            return statements.clone();
        }
        let mut together: BTreeMap<(u32, u32), CommandSummary> = BTreeMap::new();
        for statement in statements {
            together
                .entry((statement.script, statement.command))
                .and_modify(|sum| add(sum, statement))
                .or_insert_with(|| statement.clone());
        }
        together.into_values().collect()
    }

    /// The waits of all nodes' clients, a row for each event, the greatest share first: each node's shares count as much
    /// as it had clients.
    pub fn merged_waits(&self) -> Vec<Wait> {
        if is_of_one_node(self.waits.iter().map(|wait| wait.node)) {
            return self.waits.clone();
        }
        let clients = |node: i32| {
            let listed = self.nodes.iter().find(|listed| listed.node == node);
            f64::from(listed.map_or(self.run.clients, |listed| listed.clients))
        };
        let mut nodes: Vec<i32> = self.waits.iter().map(|wait| wait.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let all_clients: f64 = nodes.into_iter().map(clients).sum();
        let mut together: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for wait in &self.waits {
            *together.entry((&wait.wait_event_type, &wait.wait_event)).or_default() +=
                wait.share * clients(wait.node) / all_clients;
        }
        let wait = |((class, event), share): ((&str, &str), f64)| Wait {
            wait_event_type: class.to_owned(),
            wait_event: event.to_owned(),
            share,
            ..Wait::default()
        };
        let mut waits: Vec<Wait> = together.into_iter().map(wait).collect();
        waits.sort_by(|one, other| other.share.total_cmp(&one.share));
        waits
    }
}

fn add(sum: &mut CommandSummary, other: &CommandSummary) {
    let latencies = [(sum.latency_avg_ms, sum.count), (other.latency_avg_ms, other.count)];
    sum.latency_avg_ms = weighted_mean(&latencies.map(|(value, count)| (value, count as f64)));
    sum.latency_p95_ms = sum.latency_p95_ms.into_iter().chain(other.latency_p95_ms).reduce(f64::max);
    if sum.plan.is_none() {
        sum.plan.clone_from(&other.plan);
    }
    for (sum, other) in [
        (&mut sum.count, other.count),
        (&mut sum.failed, other.failed),
        (&mut sum.retried, other.retried),
        (&mut sum.generic_plans, other.generic_plans),
        (&mut sum.custom_plans, other.custom_plans),
        (&mut sum.plan_changes, other.plan_changes),
        (&mut sum.workers_planned, other.workers_planned),
        (&mut sum.workers_launched, other.workers_launched),
    ] {
        *sum = sum.saturating_add(other);
    }
    for (sum, other) in [
        (&mut sum.rows, other.rows),
        (&mut sum.writes, other.writes),
        (&mut sum.empty_writes, other.empty_writes),
    ] {
        *sum = sum.iter().copied().chain(other).reduce(u64::saturating_add);
    }
}

/// The mean of those values that are known, each with its weight.
pub fn weighted_mean(values: &[(Option<f64>, f64)]) -> Option<f64> {
    let known = || values.iter().filter_map(|(value, weight)| Some(((*value)?, *weight)));
    let all: f64 = known().map(|(_, weight)| weight).sum();
    (all > 0.0).then(|| known().map(|(value, weight)| value * weight / all).sum())
}

/// Whether all rows are of the same node.
fn is_of_one_node(mut nodes: impl Iterator<Item = i32>) -> bool {
    let first = nodes.next();
    nodes.all(|node| Some(node) == first)
}

#[cfg(test)]
mod tests;
