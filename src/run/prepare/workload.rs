//! The lookup of workloads and fixtures by name, with checks of privileges, and the checks of a run's scripts.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_base::words;
use bench_model::shard_keys;
use bench_model::spec::{Driver, FixtureSpec, QueryMode, Role, RunOptions, SCRIPT, ScriptSpec, Share};
use bench_script as script;
use bench_script::{Script, Symbols};
use pgrx::pg_sys;
use serde_json::{Map, Value};

use super::sessions::expanded;
use crate::cluster::citus;
use crate::load::fixture::{self, SHARDS};
use crate::load::prepare;
use crate::run::client::workload::{AUTOMATIC, ROWS, SCALE};
use crate::server::{guc, relations, spi};
use crate::store::{self, Workload};

/// pgbench's names of its built-in scripts (`-b`), and the equivalent workloads.
const PGBENCH_NAMES: [(&str, &str); 3] =
    [("tpcb-like", "tpcb"), ("simple-update", "tpcb_simple_update"), ("select-only", "tpcb_select")];

/// Looks up a workload by its name, or else by the name of pgbench's equivalent script.
///
/// # Errors
/// 42704 with the known names; 42809 for a capture.
pub fn find(name: &str) -> Result<Workload, UserError> {
    let mut workload = store::workload(name)?;
    if workload.is_none()
        && let Some((_, equivalent)) = PGBENCH_NAMES.iter().find(|(script, _)| *script == name)
    {
        workload = store::workload(equivalent)?;
    }
    let Some(workload) = workload else {
        if store::capture(name)?.is_some() {
            let message = format!("\"{name}\" is a capture, not a workload");
            return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message).hint(format!(
                "Its workloads are named \"{name}/1\" and so on: see bench.capture_statements."
            )));
        }
        let error = UserError::new(sqlstate::UNDEFINED_OBJECT, format!("workload \"{name}\" does not exist"));
        citus::check_coordinator(&error.message)?;
        let names = store::workload_names()?;
        let mut list = format!("Known workloads: {}.", names.join(", "));
        if name.contains(char::is_whitespace) || name.ends_with(".sql") {
            list = format!("To run a script without a workload, pass it as script => '...'. {list}");
        }
        let pgbench_names = PGBENCH_NAMES.iter().map(|(script, _)| *script);
        let known = names.iter().map(String::as_str).chain(pgbench_names);
        return Err(error.hint(words::hint(name, known, list)));
    };
    Ok(workload)
}

/// Returns the workloads of a mix with their shares; built-in mixes and captures are expanded.
///
/// # Errors
/// As [`find`]; 22023 for too many workloads or too large weights; 55000 for a capture without statements.
pub fn resolve(mix: &[Share]) -> Result<Vec<(Workload, Share)>, UserError> {
    let workloads = expanded(mix)?.into_iter().map(|(known, share)| {
        let workload = match known {
            Some(known) => known,
            None => find(&share.workload)?,
        };
        Ok((workload, share))
    });
    workloads.collect()
}

/// Returns a workload for a script passed to a run: it belongs to the caller and has no fixture.
pub fn unnamed(script: &str, caller: &Role) -> Workload {
    Workload {
        name: SCRIPT.to_owned(),
        owner: caller.name.clone(),
        owner_oid: caller.oid.into(),
        fixture: None,
        script: script.to_owned(),
        mix: None,
        builtin: false,
        captured: false,
        private: false,
        terminal: None,
    }
}

/// Returns the error for a workload that is NULL.
pub fn missing() -> Result<UserError, UserError> {
    let hint = format!("Known workloads: {}.", store::workload_names()?.join(", "));
    Ok(UserError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, "workload must not be null").hint(hint))
}

/// The result of [`check_scripts`].
pub struct CheckedScripts {
    /// The number of commands of all scripts together.
    pub commands: u32,
    /// For each script, the variables that it reads.
    pub reads: Vec<Reads>,
}

/// The variables of its fixture that a script reads.
pub struct Reads {
    rows: bool,
    scale: bool,
    /// The highest number n of the variables shard_key_n, or 0.
    shard_keys: usize,
}

