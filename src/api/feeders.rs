//! bench.add_feeder and bench.drop_feeder.

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::Feeder;
use pgrx::prelude::*;

use super::required;
use super::workloads::check_owner;
use crate::error::{OrRaise, notice};
use crate::launch::checks::{check_encoding, check_length};
use crate::run::feeders;
use crate::server::roles;
use crate::server::spi::quote_identifier;
use crate::store::{self, Workload};

/// Gives a workload a feeder. See the COMMENT ON.
#[pg_extern(sql = false)]
fn add_feeder(
    workload: Option<String>,
    query: Option<String>,
    prefix: Option<String>,
    pick: Option<String>,
    once: Option<bool>,
    max_rows: Option<i32>,
) {
    add(workload, query, prefix, pick, once, max_rows).or_raise();
}

fn add(
    workload: Option<String>,
    query: Option<String>,
    prefix: Option<String>,
    pick: Option<String>,
    once: Option<bool>,
    max_rows: Option<i32>,
) -> Result<(), UserError> {
    check_encoding()?;
    let name = required("workload", workload)?;
    let query = required("query", query)?;
    let (prefix, pick) = (required("prefix", prefix)?, required("pick", pick)?);
    let (once, max_rows) = (required("once", once)?, required("max_rows", max_rows)?);
    check_length([query.as_str()])?;
    let feeder = Feeder::new(prefix, query, &pick, once, max_rows)?;
    let workload = owned(&name)?;
    let mut feeders = store::feeders(&name)?;
    feeders.retain(|other| other.prefix != feeder.prefix);
    feeders::check_new(&workload, &feeder, &feeders)?;
    let workload =
        if workload.owner_oid == roles::current_role_oid() { workload } else { take_over(workload)? };
    store::put_feeder(&workload, &feeder)
}

/// Makes another role's workload the current role's, who from now on answers for its script and all of its feeders.
///
/// # Errors
/// 42501 for a captured one, which runs in sessions of the role that executed it.
fn take_over(workload: Workload) -> Result<Workload, UserError> {
    let Workload { name, owner, captured, .. } = &workload;
    if *captured {
        let message = format!("workload \"{name}\" is a part of a capture of role \"{owner}\"");
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail("It runs in sessions of that role, and so do its feeders.")
            .hint(format!("SET ROLE {} before the call.", quote_identifier(owner))));
    }
    let message =
        format!("workload \"{name}\" of role \"{owner}\" now belongs to role \"{}\"", roles::current_role());
    notice(message, "Its script and all of its feeders may now run with your privileges. Read them.");
    store::take_over(workload)
}

/// Removes a feeder. See the COMMENT ON.
#[pg_extern(sql = false)]
fn drop_feeder(workload: Option<String>, prefix: Option<String>) {
    remove_feeder(workload, prefix).or_raise();
}

fn remove_feeder(workload: Option<String>, prefix: Option<String>) -> Result<(), UserError> {
    let name = required("workload", workload)?;
    let prefix = required("prefix", prefix)?;
    let workload = owned(&name)?;
    if store::delete_feeder(&workload, &prefix)? {
        return Ok(());
    }
    let message = format!("workload \"{name}\" has no feeder with prefix \"{prefix}\"");
    let error = UserError::new(sqlstate::UNDEFINED_OBJECT, message);
    let known: Vec<String> =
        store::feeders(&name)?.iter().map(|feeder| format!("\"{}\"", feeder.prefix)).collect();
    Err(if known.is_empty() { error } else { error.hint(format!("Its prefixes: {}.", known.join(", "))) })
}

/// A workload that the caller may replace.
fn owned(name: &str) -> Result<Workload, UserError> {
    let Some(workload) = store::workload(name)? else {
        let message = format!("workload \"{name}\" does not exist");
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message)
            .hint("Create it first: SELECT bench.create_workload(…)."));
    };
    check_owner(&workload)?;
    Ok(workload)
}
