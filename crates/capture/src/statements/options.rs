//! Options of bench.capture.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use bench_base::error::UserError;
use bench_base::similar;

use crate::log::ThinkTimes;

/// Which statements are the most important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Importance {
    /// By execution time.
    #[default]
    Time,
    /// By number of calls.
    Calls,
}

/// Whose statements are captured.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Roles {
    /// All roles'; those of roles that the capturing one cannot become are listed only.
    #[default]
    Any,
    /// The role's own.
    Own,
    /// Those of these roles.
    Named(Vec<String>),
}

/// The options of a capture.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CaptureOptions {
    pub by: Importance,
    pub roles: Roles,
    /// Whether statements that write are kept.
    pub writes: bool,
    /// Whether kept values are masked.
    pub mask: bool,
    /// Elements of a list that PostgreSQL 18 has squashed, where rows per call do not tell.
    pub list_length: Option<u32>,
    /// Statements that are not kept: by patterns of LIKE, and by queryid.
    pub exclude: Excluded,
    /// Whether whole transactions are taken from the server's log; `None`: where that is possible, and the application has
    /// transactions of several statements.
    pub transactions: Option<bool>,
    /// Pauses within transactions.
    pub think_times: ThinkTimes,
    /// The role whose sessions try and replay what is kept; `None`: those of the roles that executed it.
    pub run_as: Option<String>,
}

/// Statements that a capture does not keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    pub patterns: Vec<String>,
    pub query_ids: Vec<i64>,
}

const KEYS: [&str; 9] =
    ["by", "exclude", "list_length", "mask", "roles", "run_as", "think_times", "transactions", "writes"];

/// The most statements and patterns to exclude.
const MOST_EXCLUDED: usize = 1000;

/// The longest list to expand.
pub const MAX_LIST: u32 = 100;

impl CaptureOptions {
    /// An option that is about single statements, and makes no sense for transactions.
    pub fn of_statements(&self) -> Option<&'static str> {
        match self {
            Self { by: Importance::Calls, .. } => Some("by"),
            Self { list_length: Some(_), .. } => Some("list_length"),
            Self { exclude, .. } if *exclude != Excluded::default() => Some("exclude"),
            _ => None,
        }
    }

    /// # Errors
    /// 22023 for an unknown key, with those that are known, and for values that do not fit.
    pub fn new(given: &Value) -> Result<Self, UserError> {
        let Value::Object(object) = given else {
            return Err(UserError::invalid("options must be a JSON object"));
        };
        let mut options = Self::default();
        for (key, value) in object {
            match (key.as_str(), value) {
                ("writes", Value::Bool(flag)) => options.writes = *flag,
                ("mask", Value::Bool(flag)) => options.mask = *flag,
                ("transactions", Value::Bool(flag)) => options.transactions = Some(*flag),
                ("writes" | "mask" | "transactions", _) => {
                    return Err(unsuitable(key, value, "It must be true or false."));
                }
                ("by", Value::String(word)) if word == "time" => options.by = Importance::Time,
                ("by", Value::String(word)) if word == "calls" => options.by = Importance::Calls,
                ("by", _) => return Err(unsuitable(key, value, "It must be \"time\" or \"calls\".")),
                ("list_length", Value::Number(number)) => {
                    let length = number.as_u64().filter(|length| (1..=u64::from(MAX_LIST)).contains(length));
                    let hint = format!("It must be between 1 and {MAX_LIST}.");
                    let length = length.ok_or_else(|| unsuitable(key, value, &hint))?;
                    options.list_length = Some(length as u32);
                }
                ("list_length", _) => return Err(unsuitable(key, value, "It must be a whole number.")),
                ("think_times", _) => {
                    options.think_times = ThinkTimes::of_option(value)
                        .ok_or_else(|| unsuitable(key, value, ThinkTimes::HINT))?;
                }
                ("roles", _) => options.roles = roles(value)?,
                ("run_as", Value::String(name)) => options.run_as = Some(name.clone()),
                ("run_as", _) => return Err(unsuitable(key, value, "It must be a role's name.")),
                ("exclude", _) => options.exclude = excluded(value)?,
                _ => {
                    let list = format!("Known options: {}.", KEYS.join(", "));
                    return Err(UserError::invalid(format!("unknown option \"{key}\" of a capture"))
                        .hint(similar::hint(key, KEYS, list)));
                }
            }
        }
        Ok(options)
    }
}

fn roles(value: &Value) -> Result<Roles, UserError> {
    match value {
        Value::String(word) if word == "own" => return Ok(Roles::Own),
        Value::Array(names) if !names.is_empty() => {
            let names: Option<Vec<String>> =
                names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            if let Some(names) = names {
                return Ok(Roles::Named(names));
            }
        }
        _ => {}
    }
    Err(unsuitable("roles", value, "It must be \"own\" or an array of roles' names."))
}

fn excluded(value: &Value) -> Result<Excluded, UserError> {
    let hint = format!(
        "It must be an array of at most {MOST_EXCLUDED} patterns of LIKE and query identifiers, as [\"%pg_sleep%\", 42]."
    );
    let unsuitable = || unsuitable("exclude", value, &hint);
    let mut excluded = Excluded::default();
    for item in value.as_array().filter(|items| items.len() <= MOST_EXCLUDED).ok_or_else(unsuitable)? {
        match item {
            Value::String(pattern) => excluded.patterns.push(pattern.clone()),
            _ => excluded.query_ids.push(item.as_i64().ok_or_else(unsuitable)?),
        }
    }
    Ok(excluded)
}

fn unsuitable(key: &str, value: &Value, hint: &str) -> UserError {
    UserError::invalid(format!("invalid value {value} for option \"{key}\" of a capture")).hint(hint)
}
