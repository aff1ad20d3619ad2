//! bench.schedule, bench.unschedule, and what a job's command calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use pgrx::prelude::*;
use serde_json::Value;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::required;
use super::runs::run_of;
use crate::error::{OrRaise, warn};
use crate::guard::session_role::check_stored_run_as;
use crate::run::coordinator;
use crate::run::prepare::prepared::check;
use crate::run::prepare::start::start;
use crate::run::prepare::under_way;
use crate::server::relations::OwnLock;
use crate::server::roles::current_role_oid;
use crate::server::spi::quote_literal;
use crate::server::{background_worker, database};
use crate::shm::Work;
use crate::store::{self, pg_cron};

/// The tag that holds the name of the job that has started a run.
const TAG: &str = "job";

run_function! {
    /// Makes a job of pg_cron's that starts runs. See the COMMENT ON.
    bench_schedule(
        name: [Option<String>], schedule: [Option<String>], workload: [Option<String>], clients: [Option<i32>]
    ) -> [i64] = |name, schedule, workload, clients, run| {
        schedule_runs(name, schedule, run_of(workload, clients, run)).or_raise()
    }
}

run_function! {
    /// Starts a run of a job. See the COMMENT ON.
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

/// Drops a job and ends its run. See the COMMENT ON.
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
