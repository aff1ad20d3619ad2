//! Thin SQL functions: parse, call, return. Their SQL is in `src/schema`; they take `Option`s,
//! because a function without one would be STRICT and answer a NULL with a NULL.

mod answers;
mod arguments;
mod captures;
mod comparisons;
mod duels;
mod extensions;
pub mod fixtures;
mod nodes;
pub mod reports;
pub mod runs;
mod sweeps;
pub mod workloads;

/// A value that must not be NULL.
pub use bench_model::spec::required;
