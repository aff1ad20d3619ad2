//! What the server did during a run.

use serde::{Deserialize, Serialize};

/// A share of the clients' measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// As [`crate::Node::node`]; 0: the only one.
    #[serde(default)]
    pub node: i32,
    /// As in pg_stat_activity; `CPU` and `Runnable` where a client waits for nothing.
    pub wait_event_type: String,
    pub wait_event: String,
    /// A fraction of 1.
    pub share: f64,
}

/// Something that went on in the server for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// As [`crate::Node::node`]; 0: the only one.
    pub node: i32,
    /// `checkpoint`, `vacuum`, `autovacuum`, `analyze`, `autoanalyze`, `create index`, `reindex`, `cluster`, `vacuum full`,
    /// `backup`, `standby` or `reload`.
    pub kind: String,
    /// The table, of what is done to a table.
    pub relation: Option<String>,
    /// For a checkpoint: `timed` or `requested`, where that is known, or `begun before the run`.
    pub detail: Option<String>,
    /// Seconds since measuring began; negative before.
    pub started: f64,
    /// Seconds since measuring began; `None` when it had not ended with the run.
    pub ended: Option<f64>,
}

/// A table or index of the run's fixture, before and after. Counts are of the run, all phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relation {
    /// As [`crate::Node::node`]; 0: the only one.
    pub node: i32,
    pub relation: String,
    /// `table` or `index`.
    pub kind: String,
    pub bytes_before: Option<i64>,
    pub bytes_after: Option<i64>,
    /// Rows, by the server's estimate, before and after.
    pub live_before: Option<i64>,
    pub live: Option<i64>,
    pub dead_before: Option<i64>,
    pub dead: Option<i64>,
    pub inserted: Option<i64>,
    pub updated: Option<i64>,
    pub hot_updated: Option<i64>,
    pub deleted: Option<i64>,
    pub mod_since_analyze: Option<i64>,
    pub seq_scan: Option<i64>,
    /// Rows that the sequential scans read.
    pub seq_tup_read: Option<i64>,
    pub idx_scan: Option<i64>,
    pub vacuums: Option<i64>,
    pub autovacuums: Option<i64>,
    pub analyzes: Option<i64>,
    pub autoanalyzes: Option<i64>,
    /// Timestamps; `None` for never.
    pub last_vacuum: Option<String>,
    pub last_autovacuum: Option<String>,
    pub last_analyze: Option<String>,
    pub last_autoanalyze: Option<String>,
}

/// Errors of one SQLSTATE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorLine {
    /// As [`crate::Node::node`]; 0: the only one.
    pub node: i32,
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub count: u64,
    pub retried: u64,
    pub failed: u64,
}

/// What the harness counted against what the server did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditLine {
    /// As [`crate::Node::node`]; 0: the only one.
    pub node: i32,
    pub counter: String,
    pub harness: Option<i64>,
    pub server: Option<i64>,
    /// `None` where the two need not be equal.
    pub ok: Option<bool>,
    pub reason: String,
}
