//! Groups of runs against each other: what `bench.compare` and `bench.ab` say.

mod answer;
mod checks;
mod differences;
mod lines;
#[cfg(test)]
mod tests;

pub use answer::{Comparison, compare};
pub use bench_results::ComparisonLine;
pub use checks::{margin as check_margin, runs as check_runs};
pub use differences::{Difference, differences as differences_of, scripts_differ};
pub use lines::Design;
pub(crate) use lines::metrics;
