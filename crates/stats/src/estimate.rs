//! A figure and how well it is known.

use serde::{Deserialize, Serialize};

/// A figure with the bounds of its confidence interval, in the figure's own unit: of 95 % unless whoever made it says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}
