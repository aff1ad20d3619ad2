//! bench.run, bench.start, bench.wait and bench.stop, the progress of what is under way, and jobs that start runs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::required;
use crate::error::{OrRaise, for_client, warn};
use crate::guard::session_role::check_stored_run_as;
use crate::load::prepare::{Standing, title};
use crate::run::coordinator;
use crate::run::prepare::prepared::check;
use crate::run::prepare::start::{find_risks, run_to_the_end, start};
use crate::run::prepare::under_way;
use crate::server::process::now_ns;
use crate::server::relations::OwnLock;
use crate::server::roles::current_role_oid;
use crate::server::rows::{Rows, rows};
use crate::server::spi::quote_literal;
use crate::server::{background_worker, database};
use crate::shm::{ClientState, RunState, Segment, WarmupEnd, Work, is_under_way};
use crate::store::{self, current_status, is_open, pg_cron};

/// The arguments with a workload and clients.
pub(super) fn run_of(workload: Option<String>, clients: Option<i32>, run: RunArguments) -> RunArguments {
    RunArguments { workload, clients, ..run }
}

run_functions! {
    /// Runs a workload and waits for it.
    bench_run,
    /// Starts a run and returns at once.
    bench_start(workload: [Option<String>], clients: [Option<i32>])
        -> [i64] = |workload, clients, run| Ok(run_of(workload, clients, run)), run_to_the_end, start
}

/// Waits for a run.
#[pg_extern(sql = false)]
fn wait(run_id: Option<i64>, timeout: Option<f64>) -> String {
    required("run_id", run_id)
        .and_then(|run_id| under_way::wait(Work::Run(run_id), deadline(timeout)?, |_| {}))
        .or_raise()
}

/// When a wait of so many seconds is over; `None`: never.
///
/// # Errors
/// 22023.
pub fn deadline(timeout: Option<f64>) -> Result<Option<Instant>, UserError> {
    if timeout.is_some_and(|t| !(0.0..=1e9).contains(&t)) {
        return Err(UserError::invalid("timeout must be a number of seconds and not negative"));
    }
    Ok(timeout.map(|secs| Instant::now() + Duration::from_secs_f64(secs)))
}

/// Ends a run.
#[pg_extern(sql = false)]
fn stop(run_id: Option<i64>) -> bool {
    required("run_id", run_id).and_then(|run_id| under_way::stop(Work::Run(run_id))).or_raise()
}

/// A run's status: what its row says, unless its coordinator is gone.
#[pg_extern(sql = false)]
fn status_of(status: Option<String>, segment: Option<i64>, run_id: Option<i64>) -> Option<String> {
    status_shown(status, segment, run_id.map(Work::Run))
}

/// What a view shows of what its row says.
pub(super) fn status_shown(
    status: Option<String>,
    segment: Option<i64>,
    work: Option<Work>,
) -> Option<String> {
    let status = status?;
    if !is_open(&status) {
        return Some(status);
    }
    Some(current_status(work?, status, segment? as u32).or_raise())
}

run_function! {
    /// Says what would spoil a run that started now.
    bench_preflight(workload: [Option<String>], clients: [Option<i32>]) -> [Rows] = |workload, clients, run| {
        let risks = find_risks(run_of(workload, clients, run)).or_raise();
        rows(risks.into_iter().map(|risk| {
            json!({
                "topic": risk.topic.as_str(),
                "severity": risk.severity,
                "finding": for_client(risk.finding),
                "advice": for_client(risk.advice),
            })
        }))
    }
}

/// Where a run stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
fn run_progress(segment: Option<i64>, run_id: Option<i64>) -> Rows {
    let row = match (segment, run_id) {
        (Some(segment), Some(run_id)) => Segment::peek(segment as u32, |s| progress_row(s, run_id))
            .flatten()
            .filter(|_| store::check_visible(run_id).is_ok()),
        _ => None,
    };
    rows(row)
}

#[derive(Serialize)]
struct ProgressRow {
    phase: &'static str,
    elapsed: f64,
    remaining: Option<f64>,
    tps: Option<f64>,
    latency_avg_ms: Option<f64>,
    transactions: u64,
    clients: i32,
}

fn progress_row(segment: &Segment, run_id: i64) -> Option<ProgressRow> {
    let header = segment.header();
    if !segment.is_of(Work::Run(run_id)) || !is_under_way(segment) {
        return None;
    }
    let clients = match segment.shape().slots {
        // They are other nodes'.
        0 => header.progress.clients.load(Relaxed).cast_signed(),
        _ => segment.sessions().filter(|session| !session.is_over()).count() as i32,
    };
    if header.state() == RunState::Starting {
        return Some(ProgressRow {
            phase: "starting",
            elapsed: 0.0,
            remaining: None,
            tps: None,
            latency_avg_ms: None,
            transactions: 0,
            clients,
        });
    }
    let timeline = header.timeline.load();
    let now = now_ns();
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
    let is_known = timeline.measure_end_ns != i64::MAX && header.warmup_end() != WarmupEnd::Awaited;
    let remaining = is_known.then(|| secs((timeline.measure_end_ns - now).max(0)));
    let figures = header.progress.figures();
    let sampled = header.progress.samples.load(Acquire) > 0;
    Some(ProgressRow {
        phase,
        elapsed: secs((now - since).max(0)),
        remaining,
        tps: sampled.then_some(figures.tps),
        latency_avg_ms: sampled.then_some(figures.latency_avg_ms),
        transactions: header.progress.transactions.get(),
        clients,
    })
}

