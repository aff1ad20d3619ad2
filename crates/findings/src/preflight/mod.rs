//! Risks that would spoil a run that is about to start, derived from the state of the server and its machine.
//!
//! As with findings, a false alarm costs more than a missing remark: each risk has a threshold that an idle server with
//! freshly loaded tables does not reach, and unknown values are no risk.

mod assessment;
mod machine;
mod risk;
mod server;
mod situation;
mod tables;
#[cfg(test)]
mod tests;

pub use assessment::{announced, risks};
pub use risk::{Announced, Risk, RiskTopic};
pub use situation::{
    BlockingLock, Checkpoint, FixtureState, Holder, LOOK_MS, MachineState, NodeFailure, NodesSeen,
    PlannedRun, ReplicationSlot, ServerState, Situation, TableStatistics,
};
