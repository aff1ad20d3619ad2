//! The state that each run of a sweep begins with: what is loaded, emptied, vacuumed, read and written before.

use std::collections::BTreeMap;
use std::ffi::CString;

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{RunArguments, RunOptions, RunSpec};
use bench_core::sweep::{Before, Loaded, SweepOptions, Variant};
use pgrx::pg_sys;
use serde_json::{Map, Value};

use crate::engine::{Book, Session};
use crate::error::internal;
use crate::integration::{citus, distributed};
use crate::launch::handle::LaunchHandle;
use crate::launch::{load, workload};
use crate::server::guard::check_fixture_triggers;
use crate::server::prewarm::{check_may_read, prewarm};
use crate::server::roles::{self, superuser};
use crate::server::transaction::{locked, transaction};
use crate::server::{locks, spi};
use crate::shm::CommandCounters;
use crate::{catalog, fixture};

/// Runs a statement as a session that is sent it: VACUUM, CHECKPOINT and ALTER SYSTEM stand in no transaction.
pub fn execute(session: &mut Session, statement: &str) -> Result<(), UserError> {
    let text = CString::new(statement).map_err(|e| internal(e.to_string()))?;
    let counters = CommandCounters::default();
    session.execute_simple(&text, Book { counters: &counters, plans: None }).map_err(UserError::from)
}

/// A load as a sweep makes it.
pub struct Load {
    pub fixture: String,
    pub rows: Option<i64>,
    pub jobs: Option<i32>,
    pub options: Map<String, Value>,
}

/// The fixtures that a run is to find, by name; each once.
fn fixtures_of(arguments: RunArguments) -> Result<Vec<String>, UserError> {
    let mut names = Vec::new();
    for share in RunOptions::new(arguments)?.mix {
        if let Some(name) = workload::find(&share.workload)?.fixture
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// The load that a variant asks for, over what the fixture was loaded with.
///
/// # Errors
/// 22023 where there is not one fixture to be loaded, and for rows and jobs that are no numbers.
pub fn load_of(options: &SweepOptions, variant: &Variant) -> Result<Load, UserError> {
    let names = fixtures_of(options.run_arguments(variant, options.clients[0], None))?;
    let [name] = &names[..] else {
        return Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            format!(
                "variant \"{}\" loads a fixture, but workload \"{}\" has {}",
                variant.name,
                options.workload,
                names.len()
            ),
        )
        .hint("Load the fixtures before the sweep."));
    };
    let mut load = reload_of(options, name);
    let mut changes = variant.load.clone();
    let mut number = |key: &str| match changes.remove(key) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            UserError::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                format!("{key} of variant \"{}\" must be a whole number, not {value}", variant.name),
            )
        }),
    };
    let rows = number("rows")?;
    let jobs = number("jobs")?;
    // Out of range for certain where it does not fit.
    load.jobs = jobs.map(|jobs| i32::try_from(jobs).unwrap_or(-1));
    // It says how many rows there are, as rows does.
    if rows.is_some() || changes.contains_key("scale") {
        load.options.remove("scale");
        load.rows = rows;
    }
    load.options.extend(changes);
    Ok(load)
}

/// How the fixtures of a sweep's runs are loaded at this moment; those that are not are left out.
pub fn loaded(options: &SweepOptions) -> Result<BTreeMap<String, Loaded>, UserError> {
    let mut all = BTreeMap::new();
    for name in fixtures_of(options.run_arguments(&options.variants[0], options.clients[0], None))? {
        let Some(usable) = fixture::usable(&name)? else { continue };
        let of_schema = |f: &catalog::Fixture| Some(&f.schema) == usable.schema.as_ref();
        if let Some(loaded) = catalog::fixtures(&name)?.into_iter().find(of_schema) {
            let mut options = match loaded.options {
                Value::Object(options) => options,
                _ => Map::new(),
            };
            options.insert("schema".to_owned(), Value::String(loaded.schema));
            all.insert(name, Loaded { rows: loaded.rows, options });
        }
    }
    Ok(all)
}

