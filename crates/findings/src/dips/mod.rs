//! Dips: how deep, how long, when, and what coincides with them.
//!
//! Dips of one cause are reported in one finding. Of all causes that coincide beyond chance, the strongest is taken and
//! reported with the dips in which it was present; the search continues with the remaining dips.

mod announced;
mod causes;
mod detect;
mod sentences;
mod series;

#[cfg(test)]
pub use announced::effects;
pub use causes::is_vacuum;
pub use detect::{Detected, Dip, LEAST_INTERVALS, MANY_INTERVALS, STALL_DEPTH, Unjudged, detect};
pub use sentences::*;
pub use series::is_off;
