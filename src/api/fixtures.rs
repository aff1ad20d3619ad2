//! bench.load and its kin, bench.unload, bench.create_fixture and bench.drop_fixture.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::prelude::*;
use serde_json::{Map, Value, json};

use super::required;
use super::runs::{deadline, status_shown};
use crate::error::OrRaise;
use crate::launch::checks::check_length;
use crate::load::fixture::{self, FixtureStatements, not_yours};
use crate::load::prepare;
use crate::run::prepare::{settings, under_way};
use crate::server::jsonb::Jsonb;
use crate::server::query::is_one_select;
use crate::server::rows::{Rows, rows};
use crate::server::spi::quote_literal;
use crate::server::{relations, roles};
use crate::shm::Work;
use crate::store::{self, Definition};

/// What takes less time needs no report of how it went; bench.fixtures has it all the same.
const WORTH_A_REPORT: Duration = Duration::from_secs(1);

/// The fixture and the options.
fn arguments(
    fixture: Option<String>,
    options: Option<Jsonb>,
) -> Result<(String, Map<String, Value>), UserError> {
    let fixture = required("fixture", fixture)?;
    let Value::Object(options) = required("options", options)?.0 else {
        return Err(UserError::invalid("options must be a JSON object"));
    };
    settings::tell_what_loads_ignore(&options)?;
    Ok((fixture, options))
}

/// Loads a fixture.
#[pg_extern(sql = false, name = "load")]
fn load_sql(fixture: Option<String>, rows: Option<i64>, jobs: Option<i32>, options: Option<Jsonb>) -> i64 {
    (|| {
        let began = Instant::now();
        let (fixture, options) = arguments(fixture, options)?;
        let loaded = prepare::load(&fixture, &options, rows, jobs)?;
        if began.elapsed() >= WORTH_A_REPORT
            && let Some(line) = store::load_line(&loaded.spec.name, &loaded.spec.schema)?
        {
            pgrx::notice!("{line}");
        }
        Ok(loaded.rows)
    })()
    .or_raise()
}

/// Starts a load and returns at once.
#[pg_extern(sql = false)]
fn start_load(fixture: Option<String>, rows: Option<i64>, jobs: Option<i32>, options: Option<Jsonb>) -> i64 {
    arguments(fixture, options)
        .and_then(|(fixture, options)| prepare::start(&fixture, &options, rows, jobs))
        .or_raise()
}

/// Waits for a load.
#[pg_extern(sql = false)]
fn wait_load(load_id: Option<i64>, timeout: Option<f64>) -> String {
    required("load_id", load_id)
        .and_then(|load_id| under_way::wait(Work::Load(load_id), deadline(timeout)?, |_| {}))
        .or_raise()
}

/// Ends a load.
#[pg_extern(sql = false)]
fn stop_load(load_id: Option<i64>) -> bool {
    required("load_id", load_id).and_then(|load_id| under_way::stop(Work::Load(load_id))).or_raise()
}

/// A load's status: what its row says, unless its leader is gone.
#[pg_extern(sql = false)]
fn load_status_of(status: Option<String>, segment: Option<i64>, load_id: Option<i64>) -> Option<String> {
    status_shown(status, segment, load_id.map(Work::Load))
}

/// Drops a fixture's tables.
#[pg_extern(sql = false)]
fn unload(fixture: Option<String>) {
    unload_fixture(fixture).or_raise();
}

fn unload_fixture(fixture: Option<String>) -> Result<(), UserError> {
    let name = required("fixture", fixture)?;
    let role = roles::current_role_oid();
    let mut loaded = store::fixtures(&name)?;
    // One's own first, and of these one whose tables are still there.
    loaded.sort_by_key(|f| (f.owner_oid != role, f.missing > 0));
    let Some(fixture) = loaded.into_iter().next() else {
        crate::load::fixture::known(&name)?;
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("fixture \"{name}\" is not loaded")));
    };
    if !roles::acts_for(fixture.owner_oid) {
        return Err(not_yours(&name, &fixture.owner));
    }
    store::check_unused(&name, &fixture.tables)?;
    // As the caller, who owns the tables or acts for their owner.
    relations::drop_tables(&fixture.tables)?;
    crate::load::fixture::drop_functions(&name, &fixture.schema)?;
    store::delete_fixture(&fixture.schema, &name)
}

/// Judges a fixture's data.
#[pg_extern(sql = false)]
fn check(fixture: Option<String>) -> Rows {
    rows(required("fixture", fixture).and_then(|name| crate::load::fixture::check(&name)).or_raise())
}

/// Defines a fixture.
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

/// Removes a definition.
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

/// The statements of the built-in fixtures, without options.
#[pg_extern(sql = false)]
fn builtin_fixtures() -> Rows {
    rows(fixture::builtin_definitions().or_raise())
}

/// The SELECTs of the built-in fixtures.
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
