//! Parameters of the whole server that a sweep's variants set.

use std::collections::BTreeMap;

use bench_core::error::{UserError, sqlstate};
use bench_core::sweep::{SweepOptions, Variant};
use serde_json::Value;

use crate::server::guc;
use crate::server::roles::superuser;
use crate::server::spi::fetch;

/// A variant's parameters, as ALTER SYSTEM takes them.
pub fn wanted(variant: &Variant) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    variant.system.iter().map(|(name, value)| (name.to_ascii_lowercase(), text(value))).collect()
}

/// The names of those that any variant sets.
pub fn names(options: &SweepOptions) -> Vec<String> {
    options.variants.iter().flat_map(|variant| wanted(variant).into_keys()).collect()
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
    for (name, value) in options.variants.iter().flat_map(wanted) {
        check_of_system(&name, &value)?;
    }
    Ok(())
}

/// Checks a parameter of the whole server as ALTER SYSTEM and a reload would, without changing anything.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that a reload does not change; the server's own errors for the rest.
fn check_of_system(name: &str, value: &str) -> Result<(), UserError> {
    let sql = "SELECT context FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) pg_catalog.lower($1)";
    match fetch::<String>(sql, &[name.into()])?.as_deref() {
        None => Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
        Some("internal" | "postmaster") => Err(UserError::new(
            sqlstate::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{name}\" cannot be changed without restarting the server"),
        )
        .hint("Run a sweep before the restart and one after it, and compare them with bench.compare.")),
        Some(_) => guc::check_for_reload(name, value),
    }
}
