//! bench.create_fixture, bench.drop_fixture, and what the built-in fixtures are made of.

use bench_base::error::{UserError, sqlstate};
use pgrx::prelude::*;
use serde_json::json;

use super::required;
use crate::error::OrRaise;
use crate::launch::checks::check_length;
use crate::load::fixture::{self, FixtureStatements};
use crate::server::query::is_one_select;
use crate::server::roles;
use crate::server::rows::{Rows, rows};
use crate::server::spi::quote_literal;
use crate::store::{self, Definition};

/// Defines a fixture. See the COMMENT ON.
#[pg_extern(sql = false)]
fn create_fixture(
    name: Option<String>,
    ddl: Option<String>,
    rows_query: Option<String>,
    after_ddl: Option<String>,
    rows: Option<i64>,
) {
    create(name, ddl, rows_query, after_ddl, rows).or_raise();
}

fn create(
    name: Option<String>,
    ddl: Option<String>,
    rows_query: Option<String>,
    after_ddl: Option<String>,
    rows: Option<i64>,
) -> Result<(), UserError> {
    crate::launch::checks::check_server()?;
    let name = required("name", name)?;
    let ddl = required("ddl", ddl)?;
    let rows_query = required("rows_query", rows_query)?;
    let rows = required("rows", rows)?;
    if name.is_empty() || name.len() > 63 {
        return Err(
            UserError::invalid(format!("invalid fixture name: \"{name}\"")).hint("A name has 1 to 63 bytes.")
        );
    }
    if rows < 0 {
        return Err(UserError::invalid(format!("rows must not be negative, but is {rows}")));
    }
    check_length([ddl.as_str(), rows_query.as_str(), after_ddl.as_deref().unwrap_or_default()])?;
    if fixture::is_builtin(&name) {
        return Err(built_in(&name));
    }
    let old = store::definition(&name)?;
    if let Some(old) = &old {
        check_owner(old)?;
    }
    check_rows_query(&rows_query)?;
    // Whoever wrote it last answers for it.
    let writer = roles::current();
    fixture::try_out(&FixtureStatements {
        name: name.clone(),
        ddl: ddl.clone(),
        rows_query: rows_query.clone(),
        after_ddl: after_ddl.clone(),
    })?;
    let definition = Definition {
        name,
        owner: writer.name,
        owner_oid: writer.oid.into(),
        ddl,
        rows_query,
        after_ddl,
        rows,
    };
    store::put_definition(&definition, old.as_ref().map(|old| old.owner_oid))
}

/// One SELECT of the ids $1 to $2.
///
/// # Errors
/// 42601; the parser's own errors are raised.
fn check_rows_query(query: &str) -> Result<(), UserError> {
    if is_one_select(query)? && query.contains("$1") && query.contains("$2") {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::SYNTAX_ERROR,
        "rows_query must be one SELECT of the rows with the ids $1 to $2",
    )
    .hint("For example: SELECT id, md5(id::text) FROM generate_series($1, $2) AS id."))
}

/// Removes a definition. See the COMMENT ON.
#[pg_extern(sql = false)]
fn drop_fixture(name: Option<String>) {
    remove(name).or_raise();
}

fn remove(name: Option<String>) -> Result<(), UserError> {
    let name = required("name", name)?;
    if fixture::is_builtin(&name) {
        return Err(built_in(&name));
    }
    let Some(old) = store::definition(&name)? else {
        let message = format!("fixture \"{name}\" does not exist");
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message));
    };
    check_owner(&old)?;
    for loaded in store::fixtures(&name)? {
        if loaded.missing == 0 && roles::acts_for(loaded.owner_oid) {
            return Err(UserError::new(
                sqlstate::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("fixture \"{name}\" is loaded in schema \"{}\"", loaded.schema),
            )
            .hint(format!("First: SELECT bench.unload({}).", quote_literal(&name))));
        }
    }
    store::delete_definition(&name, old.owner_oid)
}

fn built_in(name: &str) -> UserError {
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, format!("fixture \"{name}\" is built in"))
        .hint("Choose another name.")
}

fn check_owner(definition: &Definition) -> Result<(), UserError> {
    if roles::may_write_for(definition.owner_oid)? {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("fixture \"{}\" is defined by role \"{}\"", definition.name, definition.owner),
    )
    .hint("Only roles that can SET ROLE to its owner may replace or drop it."))
}

/// The statements of the built-in fixtures, without options. See the COMMENT ON.
#[pg_extern(sql = false)]
fn builtin_fixtures() -> Rows {
    rows(fixture::builtin_definitions().or_raise())
}

/// The SELECTs of the built-in fixtures. See the COMMENT ON.
#[pg_extern(sql = false)]
fn builtin_queries() -> Rows {
    let fills = fixture::builtin_fills().or_raise();
    let mut places = std::collections::BTreeMap::new();
    rows(fills.into_iter().map(move |(name, fill)| {
        let place = places.entry(name).or_insert(0);
        *place += 1;
        json!({
            "fixture": name,
            "place": *place,
            "relation": fill.table,
            "ids": fill.ids,
            "rows_query": fill.query,
        })
    }))
}
