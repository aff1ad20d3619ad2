//! From a workload's name to what a run executes, with every question of ownership answered.

use bench_core::error::{UserError, sqlstate};
use bench_core::script::{self, Script, Symbols, Value};
use bench_core::spec::{FixtureSpec, RunOptions, RunSpec, ScriptSpec};
use pgrx::pg_sys;

use crate::catalog::{self, Workload};
use crate::fixture;

/// Variables that every script has, beside those that its run is given.
const AUTOMATIC: [&str; 3] = ["client_id", "random_seed", "scale"];

/// One more, for scripts of a workload with a fixture.
const ROWS: &str = "rows";

/// A workload by name, if this role may run it.
///
/// # Errors
/// 42704 with the known names; 42501 for a superuser before another role's script.
pub fn find(name: &str) -> Result<Workload, UserError> {
    let Some(workload) = catalog::workload(name)? else {
        if name.contains(['@', ',']) {
            return Err(UserError::new(
                sqlstate::FEATURE_NOT_SUPPORTED,
                "weighted mixes of workloads are not supported yet",
            ));
        }
        let error = UserError::new(sqlstate::UNDEFINED_OBJECT, format!("workload \"{name}\" does not exist"));
        return Err(error.hint(known()?));
    };
    // SAFETY: looks up the current role.
    if !workload.builtin && unsafe { pg_sys::superuser() } && !catalog::is_superuser(&workload.owner)? {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("workload \"{name}\" belongs to role \"{}\", and would run as a superuser", workload.owner),
        )
        .hint(
            "Read its script, then take it over with bench.create_workload, or SET ROLE to its owner before the call.",
        ));
    }
    Ok(workload)
}

/// The error for a workload that is NULL.
pub fn missing() -> Result<UserError, UserError> {
    Ok(UserError::new(sqlstate::NULL_VALUE_NOT_ALLOWED, "workload must not be null").hint(known()?))
}

fn known() -> Result<String, UserError> {
    Ok(format!("Known workloads: {}.", catalog::workload_names()?.join(", ")))
}

/// What a look at the scripts of a run has found.
pub struct Checked {
    /// Commands of all scripts together.
    pub commands: u32,
    /// Whether a script reads the number of the fixture's rows.
    pub reads_rows: bool,
}

/// The scripts of a run, parsed once to see that they are whole.
///
/// # Errors
/// What the parser says; 42703 for a variable that nothing defines.
pub fn check_scripts(
    scripts: &[ScriptSpec],
    options: &RunOptions,
    has_fixture: bool,
) -> Result<Checked, UserError> {
    let mut symbols = Symbols::default();
    let mut commands = 0;
    for ScriptSpec { name, source } in scripts {
        let script: Script = script::parse(name, source, &mut symbols)?;
        let undefined = script.undefined_variables(&symbols, &|id| {
            let variable = symbols.name(id);
            AUTOMATIC.contains(&variable)
                || (has_fixture && variable == ROWS)
                || options.variables.contains_key(variable)
        });
        if let Some((line, id)) = undefined {
            let variable = symbols.name(id);
            return Err(UserError::new(
                sqlstate::UNDEFINED_COLUMN,
                format!("undefined variable \"{variable}\" in script \"{name}\", line {line}"),
            )
            .hint(format!(
                "Set it in the script, or give it: variables => '{{\"{variable}\": 1}}'. Every script has: {}; and {ROWS}, with a fixture.",
                AUTOMATIC.join(", ")
            )));
        }
        commands += script.commands.len() as u32;
    }
    let reads_rows = has_fixture && symbols.lookup(ROWS).is_some() && !options.variables.contains_key(ROWS);
    Ok(Checked { commands, reads_rows })
}

/// A fixture without rows gives a script nothing to draw ids from.
///
/// # Errors
/// 55000, before any worker is started.
pub fn check_rows(fixture: &FixtureSpec, checked: &Checked) -> Result<(), UserError> {
    if fixture.rows > 0 || !checked.reads_rows {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("fixture \"{}\" is loaded with no rows, and the workload needs some", fixture.name),
    )
    .hint(format!("For example: SELECT bench.load('{}', 1000000);", fixture.name)))
}

/// What each client's variables are before its first transaction; the run's own come last, and win.
pub fn initial_values(spec: &RunSpec, client: u32) -> Vec<(String, Value)> {
    let rows = spec.fixture.as_ref().map(|f| f.rows);
    let mut values = vec![
        ("client_id".to_owned(), Value::Integer(i64::from(client))),
        ("random_seed".to_owned(), Value::Integer(spec.seed)),
        (ROWS.to_owned(), rows.map_or(Value::Null, Value::Integer)),
        ("scale".to_owned(), Value::Integer(1)),
    ];
    let given = spec.options.variables.iter();
    values.extend(given.map(|(name, json)| (name.clone(), crate::worker::client::value_of(json))));
    values
}

/// A fixture in a schema that the role may look into.
fn check_usage(fixture: &FixtureSpec) -> Result<(), UserError> {
    let sql = "SELECT pg_catalog.has_schema_privilege($1, 'USAGE')";
    if catalog::fetch::<bool>(sql, &[fixture.schema.as_str().into()])? == Some(true) {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("permission denied for schema {}", fixture.schema),
    )
    .detail(format!("Fixture \"{}\" is in it.", fixture.name))
    .hint("GRANT USAGE on the schema and privileges on its tables, or load a fixture of your own into another schema."))
}

/// The fixture for a workload, loaded first in its small default size if there is none.
///
/// # Errors
/// 42501 when only another role's is there and this role may not use it.
pub fn find_fixture(name: &str) -> Result<FixtureSpec, UserError> {
    if let Some(found) = fixture::usable(name)? {
        check_usage(&found)?;
        return Ok(found);
    }
    let rows = fixture::builtin(name)?.default_rows;
    pgrx::notice!("fixture \"{name}\" is not loaded: loading it with {rows} rows first");
    crate::api::fixtures::load(name, &Default::default(), None, None)?;
    fixture::usable(name)?.ok_or_else(|| {
        UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("fixture \"{name}\" was loaded and cannot be seen"),
        )
        .hint("In REPEATABLE READ and SERIALIZABLE load it in a transaction of its own first.")
    })
}
