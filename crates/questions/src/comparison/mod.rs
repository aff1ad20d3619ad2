//! Runs against runs: what `bench.compare` and `bench.ab` say.

mod answer;
pub mod calibration;
mod checks;
mod differences;
pub mod index_worth;
mod lines;
pub mod screen;
pub mod statements;
#[cfg(test)]
mod tests;

pub use answer::{Comparison, compare, compare_pairs};
pub use checks::{margin as check_margin, pairs as check_pairs, runs as check_runs};
pub use differences::{Difference, differences as differences_of, scripts_differ};
pub use lines::ComparisonLine;
