//! The call of bench.capture_log.

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::LogFormat;
use bench_capture::options::LogOptions;
use serde_json::Value;

use super::save::{self, CaptureLine};
use super::source::LogSource;
use crate::capture::name;
use crate::capture::sessions::Sessions;
use crate::error::notice;
use crate::launch::checks::check_server;
use crate::server::process::current_timestamp;
use crate::server::{database, roles};
use crate::store;

/// As many workloads as a mix may have.
const MAX_SHAPES: i32 = 128;

/// The arguments of bench.capture_log.
pub struct Arguments {
    pub name: String,
    pub source: LogSource,
    /// How many shapes are kept at most.
    pub shapes: i32,
    /// As given.
    pub options: Value,
}

/// Reads the log and stores the capture; the lines of bench.capture_statements.
///
/// # Errors
/// 22023 for values that do not fit, 42710 for a name that is a workload's, 42501 for another role's capture and for files
/// that the role may not read, 55000 for a log without transactions, and those of reading.
pub fn capture(arguments: &Arguments) -> Result<Vec<CaptureLine>, UserError> {
    if !(1..=MAX_SHAPES).contains(&arguments.shapes) {
        return Err(UserError::invalid(format!(
            "shapes must be between 1 and {MAX_SHAPES}, not {}",
            arguments.shapes
        )));
    }
    check_server()?;
    let mut options = LogOptions::new(database::name()?, &arguments.options)?;
    options.take_roles(&roles::current_role());
    name::check(&arguments.name)?;
    Sessions::new(options.run_as.as_deref())?;
    let (captured, read) = arguments.source.read(&options)?;
    if captured.figures.transactions == 0 {
        return Err(nothing(&read, &options, captured.figures.entries));
    }
    let name = &arguments.name;
    let role = roles::current_role_oid();
    let secs = captured.figures.secs;
    store::begin_capture(name, role, "log", &arguments.options, secs, current_timestamp())?;
    let kept = save::keep(name, arguments.shapes.unsigned_abs() as usize, &options, captured, &read, None)?;
    store::end_capture(name, &kept.end)?;
    notice(format!("capture {name}: {}", kept.end.notes[0]), save::NO_REPLAY);
    Ok(kept.lines)
}

/// The error for a log in which nothing was found.
fn nothing(read: &super::messages::Read, options: &LogOptions, entries: u64) -> UserError {
    let detail = format!(
        "It has {} messages, {entries} of them from sessions that the options select in database \"{}\", and {} \
         lines that are not messages.",
        read.messages, options.database, read.unreadable
    );
    UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, "there is no transaction in the log")
        .detail(detail)
        .hint(
            "Statements are logged with log_min_duration_statement = 0, log_statement = 'all' or \
         log_transaction_sample_rate, and can be read if lc_messages is English.",
        )
}

/// A format by its name.
///
/// # Errors
/// 22023 for another word.
pub fn format(word: &str) -> Result<LogFormat, UserError> {
    match word {
        "csv" => Ok(LogFormat::Csv),
        "json" => Ok(LogFormat::Json),
        _ => {
            let message = format!("unrecognized format: \"{word}\"");
            Err(UserError::invalid(message).hint("Available formats: \"csv\" and \"json\"."))
        }
    }
}
