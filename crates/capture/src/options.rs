//! The options of captures: of statements (bench.capture) and of logs (bench.capture_log).

use bench_base::error::UserError;
use bench_base::words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What becomes of the client's pauses within a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ThinkTimes {
    /// Each transaction's own, multiplied by this.
    Captured {
        factor: f64,
    },
    /// The mean of all of the shape.
    Mean,
    None,
}

impl Default for ThinkTimes {
    fn default() -> Self {
        Self::Captured { factor: 1.0 }
    }
}

/// The largest factor that pauses can be multiplied by.
const MAX_FACTOR: f64 = 100.0;

impl ThinkTimes {
    fn of_option(value: &Value) -> Result<Self, UserError> {
        match (value.as_str(), value.as_f64()) {
            (Some("captured"), _) => Ok(Self::default()),
            (Some("mean"), _) => Ok(Self::Mean),
            (Some("none"), _) | (_, Some(0.0)) => Ok(Self::None),
            (_, Some(factor)) if factor > 0.0 && factor <= MAX_FACTOR => Ok(Self::Captured { factor }),
            _ => {
                let hint = "It must be \"captured\", \"mean\", \"none\", or a factor between 0 and 100.";
                Err(unsuitable("think_times", value, hint))
            }
        }
    }
}

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
    /// Elements of a list that PostgreSQL 18 has squashed, where rows per call do not show their number.
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

const STATEMENT_KEYS: [&str; 9] =
    ["by", "exclude", "list_length", "mask", "roles", "run_as", "think_times", "transactions", "writes"];

/// The most statements and patterns to exclude.
const MOST_EXCLUDED: usize = 1000;

/// The longest list to expand.
const MAX_LIST: u32 = 100;

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
        let mut options = Self::default();
        for (key, value) in object(given)? {
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
                ("think_times", _) => options.think_times = ThinkTimes::of_option(value)?,
                ("roles", _) => options.roles = roles(value)?,
                ("run_as", Value::String(name)) => options.run_as = Some(name.clone()),
                ("run_as", _) => return Err(unsuitable(key, value, "It must be a role's name.")),
                ("exclude", _) => options.exclude = excluded(value)?,
                _ => return Err(unknown(key, STATEMENT_KEYS)),
            }
        }
        Ok(options)
    }
}

fn object(given: &Value) -> Result<&Map<String, Value>, UserError> {
    given.as_object().ok_or_else(|| UserError::invalid("options must be a JSON object"))
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

fn unknown(key: &str, known: [&str; 9]) -> UserError {
    let list = format!("Known options: {}.", known.join(", "));
    UserError::invalid(format!("unknown option \"{key}\" of a capture")).hint(words::hint(key, known, list))
}

fn unsuitable(key: &str, value: &Value, hint: &str) -> UserError {
    UserError::invalid(format!("invalid value {value} for option \"{key}\" of a capture")).hint(hint)
}

/// Which messages count, and what is made of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogOptions {
    /// Name of the database, as in the log.
    pub database: String,
    /// Whose transactions count, as asked for.
    pub wanted: Roles,
    /// Only these roles' transactions count.
    pub roles: Option<Vec<String>>,
    /// Only those with this application_name.
    pub application: Option<String>,
    /// Keep transactions that change data.
    pub writes: bool,
    /// Mask texts.
    pub mask: bool,
    pub think_times: ThinkTimes,
    /// Share of the transactions that the server has logged (log_transaction_sample_rate).
    pub sample_rate: f64,
    /// Rows of values that are kept of each shape.
    pub max_rows: usize,
    /// As in [`CaptureOptions`].
    pub run_as: Option<String>,
}

const LOG_KEYS: [&str; 9] = [
    "application",
    "database",
    "mask",
    "max_rows",
    "roles",
    "run_as",
    "sample_rate",
    "think_times",
    "writes",
];

/// The default of `max_rows`.
const ROWS: usize = 10_000;

/// As many rows as a feeder reads by default.
const MAX_ROWS: u64 = 100_000;

impl LogOptions {
    /// For a log whose database has this name unless an option says otherwise.
    ///
    /// # Errors
    /// 22023 for an unknown key, with those that are known, and for values that do not fit.
    pub fn new(database: String, given: &Value) -> Result<Self, UserError> {
        let mut options = Self::of_capture(database, &CaptureOptions::default());
        for (key, value) in object(given)? {
            options.set(key, value)?;
        }
        Ok(options)
    }

    /// For what a capture of statements with these options takes from a log of this database.
    pub fn of_capture(database: String, options: &CaptureOptions) -> Self {
        Self {
            database,
            wanted: options.roles.clone(),
            roles: None,
            application: None,
            writes: options.writes,
            mask: options.mask,
            think_times: options.think_times,
            sample_rate: 1.0,
            max_rows: ROWS,
            run_as: options.run_as.clone(),
        }
    }

    /// Only transactions of the wanted roles count; this role captures.
    pub fn take_roles(&mut self, own: &str) {
        match &self.wanted {
            Roles::Own => self.roles = Some(vec![own.to_owned()]),
            Roles::Named(names) => self.roles = Some(names.clone()),
            Roles::Any => {}
        }
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), UserError> {
        let unsuitable = |hint: &str| Err(unsuitable(key, value, hint));
        match (key, value) {
            ("application", Value::String(name)) => self.application = Some(name.clone()),
            ("database", Value::String(name)) => self.database.clone_from(name),
            ("roles", _) => self.wanted = roles(value)?,
            ("run_as", Value::String(name)) => self.run_as = Some(name.clone()),
            ("application" | "database" | "run_as", _) => return unsuitable("It must be a name."),
            ("writes", Value::Bool(flag)) => self.writes = *flag,
            ("mask", Value::Bool(flag)) => self.mask = *flag,
            ("writes" | "mask", _) => return unsuitable("It must be true or false."),
            ("think_times", _) => self.think_times = ThinkTimes::of_option(value)?,
            ("sample_rate", _) => match value.as_f64() {
                Some(rate) if rate > 0.0 && rate <= 1.0 => self.sample_rate = rate,
                _ => {
                    return unsuitable(
                        "It must be a number above 0 and up to 1, as log_transaction_sample_rate.",
                    );
                }
            },
            ("max_rows", _) => match value.as_u64() {
                Some(rows) if (1..=MAX_ROWS).contains(&rows) => self.max_rows = rows as usize,
                _ => return unsuitable("It must be a whole number between 1 and 100000."),
            },
            _ => return Err(unknown(key, LOG_KEYS)),
        }
        Ok(())
    }
}
