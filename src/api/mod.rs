//! Thin SQL functions: parse, call, return. Their SQL is in `src/schema`; they take `Option`s,
//! because a function without one would be STRICT and answer a NULL with a NULL.

mod arguments;
mod calibration;
mod capacity;
mod captures;
mod compared_statements;
mod comparisons;
mod definitions;
mod duels;
mod extensions;
mod feeders;
pub mod fixtures;
mod help;
mod index_worth;
mod jobs;
mod logs;
mod nodes;
mod preflight;
mod preview;
mod progress;
pub mod reports;
mod results;
pub mod runs;
mod screens;
mod sides;
mod sweeps;
mod targets;
mod transfer;
mod visibility;
pub mod workloads;

/// A value that must not be NULL.
pub use bench_model::spec::required;
