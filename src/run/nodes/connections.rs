//! Whether the nodes of a Citus cluster have the connections that a run's clients need to each other.

use bench_base::error::UserError;
use bench_model::cluster::{Demand, FanOut, Limits, NodeSpec, check_connections, check_pool};
use bench_model::spec::{FixtureSpec, RunOptions, ScriptSpec};
use bench_script as script;
use bench_script::{Symbols, Variables};
use pgrx::{Json, pg_sys};
use serde::{Deserialize, Serialize};

use crate::cluster::distributed::Placed;
use crate::driver::parameters::analyse;
use crate::error::warn;
use crate::guard::parameters::own_settings_of;
use crate::launch::checks::{has_blocks, lock_of};
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::run::client::variables::{fixture_values, values_of_one};
use crate::server::background_worker::WorkerKind;
use crate::server::process::random_seed;
use crate::server::{guc, roles, spi};

/// A statement that EXPLAIN takes begins with one of these words; so does a call of a procedure, which it does not take.
const EXAMINED: [&str; 8] = ["select", "insert", "update", "delete", "merge", "with", "values", "call"];

/// Compares what the run needs with what the nodes have. Plans are looked at only where they decide: where the pool has room
/// for one connection of each client, but not for as many as its session would keep for any statement.
///
/// # Errors
/// 53300 with the numbers.
pub fn check(
    nodes: &[(NodeSpec, Limits)],
    placed: &Placed,
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
) -> Result<(), UserError> {
    // Reference tables are read where the client is.
    if placed.are_all_copied && lock_of(scripts) == pg_sys::AccessShareLock.cast_signed() {
        return Ok(());
    }
    let holds = has_blocks(scripts);
    check_connections(nodes, &Demand { holds, tasks: 1, script: None })?;
    let most = if placed.most_shards > 0 { placed.most_shards } else { u32::MAX };
    let any = Demand { tasks: most, ..Demand::most() };
    if check_connections(nodes, &any).is_ok() {
        return Ok(());
    }
    check_connections(nodes, &planned(options, scripts, fixtures, placed.has_copies).unwrap_or(any))
}

/// As [`check`], for a run on this node whose tables are not known, or none of which Citus has: its statements may have to
/// do with others.
///
/// # Errors
/// 53300 with the numbers.
pub fn check_unknown(
    node: &NodeSpec,
    limits: &Limits,
    nodes: usize,
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
) -> Result<(), UserError> {
    let check = |demand: &Demand| check_pool(node, limits, nodes, demand);
    let Err(error) = check(&Demand::most()) else { return Ok(()) };
    match planned(options, scripts, fixtures, false) {
        Some(demand) if demand == Demand::most() => {
            let message = format!("{}, if functions in the scripts use distributed tables", error.message);
            let hint = [error.detail, error.hint].into_iter().flatten().collect::<Vec<_>>().join(" ");
            warn(message, hint);
            Ok(())
        }
        Some(demand) if demand.tasks > 0 => check(&demand),
        _ => Ok(()),
    }
}

/// What Citus plans for the scripts' statements; the most where they call functions, whose statements are not seen, and `None`
/// where it does not say.
fn planned(
    options: &RunOptions,
    scripts: &[ScriptSpec],
    fixtures: &[FixtureSpec],
    has_copies: bool,
) -> Option<Demand> {
    let mut demand = Demand { holds: has_blocks(scripts), ..Demand::default() };
    for script in scripts {
        let fixture = script.fixture.and_then(|index| fixtures.get(index));
        let statements = statements_of(script, fixture, options).ok()?;
        for planned in explained(script, statements, fixtures, options, has_copies).ok()? {
            let Some(planned) = planned else { return Some(Demand::most()) };
            demand.holds |= planned.steps > 1;
            if planned.tasks > demand.tasks {
                demand.tasks = planned.tasks;
                demand.script = Some(script.name.clone());
            }
        }
    }
    Some(demand)
}

