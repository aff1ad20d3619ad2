//! bench.sweep and its kin.

use std::sync::atomic::Ordering::*;
use std::time::Instant;

use bench_core::error::{UserError, sqlstate};
use bench_core::report::sweep::render;
use bench_core::sweep::{SweepArguments, SweepOptions, SweepSpec};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::fixtures::choose_jobs;
use super::jsonb::Jsonb;
use super::reports::format_of;
use super::required;
use super::runs::prepare;
use crate::error::{OrRaise, warn};
use crate::fixture::LoadSpec;
use crate::shm::{Segment, Shape, build};
use crate::worker::caller::{Errand, Watch, stop_and_wait};
use crate::worker::sweep_leader::KIND;
use crate::worker::{Kind, crew, horizon, is_under_way, my_pid, random_seed, sweep_state, system};
use crate::{catalog, settings};

/// Everything that bench.sweep and bench.start_sweep take, in their order.
macro_rules! sweep_function {
    ($(#[$doc:meta])* $name:ident, $then:ident) => {
        $(#[$doc])*
        #[pg_extern(sql = false)]
        #[allow(clippy::too_many_arguments)]
        fn $name(
            workload: Option<String>,
            clients: Option<Vec<Option<i32>>>,
            secs: Option<f64>,
            rounds: Option<i32>,
            variants: Option<Jsonb>,
            warmup: Option<f64>,
            rate: Option<f64>,
            variables: Option<Jsonb>,
            settings: Option<Jsonb>,
            before: Option<String>,
            seed: Option<i64>,
            query_mode: Option<String>,
            nodes: Option<String>,
            tags: Option<Jsonb>,
        ) -> i64 {
            let json = |value: Option<Jsonb>| value.map(|v| v.0);
            $then(SweepArguments {
                workload,
                clients,
                secs,
                rounds,
                variants: json(variants),
                warmup,
                rate,
                variables: json(variables),
                settings: json(settings),
                before,
                seed,
                query_mode,
                nodes,
                tags: json(tags),
            })
            .or_raise()
        }
    };
}

sweep_function!(
    /// Runs a workload at several rungs of clients and waits for it. See the COMMENT ON.
    sweep,
    sweep_and_wait
);

sweep_function!(
    /// Starts a sweep and returns at once. See the COMMENT ON.
    start_sweep,
    start_only
);

/// Everything that can be found wrong before the first run, of any of the runs.
pub fn plan(arguments: SweepArguments) -> Result<SweepSpec, UserError> {
    let mut pulse = || {
        pgrx::check_for_interrupts!();
    };
    let options = SweepOptions::new(arguments, random_seed(), &mut pulse)?;
    let options = SweepOptions { loaded: sweep_state::loaded(&options)?, ..options };
    check(&options)?;
    Ok(spec_of(options, None))
}

fn spec_of(options: SweepOptions, resumes: Option<i64>) -> SweepSpec {
    SweepSpec {
        options,
        resumes,
        observation: settings::observation(),
        horizon_held: false,
        role: catalog::current_role(),
        // SAFETY: this backend's own state.
        role_oid: unsafe { pg_sys::GetUserId() }.to_u32(),
        database_oid: unsafe { pg_sys::MyDatabaseId }.to_u32(),
    }
}

fn check(options: &SweepOptions) -> Result<(), UserError> {
    let most = options.clients.iter().copied().max().unwrap_or(1);
    // One more than the run needs: the sweep's own.
    crew::check_slots(u64::from(most) + 2, KIND.noun)?;
    system::check(options)?;
    sweep_state::check(options)?;
    for variant in &options.variants {
        pgrx::check_for_interrupts!();
        if variant.load.is_empty() {
            let (run, _) = prepare(options.run_arguments(variant, most, None))?;
            sweep_state::check_run(options, &run)?;
        } else {
            let load = sweep_state::load_of(options, variant)?;
            let spec = LoadSpec::new(&load.fixture, load.rows, 1, &load.options)?;
            choose_jobs(load.jobs, spec.counted_ids())?;
        }
    }
    Ok(())
}

/// Starts the leader.
fn launch(spec: &SweepSpec) -> Result<Errand, UserError> {
    let json = serde_json::to_string(spec).unwrap_or_default();
    let segment = Segment::create(
        Shape { clients: 0, scripts: 0, commands: 0, ring: 1, nodes: 0, spec_bytes: 0 },
        &json,
    );
    segment.header().caller_pid.store(my_pid(), Relaxed);
    let kind = Kind { returns_after_crash: spec.options.changes_system(), ..KIND };
    let most = spec.options.clients.iter().copied().max().unwrap_or(1);
    Errand::start(segment, kind, spec.database_oid, spec.role_oid, most + 1)
}

fn sweep_and_wait(arguments: SweepArguments) -> Result<i64, UserError> {
    run_to_the_end(plan(arguments)?)
}

/// Starts a sweep and waits for it, with NOTICEs.
pub fn run_to_the_end(mut spec: SweepSpec) -> Result<i64, UserError> {
    let release = horizon::can_release();
    if let Err(why) = release {
        spec.horizon_held = true;
        warn(
            format!("this call holds back the xmin horizon while it waits, because {why}"),
            "Meanwhile, dead rows cannot be removed, which slows update workloads. Make the call a separate top-level statement, or use bench.start_sweep.",
        );
    }
    let errand = launch(&spec)?;
    errand.tie();
    let mut reporter = Reporter::new();
    let mut watch = Watch::new(false, true);
    let result = errand.wait(release.is_ok(), |segment| {
        reporter.report(segment);
        look_at_run(segment, &mut watch);
        false
    });
    let sweep_id = errand.segment.sweep_id();
    errand.leave();
    result?;
    warn_of_status(sweep_id)?;
    Ok(sweep_id)
}

/// The clients of a sweep's run may wait for a lock of this session, as its leader may.
fn look_at_run(segment: &Segment, watch: &mut Watch) {
    let under_way = segment.header().sweep.under_way.load(Acquire);
    if Segment::peek(under_way, |run| watch.is_in_the_way_at_times(run)) == Some(true) {
        watch.give_way(segment);
    }
}

/// Says when a sweep is not what was asked for.
fn warn_of_status(sweep_id: i64) -> Result<(), UserError> {
    let status = catalog::sweep_handle(sweep_id)?.status;
    if status != "completed" {
        warn(
            format!("sweep {sweep_id} is {status}"),
            format!(
                "See SELECT * FROM bench.sweep_runs WHERE sweep_id = {sweep_id}; bench.resume_sweep({sweep_id}) makes what is missing."
            ),
        );
    }
    Ok(())
}

fn start_only(arguments: SweepArguments) -> Result<i64, UserError> {
    start(&plan(arguments)?)
}

fn start(spec: &SweepSpec) -> Result<i64, UserError> {
    let errand = launch(spec)?;
    // Until the sweep has an id it is this call's to give up.
    errand.tie();
    let result = errand.wait(false, |segment| segment.sweep_id() != 0);
    errand.segment.header().caller_pid.store(0, Relaxed);
    let sweep_id = errand.segment.sweep_id();
    errand.leave();
    result.map(|()| sweep_id)
}

/// The NOTICEs of a sweep under way.
struct Reporter {
    began: Instant,
    /// Runs that were done when the sweep began, or was taken up, and at the last look.
    first: Option<u32>,
    done: u32,
}

impl Reporter {
    fn new() -> Self {
        Self { began: Instant::now(), first: None, done: 0 }
    }

    fn report(&mut self, segment: &Segment) {
        if segment.sweep_id() == 0 {
            return;
        }
        let progress = &segment.header().sweep;
        let (done, total) = (progress.done.load(Acquire), progress.total.load(Relaxed));
        let first = *self.first.get_or_insert(done);
        if done <= self.done.max(first) {
            self.done = done;
            return;
        }
        self.done = done;
        let each = self.began.elapsed().as_secs_f64() / f64::from(done - first);
        let left = each * f64::from(total - done);
        // A lock on the results, kept until the sweep's end, would hold up whoever wants a stronger one, and its runs
        // behind that.
        let place = progress.last_place.load(Relaxed);
        let last = catalog::rolled_back(|| catalog::sweep_run_line(segment.sweep_id(), place)).or_raise();
        pgrx::notice!("progress: {done} of {total} runs, {left:.0} s left; {last}");
    }
}

/// # Errors
/// 55000 where the sweep's leader is of another build of the library.
fn check_build(sweep_id: i64, handle: &catalog::SweepHandle) -> Result<(), UserError> {
    if handle.status == "running" && catalog::is_led_by_other_build(sweep_id, handle.segment) {
        return Err(build::started_by_other(&format!("sweep {sweep_id}")));
    }
    Ok(())
}

/// Waits for a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait_sweep(sweep_id: Option<i64>, timeout: Option<f64>) -> String {
    (|| {
        let sweep_id = required("sweep_id", sweep_id)?;
        let deadline = super::runs::deadline(timeout)?;
        let handle = catalog::visible_sweep(sweep_id)?;
        check_build(sweep_id, &handle)?;
        if handle.status == "running"
            && let Some(segment) = Segment::attach(handle.segment)
        {
            let release = horizon::can_release();
            if segment.is_of_sweep(sweep_id) {
                if let Err(why) = release {
                    warn(
                        format!("this call holds back the xmin horizon while it waits, because {why}"),
                        "Call bench.wait_sweep as a separate top-level statement.",
                    );
                }
                let mut watch = Watch::new(release.is_ok(), false);
                let mut watch_of_run = Watch::new(false, false);
                while is_under_way(&segment) && deadline.is_none_or(|d| Instant::now() < d) {
                    look_at_run(&segment, &mut watch_of_run);
                    watch.pause(&segment);
                }
                watch.end();
            }
            segment.detach();
        }
        status(sweep_id)
    })()
    .or_raise()
}

/// A sweep's status: what its row says, unless its leader is gone. See the COMMENT ON.
#[pg_extern(sql = false)]
fn sweep_status_of(status: Option<String>, segment: Option<i64>, sweep_id: Option<i64>) -> Option<String> {
    let status = status?;
    if status != "running" {
        return Some(status);
    }
    Some(current_status(status, segment? as u32, sweep_id?).or_raise())
}

/// # Errors
/// 42501 for a sweep that the caller may not see.
fn current_status(status: String, segment: u32, sweep_id: i64) -> Result<String, UserError> {
    // A standby cannot know, so there the row stands as it is.
    if status != "running" || super::checks::is_standby() || catalog::is_led(sweep_id, segment) {
        return Ok(status);
    }
    // The row may have been read before the sweep ended well.
    match catalog::visible_sweep(sweep_id) {
        Ok(latest) if latest.status != "running" => Ok(latest.status),
        Err(error) if error.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE => Err(error),
        _ => Ok("crashed".to_owned()),
    }
}

fn status(sweep_id: i64) -> Result<String, UserError> {
    let handle = catalog::sweep_handle(sweep_id)?;
    current_status(handle.status, handle.segment, sweep_id)
}

/// Where a sweep stands: a row for bench.sweeps, or none when it is over. See the COMMENT ON.
#[pg_extern(sql = false)]
fn sweep_progress(
    segment: Option<i64>,
    sweep_id: Option<i64>,
) -> TableIterator<'static, (name!(done, i32), name!(total, i32))> {
    let row = segment.zip(sweep_id).and_then(|(segment, sweep_id)| {
        Segment::peek(segment as u32, |segment| {
            let progress = &segment.header().sweep;
            (segment.is_of_sweep(sweep_id) && is_under_way(segment)).then(|| {
                (progress.done.load(Acquire).cast_signed(), progress.total.load(Relaxed).cast_signed())
            })
        })
        .flatten()
        .filter(|_| catalog::visible_sweep(sweep_id).is_ok())
    });
    TableIterator::new(row)
}

