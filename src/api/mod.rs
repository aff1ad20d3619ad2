//! Thin SQL functions: parse, call, return. Their SQL is in `src/schema`; they take `Option`s,
//! because a function without one would be STRICT and answer a NULL with a NULL.

pub mod checks;
mod comparisons;
mod definitions;
pub mod fixtures;
mod jobs;
mod jsonb;
mod load_progress;
mod preview;
mod progress;
pub mod reports;
mod results;
pub mod runs;
mod sweeps;
mod transfer;
pub mod workloads;

use bench_core::error::{UserError, sqlstate};

/// A value that must not be NULL.
pub fn required<T>(argument: &str, value: Option<T>) -> Result<T, UserError> {
    value.ok_or_else(|| {
        UserError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, format!("{argument} must not be null"))
    })
}
