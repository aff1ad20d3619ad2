//! Groups of runs against each other: what `bench.compare` and `bench.ab` say.

mod answer;
mod checks;
mod differences;
mod lines;
#[cfg(test)]
mod tests;

pub use answer::{Comparison, compare, compare_pairs};
pub use checks::{margin as check_margin, pairs as check_pairs, runs as check_runs};
pub use differences::{Difference, differences as differences_of, scripts_differ};
pub use lines::ComparisonLine;
pub(crate) use lines::metrics;
