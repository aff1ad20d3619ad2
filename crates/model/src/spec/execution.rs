//! How statements are executed, and what becomes of their rows.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

use super::values::word;

/// How a statement reaches the server, as pgbench -M.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryMode {
    /// As text with the values in it, parsed and planned each time.
    Simple,
    /// With parameters, parsed and planned each time.
    Extended,
    /// With parameters, parsed once and planned as prepared statements are.
    Prepared,
}

impl QueryMode {
    /// The word users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

/// What becomes of the rows that a statement returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Results {
    /// Detoasted and turned into text, as for a client, then dropped.
    Serialize,
    /// Not looked at.
    Discard,
}

impl Results {
    /// The word users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serialize => "serialize",
            Self::Discard => "discard",
        }
    }
}

pub(super) fn query_mode(given: Option<String>) -> Result<QueryMode, UserError> {
    let modes = ["simple", "extended", "prepared"];
    Ok(match word("query_mode", given, &modes, &modes)? {
        "simple" => QueryMode::Simple,
        "extended" => QueryMode::Extended,
        _ => QueryMode::Prepared,
    })
}

pub(super) fn results(given: Option<String>) -> Result<Results, UserError> {
    let kinds = ["serialize", "discard"];
    Ok(match word("results", given, &kinds, &kinds)? {
        "discard" => Results::Discard,
        _ => Results::Serialize,
    })
}
