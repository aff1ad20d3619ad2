//! The question to the sessions that compare answers.

use bench_model::spec::RunSpec;
use bench_questions::answers::{RecallSample, StatementAnswers};
use serde::{Deserialize, Serialize};

/// The options of bench.answers and bench.recall.
#[derive(Serialize, Deserialize)]
pub struct AnswerOptions {
    /// Of each statement.
    pub executions: i32,
    pub tolerance: f64,
    pub key: Option<String>,
    /// Of each statement.
    pub examples: i32,
    pub limit_secs: f64,
}

/// The tolerance of bench.answers by default: a relative difference.
pub const TOLERANCE: f64 = 1e-9;

impl AnswerOptions {
    /// The defaults of bench.answers, with this many executions of each statement.
    pub fn of(executions: i32) -> Self {
        Self { executions, tolerance: TOLERANCE, key: None, examples: 3, limit_secs: 60.0 }
    }
}

/// The question to the session.
#[derive(Serialize, Deserialize)]
pub struct Request {
    pub spec: RunSpec,
    pub options: AnswerOptions,
    /// For each script, whether its values must not be shown.
    pub masked: Vec<bool>,
    /// Set for bench.recall, where arm b does without the index.
    pub recall: Option<RecallRequest>,
}

/// The index whose recall is measured, and the settings to try.
#[derive(Serialize, Deserialize)]
pub struct RecallRequest {
    /// The index, and those of its partitions.
    pub indexes: Vec<u32>,
    /// Parameters of arm a; each combination is tried at each execution.
    pub combinations: Vec<Vec<(String, String)>>,
}

/// The session's answer.
#[derive(Serialize, Deserialize)]
pub struct SessionAnswer {
    pub statements: Vec<StatementAnswers>,
    /// The samples of each combination.
    pub samples: Vec<Vec<RecallSample>>,
}