/// Ends a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop_sweep(sweep_id: Option<i64>) -> bool {
    (|| {
        let sweep_id = required("sweep_id", sweep_id)?;
        let handle = catalog::sweep_handle(sweep_id)?;
        if !catalog::may_stop(&handle.role)? {
            return Err(UserError::new(
                sqlstate::INSUFFICIENT_PRIVILEGE,
                format!("sweep {sweep_id} belongs to role \"{}\"", handle.role),
            )
            .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."));
        }
        check_build(sweep_id, &handle)?;
        Ok(Segment::peek(handle.segment, |segment| segment.is_of_sweep(sweep_id) && stop_and_wait(segment))
            .unwrap_or(false))
    })()
    .or_raise()
}

/// Takes up a sweep that ended early. See the COMMENT ON.
#[pg_extern(sql = false)]
fn resume_sweep(sweep_id: Option<i64>) -> i64 {
    (|| {
        let sweep_id = required("sweep_id", sweep_id)?;
        let handle = catalog::sweep_handle(sweep_id)?;
        // A workload runs as the role that called, and all of a sweep's as the same.
        if handle.role != catalog::current_role() {
            return Err(UserError::new(
                sqlstate::INSUFFICIENT_PRIVILEGE,
                format!("sweep {sweep_id} belongs to role \"{}\"", handle.role),
            )
            .hint(format!("SET ROLE {} before the call.", settings::quote_identifier(&handle.role))));
        }
        match status(sweep_id)?.as_str() {
            "running" => return Err(catalog::under_way(sweep_id)),
            "completed" => {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    format!("sweep {sweep_id} is completed"),
                ));
            }
            _ => {}
        }
        super::checks::check_server()?;
        let options = catalog::sweep_options(sweep_id)?;
        check(&options)?;
        start(&spec_of(options, Some(sweep_id)))
    })()
    .or_raise()
}

/// A report of a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
fn sweep_report(sweep_id: Option<i64>, format: Option<String>) -> String {
    (|| {
        let format = format_of(format)?;
        Ok(render(&catalog::sweep_document(required("sweep_id", sweep_id)?)?, format))
    })()
    .or_raise()
}
