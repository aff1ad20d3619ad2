//! Transactions as they appear in the log.

use super::event::ParameterValue;
use super::normalise::{Constant, Template};

/// A statement of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedStatement {
    pub template: Template,
    pub constants: Vec<Constant>,
    /// At the ends of the names of its relations.
    pub numbers: Vec<String>,
    /// The client's pause before it, in milliseconds, where both ends are known; of the first one 0.
    pub pause_ms: Option<f64>,
    pub duration_ms: Option<f64>,
    pub writes: bool,
    /// Of a query, or what changes data, as in pg_stat_statements; 0: is not known.
    pub query_id: Option<i64>,
}

impl LoggedStatement {
    pub fn values(&self) -> impl Iterator<Item = &ParameterValue> {
        self.constants.iter().map(|constant| &constant.value)
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionEnding {
    /// By itself: one statement, or several in one message.
    Implicit,
    Commit,
    Rollback,
}

/// A transaction that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedTransaction {
    /// The statement that began it, if it was an explicit block whose beginning is in the log.
    pub begin: Option<String>,
    pub steps: Vec<LoggedStatement>,
    pub ending: TransactionEnding,
    /// The client's pause before its end, in milliseconds.
    pub end_pause_ms: Option<f64>,
    /// How long the statement that began it and the one that ended it took, in milliseconds.
    pub frame_ms: f64,
    /// What a replay leaves out.
    pub omits: Option<&'static str>,
    /// Why it cannot be replayed, with the text that shows it.
    pub problem: Option<(String, String)>,
    /// When it began and ended, in milliseconds of the log's time scale.
    pub start_ms: f64,
    pub end_ms: f64,
    /// Milliseconds since the session's transaction before, where there was one.
    pub idle_ms: Option<f64>,
    pub session: String,
    /// The session's role, as it connected.
    pub user: String,
}

impl LoggedTransaction {
    /// Keeps how long the statements took, and nothing else of them.
    pub fn forget_statements(&mut self) {
        for step in &mut self.steps {
            (step.template, step.constants, step.numbers) = Default::default();
        }
    }

    /// Milliseconds in the server; None where a duration is not known.
    pub fn busy_ms(&self) -> Option<f64> {
        let steps: Option<f64> = self.steps.iter().map(|step| step.duration_ms).sum();
        Some(steps? + self.frame_ms)
    }
}
