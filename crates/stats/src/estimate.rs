//! A figure and how well it is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure with the bounds of its confidence interval, in the figure's own unit; of 95 % unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower bound of its 95 % confidence interval.
    pub low: f64,
    /// Upper bound of its 95 % confidence interval.
    pub high: f64,
}