/// A fixture's load as it was at the sweep's begin; with its defaults where it was not loaded.
fn reload_of(options: &SweepOptions, name: &str) -> Load {
    let loaded = options.loaded.get(name);
    Load {
        fixture: name.to_owned(),
        rows: loaded.map(|loaded| loaded.rows),
        jobs: None,
        options: loaded.map(|loaded| loaded.options.clone()).unwrap_or_default(),
    }
}

/// The steps before a run.
pub struct State {
    pub session: Session,
    options: SweepOptions,
    /// The round and the variant whose fixture is loaded.
    loaded: Option<(u32, String)>,
}

impl State {
    /// Nothing is loaded yet; `session` is the leader's.
    pub fn new(session: Session, options: &SweepOptions) -> Self {
        Self { session, options: options.clone(), loaded: None }
    }

    /// Loads what the variant, or the sweep, wants loaded. `wait` waits for a load's end.
    pub fn load(
        &mut self,
        variant: &Variant,
        round: u32,
        wait: &dyn Fn(&LaunchHandle) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let anew = self.options.before.contains(&Before::Reload);
        // Once in each round: all rounds begin alike.
        let place = (round, variant.name.clone());
        let options = std::panic::AssertUnwindSafe(&self.options);
        let loads = if !variant.load.is_empty() && (anew || self.loaded.as_ref() != Some(&place)) {
            vec![transaction(|| load_of(&options, variant))?]
        } else if anew {
            let arguments = self.options.run_arguments(variant, self.options.clients[0], None);
            let names = transaction(|| fixtures_of(arguments.clone()))?;
            names.iter().map(|name| reload_of(&options, name)).collect()
        } else {
            return Ok(());
        };
        self.loaded = None;
        for load in &loads {
            let launched = transaction(|| {
                let (launched, _) = load::begin(&load.fixture, &load.options, load.rows, load.jobs)?;
                launched.segment.pin();
                Ok(launched)
            })?;
            let result = wait(&launched);
            launched.leave();
            result?;
        }
        self.loaded = Some(place);
        Ok(())
    }

    /// Does the rest, on the very tables of the run.
    pub fn prepare(&mut self, run: &RunSpec) -> Result<(), UserError> {
        let tables: Vec<pg_sys::Oid> = run.tables().map(pg_sys::Oid::from).collect();
        for step in self.options.before.clone() {
            match step {
                Before::Reload => {}
                Before::Truncate => Self::truncate(run)?,
                Before::Vacuum if !tables.is_empty() => {
                    let names = transaction(|| names(&tables))?.join(", ");
                    execute(&mut self.session, &format!("VACUUM (ANALYZE) {names}"))?;
                }
                Before::Vacuum => {}
                Before::Prewarm => Self::prewarm(&tables)?,
                Before::Checkpoint if run.cluster.is_some() => transaction(citus::checkpoint)?,
                Before::Checkpoint => execute(&mut self.session, "CHECKPOINT")?,
            }
        }
        Ok(())
    }

    /// Empties the fixtures that runs fill: those that were loaded without rows.
    fn truncate(run: &RunSpec) -> Result<(), UserError> {
        check_empty_fixtures(run)?;
        for fixture in &run.fixtures {
            let tables: Vec<pg_sys::Oid> = fixture.tables.iter().map(|&table| table.into()).collect();
            let tables = std::panic::AssertUnwindSafe(&tables);
            transaction(|| {
                // Locked first, so that no trigger comes in between.
                tables.iter().for_each(|&table| locks::lock(table, pg_sys::AccessExclusiveLock));
                check_fixture_triggers(&tables)?;
                spi::run(&format!("TRUNCATE {}", names(&tables)?.join(", ")), &[]).map(drop)
            })?;
        }
        Ok(())
    }

