//! Reports of sweeps: a [`SweepDocument`](bench_results::sweep::SweepDocument) as text, Markdown, JSON and HTML.
//!
//! As with the report of a run, what is said is put together once, in [`content`], and written down by the same
//! writers; what is computed of the runs, in [`results`], is the same in all formats.

mod content;
mod plot;
mod report;
pub mod results;
#[cfg(test)]
mod tests;

pub use content::sentence as answer_sentence;
pub use report::{render, schema};
pub use results::{RungResult, VariantScalability, results, scalability};
