//! Having the server log a share of the application's transactions while a capture lasts, and reading them.
//!
//! The parameters of the log are set for that time as those of a sweep are ([`ServerParameters`]), but for sessions that are there
//! already; whatever ends this process, the server gets its own settings back.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_capture::log::{CapturedLog, MARK_BYTES, line_prefix};
use bench_capture::options::LogOptions;
use bench_model::spec::Results;

use super::{LogPosition, LogSource, Read, obstacle_of_stderr};
use crate::driver::session::Session;
use crate::error::internal;
use crate::run::server_parameters::{self, Reach, ServerParameters};
use crate::server::process::{nap_until_canceled, random_seed};
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::server::{guc, signals};
use crate::store::Changer;

/// Executions that are logged at most, as far as the rate before tells.
const EXECUTIONS: f64 = 50_000.0;

/// What the log may grow by before it is ended early, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// What is set.
const PARAMETERS: [&str; 3] = ["log_destination", "log_transaction_sample_rate", "log_parameter_max_length"];

/// What is set as well, and what it takes besides, where a collector writes the log or where none does.
const LINE_PREFIX: &str = "log_line_prefix";
const CURRENT_FILE: &str = "pg_catalog.pg_current_logfile(pg_catalog.text)";

/// Functions that it takes.
const FUNCTIONS: [&str; 2] = ["pg_catalog.pg_reload_conf()", "pg_catalog.pg_show_all_file_settings()"];

/// Whether a collector writes the log. Without one the server writes to its stderr.
fn has_collector() -> bool {
    guc::current("logging_collector").as_deref() == Some("on")
}

/// Transactions that are being logged.
pub struct LogSampling {
    parameters: ServerParameters,
    session: Session,
    position: LogPosition,
    /// Share of the transactions.
    rate: f64,
}

thread_local! {
    /// Whose parameters are to be put back if this process ends before.
    static UNFINISHED: RefCell<Option<Changer>> = const { RefCell::new(None) };
}

/// What is done where the process is terminated, before the server's shared memory goes.
static PUT_BACK: signals::Callback = signals::Callback(|| {
    if let Some(changer) = UNFINISHED.take() {
        // Where that fails, what is written down of it stays.
        let _ = signals::put_in_order(|| {
            server_parameters::put_back_forgotten(&mut Session::new(Results::Discard), Some(&changer))
        });
        guc::reload();
    }
});

/// Why this role, on this server, cannot have transactions logged; `None`: it can.
pub fn obstacle() -> Result<Option<String>, UserError> {
    let lacks = |sql: &str, of: &str| -> Result<bool, UserError> {
        Ok(fetch::<bool>(sql, &[of.into()])? != Some(true))
    };
    let has_collector = has_collector();
    for parameter in PARAMETERS.into_iter().chain((!has_collector).then_some(LINE_PREFIX)) {
        if lacks("SELECT has_parameter_privilege($1, 'ALTER SYSTEM')", parameter)? {
            return Ok(Some(format!("the role may not ALTER SYSTEM SET {parameter}")));
        }
    }
    for function in FUNCTIONS.into_iter().chain(has_collector.then_some(CURRENT_FILE)) {
        if lacks("SELECT has_function_privilege($1, 'EXECUTE')", function)? {
            return Ok(Some(format!("the role may not execute {function}")));
        }
    }
    for role in ["pg_read_server_files", "pg_read_all_stats"] {
        if lacks("SELECT pg_has_role($1, 'USAGE')", role)? {
            return Ok(Some(format!("the role lacks the privileges of {role}")));
        }
    }
    if let Some(obstacle) = (!has_collector).then(obstacle_of_stderr).flatten() {
        return Ok(Some(format!(
            "logging_collector is off, and {obstacle}: set logging_collector = on and restart the server"
        )));
    }
    let locale = guc::current("lc_messages").unwrap_or_default();
    let is_english =
        ["", "C", "POSIX"].contains(&locale.as_str()) || locale.starts_with("C.") || locale.starts_with("en");
    Ok((!is_english).then(|| format!("lc_messages is \"{locale}\", and only English messages can be read")))
}

/// The share of the transactions to log, so that not too much is logged of so many executions per second in so many seconds.
fn sample_rate(executions_per_sec: f64, secs: f64) -> f64 {
    let expected = executions_per_sec * secs;
    if expected <= EXECUTIONS {
        return 1.0;
    }
    // Three digits.
    let rate = EXECUTIONS / expected;
    let digits = 10_f64.powf(2.0 - rate.log10().floor());
    (rate * digits).floor() / digits
}