    /// In a transaction for each table, without a snapshot that would hold back the horizon.
    fn prewarm(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
        let (local, distributed) =
            transaction(|| Ok((distributed::local(tables)?, distributed::distributed(tables)?)))?;
        for table in distributed {
            transaction(|| distributed::prewarm_shards(table))?;
        }
        for table in local {
            locked(&[], pg_sys::NoLock as i32, || prewarm(table))?;
        }
        Ok(())
    }
}

/// Qualified and quoted names of tables.
fn names(tables: &[pg_sys::Oid]) -> Result<Vec<String>, UserError> {
    let sql = "SELECT pg_catalog.array_agg(pg_catalog.format('%I.%I', n.nspname, c.relname) ORDER BY c.oid) \
               FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
               WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1)";
    Ok(spi::fetch::<Vec<String>>(sql, &[tables.to_vec().into()])?.unwrap_or_default())
}

/// What the calling role needs for the steps before each run, and what a run's fixtures must be like, found out before any.
///
/// # Errors
/// 42501 and 55000.
pub fn check_run(options: &SweepOptions, run: &RunSpec) -> Result<(), UserError> {
    if options.before.contains(&Before::Vacuum) {
        let tables: Vec<pg_sys::Oid> = run.tables().map(pg_sys::Oid::from).collect();
        check_may_vacuum(&tables)?;
    }
    if options.before.contains(&Before::Prewarm) {
        run.tables().try_for_each(|table| check_may_read(table.into()))?;
    }
    if options.before.contains(&Before::Truncate) { check_empty_fixtures(run) } else { Ok(()) }
}

/// Privileges beside ownership that a VACUUM asks for (vacuum_is_permitted_for_relation in commands/vacuum.c): what is
/// wanting there is only a WARNING.
#[cfg(any(feature = "pg15", feature = "pg16"))]
const MAY_MAINTAIN: &str = "false";
#[cfg(any(feature = "pg17", feature = "pg18"))]
const MAY_MAINTAIN: &str = "pg_catalog.has_table_privilege(c.oid, 'MAINTAIN')";

fn check_may_vacuum(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let sql = format!(
        "SELECT c.oid::pg_catalog.regclass::pg_catalog.text FROM pg_catalog.pg_class c \
         WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1) AND NOT (pg_catalog.pg_has_role(c.relowner, 'USAGE') OR {MAY_MAINTAIN} \
             OR (SELECT pg_catalog.pg_has_role(d.datdba, 'USAGE') FROM pg_catalog.pg_database d \
                 WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())) \
         ORDER BY c.oid LIMIT 1"
    );
    match spi::fetch::<String>(&sql, &[tables.to_vec().into()])? {
        None => Ok(()),
        Some(table) => Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to vacuum {table}"),
        )
        .hint("Load your own fixture into another schema: options => '{\"schema\": \"…\"}'.")),
    }
}

/// TRUNCATE is for fixtures that runs fill: those that were loaded without rows.
fn check_empty_fixtures(run: &RunSpec) -> Result<(), UserError> {
    match run.fixtures.iter().find(|fixture| fixture.rows > 0 || fixture.schema.is_none()) {
        None => Ok(()),
        Some(fixture) => Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("fixture \"{}\" was loaded with rows, which TRUNCATE would remove", fixture.name),
        )
        .hint("Use before => 'reload'.")),
    }
}

/// What the steps before each run need of the role and the server, found out before any.
///
/// # Errors
/// 42501 and 55000.
pub fn check(options: &SweepOptions) -> Result<(), UserError> {
    if options.before.contains(&Before::Checkpoint) {
        check_may_checkpoint()?;
    }
    Ok(())
}

fn check_may_checkpoint() -> Result<(), UserError> {
    if superuser() || roles::acts_for("pg_checkpoint")? {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        "before => 'checkpoint' is for superusers and members of pg_checkpoint",
    ))
}
