//! What a sweep is asked to do, and the order of its runs.

mod ask;
mod plan;
#[cfg(test)]
mod tests;
mod trial;
mod variant;

pub use ask::{Asked, LoadDescription, Question, Resumption, SweepArguments, SweepOptions, SweepSpec, Until};
pub use bench_results::experiment::Variant;
pub use plan::SweepCell;
