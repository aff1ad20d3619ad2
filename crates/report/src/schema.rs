//! JSON schemas of the documents, made from their structs.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the schema of a document as it is written, each key on a line of its own.
pub fn schema_of<T: JsonSchema>() -> String {
    let settings =
        SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(simplify));
    let mut text = String::new();
    write(&mut text, &settings.into_generator().into_root_schema_for::<T>().to_value(), 0);
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
fn write(text: &mut String, value: &Value, depth: usize) {
    let is_nested = depth < NESTED;
    match value {
        Value::Object(fields) if is_nested && fields.values().any(Value::is_object) => {
            let indent = "  ".repeat(depth);
            let mut separator = "{";
            for (key, field) in fields {
                *text += &format!("{separator}\n{indent}  {}: ", Value::from(key.as_str()));
                write(text, field, depth + 1);
                separator = ",";
            }
            *text += &format!("\n{indent}}}");
        }
        _ => *text += &value.to_string(),
    }
}
