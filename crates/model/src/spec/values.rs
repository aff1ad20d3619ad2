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

/// The value of an argument that takes one of some words.
///
/// # Errors
/// 22004 for NULL, 22023 for another word, 54000 for a text beyond the [`limits`].
pub(super) fn word<T: Word>(argument: &str, value: Option<String>) -> Result<T, UserError> {
    let value = required(argument, value)?;
    limits::check_text(argument, &value)?;
    let found = T::WORDS.iter().find(|(word, _)| *word == value).map(|(_, meant)| *meant);
    found.ok_or_else(|| {
        let listed: Vec<String> = T::WORDS.iter().map(|(word, _)| format!("'{word}'")).collect();
        UserError::invalid(format!("unrecognized value for {argument}: \"{value}\""))
            .hint(format!("Available values: {}.", listed.join(", ")))
    })
}

/// What users write as a word.
pub trait Word: Copy + 'static {
    /// All words, with what they mean.
    const WORDS: &'static [(&'static str, Self)];
}

/// Defines an enum whose variants are words that users write, in JSON as in SQL.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$meaning])* #[serde(rename = $word)] $variant,)*
        }

        impl $crate::spec::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];
        }

        impl $name {
            /// The word users write.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}
pub(crate) use words;

pub(super) fn unsupported(what: &str) -> UserError {
    UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
}
