//! From the arguments of `bench.load` to a started leader, and the progress that its caller sees.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::UserError;
use bench_model::spec::Role;
use bench_questions::sweep;
use pgrx::pg_sys;
use serde_json::{Map, Value};

use super::fixture::{self, Known, LoadSpec};
use super::workers::leader;
use crate::error::{notice, warn};
use crate::guard::session_role::{self, session_of};
use crate::guard::switch_role::as_session_of;
use crate::launch::checks::{self, check_own_locks, check_server, check_session_of};
use crate::launch::handle::{LaunchHandle, releasable_or_warn};
use crate::server::horizon::can_release;
use crate::server::process::{forget_activity, has_client, my_pid, now_ns};
use crate::server::transaction::is_in_block;
use crate::server::{background_worker, relations, roles, spi};
use crate::shm::{LoadPhase, RunState, Segment, SegmentShape};
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
    checks::check(u64::from(spec.jobs) + 1)?;
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
    if session_role::is_own(&caller.name) {
        return session_role::keeper_of(&caller);
    }
    let writer = match fixture::known(fixture)? {
        Known::BuiltIn(_) => caller.clone(),
        Known::Custom(definition) => roles::existing(definition.owner_oid, &definition.owner)?,
    };
    session_role::keeper_of(&session_of(&caller, &writer, None)?)
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
            let allowed = checks::room()?.unwrap_or(u64::MAX);
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

// How far a load under way is, and the NOTICEs of bench.load.

/// How often bench.load reports its progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Where a load stands.
pub struct Standing {
    pub phase: LoadPhase,
    pub elapsed_secs: f64,
    pub rows: u64,
    pub ids: u64,
    pub rows_per_sec: f64,
    /// Until the rows are written; it cannot be told in other phases.
    pub remaining_secs: Option<f64>,
}

impl Standing {
    /// Reads the segment of a load under way.
    pub fn of(segment: &Segment) -> Self {
        let load = &segment.header().load;
        let phase = load.phase();
        let now = now_ns();
        let since = |began_ns: i64| (now - began_ns).max(0) as f64 / 1e9;
        let (rows, ids) = (segment.rows_written(), load.ids.get());
        let in_phase_secs = since(load.phase_began_ns.load(Relaxed));
        let rows_per_sec =
            if phase == LoadPhase::Rows && in_phase_secs > 0.0 { rows as f64 / in_phase_secs } else { 0.0 };
        let remaining_secs = (rows_per_sec > 0.0).then(|| ids.saturating_sub(rows) as f64 / rows_per_sec);
        let elapsed_secs = since(load.began_ns.load(Relaxed));
        Self { phase, elapsed_secs, rows, ids, rows_per_sec, remaining_secs }
    }
}

/// A phase as users read it.
pub fn title(phase: LoadPhase) -> &'static str {
    match phase {
        LoadPhase::Starting => "starting",
        LoadPhase::Rows => "loading rows",
        LoadPhase::Indexes => "building indexes",
        LoadPhase::Vacuum => "vacuuming",
        LoadPhase::Distribution => "distributing rows",
    }
}

/// The NOTICEs of a load under way.
pub struct LoadReporter<'a> {
    fixture: &'a str,
    reported: Instant,
}

impl<'a> LoadReporter<'a> {
    /// For a load of this fixture.
    pub fn new(fixture: &'a str) -> Self {
        Self { fixture, reported: Instant::now() }
    }

    /// Says where the load stands, every few seconds.
    pub fn report(&mut self, segment: &Segment) {
        if self.reported.elapsed() < REPORT_EVERY || segment.header().state() == RunState::Finished {
            return;
        }
        self.reported = Instant::now();
        let standing = Standing::of(segment);
        let Standing { rows, ids, rows_per_sec, elapsed_secs, .. } = standing;
        let fixture = self.fixture;
        match standing.remaining_secs {
            Some(remaining) => pgrx::notice!(
                "loading \"{fixture}\": {rows} of {ids} rows ({:.0}%), {rows_per_sec:.0} rows/s, elapsed {elapsed_secs:.1} s, remaining {remaining:.1} s",
                rows as f64 * 100.0 / ids.max(1) as f64
            ),
            None => {
                let step = server_progress(segment).map_or_else(String::new, |step| format!(": {step}"));
                pgrx::notice!(
                    "loading \"{fixture}\": {}{step}, elapsed {elapsed_secs:.1} s",
                    title(standing.phase)
                );
            }
        }
    }
}

/// What the server itself tells of the statements that the leader and the loaders run.
fn server_progress(segment: &Segment) -> Option<String> {
    let loaders = segment.slots().map(|slot| slot.pid.load(Relaxed));
    let workers: Vec<i32> = loaders.chain([segment.header().coordinator_pid.load(Relaxed)]).collect();
    let sql = "SELECT string_agg(format('%s of %s, %s%%', phase, relation, \
                      round(100.0 * done / nullif(total, 0))), '; ' ORDER BY pid) FROM ( \
                   SELECT pid, phase, relid::regclass AS relation, \
                          CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END AS done, \
                          CASE WHEN tuples_total > 0 THEN tuples_total ELSE blocks_total END AS total \
                   FROM pg_stat_progress_create_index \
                   UNION ALL \
                   SELECT pid, phase, relid::regclass, heap_blks_scanned, heap_blks_total FROM pg_stat_progress_vacuum \
                   UNION ALL \
                   SELECT pid, phase, relid::regclass, sample_blks_scanned, sample_blks_total FROM pg_stat_progress_analyze \
               ) AS steps WHERE pid = ANY ($1)";
    forget_activity();
    // A report is not worth an error.
    store::as_owner(|| spi::fetch::<String>(sql, &[workers.into()])).ok().flatten()
}
