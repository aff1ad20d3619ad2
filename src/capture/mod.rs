//! Captures: from what pg_stat_statements counts of an application to a mix of workloads that replays it, and what a run of it
//! has to do with what was captured.

mod columns;
pub mod document;
mod feeders;
mod fidelity;
mod fresh;
mod lab;
pub mod launch;
mod of_roles;
mod queries;
mod search;
mod statements;
mod trial;
mod ways;
pub mod worker;

pub use fidelity::of_run as fidelity_of_run;
