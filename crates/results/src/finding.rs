//! A finding: one sentence about a run, with its figures and its advice. The room `findings` draws them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much a finding matters, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The figures are not what they seem to be.
    Critical,
    /// They are right, but something kept them from being better, or from being the same tomorrow.
    Warning,
    /// Good to know when they are compared with others.
    Notice,
}

impl Severity {
    /// The word that users read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// An enum of topics, each with the word that users read.
#[macro_export]
macro_rules! topics {
    ($(#[$doc:meta])* pub enum $name:ident { $($topic:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[serde(rename = $word)] $topic,)*
        }

        impl $name {
            /// The word that users read.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$topic => $word,)*
                }
            }
        }
    };
}

topics! {
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