/// Parses the scripts of a run to check their syntax.
///
/// # Errors
/// The parser's; 0A000 for pipelines with the engine driver.
pub fn check_scripts(scripts: &[ScriptSpec], options: &RunOptions) -> Result<CheckedScripts, UserError> {
    let mut checked = CheckedScripts { commands: 0, reads: Vec::new() };
    for ScriptSpec { name, source, .. } in scripts {
        // Symbols of its own, so that they contain only the variables of this script.
        let mut symbols = Symbols::new();
        let script = script::parse(name, source, &mut symbols)?;
        if options.driver == Driver::Engine {
            script.check_without_connection()?;
        }
        checked.commands += script.commands.len() as u32;
        let reads =
            |variable: &str| symbols.lookup(variable).is_some() && !options.variables.contains_key(variable);
        let last_key = shard_keys::names().zip(1..).filter(|(name, _)| reads(name)).last();
        checked.reads.push(Reads {
            rows: reads(ROWS),
            scale: reads(SCALE),
            shard_keys: last_key.map_or(0, |(_, number)| number),
        });
    }
    Ok(checked)
}

/// Checks that each variable of a run's scripts has a value, and stands only where it may. `fed` are the variables that feeders
/// set.
///
/// # Errors
/// 42703 for a variable that nothing defines; 42601 for one in a place where a parameter or a feeder's value cannot stand.
pub fn check_variables(
    scripts: &[ScriptSpec],
    fixture_names: &[String],
    options: &RunOptions,
    fed: &[String],
) -> Result<(), UserError> {
    let mut symbols = Symbols::new();
    let parsed = scripts
        .iter()
        .map(|script| script::parse(&script.name, &script.source, &mut symbols))
        .collect::<Result<Vec<Script>, _>>()?;
    // A client's variables outlast its transactions: all scripts of a mix can read those that one sets.
    let mut assigned = vec![false; symbols.len()];
    for script in &parsed {
        script.for_each_assigned(&mut |id| assigned[id.index()] = true);
    }
    let given = |variable: &str| options.variables.contains_key(variable);
    let fed: Vec<_> =
        fed.iter().filter(|name| !given(name)).filter_map(|name| symbols.lookup(name)).collect();
    for id in &fed {
        assigned[id.index()] = true;
    }
    for (script, spec) in parsed.iter().zip(scripts) {
        let ScriptSpec { name, fixture, .. } = spec;
        let is_simple = options.query_mode_of(spec) == QueryMode::Simple;
        script.check_fed(&symbols, &|id| fed.contains(&id), is_simple)?;
        if is_simple {
            continue;
        }
        let fixture = fixture.and_then(|index| fixture_names.get(index));
        let is_constant = |id: script::VariableId| {
            let variable = symbols.name(id);
            AUTOMATIC.contains(&variable)
                || (fixture.is_some() && variable == ROWS)
                || (fixture.is_some_and(|name| name == SHARDS) && shard_keys::number_of(variable).is_some())
                || given(variable)
        };
        let is_captured = |variable: &str| {
            parsed.iter().flat_map(Script::capture_prefixes).any(|prefix| variable.starts_with(prefix))
        };
        let undefined = script.undefined_variables(&symbols, &|id| {
            is_constant(id) || assigned[id.index()] || is_captured(symbols.name(id))
        });
        if let Some((line, id)) = undefined {
            return Err(undefined_variable(symbols.name(id), name, line));
        }
        script.check_parameterized(&symbols, &|id| assigned[id.index()], &is_constant)?;
    }
    Ok(())
}

fn undefined_variable(variable: &str, script: &str, line: u32) -> UserError {
    UserError::new(
        sqlstate::UNDEFINED_COLUMN,
        format!("undefined variable \"{variable}\" in script \"{script}\", line {line}"),
    )
    .hint(format!(
        "Set it in the script, or pass variables => '{{\"{variable}\": 1}}'. Every script has {}; with a fixture, {ROWS}; with fixture {SHARDS}, shard_key_1 to shard_key_{}.",
        AUTOMATIC.join(", "),
        shard_keys::SHARD_KEYS
    ))
}

