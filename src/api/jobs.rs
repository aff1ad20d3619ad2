//! bench.schedule, bench.unschedule, and what a job's command calls.

use std::hash::{DefaultHasher, Hash, Hasher};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::RunArguments;
use pgrx::prelude::*;
use serde_json::Value;

use super::required;
use super::runs::{run_function, stop_run};
use crate::catalog;
use crate::error::{OrRaise, warn};
use crate::integration::pg_cron;
use crate::launch::run::{check, start};
use crate::server::jsonb::Jsonb;
use crate::server::locks::OwnLock;
use crate::server::roles::current_role_oid;
use crate::server::spi::quote_literal;
use crate::server::{database, worker_slots};
use crate::worker::run::coordinator;

/// The tag that holds the name of the job that has started a run.
const TAG: &str = "job";

run_function!(
    /// Makes a job of pg_cron's that starts runs. See the COMMENT ON.
    schedule_workload,
    schedule_runs,
    name,
    schedule
    => i64
);

run_function!(
    /// Starts a run of a job. See the COMMENT ON.
    start_scheduled_workload,
    start_unless_under_way
    => i64
);

fn schedule_runs(
    name: Option<String>,
    schedule: Option<String>,
    mut arguments: RunArguments,
) -> Result<i64, UserError> {
    let name = required("name", name)?;
    let schedule = required("schedule", schedule)?;
    pg_cron::check_name(&name)?;
    let request = check(arguments.clone())?;
    // Slots that are taken now may be free by then; those that there are not may not.
    worker_slots::check_configured(u64::from(request.options.clients) + 1, coordinator::KIND.noun)?;
    if let Some(Value::Object(tags)) = &mut arguments.tags
        && tags.insert(TAG.to_owned(), name.as_str().into()).is_some()
    {
        return Err(UserError::new(
            sqlstate::INVALID_PARAMETER_VALUE,
            format!("tags must not contain \"{TAG}\""),
        )
        .hint("bench.schedule sets this tag to the name of the job."));
    }
    let command = command(&arguments);
    pg_cron::check_usable(|database| pg_cron::schedule_in_database(&name, &schedule, &command, database))?;
    pg_cron::schedule(&name, &schedule, &command)
}

/// The call that starts the run. Apart from the warm-up, what is NULL is so by default.
fn command(arguments: &RunArguments) -> String {
    let a = arguments;
    let text = |value: &Option<String>| value.as_deref().map(quote_literal);
    let json = |value: &Option<Value>| value.as_ref().map(|json| quote_literal(&json.to_string()));
    let number = |value: Option<f64>| value.map(|number| number.to_string());
    let given = [
        ("workload", text(&a.workload)),
        ("clients", a.clients.map(|n| n.to_string())),
        ("secs", number(a.secs)),
        ("transactions", a.transactions.map(|n| n.to_string())),
        // NULL is not its default.
        ("warmup", number(a.warmup).or_else(|| Some("NULL".to_owned()))),
        ("rate", number(a.rate)),
        ("latency_limit", number(a.latency_limit)),
        ("max_tries", a.max_tries.map(|n| n.to_string())),
        // Quoted, for the least bigint is none without its sign.
        ("seed", a.seed.map(|n| quote_literal(&n.to_string()))),
        ("variables", json(&a.variables)),
        ("settings", json(&a.settings)),
        ("sample_interval", number(a.sample_interval)),
        ("driver", text(&a.driver)),
        ("query_mode", text(&a.query_mode)),
        ("results", text(&a.results)),
        ("nodes", text(&a.nodes)),
        ("tags", json(&a.tags)),
        ("script", text(&a.script)),
        ("before", text(&a.before)),
        ("log_rate", number(a.log_rate)),
        ("exit_on_abort", a.exit_on_abort.map(|flag| flag.to_string())),
        ("target", text(&a.target)),
        ("jobs", a.jobs.map(|n| n.to_string())),
        ("reconnect", a.reconnect.map(|flag| flag.to_string())),
        ("on_disconnect", text(&a.on_disconnect)),
        ("run_as", text(&a.run_as)),
    ];
    let given: Vec<String> =
        given.into_iter().filter_map(|(name, value)| Some(format!("{name} => {}", value?))).collect();
    format!("SELECT bench.start_scheduled({})", given.join(", "))
}

fn start_unless_under_way(arguments: RunArguments) -> Result<i64, UserError> {
    let job = arguments.tags.as_ref().and_then(|tags| tags.get(TAG)?.as_str()).map(str::to_owned);
    let job = job.ok_or_else(|| {
        UserError::new(sqlstate::INVALID_PARAMETER_VALUE, "tags do not name a job")
            .hint("Jobs of bench.schedule call this function. To start a run yourself, use bench.start.")
    })?;
    let lock = lock_of(&job);
    lock.acquire();
    let run_id = match catalog::runs_of_job(&job)?.first() {
        Some(&run_id) => {
            warn(
                format!("job \"{job}\" starts no run because its run {run_id} is still under way"),
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
            format!("{} Here, for a run under way: bench.stop.", pg_cron::unschedule_elsewhere(&name))
        })?;
        let mut found = pg_cron::unschedule(&name)?;
        for run_id in catalog::runs_of_job(&name)? {
            found |= stop_run(Some(run_id))?;
        }
        Ok(found)
    })()
    .or_raise()
}
