//! Reports: a run's [`Document`] as text, Markdown, JSON and HTML.

pub mod document;

pub use document::Document;
