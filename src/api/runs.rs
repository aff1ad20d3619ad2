//! bench.run, bench.start, bench.wait and bench.stop.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{FixtureSpec, RunArguments, RunOptions, RunSpec, ScriptSpec};
use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};

use super::required;
use crate::catalog;
use crate::engine::unserved;
use crate::error::{OrRaise, warn};
use crate::shm::{RunState, Segment, Shape, StopReason, ring_for};
use crate::worker::caller::{Errand, Watch};
use crate::worker::{ask_to_stop, coordinator, crew, horizon, is_backend};
use crate::{settings, workload};

/// How often bench.run reports its progress, at most.
const REPORT_EVERY_SECS: f64 = 5.0;

/// How long bench.stop waits for the run to have ended.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// Everything that bench.run and bench.start take, in their order.
macro_rules! run_function {
    ($(#[$doc:meta])* $name:ident, $then:ident) => {
        $(#[$doc])*
        #[pg_extern(sql = false)]
        #[allow(clippy::too_many_arguments)]
        fn $name(
            workload: Option<String>,
            clients: Option<i32>,
            secs: Option<f64>,
            transactions: Option<i64>,
            warmup: Option<f64>,
            rate: Option<f64>,
            latency_limit: Option<f64>,
            max_tries: Option<i32>,
            seed: Option<i64>,
            variables: Option<JsonB>,
            settings: Option<JsonB>,
            sample_interval: Option<f64>,
            driver: Option<String>,
            query_mode: Option<String>,
            results: Option<String>,
            nodes: Option<String>,
            tags: Option<JsonB>,
        ) -> i64 {
            let json = |value: Option<JsonB>| value.map(|v| v.0);
            $then(RunArguments {
                workload,
                clients,
                secs,
                transactions,
                warmup,
                rate,
                latency_limit,
                max_tries,
                seed,
                variables: json(variables),
                settings: json(settings),
                sample_interval,
                driver,
                query_mode,
                results,
                nodes,
                tags: json(tags),
            })
            .or_raise()
        }
    };
}

run_function!(
    /// Runs a workload and waits for it. See the COMMENT ON.
    run,
    run_and_wait
);

run_function!(
    /// Starts a run and returns at once. See the COMMENT ON.
    start,
    start_only
);

/// A server that can be written to.
pub fn check_server() -> Result<(), UserError> {
    // SAFETY: reads of the server's and the transaction's state.
    unsafe {
        if pg_sys::RecoveryInProgress() {
            return Err(UserError::new(
                sqlstate::READ_ONLY_SQL_TRANSACTION,
                "a standby cannot run a benchmark: its results could not be written",
            )
            .hint("Run it on the primary."));
        }
        if pg_sys::XactReadOnly {
            return Err(UserError::new(
                sqlstate::READ_ONLY_SQL_TRANSACTION,
                "cannot run a benchmark in a read-only transaction",
            )
            .hint("Use SET TRANSACTION READ WRITE, and see default_transaction_read_only."));
        }
    }
    Ok(())
}

/// A role that can log in, for each client is a new session of it.
pub fn check_role() -> Result<(), UserError> {
    let role = catalog::current_role();
    let sql = "SELECT rolcanlogin FROM pg_catalog.pg_roles WHERE oid OPERATOR(pg_catalog.=) $1";
    // SAFETY: this backend's own state.
    let oid = unsafe { pg_sys::GetUserId() };
    if catalog::fetch::<bool>(sql, &[oid.into()])? == Some(true) {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INVALID_AUTHORIZATION,
        format!("role \"{role}\" is not permitted to log in"),
    )
    .detail("Each client of a run is a new session of the calling role.")
    .hint(format!("ALTER ROLE {} LOGIN, or SET ROLE to one that may.", settings::quote_identifier(&role))))
}

/// The role's own limit, which the server does not enforce for background workers.
fn check_connection_limit(clients: u32) -> Result<(), UserError> {
    let sql = "SELECT rolconnlimit FROM pg_catalog.pg_roles WHERE oid OPERATOR(pg_catalog.=) $1";
    // SAFETY: this backend's own state.
    let oid = unsafe { pg_sys::GetUserId() };
    match catalog::fetch::<i32>(sql, &[oid.into()])? {
        Some(limit) if limit >= 0 && clients > limit.unsigned_abs() => Err(UserError::new(
            sqlstate::TOO_MANY_CONNECTIONS,
            format!("too many clients for role \"{}\"", catalog::current_role()),
        )
        .detail(format!("Clients: {clients}; the role's CONNECTION LIMIT: {limit}."))),
        _ => Ok(()),
    }
}

/// Locks of this very session that conflict with what the workload will take.
pub fn check_own_locks(tables: &[pg_sys::Oid], needed: i32) -> Result<(), UserError> {
    let held = catalog::as_owner(|| {
        catalog::read(|client| {
            let rows = client.select(
                "SELECT l.relation::pg_catalog.regclass::pg_catalog.text, l.mode FROM pg_catalog.pg_locks l \
                 WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND l.granted \
                   AND l.database = (SELECT oid FROM pg_catalog.pg_database \
                                     WHERE datname = pg_catalog.current_database()) \
                   AND (l.relation = ANY ($1) \
                        OR l.relation IN (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = ANY ($1)))",
                None,
                &[tables.to_vec().into()],
            )?;
            let mut held = Vec::new();
            for row in rows {
                let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
                held.push((text(1)?, text(2)?));
            }
            Ok(held)
        })
    })?;
    for (relation, mode) in held {
        // SAFETY: a pure table look-up of the lock manager's.
        if unsafe { pg_sys::DoLockModesConflict(lock_mode(&mode), needed) } {
            return Err(UserError::new(
                sqlstate::OBJECT_IN_USE,
                format!("this session holds a lock on {relation} that the workload would wait for"),
            )
            .detail(format!("Held: {mode}. The session would wait for the run, and the run for the session."))
            .hint("Commit or roll back before the call, or use bench.start."));
        }
    }
    Ok(())
}

/// pg_locks.mode as a number of storage/lockdefs.h; 0 for what is not there.
fn lock_mode(name: &str) -> i32 {
    const MODES: [&str; 8] = [
        "AccessShareLock",
        "RowShareLock",
        "RowExclusiveLock",
        "ShareUpdateExclusiveLock",
        "ShareLock",
        "ShareRowExclusiveLock",
        "ExclusiveLock",
        "AccessExclusiveLock",
    ];
    MODES.iter().position(|mode| *mode == name).map_or(0, |place| place as i32 + 1)
}

/// Everything that can be found wrong before any worker is started.
fn prepare(arguments: RunArguments) -> Result<(RunSpec, u32), UserError> {
    let options = RunOptions::new(arguments)?;
    check_server()?;
    let workload = workload::find(&options.workload)?;
    let scripts = vec![ScriptSpec { name: workload.name, source: workload.script }];
    let checked = workload::check_scripts(&scripts, &options, workload.fixture.is_some())?;
    settings::check(&options.settings)?;
    check_role()?;
    check_connection_limit(options.clients)?;
    crew::check_slots(u64::from(options.clients) + 1)?;
    let fixture: Option<FixtureSpec> = workload.fixture.as_deref().map(workload::find_fixture).transpose()?;
    if let Some(fixture) = &fixture {
        workload::check_rows(fixture, &checked)?;
        let tables: Vec<pg_sys::Oid> = fixture.tables.iter().map(|&t| t.into()).collect();
        check_own_locks(&tables, lock_of(&scripts))?;
    }
    let seed = options.seed.unwrap_or_else(random_seed);
    let spec = RunSpec {
        options,
        seed,
        scripts,
        fixture,
        role: catalog::current_role(),
        // SAFETY: this backend's own state.
        role_oid: unsafe { pg_sys::GetUserId() }.to_u32(),
        database_oid: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        horizon_held: false,
    };
    Ok((spec, checked.commands))
}

/// The weakest lock that every statement of the scripts is content with: reading ones wait for
/// nobody but an ACCESS EXCLUSIVE lock.
fn lock_of(scripts: &[ScriptSpec]) -> i32 {
    let reads = |source: &str| {
        source
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.is_empty() && !line.starts_with('\\') && !line.starts_with("--"))
            .all(|line| line.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select")))
    };
    if scripts.iter().all(|script| reads(&script.source)) {
        pg_sys::AccessShareLock as i32
    } else {
        pg_sys::RowExclusiveLock as i32
    }
}

fn random_seed() -> i64 {
    let mut bytes = [0; 8];
    // SAFETY: a valid buffer of that length.
    let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    if drawn { i64::from_ne_bytes(bytes) } else { crate::worker::now_ns() }
}

/// Starts the coordinator.
fn launch(spec: &RunSpec, commands: u32, caller_pid: i32) -> Result<Errand, UserError> {
    let json = serde_json::to_string(spec).unwrap_or_default();
    let shape = Shape {
        clients: spec.options.clients,
        scripts: spec.scripts.len() as u32,
        commands,
        ring: ring_for(spec.options.sample_interval_secs),
        spec_bytes: 0,
    };
    let segment = Segment::create(shape, &json);
    segment.header().caller_pid.store(caller_pid, Relaxed);
    segment.header().horizon_held.store(spec.horizon_held.into(), Relaxed);
    // 0: the coordinator is the bootstrap superuser, for only the recorder may write results.
    Errand::start(segment, coordinator::KIND, spec.database_oid, 0, spec.options.clients)
}

fn my_pid() -> i32 {
    // SAFETY: this process's own pid.
    unsafe { pg_sys::MyProcPid }
}

fn run_and_wait(arguments: RunArguments) -> Result<i64, UserError> {
    let (mut spec, commands) = prepare(arguments)?;
    settings::tell_what_does_not_apply(&spec.options.settings)?;
    let release = horizon::can_release();
    if let Err(why) = release {
        spec.horizon_held = true;
        warn(
            format!("this call holds back the xmin horizon while it waits, because {why}"),
            "Rows that the workload kills cannot be pruned, which slows an update workload. Call bench.run as a statement of its own, or use bench.start.",
        );
    }
    let errand = launch(&spec, commands, my_pid())?;
    errand.tie();
    let mut reporter = Reporter::new(&spec);
    let result = errand.wait(release.is_ok(), |segment| {
        reporter.report(segment);
        false
    });
    let run_id = errand.segment.header().run_id.load(Acquire);
    errand.leave();
    result?;
    pgrx::notice!("{}", super::results::closing_report(run_id)?);
    super::results::warn_of_status(run_id)?;
    Ok(run_id)
}

fn start_only(arguments: RunArguments) -> Result<i64, UserError> {
    let (spec, commands) = prepare(arguments)?;
    settings::tell_what_does_not_apply(&spec.options.settings)?;
    let errand = launch(&spec, commands, my_pid())?;
    // Until the run has an id it is this call's to give up.
    errand.tie();
    let known = |segment: &Segment| segment.header().run_id.load(Acquire) != 0;
    let result = errand.wait(false, known);
    errand.segment.header().caller_pid.store(0, Relaxed);
    let run_id = errand.segment.header().run_id.load(Acquire);
    errand.leave();
    result.map(|()| run_id)
}

/// The NOTICEs of a run under way, in the manner of pgbench's.
struct Reporter {
    every_secs: f64,
    next_secs: f64,
    in_warmup: bool,
    warned: bool,
}

impl Reporter {
    fn new(spec: &RunSpec) -> Self {
        let every_secs = REPORT_EVERY_SECS.max(spec.options.sample_interval_secs);
        Self { every_secs, next_secs: every_secs, in_warmup: spec.options.warmup_secs > 0.0, warned: false }
    }

    fn report(&mut self, segment: &Segment) {
        let header = segment.header();
        if header.state() != RunState::Starting && !self.warned {
            self.warned = true;
            self.warn_of_unserved(header.unserved.load(Relaxed));
        }
        let progress = &header.progress;
        if progress.samples.load(Acquire) == 0 {
            return;
        }
        let figures = progress.figures();
        let in_warmup = progress.in_warmup.load(Relaxed) != 0;
        if self.in_warmup && !in_warmup {
            self.in_warmup = false;
            self.next_secs = self.every_secs;
        }
        if figures.elapsed_secs + 1e-9 < self.next_secs {
            return;
        }
        self.next_secs = figures.elapsed_secs + self.every_secs;
        pgrx::notice!(
            "progress: {}{:.1} s, {:.1} tps, lat {:.3} ms stddev {:.3}, {} failed",
            if in_warmup { "warm-up " } else { "" },
            figures.elapsed_secs,
            figures.tps,
            figures.latency_avg_ms,
            figures.latency_stddev_ms,
            progress.failed.get()
        );
    }

    fn warn_of_unserved(&self, bits: u32) {
        let names = unserved::names(bits);
        if !names.is_empty() {
            warn(
                format!("the engine's sessions do not honour: {}", names.join(", ")),
                "Their cost is not in this run's figures; a client's session would pay it.",
            );
        }
    }
}

/// Waits for a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait(run_id: Option<i64>, timeout: Option<f64>) -> String {
    wait_for(run_id, timeout).or_raise()
}

