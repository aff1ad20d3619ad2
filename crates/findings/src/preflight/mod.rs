//! Risks that would spoil a run that is about to start, derived from the state of the server and its machine.
//!
//! As with findings, a false alarm costs more than a missing remark: each risk has a threshold that an idle server with
//! freshly loaded tables does not reach, and unknown values are no risk.

mod server;
mod situation;
mod tables;
#[cfg(test)]
mod tests;

use bench_base::sentence::{counted, milliseconds};
use bench_results::Severity;

use crate::preflight::situation::notice;

pub use crate::preflight::situation::{
    Announced, BlockingLock, Checkpoint, FixtureState, Holder, LOOK_MS, MachineState, NodeFailure, NodesSeen,
    PlannedRun, ReplicationSlot, Risk, RiskTopic, ServerState, Situation, TableStatistics,
};

/// What there is to say, the gravest first; nothing of a server at rest.
pub fn risks(situation: &Situation) -> Vec<Risk> {
    let mut risks = Vec::new();
    risks.extend(unseen(&situation.plan));
    // What of this server says nothing of another one; its machine drives the connections.
    if situation.plan.target.is_none() {
        risks.extend(server::risks(situation));
        risks.extend(tables::risks(situation));
    }
    risks.extend(server::machine_risks(&situation.machine));
    risks.sort_by_key(|risk| risk.severity);
    risks
}

/// Those of the risks that a run tells before it starts.
pub fn announced(situation: &Situation) -> Vec<Risk> {
    let is_announced = |risk: &Risk| match risk.announced {
        Announced::Always => true,
        Announced::InLongRuns => situation.plan.is_long(),
        Announced::Never => false,
    };
    risks(situation).into_iter().filter(is_announced).collect()
}

/// What is not looked at.
fn unseen(plan: &PlannedRun) -> Vec<Risk> {
    let mut risks = Vec::new();
    if let Some(target) = &plan.target {
        risks.push(notice(
            RiskTopic::Target,
            format!(
                "The server of target \"{target}\" was not checked, only the machine that makes the connections."
            ),
            "Call bench.preflight on the target, or look there for old transactions, checkpoints, vacuums and other load.",
        ));
    }
    risks.extend(plan.nodes.iter().flat_map(of_nodes));
    if plan.has_other_nodes {
        risks.push(notice(RiskTopic::Nodes, only_this_one(plan), ON_OTHERS));
    }
    for (name, rows) in &plan.missing {
        let size = match rows {
            0 => "without rows".to_owned(),
            rows => format!("with {}", counted(rows.unsigned_abs(), "row")),
        };
        risks.push(notice(
            RiskTopic::Fixture,
            format!("Fixture \"{name}\" is not loaded: the run loads it first, {size}."),
            "Load it with bench.load in the size that you want to measure.",
        ));
    }
    risks
}

const ON_OTHERS: &str = "Call bench.preflight on the other nodes as well, with nodes => 'local'.";

fn only_this_one(plan: &PlannedRun) -> String {
    match plan.nodes.as_ref().filter(|nodes| nodes.failures.is_empty()) {
        Some(NodesSeen { nodes, with_clients, took_ms, .. }) => format!(
            "{} answered within {}, and {with_clients} with clients reach all others; tables, locks and load were \
             checked only on this node.",
            counted((*nodes).into(), "node"),
            milliseconds(*took_ms)
        ),
        None => "Only this node of the cluster was checked.".to_owned(),
    }
}

/// The nodes that do not answer, or do not reach each other. A run ends with the first of those that it needs.
fn of_nodes(nodes: &NodesSeen) -> impl Iterator<Item = Risk> {
    nodes.failures.iter().map(|NodeFailure { message, hint, is_needed }| Risk {
        severity: if *is_needed { Severity::Critical } else { Severity::Warning },
        topic: RiskTopic::Nodes,
        finding: match is_needed {
            true => format!("The run would not start: {message}."),
            false => format!("The run would have no figures of one node: {message}."),
        },
        advice: hint.clone(),
        announced: Announced::Never,
    })
}
