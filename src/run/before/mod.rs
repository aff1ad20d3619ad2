//! The steps before a run: truncate, vacuum, prewarm and checkpoint, on the run's tables and as its role.

pub mod preparer;
mod remote;
mod steps;

pub use remote::refuse_load;
pub use steps::{BY_CALLER, check, check_run, checkpoint, execute, locks_of, prepare};
