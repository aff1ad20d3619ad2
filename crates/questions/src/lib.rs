//! Plans of experiments, and the answers that their runs give: a module for each question.
//!
//! | module | question |
//! |---|---|
//! | [`capacity`] | how much load does a server sustain |
//! | [`sweep`] | how do clients, settings and other variants change throughput: the plan, and the variants of all experiments |
//! | [`screen`] | which of several settings matter |
//! | [`comparison`] | is one group of runs faster than another, and what else differs between them |
//! | [`statements`] | which statements got slower |
//! | [`calibration`] | how much do equal runs vary, and so which differences can be shown |
//! | [`index_worth`] | what is each index worth |
//! | [`answers`] | do two arms return the same rows |
//! | [`rehearsal`] | what does a change do to the load in the middle of which it is made |
//!
//! Each has first what is asked, and then what its runs show.
#![forbid(unsafe_code)]

pub mod answers;
pub mod calibration;
pub mod capacity;
pub mod comparison;
pub mod index_worth;
pub mod rehearsal;
pub mod screen;
pub mod statements;
pub mod sweep;
