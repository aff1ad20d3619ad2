//! Values that users pass: what none may lack, words, and JSON objects.

use bench_base::error::{UserError, sqlstate};
use bench_script::is_variable_name;
use serde_json::{Map, Value};

use super::limits;

/// A JSON value as its user wrote it: a string without quotes, anything else as JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Script variables by name, as users pass them.
///
/// # Errors
/// 22023 for what is no JSON object, for a name that no variable can have, and for a value that is none of number,
/// text, boolean and null.
pub fn variables(value: Value) -> Result<Map<String, Value>, UserError> {
    let map = object("variables", value)?;
    for (name, value) in &map {
        if !is_variable_name(name) {
            return Err(UserError::invalid(format!("invalid variable name: \"{name}\"")).hint(
                "A name starts with a letter or underscore, followed by letters, digits and underscores.",
            ));
        }
        if value.is_object() || value.is_array() {
            return Err(UserError::invalid(format!(
                "variable \"{name}\" must be a number, text, boolean or null"
            )));
        }
    }
    Ok(map)
}

pub fn object(argument: &str, value: Value) -> Result<Map<String, Value>, UserError> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(UserError::invalid(format!("{argument} must be a JSON object"))
            .hint(format!("For example: {argument} => '{{\"name\": \"value\"}}'."))),
    }
}

/// A value that must not be NULL.
///
/// # Errors
/// 22004 with the argument's name.
pub fn required<T>(argument: &str, value: Option<T>) -> Result<T, UserError> {
    value.ok_or_else(|| {
        UserError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, format!("{argument} must not be null"))
    })
}

pub(super) fn settings(value: Value) -> Result<Vec<(String, String)>, UserError> {
    let given = object("settings", value)?;
    limits::check_count("settings", given.len(), limits::MAX_SETTINGS, "parameters")?;
    given
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Number(number) => Ok((name, number.to_string())),
            Value::Bool(flag) => Ok((name, if flag { "on" } else { "off" }.to_owned())),
            Value::Null | Value::Array(_) | Value::Object(_) => Err(UserError::invalid(format!(
                "the value of configuration parameter \"{name}\" must be text, a number or a boolean"
            ))),
        })
        .collect()
}

pub(super) fn word(
    argument: &str,
    value: Option<String>,
    known: &[&'static str],
    supported: &[&'static str],
) -> Result<&'static str, UserError> {
    let value = required(argument, value)?;
    limits::check_text(argument, &value)?;
    let listed = || known.iter().map(|k| format!("'{k}'")).collect::<Vec<_>>().join(", ");
    match known.iter().find(|k| **k == value) {
        Some(word) if supported.contains(word) => Ok(word),
        Some(word) => Err(unsupported(&format!("{argument} => '{word}'"))),
        None => Err(UserError::invalid(format!("unrecognized value for {argument}: \"{value}\""))
            .hint(format!("Available values: {}.", listed()))),
    }
}

pub(super) fn unsupported(what: &str) -> UserError {
    UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
}