/// Checks that fixtures have rows if a script draws ids from them.
///
/// # Errors
/// 55000 for a fixture without rows.
pub fn check_rows(
    fixtures: &[FixtureSpec],
    scripts: &[ScriptSpec],
    checked: &CheckedScripts,
) -> Result<(), UserError> {
    let empty = scripts.iter().zip(&checked.reads).find_map(|(script, reads)| {
        let fixture = fixtures.get(script.fixture?)?;
        ((reads.rows && fixture.rows == 0) || (reads.scale && fixture.scale == 0)).then_some(fixture)
    });
    let Some(fixture) = empty else { return Ok(()) };
    Err(UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("fixture \"{}\" has no rows, but the workload needs some", fixture.name),
    )
    .hint(format!("For example: SELECT bench.load('{}', 1000000);", fixture.name)))
}

/// Checks that fixtures have as many shards as their scripts need.
///
/// # Errors
/// 55000 for a fixture with fewer shards.
pub fn check_shards(
    fixtures: &[FixtureSpec],
    scripts: &[ScriptSpec],
    checked: &CheckedScripts,
) -> Result<(), UserError> {
    for (script, reads) in scripts.iter().zip(&checked.reads) {
        let fixture = script.fixture.and_then(|index| fixtures.get(index));
        let Some(fixture) = fixture.filter(|fixture| fixture.name == SHARDS) else { continue };
        let (shards, needed) = (fixture.shard_keys.len(), reads.shard_keys);
        if needed > shards {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("workload \"{}\" needs {needed} shards, but fixture \"{SHARDS}\" has {shards}", script.name),
            )
            .hint(format!("Load it with more: SELECT bench.load('{SHARDS}', options => '{{\"shard_count\": {needed}}}');")));
        }
    }
    Ok(())
}

/// Checks a scale among the variables: pgbench's scripts draw ids by it, and with another one than the tables' they miss rows or
/// use only a part of them.
///
/// # Errors
/// 22023 for another scale than that of a built-in workload's fixture.
pub fn check_scale(
    fixtures: &[FixtureSpec],
    scripts: &[ScriptSpec],
    builtin: &[bool],
    given: &Value,
) -> Result<(), UserError> {
    let shown = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
    for (script, _) in scripts.iter().zip(builtin).filter(|(_, builtin)| **builtin) {
        let Some(fixture) = script.fixture.and_then(|index| fixtures.get(index)) else { continue };
        if !script.source.contains(":scale") || shown == fixture.scale.to_string() {
            continue;
        }
        let (name, scale) = (&fixture.name, fixture.scale);
        let error =
            UserError::invalid(format!("scale {shown} is not that of fixture \"{name}\", which is {scale}"));
        let load = shown.parse::<u32>().ok().filter(|&scale| scale > 0).map_or(String::new(), |scale| {
            format!(
                ", or load the tables so: SELECT bench.load('{name}', options => '{{\"scale\": {scale}}}')"
            )
        });
        return Err(error
            .hint(format!("Leave scale out of variables{load}. A workload of your own may use any scale.")));
    }
    Ok(())
}

/// Checks that the tables of all fixtures are visible under the search_path, which all scripts of a run share.
///
/// # Errors
/// 55000 for a table that is hidden by another fixture's.
pub fn check_names(fixtures: &[FixtureSpec], settings: &[(String, String)]) -> Result<(), UserError> {
    let schemas: Vec<&str> = fixtures.iter().filter_map(|fixture| fixture.schema.as_deref()).collect();
    let is_given = settings.iter().any(|(name, _)| name.eq_ignore_ascii_case("search_path"));
    if is_given || schemas.iter().all(|schema| *schema == schemas[0]) && schemas.len() == fixtures.len() {
        return Ok(());
    }
    let path = guc::search_path_with(&schemas, &guc::initial_search_path()?);
    guc::with_search_path(&path, || {
        for fixture in fixtures {
            let tables: Vec<pg_sys::Oid> = fixture.tables.iter().map(|&table| table.into()).collect();
            // Scripts do not name partitions.
            let sql = "SELECT array_agg(oid) FROM pg_class WHERE oid = ANY ($1) AND NOT relispartition";
            let named = spi::fetch::<Vec<pg_sys::Oid>>(sql, &[tables.into()])?.unwrap_or_default();
            let hidden = named.into_iter().filter(|table| !relations::is_visible(*table));
            let hidden = hidden.map(relations::shown_name).min();
            if let Some(hidden) = hidden {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    format!("table {hidden} of fixture \"{}\" is hidden by one of the same name in another fixture's schema", fixture.name),
                )
                .hint("Load the fixtures of a mix into one schema."));
            }
        }
        Ok(())
    })
}