impl LogSampling {
    /// Begins to have transactions logged, by this capture; `executions_per_sec` were seen before, and it will last so many
    /// seconds.
    ///
    /// # Errors
    /// 55006 while another one does, 55000 where the server does not take it, and those of the log's files.
    pub fn begin(capture: &str, executions_per_sec: f64, secs: f64) -> Result<Self, UserError> {
        transaction(server_parameters::exclude_others)?;
        // What another capture has left is not what the file had.
        server_parameters::put_back_or_warn(&mut Session::new(Results::Discard), None);
        let changer = Changer::Capture(capture.to_owned());
        let mut session = Session::new(Results::Discard);
        session.set_own(c"pgbench_ext capture").map_err(UserError::from)?;
        let rate = sample_rate(executions_per_sec, secs);
        let formats = transaction(|| Ok(guc::current("log_destination")))?.unwrap_or_default();
        let has_collector = transaction(|| Ok(has_collector()))?;
        let format = if has_collector { "jsonlog" } else { "stderr" };
        let formats = match formats.as_str() {
            "" => format.to_owned(),
            formats if formats.contains(format) => formats.to_owned(),
            formats => format!("{formats},{format}"),
        };
        let values = [formats, rate.to_string(), "-1".to_owned()];
        let mut wanted: BTreeMap<String, String> =
            PARAMETERS.map(str::to_owned).into_iter().zip(values).collect();
        let mark = mark();
        if !has_collector {
            wanted.insert(LINE_PREFIX.to_owned(), line_prefix(&mark));
        }
        let names = wanted.keys().cloned().collect();
        let mut parameters = ServerParameters::new(changer.clone(), names);
        if UNFINISHED.replace(Some(changer)).is_none() {
            signals::register(&PUT_BACK);
        }
        // The collector reads the configuration when it gets to it.
        let mut position = match has_collector {
            true => transaction(|| log_folder().map(|folder| folder.map(LogPosition::of)))?.transpose()?,
            false => Some(LogPosition::of_stderr(mark)?),
        };
        let mut wait = || {
            if !has_collector {
                return Ok(());
            }
            let file = log_file()?;
            position.get_or_insert_with(|| LogPosition::begin_of(&file));
            Ok(())
        };
        let begun = parameters
            .set(&mut session, wanted, Reach::All(&mut wait))
            .and_then(|()| position.take().ok_or_else(|| internal("the log has no position")));
        session.report_idle();
        match begun {
            Ok(position) => Ok(Self { parameters, session, position, rate }),
            Err(error) => {
                parameters.put_back(&mut session)?;
                UNFINISHED.take();
                Err(error)
            }
        }
    }

    /// Whether so much has been logged that it is enough.
    pub fn is_full(&self) -> Result<bool, UserError> {
        Ok(self.position.bytes_since()? > MOST_BYTES)
    }

    /// Gives the server its own settings back. Sessions that are within a transaction log it to its end.
    pub fn stop(&mut self) -> Result<(), UserError> {
        self.parameters.put_back(&mut self.session)?;
        UNFINISHED.take();
        Ok(())
    }

    /// Reads what was logged.
    ///
    /// # Errors
    /// Those of reading a log.
    pub fn read(self, options: LogOptions) -> Result<(CapturedLog, Read, LogOptions), UserError> {
        let options = LogOptions { sample_rate: self.rate, ..options };
        transaction(std::panic::AssertUnwindSafe(|| {
            let (captured, read) = LogSource::Since(self.position).read(&options)?;
            Ok((captured, read, options))
        }))
    }
}

/// What lines of the log begin with.
fn mark() -> String {
    let random = std::iter::repeat_with(|| format!("{:016x}", random_seed()));
    random.take(MARK_BYTES.div_ceil(16)).collect()
}

/// The file that the server writes jsonlog to; the collector opens it after it has read the configuration.
fn log_file() -> Result<PathBuf, UserError> {
    for _ in 0..100 {
        if let Some(file) = transaction(current_file)? {
            return Ok(file);
        }
        nap_until_canceled(Duration::from_millis(50).as_millis() as i64)?;
    }
    Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, "the server does not write jsonlog"))
}

/// The folder of the log, whatever its format.
fn log_folder() -> Result<Option<PathBuf>, UserError> {
    let sql = "SELECT coalesce(pg_current_logfile('jsonlog'), pg_current_logfile('csvlog'), \
                   pg_current_logfile('stderr'))";
    Ok(fetch::<String>(sql, &[])?.and_then(|file| PathBuf::from(file).parent().map(PathBuf::from)))
}

fn current_file() -> Result<Option<PathBuf>, UserError> {
    Ok(fetch::<String>("SELECT pg_current_logfile('jsonlog')", &[])?.map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::sample_rate;

    #[test]
    fn so_many_executions_are_logged() {
        assert_eq!(sample_rate(100.0, 60.0), 1.0);
        assert_eq!(sample_rate(100_000.0, 60.0), 0.00833);
        assert_eq!(sample_rate(0.0, 0.0), 1.0);
        assert!(sample_rate(1e9, 604_800.0) > 0.0);
    }
}
