//! What can be found wrong with a feeder when it is defined.

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::Feeder;

use crate::error::warn;
use crate::guard::switch_role::as_run_role;
use crate::load::fixture;
use crate::server::guc;
use crate::server::parser::is_one_select;
use crate::server::query::{self, Described};
use crate::server::roles::current_role_oid;
use crate::server::transaction::rolled_back;
use crate::store::Workload;

/// Everything that can be found wrong with a feeder before there is a run. `others` are the workload's feeders of other
/// prefixes.
///
/// # Errors
/// 42601 for what is not one SELECT; 0A000 for one that writes; 22023 for columns that cannot be variables; the server's.
pub fn check_new(workload: &Workload, feeder: &Feeder, others: &[Feeder]) -> Result<(), UserError> {
    check_select(&feeder.query)?;
    let schema = match &workload.fixture {
        Some(name) => fixture::usable(name)?.and_then(|fixture| fixture.schema),
        None => None,
    };
    let schemas: Vec<&str> = schema.as_deref().into_iter().collect();
    let path = guc::search_path_with(&schemas, &guc::initial_search_path()?);
    let describe = |feeder: &Feeder| {
        rolled_back(|| {
            guc::with_search_path(&path, || {
                as_run_role(current_role_oid(), || query::describe(&feeder.query, &[]))
            })
        })
    };
    let described = match describe(feeder) {
        Ok(described) => described,
        // What it names may be on another server, or not be loaded yet.
        Err(error) if is_missing(&error) => {
            warn(
                format!("the feeder's query cannot be checked here: {}", error.message),
                "It will be checked when a run starts.",
            );
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let variables = variables(feeder, &described)?;
    for other in others {
        // One that has become wrong since says so when a run starts.
        let Ok(theirs) = describe(other).and_then(|described| self::variables(other, &described)) else {
            continue;
        };
        let theirs: HashSet<&String> = theirs.iter().flatten().collect();
        if let Some(both) = variables.iter().flatten().find(|name| theirs.contains(name)) {
            return Err(twice(both));
        }
    }
    Ok(())
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

fn variables(feeder: &Feeder, described: &Described) -> Result<Vec<Option<String>>, UserError> {
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