/// What a client's first transaction sends, as far as it is examined.
fn statements_of(
    spec: &ScriptSpec,
    fixture: Option<&FixtureSpec>,
    options: &RunOptions,
) -> Result<Vec<String>, UserError> {
    let mut symbols = Symbols::new();
    let script = script::parse(&spec.name, &spec.source, &mut symbols)?;
    let seed = options.seed.unwrap_or_else(random_seed);
    let own = fixture_values(fixture, 0);
    let (seeds, values) = values_of_one(&options.variables, seed, options.clients, 0, own);
    let mut variables = Variables::new(symbols.len());
    for (name, value) in values {
        variables.set(symbols.intern(&name), value);
    }
    let mut statements = Vec::new();
    let mut keep = |line: script::PreviewLine| {
        if EXAMINED.contains(&first_word(&line.output).as_str()) {
            statements.push(line.output);
        }
    };
    let mut pulse = || {
        pgrx::check_for_interrupts!();
    };
    script::preview(&script, 0, variables, seeds.functions, 1, &mut |_, _| true, &mut keep, &mut pulse)?;
    Ok(statements)
}

/// The kind of worker that plans statements, for planning them calls functions.
const KIND: WorkerKind = kind(c"pgbench_ext_fan_out_main", c"pgbench_ext fan-out");

#[derive(Serialize, Deserialize)]
struct FanOutRequest {
    statements: Vec<String>,
    schemas: Vec<String>,
    settings: Vec<(String, String)>,
    has_copies: bool,
}

/// How Citus spreads each of a script's statements, as a session of the script's role plans it; `None` for a call of functions that
/// may do anything.
fn explained(
    script: &ScriptSpec,
    statements: Vec<String>,
    fixtures: &[FixtureSpec],
    options: &RunOptions,
    has_copies: bool,
) -> Result<Vec<Option<FanOut>>, UserError> {
    let role = script.role.clone().unwrap_or_else(roles::current);
    let request = FanOutRequest {
        statements,
        schemas: fixtures.iter().filter_map(|fixture| fixture.schema.clone()).collect(),
        settings: own_settings_of(role.oid.into(), &options.settings)?,
        has_copies,
    };
    ask(KIND, &role, options.run_as.as_deref(), &request).map(|(told, _)| told)
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_fan_out_main(segment: pg_sys::Datum) {
    answer(segment, |request: FanOutRequest| {
        read_only()?;
        let schemas: Vec<&str> = request.schemas.iter().map(String::as_str).collect();
        let path = guc::search_path_with(&schemas, &guc::current("search_path").unwrap_or_default());
        guc::set_as_session("search_path", &path)?;
        for (name, value) in own_settings_of(roles::current_role_oid(), &request.settings)? {
            guc::set_as_session(&name, &value)?;
        }
        guc::set_as_session("citus.explain_all_tasks", "on")?;
        guc::set_as_session("citus.explain_distributed_queries", "on")?;
        let statements = request.statements.iter();
        let plans = statements
            .map(|statement| explain(statement, request.has_copies))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((plans, Vec::new()))
    });
}

fn explain(statement: &str, has_copies: bool) -> Result<Option<FanOut>, UserError> {
    if first_word(statement) == "call" || analyse(statement)?.calls_others {
        return Ok(None);
    }
    let plan = spi::in_session::call::<Json>(&format!("EXPLAIN (COSTS off, FORMAT json) {statement}"), &[])?;
    let plan = plan.map_or(FanOut::default(), |plan| FanOut::of_plan(&plan.0, has_copies));
    let has_rows = first_word(statement) == "insert" && !statement.to_ascii_lowercase().contains("select");
    Ok(Some(if has_rows { plan.one_by_one() } else { plan }))
}

fn first_word(statement: &str) -> String {
    let word = statement.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
    word.unwrap_or_default().to_ascii_lowercase()
}
