//! Values for the parameters of captured statements: where they come from, and which of them take as many rows and blocks as
//! the captured calls did.

mod feeders;
mod queries;
mod replay_plan;
mod search;
mod trial_runner;
mod trial_statement;

pub use feeders::*;
pub use trial_statement::plan_for_all_values;
