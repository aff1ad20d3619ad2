//! A rehearsal of a change under load: what is asked, what the course of its run recorded, and the row of the answer.

use bench_base::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// How the change of a rehearsal is undone.
    #[derive(Default)]
    pub enum Undo {
        /// By the statements that revert it.
        #[default]
        Revert = "revert",
        /// By loading the workload's fixture anew.
        Reload = "reload",
        /// Not at all.
        None = "none",
    }
}

/// What is asked; travels as JSON and is kept with the sweep. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalPlan {
    /// Text of a transaction that is open when the change begins.
    pub blocker: Option<String>,
    /// Time from the blocker's first lock to its end.
    pub blocker_secs: f64,
    /// lock_timeout of the change.
    pub lock_timeout_secs: Option<f64>,
    /// Tries of each statement that ends with 55P03 (lock_not_available).
    pub tries: u32,
    /// Time between two tries.
    pub pause_secs: f64,
    /// Time of load before the change.
    pub quiet_secs: f64,
    /// A transaction that takes longer has been blocked.
    pub wait_limit_secs: f64,
    /// The change is canceled when a client has waited for so long.
    pub give_up_secs: f64,
    /// The change is canceled when it has taken so long.
    pub change_limit_secs: f64,
    pub undo: Undo,
    /// The safer way to the same end, if one is known.
    pub better: Option<String>,
}

impl RehearsalPlan {
    /// Returns the greatest time of a run's measurement, in seconds.
    pub fn max_secs(&self) -> f64 {
        let recovery_secs = RECOVERY_QUIETS * self.quiet_secs;
        // Pauses between tries are part of the change's time.
        self.quiet_secs + self.blocker_secs + self.change_limit_secs + recovery_secs + SLACK_SECS
    }
}

/// Recovery is awaited for this many times the quiet part.
pub const RECOVERY_QUIETS: f64 = 3.0;

/// Time for the end of canceled statements and for the sessions of blocker and change to begin.
const SLACK_SECS: f64 = 60.0;

/// What happened in the run in which a change was rehearsed. Times are seconds since the measurement began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rehearsal {
    /// The run.
    pub run_id: i64,
    /// When the change began, as `elapsed` of the samples.
    pub change_begin: f64,
    /// The same as a time.
    pub change_began_at: Option<String>,
    /// When the change ended or failed.
    pub change_end: f64,
    /// When throughput was back and no backlog was left; null: not before the run ended.
    pub back: Option<f64>,
    /// When the blocker began; null: none.
    pub blocker_begin: Option<f64>,
    /// When the blocker ended.
    pub blocker_end: Option<f64>,
    /// Tries of the statement that was tried most often.
    pub tries: u32,
    /// Time that the change waited for locks.
    pub lock_wait_secs: f64,
    /// Time from the first lock that the change had on a table or index to its end; null: it had none.
    pub held_secs: Option<f64>,
    /// Strongest lock of the change.
    pub lock_mode: Option<String>,
    /// Table or index that this lock was on.
    pub locked: Option<String>,
    /// WAL that the change generated, in bytes.
    pub wal_bytes: Option<i64>,
    /// Least free space on the file system of the data directory, in bytes.
    pub least_disk_free_bytes: Option<i64>,
    /// SQLSTATE with which the change failed.
    pub sqlstate: Option<String>,
    /// Message of that error.
    pub message: Option<String>,
    /// Why the change was canceled: `give_up` or `change_limit`; null: it was not.
    pub canceled_by: Option<String>,
    /// What stays in the catalog after the change was undone.
    pub left: Option<String>,
    /// The sessions that the change waited for.
    pub blocked_by: Vec<BlockingSession>,
    /// Sessions that waited for locks while the change was under way.
    pub queue: Vec<QueuedSession>,
    /// Greatest number of clients that waited for locks at the same time.
    pub most_queued: u32,
    /// Failed transactions by SQLSTATE.
    pub errors: Vec<PhaseErrors>,
    /// Statements of the workload whose plans changed after the change began.
    pub plans: Vec<ChangedPlan>,
}

