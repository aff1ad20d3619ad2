//! Reports of comparisons: two sides of runs as text, Markdown, JSON and HTML.
//!
//! Which side is faster, and how sure that is, comes from `bench_questions::comparison`; beside it stand what each side spent its
//! time with, its latencies, its throughput over time, and plans and circumstances that are not the same.

mod conclusion;
mod content;
mod plans;
mod plot;
mod report;
mod sides;
#[cfg(test)]
mod tests;
mod written;

pub use plans::PlanDifference;
pub use report::{ComparisonReport, SCHEMA_VERSION};
pub use sides::{Collected, ComparedRun, RunSamples, Side, WaitDifference};
pub use written::{render, schema};
