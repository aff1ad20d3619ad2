//! The arguments of bench.capture, checked, and the names of captures.

use bench_base::error::{UserError, sqlstate};
use bench_capture::options::CaptureOptions;
use bench_model::spec::{Role, is_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::log::sampling;
use super::sessions::Sessions;
use crate::launch::checks::{check_role, check_server};
use crate::observe::counters;
use crate::server::roles;
use crate::store;

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
        check(&name)?;
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

// Names of captures. bench.run accepts names of captures and of workloads, so no name may be both.

/// That a role may capture under this name: anew, or over a capture of its own.
///
/// # Errors
/// 22023 for what cannot be a name; 42710 where it, or what the capture's workloads would be called, is taken; 42501 for
/// another role's capture; 55006 for one under way.
pub fn check(name: &str) -> Result<(), UserError> {
    // The workloads' names have a number behind it.
    if !is_name(name, 59) {
        let message = format!("invalid capture name: \"{name}\"");
        return Err(UserError::invalid(message)
            .hint("A name has 1 to 59 bytes, without @ and commas, and does not begin with deck: they are part of the syntax of mixes."));
    }
    if store::workload(name)?.is_some() {
        let message = format!("workload \"{name}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("bench.run accepts names of workloads and of captures: choose another name."));
    }
    check_part(name)?;
    check_owner(name)?;
    if let Some(part) = store::alien_part(name)? {
        let message = format!("workload \"{part}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message).hint(
            "The workloads of a capture have its name and a number. Drop this workload, or choose another name.",
        ));
    }
    let under_way = store::capture(name)?.is_some_and(|old| old.status == "capturing");
    if under_way {
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, format!("capture \"{name}\" is under way"))
            .hint("Wait for its end, or stop it with bench.stop_capture."));
    }
    Ok(())
}

/// Whether there is a capture of this name that this role may replace and drop.
///
/// # Errors
/// 42501 for another role's.
pub fn check_owner(name: &str) -> Result<bool, UserError> {
    let Some(old) = store::capture(name)? else { return Ok(false) };
    if roles::acts_for(old.owner_oid) {
        return Ok(true);
    }
    let message = format!("capture \"{name}\" belongs to role \"{}\"", old.role);
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .hint("Only its role, members of it and superusers may replace or drop it."))
}

/// That a workload may be stored under this name.
///
/// # Errors
/// 42710 for a capture's, and for a part of one.
pub fn check_of_workload(name: &str) -> Result<(), UserError> {
    if store::capture(name)?.is_some() {
        let message = format!("capture \"{name}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("bench.run accepts names of workloads and of captures: choose another name."));
    }
    check_part(name)
}

/// # Errors
/// 42710 for a name with a number behind a slash, where a capture or a mix has what is before it.
fn check_part(name: &str) -> Result<(), UserError> {
    let Some((whole, number)) = name.rsplit_once('/') else { return Ok(()) };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let kind = match is_number {
        false => return Ok(()),
        true if store::capture(whole)?.is_some() => "capture",
        true if store::workload(whole)?.is_some_and(|workload| workload.mix.is_some()) => "mix",
        true => return Ok(()),
    };
    let message = format!("name \"{name}\" belongs to {kind} \"{whole}\"");
    Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
        .hint(format!("The workloads of a {kind} have its name and a number: choose another name.")))
}
