//! bench.load and its kin, and bench.unload.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::prelude::*;
use serde_json::{Map, Value};

use super::required;
use super::runs::{deadline, status_shown};
use crate::error::OrRaise;
use crate::load::fixture::not_yours;
use crate::load::prepare;
use crate::run::prepare::{settings, under_way};
use crate::server::jsonb::Jsonb;
use crate::server::rows::{Rows, rows};
use crate::server::{relations, roles};
use crate::shm::Work;
use crate::store;

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

/// Loads a fixture. See the COMMENT ON.
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

/// Starts a load and returns at once. See the COMMENT ON.
#[pg_extern(sql = false)]
fn start_load(fixture: Option<String>, rows: Option<i64>, jobs: Option<i32>, options: Option<Jsonb>) -> i64 {
    arguments(fixture, options)
        .and_then(|(fixture, options)| prepare::start(&fixture, &options, rows, jobs))
        .or_raise()
}

/// Waits for a load. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait_load(load_id: Option<i64>, timeout: Option<f64>) -> String {
    required("load_id", load_id)
        .and_then(|load_id| under_way::wait(Work::Load(load_id), deadline(timeout)?, |_| {}))
        .or_raise()
}

/// Ends a load. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop_load(load_id: Option<i64>) -> bool {
    required("load_id", load_id).and_then(|load_id| under_way::stop(Work::Load(load_id))).or_raise()
}

/// A load's status: what its row says, unless its leader is gone. See the COMMENT ON.
#[pg_extern(sql = false)]
fn load_status_of(status: Option<String>, segment: Option<i64>, load_id: Option<i64>) -> Option<String> {
    status_shown(status, segment, load_id.map(Work::Load))
}

/// Drops a fixture's tables. See the COMMENT ON.
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

/// Judges a fixture's data. See the COMMENT ON.
#[pg_extern(sql = false)]
fn check(fixture: Option<String>) -> Rows {
    rows(required("fixture", fixture).and_then(|name| crate::load::fixture::check(&name)).or_raise())
}