/// Checks that the role has USAGE on a fixture's schema.
///
/// # Errors
/// 42501 if it has not; none for a schema that does not exist.
fn check_usage(schema: &str, fixture: &str) -> Result<(), UserError> {
    let sql = "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace \
               WHERE nspname = $1::text";
    if spi::fetch::<bool>(sql, &[schema.into()])? != Some(false) {
        return Ok(());
    }
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, format!("permission denied for schema {schema}"))
        .detail(format!("Fixture \"{fixture}\" is in it."))
        .hint("GRANT USAGE on the schema and privileges on its tables, or load your own fixture into another schema."))
}

/// Looks up a fixture's tables on this node by their schemas and names. Checks privileges again, because each node has its own.
///
/// # Errors
/// 42501 without USAGE on a schema, 42P01 for a table that does not exist.
pub fn tables_on_node(fixture: &FixtureSpec, names: &[(String, String)]) -> Result<Vec<u32>, UserError> {
    let schemas: BTreeSet<_> = fixture.schema.iter().chain(names.iter().map(|(schema, _)| schema)).collect();
    for schema in schemas {
        check_usage(schema, &fixture.name)?;
    }
    names
        .iter()
        .map(|(schema, name)| {
            store::table_of(schema, name)?.map(pg_sys::Oid::to_u32).ok_or_else(|| {
                let message = format!("table {schema}.{name} does not exist on this node");
                UserError::new(sqlstate::UNDEFINED_TABLE, message)
                    .hint("Load the fixture distributed: options => '{\"distribute\": …}'.")
            })
        })
        .collect()
}

/// The fixture for a workload, or the load that a run needs first.
pub enum FoundFixture {
    Loaded(FixtureSpec),
    Missing(MissingLoad),
}

/// A load that a run makes first.
pub struct MissingLoad {
    pub name: String,
    pub rows: i64,
    /// The options of bench.load.
    options: Map<String, Value>,
    /// The text of the NOTICE.
    reason: String,
}

/// Looks for the fixture of a workload without loading it.
///
/// # Errors
/// 42501 if only another role has the fixture and this role may not use it.
pub fn look_for_fixture(
    name: &str,
    settings: &[(String, String)],
    clients: u32,
) -> Result<FoundFixture, UserError> {
    let loaded = fixture::usable(name)?;
    if let Some(fixture) = &loaded {
        fixture.schema.iter().try_for_each(|schema| check_usage(schema, name))?;
    }
    let missing = if fixture::is_per_client(name) {
        fixture::load_for_clients(name, loaded.as_ref(), clients)?.map(|load| MissingLoad {
            name: name.to_owned(),
            rows: load.rows,
            options: load.options,
            reason: load.reason,
        })
    } else {
        None
    };
    match (missing, loaded) {
        (Some(missing), _) => return Ok(FoundFixture::Missing(missing)),
        (None, Some(fixture)) => return Ok(FoundFixture::Loaded(fixture)),
        (None, None) => {}
    }
    if let Some(fixture) = fixture::made_by_pgbench(name, settings)? {
        return Ok(FoundFixture::Loaded(fixture));
    }
    let rows = fixture::known(name)?.default_rows();
    citus::check_coordinator(&format!("fixture \"{name}\" is not loaded on this node"))?;
    let reason = format!("fixture \"{name}\" is not loaded: loading it with {rows} rows first");
    Ok(FoundFixture::Missing(MissingLoad { name: name.to_owned(), rows, options: Map::new(), reason }))
}

/// Finds the fixture for a workload, or loads it in its small default size.
///
/// # Errors
/// As [`look_for_fixture`], and those of a load.
pub fn find_fixture(
    name: &str,
    settings: &[(String, String)],
    clients: u32,
) -> Result<FixtureSpec, UserError> {
    let missing = match look_for_fixture(name, settings, clients)? {
        FoundFixture::Loaded(fixture) => return Ok(fixture),
        FoundFixture::Missing(missing) => missing,
    };
    pgrx::notice!("{}", missing.reason);
    prepare::load(name, &missing.options, Some(missing.rows), None)?;
    fixture::usable(name)?.ok_or_else(|| {
        UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("fixture \"{name}\" was loaded but is not visible to this transaction"),
        )
        .hint("In a REPEATABLE READ or SERIALIZABLE transaction, load the fixture beforehand.")
    })
}