/// A session that the change waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BlockingSession {
    /// Its process.
    pub pid: i32,
    /// Its current or last statement; null if the role may not see it.
    pub statement: Option<String>,
    /// Age of its transaction in seconds, when it was first seen.
    pub age_secs: Option<f64>,
}

/// A session's wait for a lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QueuedSession {
    /// Process that waited.
    pub pid: i32,
    /// `change`, `client` or `other`.
    pub session: String,
    /// Processes that it waited for when it was first seen.
    pub blocked_by: Vec<i32>,
    /// Mode of the lock.
    pub mode: String,
    /// Table, index or other object that the lock is on.
    pub locked: String,
    /// Begin of the wait.
    pub begin: f64,
    /// End of the wait, when it was last seen.
    pub end: f64,
}

/// Failed transactions with one SQLSTATE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PhaseErrors {
    /// The SQLSTATE.
    pub sqlstate: String,
    /// Number before the change began.
    pub before: u64,
    /// Number from then to the end of the change.
    pub during: u64,
    /// Number afterwards.
    pub after: u64,
}

/// A statement whose plan changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangedPlan {
    /// The statement.
    pub statement: String,
    /// Its plan before the change, without costs.
    pub before: String,
    /// Its plan afterwards.
    pub after: String,
}

/// The answer about one way to make a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RehearsalLine {
    /// `change` or `alternative`.
    pub variant: String,
    /// The statements.
    pub statements: String,
    /// `safe`, or what happens: `fails: …`, `not done …`, `breaks the application: …`, `blocks clients for …`,
    /// `slows afterwards: …`; null until its run has ended.
    pub verdict: Option<String>,
    /// Longest latency of transactions that ended after the change began, with their wait to be started, in milliseconds.
    pub longest_wait_ms: Option<f64>,
    /// The same of those that ended before.
    pub quiet_longest_ms: Option<f64>,
    /// Transactions that ended after the change began.
    pub transactions: Option<u64>,
    /// Those of them that took longer than `wait_limit`.
    pub waited: Option<u64>,
    /// `wait_limit` in seconds.
    pub wait_limit: f64,
    /// Failed transactions by SQLSTATE: before, during and after the change.
    pub failed: Vec<PhaseErrors>,
    /// Seconds in intervals without a commit, after the change began.
    pub secs_without_commit: Option<f64>,
    /// TPS before the change.
    pub tps_before: Option<f64>,
    /// TPS from the change's begin to its end.
    pub tps_during: Option<f64>,
    /// TPS afterwards.
    pub tps_after: Option<f64>,
    /// Seconds from the change's end until throughput was back; null: not before the run ended.
    pub back_secs: Option<f64>,
    /// Seconds that the change took, with its tries.
    pub change_secs: Option<f64>,
    /// Tries.
    pub tries: Option<u32>,
    /// Seconds that the change waited for locks.
    pub lock_wait_secs: Option<f64>,
    /// Seconds from its first lock on a table or index to its end.
    pub held_secs: Option<f64>,
    /// Strongest lock.
    pub lock_mode: Option<String>,
    /// Table or index that this lock was on.
    pub locked: Option<String>,
    /// Sessions that the change waited for.
    pub blocked_by: Vec<BlockingSession>,
    /// Greatest number of clients that waited for locks at the same time.
    pub most_queued: Option<u32>,
    /// WAL of the change in bytes.
    pub wal_bytes: Option<i64>,
    /// Size of the files that the change made, in bytes.
    pub made_bytes: Option<i64>,
    /// Least free space on the file system of the data directory, in bytes.
    pub least_disk_free_bytes: Option<i64>,
    /// Greatest replay lag of a standby after the change began, in milliseconds.
    pub replay_lag_ms: Option<f64>,
    /// Statements whose plans changed.
    pub plans: Vec<ChangedPlan>,
    /// A safer way to the same end.
    pub better: Option<String>,
    /// Why there is no answer, or what was not undone.
    pub error: Option<String>,
    /// The run.
    pub run_id: Option<i64>,
}
