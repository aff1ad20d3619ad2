//! Captures: from what pg_stat_statements counts of an application to a mix of workloads that replays it, and what a run of it
//! has to do with what was captured.

mod choice;
mod columns;
pub mod document;
mod feeders;
mod fidelity;
mod generated_values;
pub mod launch;
mod other_roles;
mod queries;
mod replay_plan;
mod sampling;
mod search;
pub mod spec;
mod statements;
mod strategies;
mod trial_runner;
pub mod worker;

pub use fidelity::of_run as fidelity_of_run;
