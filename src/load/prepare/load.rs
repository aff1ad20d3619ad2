//! Loads: from arguments to a started leader.

use bench_base::error::UserError;
use bench_model::spec::Role;
use bench_questions::sweep;
use pgrx::pg_sys;
use serde_json::{Map, Value};

use super::load_progress::LoadReporter;
use crate::error::{notice, warn};
use crate::guard::client_role;
use crate::guard::session_role::session_of;
use crate::guard::switch_role::as_session_of;
use crate::launch::checks::{check_own_locks, check_server, check_session_of};
use crate::launch::handle::{LaunchHandle, releasable_or_warn};
use crate::launch::role_limit;
use crate::load::fixture::{self, Known, LoadSpec};
use crate::load::workers::leader;
use crate::server::horizon::can_release;
use crate::server::process::{has_client, my_pid};
use crate::server::transaction::is_in_block;
use crate::server::{background_worker, relations, roles};
use crate::shm::{Segment, SegmentShape};
use crate::store;

/// More jobs than this would only wait for each other in the same table.
const MAX_JOBS: i32 = 256;

/// A fixture that has been loaded.
pub struct LoadedFixture {
    pub spec: LoadSpec,
    /// Rows written.
    pub rows: i64,
}

/// Has workers begin to load a fixture. They end with the caller, unless it leaves them.
pub fn begin(
    fixture: &str,
    options: &Map<String, Value>,
    rows: Option<i64>,
    jobs: Option<i32>,
) -> Result<(LaunchHandle, LoadSpec), UserError> {
    check_server()?;
    let role = loader(fixture)?;
    check_session_of(&role)?;
    let spec = as_session_of(&role, || LoadSpec::new(fixture, rows, 1, options))?;
    spec.check_cluster()?;
    let replaced = spec.replaced()?;
    as_session_of(&role, || spec.check_privileges())?;
    let spec = LoadSpec { jobs: choose_jobs(jobs, spec.counted_ids())?, ..spec };
    if let Some(existing) = replaced {
        store::check_unused(&spec.name, &existing.tables)?;
        check_own_locks(
            &relations::with_partitions(&existing.tables)?,
            pg_sys::AccessExclusiveLock as i32,
            "the load",
            "Commit or roll back before the call.",
        )?;
        tell_of_no_rollback(&spec, &existing)?;
        if rows == Some(0) && existing.rows > 0 && has_client() {
            notice(
                format!("the load empties fixture \"{fixture}\", which has {} rows", existing.rows),
                "Leave rows out to load its default size.",
            );
        }
    }
    role_limit::check(u64::from(spec.jobs) + 1)?;
    background_worker::check_slots(u64::from(spec.jobs) + 1, leader::KIND.noun)?;
    let json = serde_json::to_string(&spec).unwrap_or_default();
    let shape = SegmentShape { slots: spec.jobs, scripts: 1, commands: 1, ..SegmentShape::LEADER };
    let segment = Segment::create(shape, &json, &[]);
    let pid = my_pid();
    segment.header().caller_pid.store(pid, std::sync::atomic::Ordering::Relaxed);
    segment.header().interruptible.store(1, std::sync::atomic::Ordering::Relaxed);
    let launched = LaunchHandle::start(segment, leader::KIND, spec.database_oid, spec.role_oid, spec.jobs)?;
    launched.tie();
    Ok((launched, spec))
}

/// The role whose sessions load a fixture, and that will own its tables.
///
/// # Errors
/// Those of [`session_of`].
fn loader(fixture: &str) -> Result<Role, UserError> {
    let caller = roles::current();
    // A run for which a superuser has called, and which needs its fixture first.
    if client_role::is_own(&caller.name) {
        return client_role::keeper_of(&caller);
    }
    let writer = match fixture::known(fixture)? {
        Known::BuiltIn(_) => caller.clone(),
        Known::Custom(definition) => roles::existing(definition.owner_oid, &definition.owner)?,
    };
    client_role::keeper_of(&session_of(&caller, &writer, None)?)
}