fn wait_for(run_id: Option<i64>, timeout: Option<f64>) -> Result<String, UserError> {
    let run_id = required("run_id", run_id)?;
    if timeout.is_some_and(|t| !(0.0..=1e9).contains(&t)) {
        return Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            "timeout must be a number of seconds, not below 0",
        ));
    }
    let deadline = timeout.map(|secs| Instant::now() + Duration::from_secs_f64(secs));
    let handle = catalog::run_handle(run_id)?;
    if matches!(handle.status.as_str(), "starting" | "running")
        && let Some(segment) = Segment::attach(handle.segment)
    {
        let release = horizon::can_release();
        let mine = segment.header().run_id.load(Acquire) == run_id;
        if mine {
            if let Err(why) = release {
                segment.header().horizon_held.store(1, Relaxed);
                warn(
                    format!("this call holds back the xmin horizon while it waits, because {why}"),
                    "Call bench.wait as a statement of its own.",
                );
            }
            let mut watch = Watch::new(release.is_ok());
            while is_under_way(&segment) && deadline.is_none_or(|d| Instant::now() < d) {
                watch.pause(&segment);
            }
            watch.end();
        }
        segment.detach();
    }
    super::results::status(run_id)
}

/// Whether a run's coordinator is alive and has not finished.
fn is_under_way(segment: &Segment) -> bool {
    let header = segment.header();
    header.state() != RunState::Finished && is_backend(header.coordinator_pid.load(Acquire))
}

