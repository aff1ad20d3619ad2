//! A script of a run, and whose sessions execute it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::terminal::Terminal;
use crate::feeder::Feeder;

/// A role, as it was called when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    pub oid: u32,
}

/// A script of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptSpec {
    /// The workload's name.
    pub name: String,
    pub source: String,
    /// Its share of the transactions, relative to the other scripts' weights; in a deck, its number of cards.
    pub weight: u32,
    /// Whether the scripts are dealt as cards of a deck instead of being drawn by weight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dealt: bool,
    /// How long a client waits before and after each of its transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Terminal>,
    /// Index of its fixture in [`RunSpec::fixtures`](super::RunSpec::fixtures).
    pub fixture: Option<usize>,
    /// Whether it is a part of a capture: errors of the data, such as keys that are there already, then fail the transaction
    /// and not the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub captured: bool,
    /// The arm of a duel that it is the script of. Both arms have each script, one behind the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<usize>,
    /// Whose sessions execute it, where that is another role than the run's; as a capture of several roles has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Milliseconds of a transaction when it was captured, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_ms: Option<f64>,
    /// The workload's feeders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feeders: Vec<Feeder>,
    /// Generic plans of its commands, from 1, as its target had them before the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<u32, String>,
    /// And their identifiers in pg_stat_statements there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_ids: BTreeMap<u32, i64>,
}
