//! A finding: one sentence about a run, with its figures and its advice. The room `findings` draws them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much a finding matters, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// A sentence about a run, with its figures and what to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub severity: Severity,
    /// One word for its kind, as `dip`.
    pub topic: String,
    pub finding: String,
    pub figures: Map<String, Value>,
    pub advice: String,
}
