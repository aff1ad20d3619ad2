//! The outcome of a run: its status and its error.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, is_of_data, sqlstate};
use bench_model::cluster::PartOf;
use bench_model::spec::{Extent, RunOptions, RunSpec};
use bench_model::timeline::Timeline;
use bench_script::hint_of_prepared;
use bench_stats::until_steady::LONGEST_SECS;

use crate::server::guc;
use crate::server::process::{NS_PER_SEC, current_timestamp, now_ns};
use crate::server::signals::termination_requested;
use crate::shm::{Header, Segment, StopReason};
use crate::store::recorder::{ErrorRow, RunStatus};
use crate::worker::drop_extension;

/// The circumstances of a run's end.
pub struct RunEnding<'a> {
    /// The error that kept the run from being measured or its results from being written.
    pub failure: Option<UserError>,
    pub stop: Option<StopReason>,
    /// Set in a part of another node's run.
    pub part_of: Option<&'a PartOf>,
    /// Whether the gate was opened.
    pub measured: bool,
    /// Clients that ended before the run did.
    pub ended_early: u32,
    /// Clients that could not be ended.
    pub given_up: u32,
    pub clients: u32,
    /// Whether the clients' server is behind a pooler.
    pub is_pooled: bool,
    pub errors: &'a [ErrorRow],
}

/// Returns the run's status, and the error to keep with it.
pub fn run_status(ending: &RunEnding) -> (RunStatus, Option<UserError>) {
    let (status, error) = status_without_abandoned(ending);
    let error = error.map(|error| match ending.given_up {
        0 => error,
        given_up => UserError {
            detail: Some(format!(
                "{given_up} of {} clients could not be ended and were abandoned.",
                ending.clients
            )),
            ..error
        }
        .hint(
            "They wait for another server or for a disk, and cannot be canceled there: see pg_stat_activity.",
        ),
    });
    (status, error)
}

/// As [`run_status`], without regard to abandoned clients.
fn status_without_abandoned(ending: &RunEnding) -> (RunStatus, Option<UserError>) {
    if let Some(failure) = &ending.failure {
        let status = match ending.stop {
            None | Some(StopReason::BlockedByCaller | StopReason::ClientAborted) if ending.measured => {
                RunStatus::Incomplete
            }
            None | Some(StopReason::BlockedByCaller | StopReason::ClientAborted) => RunStatus::Failed,
            Some(_) => RunStatus::Canceled,
        };
        return (status, Some(failure.clone()));
    }
    match ending.stop {
        Some(StopReason::BlockedByCaller) => {
            (RunStatus::Incomplete, Some(stop_error(StopReason::BlockedByCaller, None)))
        }
        Some(StopReason::ClientAborted) => {
            // The earliest error: clients that the stop ended may have left later ones.
            let error = worst_error(ending.errors.iter().min_by_key(|e| (mildness(e), e.first_at)));
            let detail = "The run ended with its first aborted client, because of exit_on_abort.";
            (RunStatus::Incomplete, Some(error.detail(detail)))
        }
        Some(reason) => (RunStatus::Canceled, Some(stop_error(reason, ending.part_of))),
        None if ending.ended_early == 0 => (RunStatus::Completed, None),
        None => {
            let detail = format!("{} of {} clients ended early.", ending.ended_early, ending.clients);
            let error = worst_error(ending.errors.iter().min_by_key(|e| mildness(e))).detail(detail);
            (RunStatus::Incomplete, Some(if ending.is_pooled { with_hint_on_poolers(error) } else { error }))
        }
    }
}

fn worst_error(worst: Option<&ErrorRow>) -> UserError {
    let (state, message) =
        worst.map_or((sqlstate::ADMIN_SHUTDOWN, "terminated"), |e| (&e.sqlstate, &e.message));
    let hint = hint_of_prepared(state, message).map(str::to_owned);
    UserError { hint, ..UserError::new(state, message) }
}

/// Ranks an error, lowest first, by how probably it ended clients: they retry serialization failures and deadlocks, and
/// clients of a capture continue after data errors.
fn mildness(error: &ErrorRow) -> u8 {
    match error.sqlstate.as_str() {
        sqlstate::SERIALIZATION_FAILURE | sqlstate::DEADLOCK_DETECTED => 2,
        state => u8::from(is_of_data(state)),
    }
}

