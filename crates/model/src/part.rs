//! The parts of a run on several nodes: messages that the nodes exchange about them, as JSON.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{RunOptions, RunSpec, ScriptSpec, check_deck};

/// A run that another node is to make as its part of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartRequest {
    /// As the node that asks has it: roles and tables are to be looked up anew.
    pub spec: RunSpec,
    /// Schema and name of each fixture's tables.
    pub tables: Vec<Vec<(String, String)>>,
    /// Values that captures have kept for its feeders.
    #[serde(default)]
    pub kept: Vec<KeptRows>,
}

/// Rows of bench.captured_rows that a feeder selects from. The other node has them while it reads them, and no longer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptRows {
    pub workload: String,
    pub prefix: String,
    /// Each with its weight, if it has one.
    pub rows: Vec<(Option<f64>, Value)>,
}

impl PartRequest {
    /// Checks everything in the run that SQL's own arguments are checked for: a role that may call the function may send it
    /// anything.
    ///
    /// # Errors
    /// As [`RunOptions::new`], and 22023 for scripts that do not belong to the options or to a fixture.
    pub fn checked(self) -> Result<Self, UserError> {
        let Self { spec, tables, kept } = self;
        let options = RunOptions::new(spec.options.arguments()?)?;
        let has_its_weight = |script: &ScriptSpec| {
            let mut named = options.mix.iter().filter(|share| share.workload == script.name).peekable();
            named.peek().is_none() || named.any(|share| share.weight == script.weight)
        };
        // What another name of the mix stands for, the node that asks has looked up.
        let fits = spec.scripts.iter().any(|script| script.weight > 0)
            && (options.mix.len()..=crate::spec::MAX_SCRIPTS).contains(&spec.scripts.len())
            && spec
                .scripts
                .iter()
                .all(|script| script.fixture.is_none_or(|index| index < spec.fixtures.len()))
            && spec.scripts.iter().all(has_its_weight)
            && tables.len() == spec.fixtures.len()
            // Duels are of one node.
            && options.duel.is_none()
            && spec.scripts.iter().all(|script| script.arm.is_none());
        if !fits {
            return Err(UserError::invalid("the scripts of the part do not belong to its options"));
        }
        check_deck(spec.scripts.iter().map(|script| (script.is_dealt, script.weight)))?;
        spec.scripts.iter().filter_map(|script| script.terminal).try_for_each(|times| times.check())?;
        // Its sessions are those of the role that asks, here, whatever is asked for.
        let own = |script: ScriptSpec| ScriptSpec { role: None, ..script };
        let scripts = spec.scripts.into_iter().map(own).collect();
        let options = RunOptions { run_as: None, target: None, ..options };
        Ok(Self {
            spec: RunSpec {
                options,
                scripts,
                caller: None,
                may_be_special: false,
                // Their OIDs are those of another server.
                answering: Vec::new(),
                cluster: None,
                sweep_id: None,
                applied: Vec::new(),
                target: None,
                other_target: None,
                ..spec
            },
            tables,
            kept,
        })
    }
}

/// What becomes of a [`PartRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartAnswer {
    /// The run's id on its node.
    RunId(i64),
    Error(UserError),
}

/// A node that another one does not reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnreachedNode {
    /// Citus' number for it.
    pub node: i32,
    /// Why, with its name.
    pub error: UserError,
}

/// How far a part is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartState {
    /// Its clients stand at the gate.
    pub is_ready: bool,
    /// As bench.runs has it, when it is over.
    pub status: Option<String>,
    pub error: Option<Value>,
    /// When its clients' time began, by its own node's clock, in microseconds as a timestamptz counts them.
    pub began_us: Option<i64>,
    /// Whether the last sample, which the next figures are of too, was in the warm-up.
    pub in_warmup: bool,
    pub samples: u32,
    pub elapsed_secs: f64,
    pub tps: f64,
    pub latency_avg_ms: f64,
    pub latency_stddev_ms: f64,
    pub lag_avg_ms: f64,
    /// Committed so far, in all samples.
    pub transactions: u64,
    pub failed: u64,
    pub aborted: u64,
    pub skipped: u64,
    pub clients: u32,
}

#[cfg(test)]
mod tests;
