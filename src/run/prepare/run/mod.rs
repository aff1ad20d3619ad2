//! Runs: from arguments to a started coordinator.

mod prepared;
mod start;

pub use prepared::{PreparedRun, check, dry_run, plan_of, prepare, prepare_part};
pub use start::{launch, run_to_the_end, start, start_prepared};