/// Adds a hint to errors of a pooler that prepares a statement in one session and executes it in another.
fn with_hint_on_poolers(error: UserError) -> UserError {
    match error.sqlstate.as_str() {
        sqlstate::INVALID_STATEMENT_NAME | sqlstate::DUPLICATE_PREPARED_STATEMENT => error.hint(
            "A pooler in transaction mode must support prepared statements (PgBouncer since 1.21: \
             max_prepared_statements); or use query_mode => 'extended' or 'simple'.",
        ),
        _ => error,
    }
}

/// Sums the errors of all clients by SQLSTATE. `lost` clients ended without setting their state; those that recorded no FATAL
/// error count as terminated.
pub fn errors(segment: &Segment, lost: u32) -> Vec<ErrorRow> {
    let mut lines: Vec<ErrorRow> = Vec::new();
    let recorded = segment.slots().filter(|slot| slot.told_fatal.load(Acquire) != 0).count() as u32;
    let lost = lost.saturating_sub(recorded);
    for slot in segment.slots() {
        for entry in &slot.errors {
            let state = entry.sqlstate.load(Acquire);
            if state == 0 {
                continue;
            }
            add(
                &mut lines,
                ErrorRow {
                    sqlstate: bench_base::error::unpack(state),
                    message: entry.message.get().unwrap_or_default(),
                    detail: entry.detail.get(),
                    context: entry.context.get(),
                    count: entry.count.get(),
                    retried: entry.retried.get(),
                    failed: entry.failed.get(),
                    first_at: entry.first_at.load(Relaxed),
                },
            );
        }
    }
    if lost > 0 {
        // Added, because a script may have caused this SQLSTATE as well.
        add(
            &mut lines,
            ErrorRow {
                sqlstate: sqlstate::ADMIN_SHUTDOWN.to_owned(),
                message: "client terminated".to_owned(),
                detail: None,
                context: None,
                count: u64::from(lost),
                retried: 0,
                failed: 0,
                first_at: current_timestamp(),
            },
        );
    }
    lines
}

/// Adds an error to the line of its SQLSTATE, or as a new line.
fn add(lines: &mut Vec<ErrorRow>, error: ErrorRow) {
    match lines.iter_mut().find(|line| line.sqlstate == error.sqlstate) {
        Some(line) => {
            line.count += error.count;
            line.retried += error.retried;
            line.failed += error.failed;
            line.first_at = line.first_at.min(error.first_at);
        }
        None => lines.push(error),
    }
}

/// Returns the error of a client that did not reach the gate.
pub fn start_error(segment: &Segment, spec: &RunSpec, client: u32) -> UserError {
    if let Err(error) = segment.check_refusal() {
        return error;
    }
    let entry = &segment.slot(client).errors[0];
    match (entry.sqlstate.load(Acquire), entry.message.get()) {
        (0, _) | (_, None) => {
            UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, format!("client {client} could not start"))
                .hint("See the server log.")
        }
        (state, Some(message)) => {
            let state = bench_base::error::unpack(state);
            let hint = start_hint(spec, &state).or_else(|| {
                hint_of_startup(&state, &message).or(hint_of_prepared(&state, &message)).map(str::to_owned)
            });
            let preparing =
                format!("A client got this error while preparing workload \"{}\".", spec.options.workload);
            let limit = if state == sqlstate::TOO_MANY_CONNECTIONS { connections(spec) } else { None };
            let details = [Some(preparing), entry.detail.get(), limit];
            let detail = details.into_iter().flatten().collect::<Vec<_>>().join("\n");
            let error = UserError::new(&state, message).detail(detail);
            UserError { hint: hint.or(entry.hint.get()), context: entry.context.get(), ..error }
        }
    }
}

/// Returns a hint if PgBouncer refused a parameter.
fn hint_of_startup(state: &str, message: &str) -> Option<&'static str> {
    let is_refused =
        state == sqlstate::PROTOCOL_VIOLATION && message.starts_with("unsupported startup parameter");
    is_refused.then_some(
        "The pooler does not set this parameter for its sessions. Leave it out of settings, and set it on the server: \
         ALTER ROLE … SET.",
    )
}

