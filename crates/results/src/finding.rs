//! A finding: one sentence about a run, with its figures and its advice. The room `findings` draws them.

use bench_base::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

words! {
    /// How much a finding matters, the gravest first.
    #[derive(JsonSchema)]
    pub enum Severity {
        /// The figures are not what they seem to be.
        Critical = "critical",
        /// They are right, but something kept them from being better, or from being the same tomorrow.
        Warning = "warning",
        /// Good to know when they are compared with others.
        Notice = "notice",
    }
}

words! {
    /// What a finding is about.
    #[derive(JsonSchema)]
    pub enum Topic {
        Audit = "audit",
        Balance = "balance",
        Cache = "cache",
        Clients = "clients",
        Connections = "connections",
        Coordinator = "coordinator",
        Dip = "dip",
        Drift = "drift",
        Driver = "driver",
        Duel = "duel",
        Failed = "failed",
        Fidelity = "fidelity",
        Horizon = "horizon",
        Lag = "lag",
        Log = "log",
        Node = "node",
        Others = "others",
        Outage = "outage",
        Plan = "plan",
        Prepared = "prepared",
        Processors = "processors",
        Quota = "quota",
        Rate = "rate",
        Replication = "replication",
        Rows = "rows",
        Safety = "safety",
        Samples = "samples",
        Scale = "scale",
        Scan = "scan",
        Sslmode = "sslmode",
        Stall = "stall",
        Start = "start",
        Steal = "steal",
        Stuck = "stuck",
        Tail = "tail",
        Temp = "temp",
        Transactions = "transactions",
        TwoPhase = "two-phase",
        Unlogged = "unlogged",
        Unsteady = "unsteady",
        Vacuum = "vacuum",
        Waits = "waits",
        Warmup = "warmup",
        Workers = "workers",
        Writes = "writes",
        Xids = "xids",
    }
}

/// A sentence about a run, with its figures and advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `critical`, `warning` or `notice`.
    pub severity: Severity,
    /// One word for its kind, as `dip`, `warmup` or `audit`.
    pub topic: Topic,
    /// What there is to say, in a sentence with its figures and their units.
    pub finding: String,
    /// The same figures to compute with; their names depend on the topic.
    pub figures: Map<String, Value>,
    /// What to try.
    pub advice: String,
}
