//! Plans of experiments, and the answers that their runs give.
//!
//! | module | what is in it |
//! |---|---|
//! | [`sweep`] | arguments, plan and variants of a sweep |
//! | [`comparison`] | differences between groups of runs, and how much equal runs vary |
//! | [`capacity`] | how much load a server sustains: trials, their outcomes, and the next one |

#![forbid(unsafe_code)]

pub mod capacity;
pub mod comparison;
pub mod sweep;
