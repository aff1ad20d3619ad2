//! Reports: a run's [`Document`] as text, Markdown, JSON and HTML, and so an experiment, a sweep or a comparison.
//!
//! What a report says is put together once, as a [`Report`](report::Report) with titled sections of facts and tables; the
//! formats differ in how they write it down, and in their pictures: a line of blocks in the text, charts in HTML. JSON is
//! the document itself.
#![forbid(unsafe_code)]

mod downsample;
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
mod sanitize;
mod section;
pub mod statements;
#[cfg(test)]
mod tests;
mod text;

pub use crate::export::{ExportFormat, export, junit};
pub use crate::formats::Format;
pub use crate::run::duel::duel_sentence;
pub use crate::run::headline::{closing, with_unreplayed};
pub use crate::run::{render, schema};
