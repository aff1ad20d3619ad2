//! The formats of reports, and the JSON schemas of the documents that reports are made from.

use bench_base::words;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

use crate::report::Report;
use crate::{html, markdown, sanitize, text};

words! {
    /// What a report is written as.
    pub enum Format {
        /// For a terminal, at most 100 columns wide.
        Text = "text",
        /// With the tables of GitHub's dialect.
        Markdown = "markdown",
        /// The document, on one line.
        Json = "json",
        /// One page that needs nothing but itself.
        Html = "html",
        /// The JSON schema of the document.
        Schema = "schema",
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

/// Returns the schema of a document as it is written, each key on a line of its own.
pub fn schema_of<T: JsonSchema>() -> String {
    let settings =
        SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(simplify));
    let mut text = String::new();
    write_value(&mut text, &settings.into_generator().into_root_schema_for::<T>().to_value(), 0);
    text
}

/// Removes the values of absent keys, which are for readers of older documents, and the line ends of descriptions.
fn simplify(schema: &mut Schema) {
    schema.remove("default");
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// How deep objects are written over several lines: the schema, `$defs`, a definition, its `properties`.
const NESTED: usize = 4;

/// Appends a value; an object that deep, or without objects in it, is on one line.
fn write_value(text: &mut String, value: &Value, depth: usize) {
    let is_nested = depth < NESTED;
    match value {
        Value::Object(fields) if is_nested && fields.values().any(Value::is_object) => {
            let indent = "  ".repeat(depth);
            let mut separator = "{";
            for (key, field) in fields {
                *text += &format!("{separator}\n{indent}  {}: ", Value::from(key.as_str()));
                write_value(text, field, depth + 1);
                separator = ",";
            }
            *text += &format!("\n{indent}}}");
        }
        _ => *text += &value.to_string(),
    }
}
