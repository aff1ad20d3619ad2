//! The formats of reports.

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::Report;
use crate::schema::schema_of;
use crate::{html, markdown, sanitize, text};

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

/// Writes a document as JSON, its schema, or the report of it.
pub fn write<'a, T: Serialize + JsonSchema>(
    document: &T,
    report: impl FnOnce() -> Report<'a>,
    format: Format,
) -> String {
    match format {
        Format::Text => text::render(&report()),
        Format::Markdown => markdown::render(&report()),
        // Keys are strings and numbers that are not finite become null: there is nothing left to fail.
        Format::Json => sanitize::json(&serde_json::to_string(document).unwrap_or_default()),
        Format::Html => html::render(&report()),
        Format::Schema => schema_of::<T>(),
    }
}
