//! What indexes are worth to a workload: what is asked, and what it has shown; the module `index_worth` of bench_questions makes that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is asked; travels as JSON and is kept with the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexWorth {
    pub indexes: Vec<AskedIndex>,
    /// Differences within this share of a transaction's time are none.
    pub margin: f64,
}

/// An index, or one that might be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedIndex {
    /// With its schema, where it is there.
    pub name: String,
    /// As CREATE INDEX.
    pub definition: String,
    /// `None`: it is not there.
    pub bytes: Option<i64>,
    /// The table, with its schema.
    pub table: String,
    /// The variant whose duels are with it and without it in the eyes of the planner.
    pub reads: String,
    /// The variant whose duels are on copies of the table with it and without it, both times unseen by the planner.
    pub writes: String,
}

/// What an index is worth, times in microseconds of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IndexLine {
    /// Name of the index.
    pub index: String,
    /// The index as CREATE INDEX.
    pub definition: String,
    /// Its size in bytes; null: it is not there.
    pub bytes: Option<i64>,
    /// Microseconds that a transaction would take longer if the planner did not see it.
    pub saved_us: Option<f64>,
    /// Lower bound of its interval; all intervals of all indexes hold together with 95 %.
    pub saved_low: Option<f64>,
    /// Upper bound of that interval.
    pub saved_high: Option<f64>,
    /// Microseconds that a transaction takes longer because it is maintained.
    pub cost_us: Option<f64>,
    /// Lower bound of its interval.
    pub cost_low: Option<f64>,
    /// Upper bound of that interval.
    pub cost_high: Option<f64>,
    /// `earns`, `costs`, `same`, `inconclusive`, or `not measured`: `saved_us` or `cost_us` is missing.
    pub verdict: String,
    /// The duel that says what is saved.
    pub reads_run_id: Option<i64>,
    /// The duel that says what it costs.
    pub writes_run_id: Option<i64>,
    /// Why one of the two could not be found.
    pub error: Option<String>,
}