/// Returns a DETAIL with the run's connections and the server's max_connections, if that is known.
fn connections(spec: &RunSpec) -> Option<String> {
    const NAME: &str = "max_connections";
    let limit = match &spec.target {
        None => guc::current(NAME),
        Some(target) => target.settings.iter().find(|s| s.name == NAME).map(|s| s.setting.clone()),
    };
    Some(format!("The run has {} connections; {NAME} is {}.", spec.options.clients, limit?))
}

fn start_hint(spec: &RunSpec, state: &str) -> Option<String> {
    match state {
        sqlstate::INSUFFICIENT_PRIVILEGE => spec.fixtures.iter().find_map(|fixture| {
            let schema = fixture.schema.as_ref()?;
            Some(format!(
                "Fixture \"{0}\" is in schema \"{schema}\". Ask its owner for privileges, or load your own into another schema: bench.load('{0}', options => '{{\"schema\": \"…\"}}').",
                fixture.name
            ))
        }),
        sqlstate::TOO_MANY_CONNECTIONS => Some(
            "Clients of driver => 'wire' are connections: use fewer, or raise max_connections or the CONNECTION LIMIT of \
             the role or the database."
                .to_owned(),
        ),
        sqlstate::UNDEFINED_TABLE => Some(
            "Clients are separate sessions: they see objects of the calling transaction only after it commits."
                .to_owned(),
        ),
        _ => None,
    }
}

/// Returns the error of a stopped run, for its row and its caller.
pub fn stop_error(reason: StopReason, part_of: Option<&PartOf>) -> UserError {
    match reason {
        StopReason::Requested if let Some(part_of) = part_of.filter(|_| !termination_requested()) => {
            let message = format!("stopped with run {} of node {}", part_of.run_id, part_of.name);
            UserError::new(sqlstate::QUERY_CANCELED, message)
        }
        StopReason::BlockedByCaller => UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "a client waits for a lock of the session that waits for the run",
        )
        .hint("Commit before calling it, or use bench.start."),
        StopReason::Dropped => drop_extension::error(),
        StopReason::CallerGone => {
            UserError::new(sqlstate::QUERY_CANCELED, "canceled with the call to bench.run")
        }
        _ if termination_requested() => UserError::new(
            sqlstate::ADMIN_SHUTDOWN,
            "the coordinator was terminated by an administrator's command",
        ),
        _ => UserError::new(sqlstate::QUERY_CANCELED, "stopped by bench.stop"),
    }
}

// Parts of another node's run, which wait for that node to set their begin, and end if it stops asking for them.

/// The longest time without a question from the other node: longer than an unanswered question and the next one take.
const LEASE_NS: i64 = 20_000_000_000;

/// Checks that the other node still asks for this part of its run.
///
/// # Errors
/// 08006 if it has not for [`LEASE_NS`].
pub fn check_heard(header: &Header, part_of: &PartOf) -> Result<(), UserError> {
    if now_ns() - header.heard_ns.load(Acquire) <= LEASE_NS {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::CONNECTION_FAILURE,
        format!(
            "node {} has not asked for this part of its run {} for {} s",
            part_of.name,
            part_of.run_id,
            LEASE_NS / 1_000_000_000
        ),
    ))
}

/// Returns the begin of the first interval, by CLOCK_MONOTONIC; `None` until the other node has set it.
pub fn begins_ns(header: &Header) -> Option<i64> {
    let begins_us = header.begins_us.load(Acquire);
    (begins_us != 0).then(|| now_ns() + (begins_us - current_timestamp()) * 1000)
}

/// Returns the time line of a run whose first interval begins at `begins_ns`, by CLOCK_MONOTONIC. A warm-up without a given
/// end has its longest length.
pub fn timeline(options: &RunOptions, begins_ns: i64) -> Timeline {
    let ns = |secs: f64| (secs * NS_PER_SEC) as i64;
    let measure_ns = match options.extent {
        Extent::Secs(secs) => Some(ns(secs)),
        Extent::Transactions(_) => None,
    };
    let warmup_ns = ns(options.warmup_secs.unwrap_or(LONGEST_SECS));
    let (warmup_interval, interval) = (options.warmup_interval_secs(), options.sample_interval_secs);
    Timeline::with_warmup(begins_ns, warmup_ns, ns(warmup_interval), measure_ns, ns(interval))
}
