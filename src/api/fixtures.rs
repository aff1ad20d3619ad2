//! bench.load and bench.unload.

use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use pgrx::pg_sys;
use pgrx::prelude::*;
use serde_json::{Map, Value};

use super::jsonb::Jsonb;
use super::load_progress::Reporter;
use super::required;
use crate::catalog;
use crate::error::{OrRaise, warn};
use crate::fixture::{LoadSpec, not_yours};
use crate::shm::{Segment, Shape};
use crate::worker::caller::Errand;
use crate::worker::load_leader;
use crate::worker::{crew, has_client, horizon};

/// What takes less time needs no report of how it went; bench.fixtures has it all the same.
const WORTH_A_REPORT: Duration = Duration::from_secs(1);

/// More jobs than this would only wait for each other in the same table.
const MAX_JOBS: i32 = 256;

/// Loads a fixture. See the COMMENT ON.
#[pg_extern(sql = false, name = "load")]
fn load_sql(fixture: Option<String>, rows: Option<i64>, jobs: Option<i32>, options: Option<Jsonb>) -> i64 {
    (|| {
        let fixture = required("fixture", fixture)?;
        let Value::Object(options) = required("options", options)?.0 else {
            return Err(UserError::new(sqlstate::INVALID_PARAMETER_VALUE, "options must be a JSON object"));
        };
        let began = Instant::now();
        let loaded = load(&fixture, &options, rows, jobs)?;
        if began.elapsed() >= WORTH_A_REPORT {
            super::load_progress::closing_report(&loaded.spec)?;
        }
        Ok(loaded.rows)
    })()
    .or_raise()
}

/// A fixture that has been loaded.
pub struct Loaded {
    spec: LoadSpec,
    /// Rows written.
    rows: i64,
}

/// Has workers begin to load a fixture. Their end is the caller's to wait for, and they end with the caller.
pub fn begin(
    fixture: &str,
    options: &Map<String, Value>,
    rows: Option<i64>,
    jobs: Option<i32>,
) -> Result<(Errand, LoadSpec), UserError> {
    let spec = LoadSpec::new(fixture, rows, 1, options)?;
    super::checks::check_server()?;
    super::checks::check_role()?;
    spec.check_cluster()?;
    let replaced = spec.replaced()?;
    spec.check_privileges()?;
    let spec = LoadSpec { jobs: choose_jobs(jobs, spec.counted_ids())?, ..spec };
    if let Some(existing) = replaced {
        catalog::check_unused(&spec.name, &existing.tables)?;
        super::checks::check_own_locks(
            &catalog::with_partitions(&existing.tables)?,
            pg_sys::AccessExclusiveLock as i32,
            "the load",
            "Commit or roll back before the call.",
        )?;
    }
    crew::check_slots(u64::from(spec.jobs) + 1, load_leader::KIND.noun)?;
    let json = serde_json::to_string(&spec).unwrap_or_default();
    let shape = Shape { clients: spec.jobs, scripts: 1, commands: 1, ring: 1, nodes: 0, spec_bytes: 0 };
    let segment = Segment::create(shape, &json);
    // SAFETY: this process's own pid.
    let pid = unsafe { pg_sys::MyProcPid };
    segment.header().caller_pid.store(pid, std::sync::atomic::Ordering::Relaxed);
    segment.header().interruptible.store(1, std::sync::atomic::Ordering::Relaxed);
    let errand = Errand::start(segment, load_leader::KIND, spec.database_oid, spec.role_oid, spec.jobs)?;
    errand.tie();
    Ok((errand, spec))
}

/// Loads a fixture with workers and waits for them.
pub fn load(
    fixture: &str,
    options: &Map<String, Value>,
    rows: Option<i64>,
    jobs: Option<i32>,
) -> Result<Loaded, UserError> {
    let (errand, spec) = begin(fixture, options, rows, jobs)?;
    let release = horizon::can_release();
    // A sweep's leader has nobody to tell.
    if let Err(why) = release
        && has_client()
    {
        warn(
            format!("this call holds back the xmin horizon while it waits, because {why}"),
            "Until it returns, VACUUM cannot remove rows that other sessions delete. Call bench.load as a separate top-level statement.",
        );
    }
    let mut reporter = Reporter::new(&spec.name);
    let result = errand.wait(release.is_ok(), |segment| {
        reporter.report(segment);
        false
    });
    let rows = load_leader::rows_written(&errand.segment).cast_signed();
    let holder = errand.segment.header().load.horizon_holder.get();
    errand.leave();
    result?;
    if let Some(holder) = holder {
        warn(
            format!(
                "some pages of fixture \"{fixture}\" are not all-visible: {holder} holds back the xmin horizon"
            ),
            format!("End it, then VACUUM {}.", spec.qualified(&spec.relations[0])),
        );
    }
    Ok(Loaded { spec, rows })
}

/// As many jobs as asked for, or as processors and free worker slots allow and the rows deserve.
pub fn choose_jobs(jobs: Option<i32>, rows: i64) -> Result<u32, UserError> {
    match jobs {
        Some(jobs) if (1..=MAX_JOBS).contains(&jobs) => Ok(jobs.unsigned_abs()),
        Some(jobs) => Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            format!("jobs must be between 1 and {MAX_JOBS}, not {jobs}"),
        )),
        None => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
            let free = crew::free_slots().saturating_sub(1).max(1);
            let deserved = rows.unsigned_abs() / 50_000 + 1;
            let wanted = processors.min(deserved).clamp(1, MAX_JOBS as u64);
            if free < wanted {
                pgrx::notice!("loading with {free} jobs instead of {wanted}: no more worker slots are free");
            }
            Ok(wanted.min(free) as u32)
        }
    }
}

/// Drops a fixture's tables. See the COMMENT ON.
#[pg_extern(sql = false)]
fn unload(fixture: Option<String>) {
    unload_fixture(fixture).or_raise();
}

fn unload_fixture(fixture: Option<String>) -> Result<(), UserError> {
    let name = required("fixture", fixture)?;
    let role = catalog::current_role();
    let mut loaded = catalog::fixtures(&name)?;
    // One's own first, and of these one whose tables are still there.
    loaded.sort_by_key(|f| (f.owner != role, f.missing > 0));
    let Some(fixture) = loaded.into_iter().next() else {
        crate::fixture::known(&name)?;
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("fixture \"{name}\" is not loaded")));
    };
    if !catalog::acts_for(&fixture.owner)? {
        return Err(not_yours(&name, &fixture.owner));
    }
    catalog::check_unused(&name, &fixture.tables)?;
    // As the caller, who owns the tables or acts for their owner.
    catalog::drop_tables(&fixture.tables)?;
    catalog::delete_fixture(&fixture.schema, &name)
}
