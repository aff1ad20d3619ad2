//! The rows of a run's feeders, read in sessions of the roles whose sessions use them, and never in the caller's own: what a query
//! touches may belong to anybody.

use bench_base::error::UserError;
use bench_model::part::KeptRows;
use bench_model::spec::{Role, RunSpec, ScriptSpec};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::rows::{RowLimit, RunFeeders, read_here};
use crate::guard::parameters::own_settings_of;
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::server::background_worker::WorkerKind;
use crate::server::roles::current_role_oid;
use crate::server::transaction::rolled_back;
use crate::store;

/// The kind of worker that reads feeders.
const KIND: WorkerKind = kind(c"pgbench_ext_feeders_main", c"pgbench_ext feeders");

#[derive(Serialize, Deserialize)]
struct FeederRequest {
    scripts: Vec<ScriptSpec>,
    seed: i64,
    rows: RowLimit,
    schemas: Vec<String>,
    settings: Vec<(String, String)>,
    /// Another node's values, for feeders that select them.
    kept: Vec<KeptRows>,
}

#[derive(Serialize, Deserialize)]
struct FeederAnswer {
    /// Rows of each feeder of each script.
    counts: Vec<Vec<Option<u32>>>,
    feeders: u32,
    variables: Vec<String>,
}

/// Reads the rows of a run's feeders. Each feeder then knows how many it has.
///
/// # Errors
/// As [`read_as`].
pub fn read(spec: &mut RunSpec, rows: RowLimit) -> Result<RunFeeders, UserError> {
    read_lent(spec, rows, Vec::new())
}

/// As [`read`], with another node's captured values.
///
/// # Errors
/// As [`read_as`].
pub fn read_lent(spec: &mut RunSpec, rows: RowLimit, kept: Vec<KeptRows>) -> Result<RunFeeders, UserError> {
    let schemas: Vec<&str> = spec.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
    let mut whole = RunFeeders::default();
    for role in spec.roles() {
        // Scripts keep their places, by which their rows are found.
        let is_of =
            |script: &ScriptSpec| script.role.as_ref().map_or(spec.role_oid, |own| own.oid) == role.oid;
        let mut scripts = spec.scripts.clone();
        scripts.iter_mut().filter(|script| !is_of(script)).for_each(|script| script.feeders.clear());
        let settings = own_settings_of(role.oid.into(), &spec.options.settings)?;
        let request = FeederRequest {
            scripts,
            seed: spec.seed,
            rows,
            schemas: schemas.iter().map(|&schema| schema.to_owned()).collect(),
            settings,
            kept: kept.clone(),
        };
        let (fed, scripts) = asked(&role, spec.options.run_as.as_deref(), request)?;
        whole.add_all(fed)?;
        for (script, read) in
            spec.scripts.iter_mut().zip(scripts).filter(|(_, read)| !read.feeders.is_empty())
        {
            script.feeders = read.feeders;
        }
    }
    Ok(whole)
}

/// Reads the rows of a script's feeders in a session of a role.
///
/// # Errors
/// Those of [`read_here`], and of a question to another session.
pub fn read_as(
    role: &Role,
    script: ScriptSpec,
    seed: i64,
    schemas: Vec<String>,
) -> Result<RunFeeders, UserError> {
    let (rows, settings, kept) = (RowLimit::All, Vec::new(), Vec::new());
    let request = FeederRequest { scripts: vec![script], seed, rows, schemas, settings, kept };
    asked(role, None, request).map(|(fed, _)| fed)
}

/// The rows, and the scripts whose feeders know how many they have.
fn asked(
    role: &Role,
    run_as: Option<&str>,
    request: FeederRequest,
) -> Result<(RunFeeders, Vec<ScriptSpec>), UserError> {
    if request.scripts.iter().all(|script| script.feeders.is_empty()) {
        return Ok((RunFeeders::default(), request.scripts));
    }
    let (told, bytes): (FeederAnswer, _) = ask(KIND, role, run_as, &request)?;
    let mut scripts = request.scripts;
    for (script, counts) in scripts.iter_mut().zip(told.counts) {
        script.feeders.iter_mut().zip(counts).for_each(|(feeder, count)| feeder.rows = count);
    }
    Ok((RunFeeders { bytes, feeders: told.feeders, variables: told.variables }, scripts))
}

fn found(question: FeederRequest) -> Result<(FeederAnswer, Vec<u8>), UserError> {
    let FeederRequest { mut scripts, seed, rows, schemas, settings, kept } = question;
    let schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
    let fed = rolled_back(|| {
        if !kept.is_empty() {
            store::lend_captured_rows(current_role_oid(), kept)?;
        }
        read_only()?;
        read_here(&mut scripts, seed, rows, &schemas, &settings)
    })?;
    let counts = scripts.iter().map(|script| script.feeders.iter().map(|feeder| feeder.rows).collect());
    let told = FeederAnswer { counts: counts.collect(), feeders: fed.feeders, variables: fed.variables };
    Ok((told, fed.bytes))
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_feeders_main(segment: pg_sys::Datum) {
    answer(segment, found);
}
