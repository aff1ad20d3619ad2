//! What can be found wrong with a feeder when it is defined.

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::Feeder;
use bench_model::spec::Role;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::error::{internal, warn};
use crate::guard::switch_role::as_run_role;
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::load::fixture;
use crate::run::prepare::sessions::role_of;
use crate::server::background_worker::WorkerKind;
use crate::server::query::{self, Described, is_one_select};
use crate::server::transaction::rolled_back;
use crate::server::{guc, roles};
use crate::store::Workload;

/// Everything that can be found wrong with a feeder before there is a run, by a session of the role whose sessions would read it.
/// `others` are the workload's feeders of other prefixes.
///
/// # Errors
/// 42601 for what is not one SELECT; 0A000 for one that writes; 22023 for columns that cannot be variables; the server's.
pub fn check_new(workload: &Workload, feeder: &Feeder, others: &[Feeder]) -> Result<(), UserError> {
    check_select(&feeder.query)?;
    let described = role_of(&roles::current(), workload).and_then(|role| {
        let schemas = schema_of(workload, &role)?.into_iter().collect();
        let feeders = std::iter::once(feeder).chain(others).cloned().collect();
        ask(KIND, &role, None, &CheckRequest { feeders, schemas }).map(|(variables, _)| variables)
    });
    let all: Vec<Result<Variables, UserError>> = match described {
        Ok(all) => all,
        Err(error) if is_unavailable(&error) => return cannot_check(&error),
        Err(error) => return Err(error),
    };
    let mut all = all.into_iter();
    let variables = match all.next().ok_or_else(|| internal("a feeder that nobody has described"))? {
        Ok(variables) => variables,
        // What it names may be on another server, or not be loaded yet.
        Err(error) if is_missing(&error) => return cannot_check(&error),
        Err(error) => return Err(error),
    };
    // One that has become wrong since says so when a run starts.
    for theirs in all.flatten() {
        let theirs: HashSet<&String> = theirs.iter().flatten().collect();
        if let Some(both) = variables.iter().flatten().find(|name| theirs.contains(name)) {
            return Err(twice(both));
        }
    }
    Ok(())
}

fn cannot_check(error: &UserError) -> Result<(), UserError> {
    let hint = match error.sqlstate.as_str() {
        sqlstate::UNDEFINED_TABLE => {
            "It will be checked when a run starts. A table of this transaction is not seen before it is committed."
        }
        _ => "It will be checked when a run starts.",
    };
    warn(format!("the feeder's query cannot be checked here: {}", error.message), hint);
    Ok(())
}

/// The schema that sessions of this role find a workload's fixture in.
///
/// # Errors
/// Those of looking for it.
pub fn schema_of(workload: &Workload, role: &Role) -> Result<Option<String>, UserError> {
    let Some(name) = &workload.fixture else { return Ok(None) };
    let found = as_run_role(role.oid.into(), || fixture::usable(name))?;
    Ok(found.and_then(|fixture| fixture.schema))
}

/// The kind of worker that describes feeders.
const KIND: WorkerKind = kind(c"pgbench_ext_feeder_check_main", c"pgbench_ext feeders");

/// The variables that a feeder sets, by its columns.
type Variables = Vec<Option<String>>;

#[derive(Serialize, Deserialize)]
struct CheckRequest {
    feeders: Vec<Feeder>,
    schemas: Vec<String>,
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_feeder_check_main(segment: pg_sys::Datum) {
    answer(segment, |CheckRequest { feeders, schemas }: CheckRequest| {
        read_only()?;
        let schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
        let path = guc::search_path_with(&schemas, &guc::initial_search_path()?);
        let describe =
            |query: &str| rolled_back(|| guc::with_search_path(&path, || query::describe(query, &[])));
        let described = feeders.iter().map(|feeder| {
            pgrx::check_for_interrupts!();
            describe(&feeder.query).and_then(|described| variables(feeder, &described))
        });
        Ok((described.collect::<Vec<_>>(), Vec::new()))
    });
}

/// That a query is one SELECT.
///
/// # Errors
/// 42601.
pub fn check_select(query: &str) -> Result<(), UserError> {
    if is_one_select(query)? {
        return Ok(());
    }
    Err(UserError::new(sqlstate::SYNTAX_ERROR, "the query of a feeder must be one SELECT")
        .hint("For example: SELECT id AS customer, region FROM customers."))
}

pub fn writes() -> UserError {
    let message = "the query of a feeder must not change or lock rows";
    UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
}

fn variables(feeder: &Feeder, described: &Described) -> Result<Variables, UserError> {
    if described.writes {
        return Err(writes());
    }
    let columns: Vec<&str> = described.columns.iter().map(|column| column.name.as_str()).collect();
    feeder.variables(&columns)
}

pub fn twice(variable: &str) -> UserError {
    let message = format!("two feeders of the workload have a column for variable \"{variable}\"");
    UserError::invalid(message).hint("Give one of them another prefix, or its column another name.")
}

/// Whether something that a query names is not there, or not for this role.
fn is_missing(error: &UserError) -> bool {
    const MISSING: [&str; 5] = [
        sqlstate::UNDEFINED_TABLE,
        sqlstate::UNDEFINED_FUNCTION,
        sqlstate::UNDEFINED_OBJECT,
        sqlstate::INSUFFICIENT_PRIVILEGE,
        // invalid_schema_name
        "3F000",
    ];
    MISSING.contains(&error.sqlstate.as_str())
}

/// Whether there is no session to ask now: it is not permitted, or would wait for this one, or there is no room for it.
fn is_unavailable(error: &UserError) -> bool {
    const UNAVAILABLE: [&str; 5] = [
        sqlstate::INSUFFICIENT_PRIVILEGE,
        sqlstate::UNDEFINED_OBJECT,
        sqlstate::INVALID_AUTHORIZATION,
        sqlstate::DEADLOCK_DETECTED,
        sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
    ];
    UNAVAILABLE.contains(&error.sqlstate.as_str())
}
