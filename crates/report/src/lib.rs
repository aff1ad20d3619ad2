//! Reports: a run's [`Document`] as text, Markdown, JSON and HTML, and so an experiment, a sweep or a comparison.
//!
//! What a report says is put together once, as a [`Report`](report::Report) with titled sections of facts and tables; the
//! formats differ in how they write it down, and in their pictures: a line of blocks in the text, charts in HTML. JSON is
//! the document itself.

#![forbid(unsafe_code)]

mod content;
mod downsample;
mod escape;
pub mod experiment;
mod export;
mod formats;
pub mod help;
mod html;
mod junit;
mod markdown;
mod plot;
mod report;
mod run;
pub(crate) mod sanitize;
mod schema;
pub mod statements;
mod text;

pub use content::{closing, duel_sentence};
pub use export::{ExportFormat, export};
pub use formats::Format;
pub use run::{render, schema};

#[cfg(test)]
mod tests;
