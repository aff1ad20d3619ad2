//! Options of bench.capture_log.

use bench_base::error::UserError;
use bench_base::similar;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::script::ThinkTimes;
use crate::statements::{CaptureOptions, Roles};

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

const KEYS: [&str; 9] = [
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

/// Rows of values unless told otherwise.
const ROWS: usize = 10_000;

/// As many as a feeder reads unless told otherwise.
const MAX_ROWS: u64 = 100_000;

impl LogOptions {
    /// For a log whose database has this name unless an option says otherwise.
    ///
    /// # Errors
    /// 22023 for an unknown key, with those that are known, and for values that do not fit.
    pub fn new(database: String, given: &Value) -> Result<Self, UserError> {
        let Value::Object(object) = given else {
            return Err(UserError::invalid("options must be a JSON object"));
        };
        let mut options = Self::of_capture(database, &CaptureOptions::default());
        for (key, value) in object {
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
        let unsuitable = |hint: &str| {
            Err(UserError::invalid(format!("invalid value {value} for option \"{key}\" of a capture"))
                .hint(hint))
        };
        match (key, value) {
            ("application", Value::String(name)) => self.application = Some(name.clone()),
            ("database", Value::String(name)) => self.database.clone_from(name),
            ("roles", _) => self.wanted = CaptureOptions::new(&serde_json::json!({ "roles": value }))?.roles,
            ("run_as", Value::String(name)) => self.run_as = Some(name.clone()),
            ("application" | "database" | "run_as", _) => return unsuitable("It must be a name."),
            ("writes", Value::Bool(flag)) => self.writes = *flag,
            ("mask", Value::Bool(flag)) => self.mask = *flag,
            ("writes" | "mask", _) => return unsuitable("It must be true or false."),
            ("think_times", _) => {
                let Some(think_times) = ThinkTimes::of_option(value) else {
                    return unsuitable(ThinkTimes::HINT);
                };
                self.think_times = think_times;
            }
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
            _ => {
                let list = format!("Known options: {}.", KEYS.join(", "));
                return Err(UserError::invalid(format!("unknown option \"{key}\" of a capture"))
                    .hint(similar::hint(key, KEYS, list)));
            }
        }
        Ok(())
    }
}
