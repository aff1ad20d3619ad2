//! The arguments of bench.capture, checked.

use bench_base::error::{UserError, sqlstate};
use bench_capture::options::CaptureOptions;
use bench_model::spec::Role;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::log::sampling;
use super::name;
use super::sessions::Sessions;
use crate::launch::checks::{check_role, check_server};
use crate::observe::counters;
use crate::server::roles;

/// The longest capture in seconds: a week.
const MAX_SECS: f64 = 604_800.0;

/// As many workloads as a mix may have.
const MAX_STATEMENTS: i32 = 128;

/// A capture in which nothing was found wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaptureSpec {
    pub name: String,
    pub secs: f64,
    /// How many statements are kept at most.
    pub statements: usize,
    /// As given.
    pub options: Value,
    /// The role that captures.
    pub role: Role,
}

impl CaptureSpec {
    /// Everything that can be found wrong with the arguments, by this role and in this database.
    ///
    /// # Errors
    /// 22023 for values that do not fit, 42710 for a name that is a workload's, 42501 for another role's capture, 55000 without
    /// pg_stat_statements.
    pub fn new(name: String, secs: f64, statements: i32, options: Value) -> Result<Self, UserError> {
        if !(0.0..=MAX_SECS).contains(&secs) {
            return Err(UserError::invalid(format!("secs must be between 0 and {MAX_SECS}, not {secs}"))
                .hint("0 takes what pg_stat_statements has counted already."));
        }
        if !(1..=MAX_STATEMENTS).contains(&statements) {
            return Err(UserError::invalid(format!(
                "statements must be between 1 and {MAX_STATEMENTS}, not {statements}"
            )));
        }
        let checked = CaptureOptions::new(&options)?;
        let conflict = match checked.of_statements() {
            _ if checked.transactions != Some(true) => None,
            _ if secs == 0.0 => Some("secs => 0".to_owned()),
            option => option.map(|option| format!("option \"{option}\"")),
        };
        if let Some(conflict) = conflict {
            return Err(UserError::invalid(format!(
                "{conflict} and option \"transactions\" cannot be combined"
            ))
            .hint("Transactions are taken from what the server logs while the capture lasts."));
        }
        check_server()?;
        check_role()?;
        Sessions::new(checked.run_as.as_deref())?;
        name::check(&name)?;
        // Says what is missing.
        counters::snapshot(false)?;
        if checked.transactions == Some(true)
            && let Some(obstacle) = sampling::obstacle()?
        {
            let message = format!("cannot have transactions logged: {obstacle}");
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint(
                "Without option \"transactions\", statements are captured one by one. See docs/capture.md.",
            ));
        }
        Ok(Self {
            name,
            secs,
            statements: statements.unsigned_abs() as usize,
            options,
            role: roles::current(),
        })
    }

    /// The options, which were checked.
    pub fn checked_options(&self) -> Result<CaptureOptions, UserError> {
        CaptureOptions::new(&self.options)
    }
}
