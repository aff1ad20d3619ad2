//! Parameters of the whole server that a sweep's variants set.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::plain;
use bench_questions::sweep::{SweepOptions, Variant};
use serde_json::{Map, Value};

use crate::server::guc;
use crate::server::roles::superuser;
use crate::server::spi::fetch;

/// A variant's parameters, as ALTER SYSTEM takes them.
pub fn wanted(variant: &Variant) -> BTreeMap<String, String> {
    texts(&variant.system)
}

/// Those of a variant that need a restart.
pub fn wanted_at_start(variant: &Variant) -> BTreeMap<String, String> {
    texts(&variant.restart)
}

fn texts(group: &Map<String, Value>) -> BTreeMap<String, String> {
    group.iter().map(|(name, value)| (name.to_ascii_lowercase(), plain(value))).collect()
}

/// The names of those that any variant sets.
pub fn names(options: &SweepOptions) -> Vec<String> {
    options.setup.variants.iter().flat_map(|variant| wanted(variant).into_keys()).collect()
}

/// # Errors
/// 0A000 for several nodes, 42501 for others than superusers, 42704 for an unknown parameter, 55P02 for one that needs a restart, and what the
/// server says of the value.
pub fn check(options: &SweepOptions) -> Result<(), UserError> {
    if options.changes_system() && !superuser() {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            "must be superuser to set server parameters",
        )
        .hint("Put parameters of the clients' sessions beside \"system\", not into it."));
    }
    if options.changes_system() && options.nodes != "local" {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("a sweep with nodes => '{}' cannot set server parameters", options.nodes),
        )
        .hint("They would be set on this node only. Set them on each node with ALTER SYSTEM, and run one sweep per value."));
    }
    for (name, value) in options.setup.variants.iter().flat_map(wanted) {
        check_of_system(&name, &value)?;
    }
    for (name, value) in options.setup.variants.iter().flat_map(wanted_at_start) {
        check_of_start(&name, &value)?;
    }
    Ok(())
}

/// Checks a parameter of the whole server as ALTER SYSTEM and a reload would, without changing anything.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that a reload does not change; the server's own errors for the rest.
fn check_of_system(name: &str, value: &str) -> Result<(), UserError> {
    let unchangeable = || {
        let message = format!("parameter \"{name}\" cannot be changed without restarting the server");
        UserError::new(sqlstate::CANT_CHANGE_RUNTIME_PARAM, message)
    };
    match context(name)?.as_str() {
        "postmaster" => Err(unchangeable().hint("Put it into the group \"restart\" of a sweep's variant.")),
        "internal" => Err(unchangeable()),
        _ => guc::check_for_reload(name, value),
    }
}

/// Checks a parameter as a start of the server would. What the machine cannot give, such as memory, shows only then.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that cannot be set, 22023 for one that needs no restart; the server's own errors
/// for the rest.
fn check_of_start(name: &str, value: &str) -> Result<(), UserError> {
    match context(name)?.as_str() {
        "postmaster" => guc::check_for_start(name, value),
        "internal" => Err(UserError::new(
            sqlstate::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{name}\" cannot be changed"),
        )),
        _ => Err(UserError::invalid(format!("parameter \"{name}\" needs no restart"))
            .hint("Put it into \"settings\", or into \"system\" if it is the whole server's.")),
    }
}

/// When a parameter can be set, as pg_settings has it.
///
/// # Errors
/// 42704 for an unknown one.
pub fn context(name: &str) -> Result<String, UserError> {
    let sql = "SELECT context FROM pg_settings WHERE lower(name) = lower($1)";
    fetch::<String>(sql, &[name.into()])?.ok_or_else(|| {
        let message = format!("unrecognized configuration parameter \"{name}\"");
        UserError::new(sqlstate::UNDEFINED_OBJECT, message)
    })
}
