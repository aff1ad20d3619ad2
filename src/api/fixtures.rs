//! bench.load and bench.unload.

use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::FixtureSpec;
use pgrx::pg_sys;
use pgrx::prelude::*;
use serde_json::Value;

use super::required;
use crate::catalog;
use crate::error::OrRaise;
use crate::fixture::not_yours;
use crate::launch::load::load;
use crate::launch::settings;
use crate::server::jsonb::Jsonb;
use crate::server::spi::quote_literal;
use crate::server::{relations, roles};

/// What takes less time needs no report of how it went; bench.fixtures has it all the same.
const WORTH_A_REPORT: Duration = Duration::from_secs(1);

/// Loads a fixture. See the COMMENT ON.
#[pg_extern(sql = false, name = "load")]
fn load_sql(fixture: Option<String>, rows: Option<i64>, jobs: Option<i32>, options: Option<Jsonb>) -> i64 {
    (|| {
        let fixture = required("fixture", fixture)?;
        let Value::Object(options) = required("options", options)?.0 else {
            return Err(UserError::new(sqlstate::INVALID_PARAMETER_VALUE, "options must be a JSON object"));
        };
        let began = Instant::now();
        settings::tell_what_loads_ignore(&options)?;
        let loaded = load(&fixture, &options, rows, jobs)?;
        if began.elapsed() >= WORTH_A_REPORT
            && let Some(line) = catalog::load_line(&loaded.spec.name, &loaded.spec.schema)?
        {
            pgrx::notice!("{line}");
        }
        Ok(loaded.rows)
    })()
    .or_raise()
}

/// Drops a fixture's tables. See the COMMENT ON.
#[pg_extern(sql = false)]
fn unload(fixture: Option<String>) {
    unload_fixture(fixture).or_raise();
}

fn unload_fixture(fixture: Option<String>) -> Result<(), UserError> {
    let name = required("fixture", fixture)?;
    let role = roles::current_role_oid();
    let mut loaded = catalog::fixtures(&name)?;
    // One's own first, and of these one whose tables are still there.
    loaded.sort_by_key(|f| (f.owner_oid != role, f.missing > 0));
    let Some(fixture) = loaded.into_iter().next() else {
        crate::fixture::known(&name)?;
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("fixture \"{name}\" is not loaded")));
    };
    if !roles::acts_for(fixture.owner_oid) {
        return Err(not_yours(&name, &fixture.owner));
    }
    catalog::check_unused(&name, &fixture.tables)?;
    // As the caller, who owns the tables or acts for their owner.
    relations::drop_tables(&fixture.tables)?;
    crate::fixture::drop_functions(&name, &fixture.schema)?;
    catalog::delete_fixture(&fixture.schema, &name)
}

/// The loaded fixture that a run of the caller would use, for bench.check. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn usable_fixture(
    fixture: Option<String>,
) -> TableIterator<
    'static,
    (name!(schema, Option<String>), name!(rows, i64), name!(scale, i64), name!(relations, Vec<pg_sys::Oid>)),
> {
    let found = required("fixture", fixture).and_then(|name| usable(&name)).or_raise();
    let relations = found.tables.iter().map(|&table| table.into()).collect();
    TableIterator::once((found.schema, found.rows, found.scale, relations))
}

fn usable(name: &str) -> Result<FixtureSpec, UserError> {
    if let Some(found) = crate::fixture::usable(name)? {
        return Ok(found);
    }
    if let Some(found) = crate::fixture::made_by_pgbench(name, &[])? {
        return Ok(found);
    }
    crate::fixture::known(name)?;
    let message = format!("fixture \"{name}\" is not loaded");
    Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
        .hint(format!("For example: SELECT bench.load({});", quote_literal(name))))
}