/// Ends a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop(run_id: Option<i64>) -> bool {
    stop_run(run_id).or_raise()
}

fn stop_run(run_id: Option<i64>) -> Result<bool, UserError> {
    let run_id = required("run_id", run_id)?;
    let handle = catalog::run_handle(run_id)?;
    // As pg_terminate_backend: pg_signal_backend reaches everybody but superusers.
    let may_signal = catalog::is_member("pg_signal_backend")? && !catalog::is_superuser(&handle.role)?;
    if !catalog::is_member(&handle.role)? && !may_signal {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("run {run_id} belongs to role \"{}\"", handle.role),
        )
        .hint("Only members of its role and of pg_signal_backend may stop it."));
    }
    if !matches!(handle.status.as_str(), "starting" | "running") {
        return Ok(false);
    }
    Ok(Segment::peek(handle.segment, |segment| {
        let header = segment.header();
        if header.run_id.load(Acquire) != run_id || !is_under_way(segment) {
            return false;
        }
        ask_to_stop(header, StopReason::Requested);
        let began = Instant::now();
        while is_under_way(segment) && began.elapsed() < STOP_PATIENCE {
            crate::worker::nap(20);
        }
        true
    })
    .unwrap_or(false))
}

/// Whether this run's coordinator is at work: what tells 'running' from 'crashed'.
#[pg_extern(sql = false)]
fn run_is_live(segment: Option<i64>, run_id: Option<i64>) -> bool {
    let (Some(segment), Some(run_id)) = (segment, run_id) else { return false };
    Segment::peek(segment as u32, |segment| {
        segment.header().run_id.load(Acquire) == run_id
            && is_backend(segment.header().coordinator_pid.load(Acquire))
    })
    .unwrap_or(false)
}

