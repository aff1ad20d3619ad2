//! bench.run, bench.start, bench.wait and bench.stop.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::cluster::Nodes;
use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{FixtureSpec, RunArguments, RunOptions, RunSpec, ScriptSpec, Starter};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::checks::{
    check_connection_limit, check_own_locks, check_role, check_server, has_blocks, is_standby, lock_of,
};
use super::jsonb::Jsonb;
use super::progress::Reporter;
use super::required;
use super::workloads::check_length;
use crate::catalog;
use crate::error::{OrRaise, warn};
use crate::integration::{citus, cluster};
use crate::observe::counters;
use crate::shm::{Segment, Shape, build, ring_for};
use crate::worker::caller::{Errand, Watch, stop_and_wait};
use crate::worker::{coordinator, crew, horizon, is_backend, is_under_way, my_pid, random_seed};
use crate::{settings, workload};

/// Everything that bench.run and its like take, in their order, after texts of the function's own.
macro_rules! run_function {
    ($(#[$doc:meta])* $name:ident, $then:ident $(, $before:ident)*) => {
        $(#[$doc])*
        #[pg_extern(sql = false)]
        #[allow(clippy::too_many_arguments)]
        fn $name(
            $($before: Option<String>,)*
            workload: Option<String>,
            clients: Option<i32>,
            secs: Option<f64>,
            transactions: Option<i64>,
            warmup: Option<f64>,
            rate: Option<f64>,
            latency_limit: Option<f64>,
            max_tries: Option<i32>,
            seed: Option<i64>,
            variables: Option<Jsonb>,
            settings: Option<Jsonb>,
            sample_interval: Option<f64>,
            driver: Option<String>,
            query_mode: Option<String>,
            results: Option<String>,
            nodes: Option<String>,
            tags: Option<Jsonb>,
        ) -> i64 {
            let json = |value: Option<Jsonb>| value.map(|v| v.0);
            $then($($before,)* RunArguments {
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

pub(super) use run_function;

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

/// What the arguments of a run mean here, as far as that holds for a later run as well.
pub(super) struct Request {
    pub options: RunOptions,
    scripts: Vec<ScriptSpec>,
    checked: workload::Checked,
    fixture_names: Vec<String>,
}

/// Everything that can be found wrong with the arguments themselves, by this role and in this database.
pub(super) fn check(arguments: RunArguments) -> Result<Request, UserError> {
    if arguments.workload.is_none() {
        return Err(workload::missing()?);
    }
    let options = RunOptions::new(arguments)?;
    check_server()?;
    let mut fixture_names: Vec<String> = Vec::new();
    let mut scripts = Vec::with_capacity(options.mix.len());
    for share in &options.mix {
        let workload = workload::find(&share.workload)?;
        let fixture = workload.fixture.map(|name| match fixture_names.iter().position(|n| *n == name) {
            Some(index) => index,
            None => {
                fixture_names.push(name);
                fixture_names.len() - 1
            }
        });
        scripts.push(ScriptSpec {
            name: workload.name,
            source: workload.script,
            weight: share.weight,
            fixture,
        });
    }
    check_length(scripts.iter().map(|script| script.source.as_str()))?;
    let checked = workload::check_scripts(&scripts, &fixture_names, &options)?;
    settings::check(&options.settings)?;
    check_role()?;
    check_connection_limit(options.clients)?;
    Ok(Request { options, scripts, checked, fixture_names })
}

/// Everything that can be found wrong before any worker is started.
pub fn prepare(arguments: RunArguments) -> Result<(RunSpec, u32), UserError> {
    let Request { options, scripts, checked, fixture_names } = check(arguments)?;
    if options.nodes == Nodes::Local {
        crew::check_slots(u64::from(options.clients) + 1, coordinator::KIND.noun)?;
    } else {
        citus::check_installed(&format!("nodes => '{}'", options.nodes.as_str()))?;
        cluster::check_loaded(&fixture_names)?;
    }
    let fixtures = fixture_names
        .iter()
        .map(|name| workload::find_fixture(name, &options.settings, options.clients))
        .collect::<Result<Vec<FixtureSpec>, _>>()?;
    workload::check_rows(&fixtures, &scripts, &checked)?;
    workload::check_shards(&fixtures, &scripts, &checked)?;
    workload::check_names(&fixtures, &options.settings)?;
    let tables: Vec<pg_sys::Oid> = fixtures.iter().flat_map(|f| &f.tables).map(|&t| t.into()).collect();
    if !tables.is_empty() {
        check_own_locks(
            &tables,
            lock_of(&scripts),
            "the workload",
            "Commit or roll back before the call, or use bench.start.",
        )?;
    }
    let seed = options.seed.unwrap_or_else(random_seed);
    let cluster = cluster::of_run(&options, &tables, has_blocks(&scripts))?;
    if let Some(cluster) = &cluster {
        // One more for each node, and one that leads where several have clients.
        let here: u32 =
            cluster.nodes.iter().filter(|n| n.is_local && n.clients > 0).map(|n| n.clients + 1).sum();
        let needed = u64::from(here) + cluster.nodes.len() as u64;
        crew::check_slots(needed + u64::from(options.nodes != Nodes::Local), coordinator::KIND.noun)?;
    }
    let spec = RunSpec {
        options,
        seed,
        scripts,
        fixtures,
        observation: settings::observation(),
        role: catalog::current_role(),
        // SAFETY: this backend's own state.
        role_oid: unsafe { pg_sys::GetUserId() }.to_u32(),
        database_oid: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        horizon_held: false,
        sweep_id: None,
        system: Default::default(),
        cluster,
        part_of: None,
        starter: Starter { pid: my_pid(), has_unsent: counters::has_unsent_itself(&tables)? },
    };
    Ok((spec, checked.commands))
}

/// The most shared memory that a run may take, in bytes: it is taken at once, for the worst case.
const MAX_SEGMENT: usize = 1 << 30;

/// Starts the coordinator.
pub fn launch(spec: &RunSpec, commands: u32, caller_pid: i32) -> Result<Errand, UserError> {
    let json = serde_json::to_string(spec).unwrap_or_default();
    // The coordinator of a run on several nodes has no clients of its own.
    let is_here = !spec.is_of_several_nodes();
    let shape = Shape {
        clients: if is_here { spec.options.clients } else { 0 },
        scripts: if is_here { spec.scripts.len() as u32 } else { 0 },
        commands: if is_here { commands } else { 0 },
        ring: ring_for(spec.options.sample_interval_secs),
        nodes: spec.cluster.as_ref().map_or(0, |cluster| cluster.nodes.len() as u32),
        spec_bytes: json.len() as u32,
    };
    if shape.bytes() > MAX_SEGMENT {
        return Err(UserError::new(
            sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
            format!("the run would need {} MB of shared memory", shape.bytes() >> 20),
        )
        .detail(format!(
            "For {} clients with {commands} commands in {} scripts, and samples every {} s; the limit is {} MB.",
            spec.options.clients,
            spec.scripts.len(),
            spec.options.sample_interval_secs,
            MAX_SEGMENT >> 20
        ))
        .hint("Use fewer clients, a smaller mix, or a longer sample_interval."));
    }
    let segment = Segment::create(shape, &json);
    segment.header().caller_pid.store(caller_pid, Relaxed);
    segment.header().horizon_held.store(spec.horizon_held.into(), Relaxed);
    // 0: the coordinator is the bootstrap superuser, for only the recorder may write results.
    Errand::start(segment, coordinator::KIND, spec.database_oid, 0, spec.options.clients)
}

fn run_and_wait(arguments: RunArguments) -> Result<i64, UserError> {
    let (mut spec, commands) = prepare(arguments)?;
    settings::tell_what_does_not_apply(&spec.options.settings)?;
    let release = horizon::can_release();
    if let Err(why) = release {
        spec.horizon_held = true;
        warn(
            format!("this call holds back the xmin horizon while it waits, because {why}"),
            "Meanwhile, dead rows cannot be removed, which slows update workloads. Call bench.run as a separate top-level statement, or use bench.start.",
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

pub(super) fn start_only(arguments: RunArguments) -> Result<i64, UserError> {
    let (spec, commands) = prepare(arguments)?;
    settings::tell_what_does_not_apply(&spec.options.settings)?;
    let (result, run_id) = start_prepared(&spec, commands)?;
    result.map(|()| run_id)
}

/// Starts a run in which nothing was found wrong, and returns when it has an id, or 0 where it did not get that far, with
/// what has kept it from going on.
pub fn start_prepared(spec: &RunSpec, commands: u32) -> Result<(Result<(), UserError>, i64), UserError> {
    let errand = launch(spec, commands, my_pid())?;
    // Until the run has an id it is this call's to give up.
    errand.tie();
    let known = |segment: &Segment| segment.header().run_id.load(Acquire) != 0;
    let result = errand.wait(false, known);
    errand.segment.header().caller_pid.store(0, Relaxed);
    let run_id = errand.segment.header().run_id.load(Acquire);
    errand.leave();
    Ok((result, run_id))
}

/// Waits for a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait(run_id: Option<i64>, timeout: Option<f64>) -> String {
    wait_for(run_id, timeout).or_raise()
}

/// When a wait of so many seconds is over; `None`: never.
///
/// # Errors
/// 22023.
pub fn deadline(timeout: Option<f64>) -> Result<Option<Instant>, UserError> {
    if timeout.is_some_and(|t| !(0.0..=1e9).contains(&t)) {
        return Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            "timeout must be a number of seconds and not negative",
        ));
    }
    Ok(timeout.map(|secs| Instant::now() + Duration::from_secs_f64(secs)))
}

fn wait_for(run_id: Option<i64>, timeout: Option<f64>) -> Result<String, UserError> {
    let run_id = required("run_id", run_id)?;
    let deadline = deadline(timeout)?;
    let handle = catalog::visible_run(run_id)?;
    let is_open = is_open(&handle.status);
    if is_open && is_standby() {
        return Err(UserError::new(
            sqlstate::READ_ONLY_SQL_TRANSACTION,
            "cannot wait for a run on a standby",
        )
        .hint("Wait for it on the primary."));
    }
    if is_open && build::is_led_by_other(handle.segment, run_id) {
        return Err(build::started_by_other(&format!("run {run_id}")));
    }
    if is_open && let Some(segment) = Segment::attach(handle.segment) {
        let release = horizon::can_release();
        let mine = segment.is_of_run(run_id);
        if mine {
            if let Err(why) = release {
                if catalog::acts_for(&handle.role)? {
                    segment.header().horizon_held.store(1, Relaxed);
                }
                warn(
                    format!("this call holds back the xmin horizon while it waits, because {why}"),
                    "Call bench.wait as a separate top-level statement.",
                );
            }
            let mut watch = Watch::new(release.is_ok(), false);
            while is_under_way(&segment) && deadline.is_none_or(|d| Instant::now() < d) {
                watch.pause(&segment);
            }
            watch.end();
        }
        segment.detach();
    }
    super::results::status(run_id)
}

/// Ends a run. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop(run_id: Option<i64>) -> bool {
    stop_run(run_id).or_raise()
}

pub(super) fn stop_run(run_id: Option<i64>) -> Result<bool, UserError> {
    let run_id = required("run_id", run_id)?;
    let handle = catalog::run_handle(run_id)?;
    if !catalog::may_stop(&handle.role)? {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("run {run_id} belongs to role \"{}\"", handle.role),
        )
        .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."));
    }
    if !is_open(&handle.status) {
        return Ok(false);
    }
    if build::is_led_by_other(handle.segment, run_id) {
        return Err(build::started_by_other(&format!("run {run_id}")));
    }
    Ok(Segment::peek(handle.segment, |segment| segment.is_of_run(run_id) && stop_and_wait(segment))
        .unwrap_or(false))
}

/// A run's status: what its row says, unless its coordinator is gone. See the COMMENT ON.
#[pg_extern(sql = false)]
fn status_of(status: Option<String>, segment: Option<i64>, run_id: Option<i64>) -> Option<String> {
    let status = status?;
    if !is_open(&status) {
        return Some(status);
    }
    Some(current_status(status, segment? as u32, run_id?).or_raise())
}

/// What a run's row says, unless its coordinator is gone.
///
/// # Errors
/// 42501 for a run that the caller may not see.
pub fn current_status(status: String, segment: u32, run_id: i64) -> Result<String, UserError> {
    // A standby cannot know, so there the row stands as it is.
    if !is_open(&status) || is_standby() {
        return Ok(status);
    }
    let is_at_work = |segment: &Segment| {
        segment.is_of_run(run_id) && is_backend(segment.header().coordinator_pid.load(Acquire))
    };
    if Segment::peek(segment, is_at_work) == Some(true) || build::is_led_by_other(segment, run_id) {
        return Ok(status);
    }
    // The row may have been read before the run ended well.
    if let Ok(latest) = catalog::run_handle(run_id) {
        // bench.audits looks at others' runs, too. It has the segment from the row, which tells it to nobody.
        if latest.segment != segment {
            catalog::check_visible(run_id)?;
        }
        if !is_open(&latest.status) {
            return Ok(latest.status);
        }
    }
    Ok("crashed".to_owned())
}

/// Whether a row with this status has not been closed.
pub fn is_open(status: &str) -> bool {
    matches!(status, "starting" | "running")
}
