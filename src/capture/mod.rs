//! Captures: from what pg_stat_statements counts of an application to a mix of workloads that replays it, and what a run of it
//! has to do with what was captured.

mod activity;
pub mod capture_name;
mod choice;
mod columns;
pub mod document;
mod feeders;
mod generated_values;
pub mod launch;
pub mod log;
mod log_sampling;
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