/// Where a run stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn run_progress(
    segment: Option<i64>,
    run_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(phase, String),
        name!(elapsed, f64),
        name!(remaining, Option<f64>),
        name!(tps, Option<f64>),
        name!(latency_avg_ms, Option<f64>),
        name!(transactions, i64),
        name!(clients, i32),
    ),
> {
    let row = match (segment, run_id) {
        (Some(segment), Some(run_id)) => Segment::peek(segment as u32, |s| progress_row(s, run_id)).flatten(),
        _ => None,
    };
    TableIterator::new(row)
}

type ProgressRow = (String, f64, Option<f64>, Option<f64>, Option<f64>, i64, i32);

fn progress_row(segment: &Segment, run_id: i64) -> Option<ProgressRow> {
    let header = segment.header();
    if header.run_id.load(Acquire) != run_id || !is_under_way(segment) {
        return None;
    }
    let clients = segment.slots().filter(|slot| !slot.is_over()).count() as i32;
    if header.state() == RunState::Starting {
        return Some(("starting".to_owned(), 0.0, None, None, None, 0, clients));
    }
    let timeline = header.timeline.load();
    let now = crate::worker::now_ns();
    let (phase, since) = if now < timeline.warmup_start_ns {
        ("ramp", timeline.warmup_start_ns)
    } else if now < timeline.measure_start_ns {
        ("warm-up", timeline.warmup_start_ns)
    } else if now < timeline.measure_end_ns {
        ("measurement", timeline.measure_start_ns)
    } else {
        ("drain", timeline.measure_start_ns)
    };
    let secs = |ns: i64| ns as f64 / 1e9;
    let remaining =
        (timeline.measure_end_ns != i64::MAX).then(|| secs((timeline.measure_end_ns - now).max(0)));
    let figures = header.progress.figures();
    let sampled = header.progress.samples.load(Acquire) > 0;
    Some((
        phase.to_owned(),
        secs((now - since).max(0)),
        remaining,
        sampled.then_some(figures.tps),
        sampled.then_some(figures.latency_avg_ms),
        header.progress.transactions.get().cast_signed(),
        clients,
    ))
}

/// What a run's extent is, for its report.
pub fn extent_text(secs: Option<f64>, transactions: Option<i64>) -> String {
    match (secs, transactions) {
        (_, Some(count)) => format!("{count} transactions per client"),
        (Some(secs), None) => format!("{secs} s"),
        (None, None) => String::new(),
    }
}
