//! What the server did during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wait event's share of the clients' measured time. Waits are sampled 100 times a second; up to 400 times with few
/// clients, less often with more than 64.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Node of the row, as in `nodes`; 0: the only one.
    #[serde(default)]
    pub node: i32,
    /// As in pg_stat_activity; or `CPU`, `Runnable` or `Unobserved`, as in the samples.
    pub wait_event_type: String,
    /// As in pg_stat_activity; the same word again for those three.
    pub wait_event: String,
    /// Share of the time of all clients of the node; the shares of a node add up to 1.
    pub share: f64,
}

/// Something that went on in the server for a while. For a vacuum shorter than an interval, `started` is its end; for a
/// checkpoint begun before the run, it is the time of the first observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Event {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// As in `bench.events`.
    pub kind: String,
    /// The table, of what is done to a table.
    pub relation: Option<String>,
    /// Of a checkpoint: `timed` or `requested`, where that is known, or `begun before the run`.
    pub detail: Option<String>,
    /// Seconds since the start of the measurement; negative before it.
    pub started: f64,
    /// Seconds since the start of the measurement; null if it ended after the run.
    pub ended: Option<f64>,
}

/// A table or index of the run's fixtures, before and after the run, from the server's statistics. Counts cover all
/// phases of the run, and include use by other sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Relation {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// The table or index.
    pub relation: String,
    /// `table` or `index`.
    pub kind: String,
    /// Size before the run in bytes, for a table including its maps and TOAST; null if a lock prevented reading it.
    pub bytes_before: Option<i64>,
    /// Size after the run in bytes.
    pub bytes_after: Option<i64>,
    /// Live rows before, an estimate.
    pub live_before: Option<i64>,
    /// Live rows after, an estimate.
    pub live: Option<i64>,
    /// Dead rows before, an estimate.
    pub dead_before: Option<i64>,
    /// Dead rows after, an estimate.
    pub dead: Option<i64>,
    /// Rows inserted.
    pub inserted: Option<i64>,
    /// Rows updated, HOT updates included.
    pub updated: Option<i64>,
    /// Rows updated without new index entries.
    pub hot_updated: Option<i64>,
    /// Rows deleted.
    pub deleted: Option<i64>,
    /// Rows changed since the last ANALYZE, after the run.
    pub mod_since_analyze: Option<i64>,
    /// Sequential scans.
    pub seq_scan: Option<i64>,
    /// Live rows read by them.
    pub seq_tup_read: Option<i64>,
    /// Index scans; for a table, of all its indexes.
    pub idx_scan: Option<i64>,
    /// Manual vacuums that ended during the run.
    pub vacuums: Option<i64>,
    /// Autovacuums that ended during the run.
    pub autovacuums: Option<i64>,
    /// Manual analyzes that ended during the run.
    pub analyzes: Option<i64>,
    /// Analyzes by autovacuum that ended during the run.
    pub autoanalyzes: Option<i64>,
    /// End of the last manual vacuum; null, like the others, for never.
    pub last_vacuum: Option<String>,
    /// End of the last autovacuum.
    pub last_autovacuum: Option<String>,
    /// End of the last manual analyze.
    pub last_analyze: Option<String>,
    /// End of the last analyze by autovacuum.
    pub last_autoanalyze: Option<String>,
}

/// Errors of one SQLSTATE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ErrorLine {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// SQLSTATE, five characters.
    pub sqlstate: String,
    /// Message of the first such error.
    pub message: String,
    /// Place of the first such error in the script, and the server's detail.
    pub detail: Option<String>,
    /// Errors, all phases.
    pub count: u64,
    /// Number of these that were followed by another try.
    pub retried: u64,
    /// Number of these that failed a transaction, or ended it with its client.
    pub failed: u64,
}

/// A count of the clients compared with the server's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditLine {
    /// Node of the row, as in `nodes`; 0: the only one.
    pub node: i32,
    /// Name of the server's counter.
    pub counter: String,
    /// The clients' count, all phases.
    pub harness: Option<i64>,
    /// Increase of the server's counter.
    pub server: Option<i64>,
    /// Whether the two are equal; null if they need not be equal.
    pub ok: Option<bool>,
    /// Description of the count, or why it is not judged.
    pub reason: String,
}