/// Where a load stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
fn load_progress(segment: Option<i64>, load_id: Option<i64>) -> Rows {
    let row = |segment: &Segment, load_id: i64| {
        if !segment.is_of(Work::Load(load_id)) || !is_under_way(segment) {
            return None;
        }
        let standing = Standing::of(segment);
        let at_work = |state| state == ClientState::Done;
        let loaders = segment.slots().filter(|slot| slot.pid.load(Relaxed) != 0 && !at_work(slot.state()));
        Some(json!({
            "phase": title(standing.phase),
            "elapsed": standing.elapsed_secs,
            "remaining": standing.remaining_secs,
            "rows": standing.rows,
            "rows_per_sec": (standing.rows_per_sec > 0.0).then_some(standing.rows_per_sec),
            "loaders": loaders.count(),
        }))
    };
    let found = match (segment, load_id) {
        (Some(segment), Some(load_id)) => Segment::peek(segment as u32, |s| row(s, load_id))
            .flatten()
            .filter(|_| store::may_see_load(load_id) == Ok(true)),
        _ => None,
    };
    rows(found)
}

// bench.schedule, bench.unschedule, and what a job's command calls.

/// The tag that holds the name of the job that has started a run.
const TAG: &str = "job";

run_function! {
    /// Makes a job of pg_cron's that starts runs.
    bench_schedule(
        name: [Option<String>], schedule: [Option<String>], workload: [Option<String>], clients: [Option<i32>]
    ) -> [i64] = |name, schedule, workload, clients, run| {
        schedule_runs(name, schedule, run_of(workload, clients, run)).or_raise()
    }
}

run_function! {
    /// Starts a run of a job.
    bench_start_scheduled(workload: [Option<String>], clients: [Option<i32>]) -> [i64] =
        |workload, clients, run| start_unless_under_way(run_of(workload, clients, run)).or_raise()
}

fn schedule_runs(
    name: Option<String>,
    schedule: Option<String>,
    mut arguments: RunArguments,
) -> Result<i64, UserError> {
    let name = required("name", name)?;
    let schedule = required("schedule", schedule)?;
    pg_cron::check_name(&name)?;
    check_run_as(&arguments)?;
    let request = check(arguments.clone())?;
    // Slots that are taken now may be free by then; those that there are not may not.
    background_worker::check_configured(u64::from(request.options.clients) + 1, coordinator::KIND.noun)?;
    if let Some(Value::Object(tags)) = &mut arguments.tags
        && tags.insert(TAG.to_owned(), name.as_str().into()).is_some()
    {
        return Err(UserError::invalid(format!("tags must not contain \"{TAG}\""))
            .hint("bench.schedule sets this tag to the name of the job."));
    }
    let command = command(&arguments);
    pg_cron::check_usable(|database| pg_cron::schedule_in_database(&name, &schedule, &command, database))?;
    pg_cron::schedule(&name, &schedule, &command)
}

/// # Errors
/// 42501 for a role with special rights: a job is stored.
fn check_run_as(arguments: &RunArguments) -> Result<(), UserError> {
    let hint = "Name a role without special rights as run_as, or start the runs yourself with bench.start.";
    check_stored_run_as(arguments.run_as.as_deref()).map_err(|error| error.hint(hint))
}

/// The call that starts the run. Apart from the warm-up, what is NULL is so by default.
fn command(arguments: &RunArguments) -> String {
    let texts = arguments.texts().into_iter();
    let mut given: Vec<String> =
        texts.map(|(name, text)| format!("{name} => {}", quote_literal(&text))).collect();
    if arguments.warmup.is_none() {
        given.push("warmup => NULL".to_owned());
    }
    format!("SELECT bench_internal.start_scheduled({})", given.join(", "))
}

fn start_unless_under_way(arguments: RunArguments) -> Result<i64, UserError> {
    let job = arguments.tags.as_ref().and_then(|tags| tags.get(TAG)?.as_str()).map(str::to_owned);
    let job = job.ok_or_else(|| {
        UserError::invalid("tags do not name a job")
            .hint("Jobs of bench.schedule call this function. To start a run yourself, use bench.start.")
    })?;
    check_run_as(&arguments)?;
    let lock = lock_of(&job);
    lock.acquire();
    let run_id = match store::runs_of_job(&job)?.first() {
        Some(&run_id) => {
            warn(
                format!("job \"{job}\" starts no run because its run {run_id} is still active"),
                "Schedule it less often, or with shorter runs.",
            );
            run_id
        }
        None => start(arguments)?,
    };
    // Not at the end of the transaction, which a caller may keep open.
    lock.release();
    Ok(run_id)
}

/// Keeps others from starting a run of the same job and role between the look and the start. An error gives it back
/// as well, with the rest of the (sub)transaction.
fn lock_of(job: &str) -> OwnLock {
    // Always the same keys; two jobs of one hash would merely wait for each other.
    let mut hasher = DefaultHasher::new();
    job.hash(&mut hasher);
    OwnLock::new(database::oid().to_u32(), current_role_oid().to_u32(), hasher.finish() as u32)
}

/// Drops a job and ends its run.
#[pg_extern(sql = false)]
fn unschedule(name: Option<String>) -> bool {
    (|| {
        let name = required("name", name)?;
        pg_cron::check_name(&name)?;
        pg_cron::check_usable(|_| {
            format!("{} Here, for a run under way: bench.stop.", pg_cron::unschedule_in_database(&name))
        })?;
        let mut found = pg_cron::unschedule(&name)?;
        for run_id in store::runs_of_job(&name)? {
            found |= under_way::stop(Work::Run(run_id))?;
        }
        Ok(found)
    })()
    .or_raise()
}
