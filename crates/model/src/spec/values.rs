//! Values of arguments: their limits, words of which one is to be chosen, and JSON objects.

use bench_base::error::{UserError, sqlstate};
use bench_base::words;
use bench_base::words::Word;
use bench_script::is_variable_name;
use serde_json::{Map, Value};

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
    check_count("settings", given.len(), MAX_SETTINGS, "parameters")?;
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
/// 22004 for NULL, 22023 for another word, 54000 for a text of more than [`MAX_ARGUMENT`] bytes.
pub(super) fn word<T: Word>(argument: &str, value: Option<String>) -> Result<T, UserError> {
    let value = required(argument, value)?;
    check_text(argument, &value)?;
    T::from_word(&value).ok_or_else(|| {
        let listed: Vec<String> = T::words().map(|word| format!("'{word}'")).collect();
        UserError::invalid(format!("unrecognized value for {argument}: \"{value}\""))
            .hint(format!("Available values: {}.", listed.join(", ")))
    })
}

pub(super) fn unsupported(what: &str) -> UserError {
    UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
}

/// The longest text beside scripts, and the largest jsonb, in bytes.
pub const MAX_ARGUMENT: usize = 1 << 20;

/// The most configuration parameters of a run: the server knows a few hundred.
pub const MAX_SETTINGS: usize = 1000;

/// The most runs in an array of them.
pub const MAX_RUN_IDS: usize = 10_000;

/// # Errors
/// 54000 for a text above [`MAX_ARGUMENT`].
pub fn check_text(argument: &str, text: &str) -> Result<(), UserError> {
    if text.len() <= MAX_ARGUMENT {
        return Ok(());
    }
    Err(exceeded(format!("{argument} must not be longer than {MAX_ARGUMENT} bytes, not {}", text.len())))
}

/// # Errors
/// 54000 for more than `most` of what `things` names.
pub fn check_count(argument: &str, count: usize, most: usize, things: &str) -> Result<(), UserError> {
    if count <= most {
        return Ok(());
    }
    Err(exceeded(format!("{argument} must not have more than {most} {things}, not {count}")))
}

fn exceeded(message: String) -> UserError {
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
}

words! {
    /// What is done before a run, in the order in which it is done.
    pub enum Before {
        /// The workload's fixtures are loaded anew, as they were loaded.
        Reload = "reload",
        /// Fixtures that were loaded without rows are emptied, and the table that pgbench's own scripts fill.
        Truncate = "truncate",
        /// VACUUM (ANALYZE) of the fixtures' tables.
        Vacuum = "vacuum",
        /// Tables, their TOAST tables and indexes are read into shared buffers.
        Prewarm = "prewarm",
        /// CHECKPOINT.
        Checkpoint = "checkpoint",
    }
}

impl Before {
    /// Takes 'none', or one or more words separated by commas.
    ///
    /// # Errors
    /// 22023 for another word, 54000 for a text of more than [`MAX_ARGUMENT`] bytes.
    pub fn parse(text: &str) -> Result<Vec<Self>, UserError> {
        check_text("before", text)?;
        if text.trim() == "none" {
            return Ok(Vec::new());
        }
        let mut steps = Vec::new();
        for word in text.split(',').map(str::trim) {
            let step = Self::from_word(word).ok_or_else(|| {
                UserError::invalid(format!("unrecognized value for before: \"{word}\"")).hint(
                    "Available values: 'none', 'reload', 'truncate', 'vacuum', 'prewarm', 'checkpoint', or several of them: 'vacuum,checkpoint'.",
                )
            })?;
            steps.push(step);
        }
        steps.sort();
        steps.dedup();
        Ok(steps)
    }

    /// What [`Before::parse`] takes for these steps.
    pub fn text(steps: &[Self]) -> String {
        if steps.is_empty() {
            return "none".to_owned();
        }
        steps.iter().map(|step| step.as_str()).collect::<Vec<_>>().join(",")
    }
}

words! {
    /// What carries out the clients' statements.
    #[derive(Default)]
    pub enum Driver {
        /// Workers of the server, each of which is a client, inside the server.
        #[default]
        Engine = "engine",
        /// Workers that share the clients' connections to the server.
        Wire = "wire",
    }
}

words! {
    /// What a client does whose connection is lost.
    #[derive(Default)]
    pub enum OnDisconnect {
        /// It ends, as pgbench's does.
        #[default]
        End = "end",
        /// It connects again, and goes on with another transaction.
        Reconnect = "reconnect",
    }
}

words! {
    /// How a statement reaches the server, as pgbench -M.
    #[derive(Default)]
    pub enum QueryMode {
        /// As text with the values in it, parsed and planned each time.
        Simple = "simple",
        /// With parameters, parsed and planned each time.
        Extended = "extended",
        /// With parameters, parsed once and planned as prepared statements are.
        #[default]
        Prepared = "prepared",
    }
}

words! {
    /// What becomes of the rows that a statement returns.
    #[derive(Default)]
    pub enum Results {
        /// Detoasted and turned into text, as for a client, then dropped.
        #[default]
        Serialize = "serialize",
        /// Not looked at.
        Discard = "discard",
    }
}
