//! What would spoil a run that is to start: as rows of bench.preflight, and as NOTICEs of a run.

use bench_base::error::UserError;
use bench_findings::preflight::{
    FixtureState, LOOK_MS, PlannedRun, Risk, ServerState, Situation, announced, risks,
};
use bench_model::spec::{Before, FixtureSpec, RunArguments, RunSpec};
use pgrx::pg_sys;

use super::run::{dry_run, plan_of};
use crate::error::notice;
use crate::observe::environment::{self, MachineLook, known};
use crate::server::signals;
use crate::store;

/// Looks at the server and the machine for a run with these arguments, which is not made.
///
/// # Errors
/// Those that the run would end with before it starts.
pub fn look(arguments: RunArguments) -> Result<Vec<Risk>, UserError> {
    let dry_run = dry_run(arguments)?;
    let machine = MachineLook::begin();
    let mut server = ServerState::default();
    if dry_run.plan.target.is_none() {
        server = server_state(&dry_run.fixtures, true)?;
        server.fixtures = Some(fixtures(&dry_run.fixtures)?);
    }
    server.statement_timeout_secs = signals::of_statement();
    let machine = machine.end(LOOK_MS);
    server.active = server.active.min(environment::active()?);
    Ok(risks(&Situation { plan: dry_run.plan, server, machine }))
}

/// Tells in a NOTICE each what would spoil a run that does these steps first: what is certain, and before a run of a second or
/// more what others do, which takes a look. Whether the calling statement waits for it matters to statement_timeout.
pub fn tell(spec: &RunSpec, before: &[Before], is_waited_for: bool) -> Result<(), UserError> {
    let plan = PlannedRun { before: before.to_vec(), ..plan_of(&spec.options, &spec.scripts) };
    let look_ms = plan.look_ms();
    let begun = look_ms.map(|_| MachineLook::begin());
    let mut server = ServerState::default();
    if spec.target.is_none() {
        server = server_state(&spec.fixtures, look_ms.is_some())?;
    }
    server.statement_timeout_secs = is_waited_for.then(signals::of_statement).flatten();
    let machine = begun.zip(look_ms).map(|(look, ms)| look.end(ms)).unwrap_or_default();
    if server.active.is_some() {
        server.active = server.active.min(environment::active()?);
    }
    for risk in announced(&Situation { plan, server, machine }) {
        notice(risk.message(), risk.advice);
    }
    Ok(())
}

/// What takes one question each; who is active only at the begin of a look.
fn server_state(fixtures: &[FixtureSpec], is_looked_at: bool) -> Result<ServerState, UserError> {
    // Whoever executes a statement at the begin and at the end of the look is no chance.
    let active = if is_looked_at { environment::active()? } else { None };
    let tables: Vec<pg_sys::Oid> = fixtures.iter().flat_map(tables_of).collect();
    Ok(ServerState {
        active,
        checkpoint: environment::checkpoint()?,
        locks: environment::locks(&tables)?,
        tables: environment::tables(&tables)?,
        holders: environment::holders()?,
        slots: environment::slots()?,
        settings: environment::settings()?,
        runs: environment::runs()?,
        ..ServerState::default()
    })
}

fn tables_of(fixture: &FixtureSpec) -> Vec<pg_sys::Oid> {
    fixture.tables.iter().map(|&table| table.into()).collect()
}

/// The fixtures as they are and as they were loaded.
fn fixtures(fixtures: &[FixtureSpec]) -> Result<Vec<FixtureState>, UserError> {
    let mut found = Vec::new();
    for fixture in fixtures {
        let Some(schema) = &fixture.schema else { continue };
        let grown = known(|| store::growth(&fixture.name, schema, &tables_of(fixture)))?;
        found.extend(grown.map(|growth| FixtureState {
            name: fixture.name.clone(),
            rows: fixture.rows as f64,
            loaded_bytes: Some(growth.loaded_bytes as f64),
            bytes: Some(growth.bytes as f64),
            live: Some(growth.live as f64),
        }));
    }
    Ok(found)
}