/// Says that rows will be gone, whatever becomes of the transaction that the load is called in.
fn tell_of_no_rollback(spec: &LoadSpec, existing: &store::Fixture) -> Result<(), UserError> {
    if !is_in_block() || !has_client() {
        return Ok(());
    }
    // Those of a fixture that was loaded empty are its runs'.
    let rows = match existing.rows {
        0 => store::growth(&spec.name, &spec.schema, &relations::with_partitions(&existing.tables)?)?
            .map_or(0, |growth| growth.live),
        loaded => loaded,
    };
    if rows > 0 {
        notice(
            format!(
                "the load replaces the {rows} rows of fixture \"{}\" even if this transaction is rolled back",
                spec.name
            ),
            "Its workers commit by themselves.",
        );
    }
    Ok(())
}

/// Loads a fixture with workers and waits for them.
pub fn load(
    fixture: &str,
    options: &Map<String, Value>,
    rows: Option<i64>,
    jobs: Option<i32>,
) -> Result<LoadedFixture, UserError> {
    let (launched, spec) = begin(fixture, options, rows, jobs)?;
    let hint = "Until it returns, VACUUM cannot remove rows that other sessions delete. Call bench.load as a separate top-level statement.";
    // A sweep's leader has nobody to tell.
    let releasable = if has_client() { releasable_or_warn(hint) } else { can_release().ok() };
    let mut reporter = LoadReporter::new(&spec.name);
    let result = launched.wait(releasable, |segment| {
        reporter.report(segment);
        false
    });
    let rows = launched.segment.rows_written().cast_signed();
    let holder = launched.segment.header().load.horizon_holder.get();
    launched.leave();
    result?;
    if let Some(holder) = holder {
        warn(
            format!(
                "some pages of fixture \"{fixture}\" are not all-visible: {holder} holds back the xmin horizon"
            ),
            format!("End it, then VACUUM {}.", spec.qualified(&spec.relations[0])),
        );
    }
    Ok(LoadedFixture { spec, rows })
}

/// Starts a load and returns its id as soon as it has one. What goes wrong later is told to whoever waits for it.
pub fn start(
    fixture: &str,
    options: &Map<String, Value>,
    rows: Option<i64>,
    jobs: Option<i32>,
) -> Result<i64, UserError> {
    let (launched, _) = begin(fixture, options, rows, jobs)?;
    match launched.until_known() {
        (Err(error), 0) => Err(error),
        (_, load_id) => Ok(load_id),
    }
}

/// Rows and options that a fixture was loaded with; `None` where it is not.
pub fn loaded_as(name: &str) -> Result<Option<sweep::LoadDescription>, UserError> {
    let Some(usable) = fixture::usable(name)? else { return Ok(None) };
    let of_schema = |f: &store::Fixture| Some(&f.schema) == usable.schema.as_ref();
    Ok(store::fixtures(name)?.into_iter().find(of_schema).map(|loaded| {
        let mut options = match loaded.options {
            Value::Object(options) => options,
            _ => Map::new(),
        };
        options.insert("schema".to_owned(), Value::String(loaded.schema));
        sweep::LoadDescription { rows: loaded.rows, options }
    }))
}

/// As many jobs as asked for, or as processors and free worker slots allow and the rows deserve.
pub fn choose_jobs(jobs: Option<i32>, rows: i64) -> Result<u32, UserError> {
    match jobs {
        Some(jobs) if (1..=MAX_JOBS).contains(&jobs) => Ok(jobs.unsigned_abs()),
        Some(jobs) => Err(UserError::invalid(format!("jobs must be between 1 and {MAX_JOBS}, not {jobs}"))),
        None => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
            let allowed = role_limit::room()?.unwrap_or(u64::MAX);
            let free = background_worker::free_slots().min(allowed).saturating_sub(1).max(1);
            let deserved = rows.unsigned_abs() / 50_000 + 1;
            let wanted = processors.min(deserved).clamp(1, MAX_JOBS as u64);
            if free < wanted {
                let why = if free == allowed.saturating_sub(1).max(1) {
                    "pgbench_ext.max_clients_per_role allows no more workers"
                } else {
                    "no more worker slots are free"
                };
                pgrx::notice!("loading with {free} jobs instead of {wanted}: {why}");
            }
            Ok(wanted.min(free) as u32)
        }
    }
}
