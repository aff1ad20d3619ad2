//! The rows of a run's feeders, read by those whose sessions use them: in this session by its own role, and in a session of its
//! own by each other one.

use bench_base::error::UserError;
use bench_model::spec::{Role, RunSpec, ScriptSpec};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::rows::{RowLimit, RunFeeders, read_here};
use crate::guard::parameters::own_settings_of;
use crate::launch::role_session::{answer, ask, kind};
use crate::server::background_worker::WorkerKind;
use crate::server::roles;

/// The kind of worker that reads feeders.
const KIND: WorkerKind = kind(c"pgbench_ext_feeders_main", c"pgbench_ext feeders");

#[derive(Serialize, Deserialize)]
struct FeederRequest {
    scripts: Vec<ScriptSpec>,
    seed: i64,
    rows: RowLimit,
    schemas: Vec<String>,
    settings: Vec<(String, String)>,
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
    let schemas: Vec<&str> = spec.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
    let mut whole = RunFeeders::default();
    for role in spec.roles() {
        // Scripts keep their places, by which their rows are found.
        let is_of =
            |script: &ScriptSpec| script.role.as_ref().map_or(spec.role_oid, |own| own.oid) == role.oid;
        let mut scripts = spec.scripts.clone();
        scripts.iter_mut().filter(|script| !is_of(script)).for_each(|script| script.feeders.clear());
        let settings = own_settings_of(role.oid.into(), &spec.options.settings)?;
        let fed = read_as(&role, &mut scripts, spec.seed, rows, &schemas, &settings)?;
        whole.add_all(fed)?;
        for (script, read) in
            spec.scripts.iter_mut().zip(scripts).filter(|(_, read)| !read.feeders.is_empty())
        {
            script.feeders = read.feeders;
        }
    }
    Ok(whole)
}

/// Reads the rows of scripts' feeders as a role: where that is another one than this session's, in a session of that role.
///
/// # Errors
/// Those of [`read_here`], and of a question to another session.
pub fn read_as(
    role: &Role,
    scripts: &mut [ScriptSpec],
    seed: i64,
    rows: RowLimit,
    schemas: &[&str],
    settings: &[(String, String)],
) -> Result<RunFeeders, UserError> {
    let has_none = scripts.iter().all(|script| script.feeders.is_empty());
    if has_none || role.oid == roles::current().oid && !roles::is_switched() {
        return read_here(scripts, seed, rows, schemas, settings);
    }
    let question = FeederRequest {
        scripts: scripts.to_vec(),
        seed,
        rows,
        schemas: schemas.iter().map(|&schema| schema.to_owned()).collect(),
        settings: settings.to_vec(),
    };
    let (told, bytes): (FeederAnswer, _) = ask(KIND, role, &question)?;
    for (script, counts) in scripts.iter_mut().zip(told.counts) {
        script.feeders.iter_mut().zip(counts).for_each(|(feeder, count)| feeder.rows = count);
    }
    Ok(RunFeeders { bytes, feeders: told.feeders, variables: told.variables })
}

fn found(question: FeederRequest) -> Result<(FeederAnswer, Vec<u8>), UserError> {
    let FeederRequest { mut scripts, seed, rows, schemas, settings } = question;
    let schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
    let fed = read_here(&mut scripts, seed, rows, &schemas, &settings)?;
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
