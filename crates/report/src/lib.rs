//! Reports: a run's [`Document`] as text, Markdown, JSON and HTML; those of sweeps and of comparisons are in rooms of
//! their own.
//!
//! What a report says is put together once, in [`content`], as titled sections of facts and tables; the formats
//! differ in how they write those down, and in their pictures: a line of blocks in the text, SVG plots in HTML.
//! JSON is the document itself.

#![forbid(unsafe_code)]

pub mod compare;
mod content;
mod downsample;
mod escape;
mod export;
pub mod help;
mod html;
mod junit;
mod markdown;
mod plot;
mod round_trip;
pub(crate) mod sanitize;
mod schema;
pub mod statements;
pub mod sweep;
mod text;

use bench_results::Document;

pub use content::duel_sentence;
pub use export::{ExportFormat, export};

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a terminal, at most 100 columns wide.
    Text,
    /// With the tables of GitHub's dialect.
    Markdown,
    /// The document, on one line.
    Json,
    /// One page that needs nothing but itself.
    Html,
    /// The JSON schema of the document.
    Schema,
}

impl Format {
    /// The formats' names.
    pub const NAMES: &[&str] = &["text", "markdown", "json", "html", "schema"];

    /// The format of a name.
    pub fn parse(name: &str) -> Option<Format> {
        match name {
            "text" => Some(Format::Text),
            "markdown" => Some(Format::Markdown),
            "json" => Some(Format::Json),
            "html" => Some(Format::Html),
            "schema" => Some(Format::Schema),
            _ => None,
        }
    }
}

/// What pgbench prints at its end, of which only [`Document::run`], [`Document::summary`] and, of a run on several
/// nodes, [`Document::nodes`] need be known.
pub fn closing(document: &Document) -> String {
    content::closing_lines(document).join("\n")
}

/// Writes the report of a run.
pub fn render(document: &Document, format: Format) -> String {
    match format {
        Format::Text => text::render(document),
        Format::Markdown => markdown::render(document),
        // Keys are strings and numbers that are not finite become null: there is nothing left to fail.
        Format::Json => sanitize::json(&serde_json::to_string(document).unwrap_or_default()),
        Format::Html => html::render(document),
        Format::Schema => schema(),
    }
}

/// Returns the JSON schema of a run's document.
pub fn schema() -> String {
    schema::schema_of::<Document>()
}

#[cfg(test)]
mod tests;
