//! A figure and how well it is known.

use serde::{Deserialize, Serialize};

/// A figure with the bounds of its 95 % confidence interval, in the figure's own unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}
