//! Reports of experiments, which are sweeps and comparisons of runs: an [`Experiment`] as text, Markdown, JSON and HTML.
//!
//! As with the report of a run, what is said is put together once, in [`content`], and written down by the same
//! writers; what is computed of the runs, in [`results`], is the same in all formats. Which of two sides is faster, and how sure
//! that is, comes from `bench_questions::comparison`.

mod comparison;
mod conclusion;
mod content;
mod plans;
mod plot;
mod report;
pub mod results;
mod sides;
#[cfg(test)]
mod tests;

pub use content::sentence as answer_sentence;
pub use plans::PlanDifference;
pub use report::{render, schema};
pub use results::{Experiment, RungResult, VariantScalability, results, scalability};
pub use sides::{Collected, ComparedSides, WaitDifference};
