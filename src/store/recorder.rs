//! The writes of the coordinator: a run's row, its samples and its results.
//!
//! Each function is a transaction of its own, so that results survive later errors, and locks the extension, see
//! [`super::extension_owner::hold_extension`].

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_base::words;
use bench_capture::fidelity::Counts;
use bench_model::spec::{Driver, Duel, OnDisconnect, RunOptions, RunSpec, ScriptSpec};
use bench_model::transaction_log::{LogRecord, LoggedOutcome};
use bench_results::UnwrittenParts;
use bench_results::{CommandSummary, DuelMeasured, Environment, Event};
use bench_stats::histogram::coarse;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{JsonB, pg_sys};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::duels::put_duel;
use super::extension_owner::{LockTimeout, hold_extension, try_to_write};
use super::totals::{self, EventLine, percentile_ms};
use super::work;
use crate::guard::own_tables::on_own_tables_for_good;
use crate::observe::audit::AuditRow;
use crate::server::guc::set_local;
use crate::server::jsonb::{json_of, merged};
use crate::server::process::{my_pid, report_idle};
use crate::server::rows::insert;
use crate::server::signals::termination_requested;
use crate::server::spi::{call, fetch, run, timestamp};
use crate::server::transaction::transaction;
use crate::shm::{Segment, Work};
use crate::worker::drop_extension;

pub use super::totals::{ErrorRow, RunSample, Totals, ms};

thread_local! {
    /// The extension's anchor table at the run's begin.
    static RUN_LOG: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
}

/// Locks the extension, which must be the one that the run began with.
///
/// # Errors
/// 42501 if an object of it is not a superuser's, 42704 if it was dropped; those of [`hold_extension`].
pub fn hold() -> Result<(), UserError> {
    let table = hold_extension()?;
    on_own_tables_for_good()?;
    match RUN_LOG.get() {
        Some(first) if first != table => Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            "extension \"pgbench_ext\" was dropped during the run",
        )),
        _ => {
            RUN_LOG.set(Some(table));
            Ok(())
        }
    }
}

/// Writes the row of a run that is about to start, and returns its id.
pub fn begin(spec: &RunSpec, segment: &Segment) -> Result<i64, UserError> {
    transaction(|| {
        hold()?;
        drop_extension::hold()?;
        // The coordinator of a run on several nodes has no clients of its own.
        if !spec.is_of_several_nodes() {
            work::check_clients_alone(spec)?;
        }
        let row = row_of(spec, segment);
        let columns = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "INSERT INTO bench_internal.run_log (role, extension_version, {columns}) \
             SELECT bench_internal.role_name(r.owner_oid, $2), e.extversion, {columns} \
             FROM pg_extension e, jsonb_populate_record(NULL::bench_internal.run_log, $1) r \
             WHERE e.extname = 'pgbench_ext' RETURNING run_id"
        );
        // role_name() is current even if the role was renamed after the call.
        let run_id = call::<i64>(&sql, &[JsonB(row.into()).into(), spec.owner().name.into()])?
            .ok_or_else(|| crate::error::internal("could not record the run"))?;
        segment.claim(Work::Run(run_id));
        Ok(run_id)
    })
}

/// Options of a run that are not columns of its row.
const NOT_RECORDED: [&str; 3] = ["mix", "exit_on_abort", "continue_on_error"];

/// Returns the columns of a run's row that are known at its start: its options by their names, and resolved values.
fn row_of(spec: &RunSpec, segment: &Segment) -> Map<String, Value> {
    let options = &spec.options;
    let resolved = json!({
        "script": script_as_run(spec),
        "fixture": spec.fixture_names(),
        "fixture_rows": spec.fixture_rows(),
        "fixture_options": spec.fixture_options(),
        "feeders": spec.fed(),
        "seed": spec.seed,
        "jobs": (options.driver == Driver::Wire).then(|| segment.shape().slots),
        "duel": options.duel.as_ref().map(Duel::recorded),
        "run_as": spec.run_as(),
        "owner_oid": spec.owner().oid,
        "status": "starting",
        "segment": segment.handle(),
        "coordinator_pid": my_pid(),
        "horizon_held": spec.horizon_held,
        "sweep_id": spec.sweep_id,
        "part_of": spec.part_of,
        "system": spec.system,
        "applied": spec.applied,
    });
    let mut row = merged([json_of(options), resolved]);
    row.retain(|name, _| !NOT_RECORDED.contains(&name.as_str()));
    row
}

/// Returns the script of a run; those of a mix one after the other, each behind a comment with its name and weight.
fn script_as_run(spec: &RunSpec) -> String {
    match &spec.scripts[..] {
        [script] => script.source.clone(),
        scripts => {
            let titled = |s: &ScriptSpec| format!("-- {}@{}\n{}", s.name, s.weight, s.source);
            scripts.iter().map(titled).collect::<Vec<_>>().join("\n")
        }
    }
}

/// Records that the run starts now, with all clients ready. `counted_from`, a TimestampTz, is the begin of the first reading of
/// the server's counters.
pub fn running(run_id: i64, environment: &Environment, counted_from: i64) -> Result<(), UserError> {
    let environment = json_of(environment);
    transaction(|| {
        hold()?;
        run(
            "UPDATE bench_internal.run_log SET status = 'running', started_at = clock_timestamp(), \
             environment = $2, counted_from = $3 WHERE run_id = $1",
            &[run_id.into(), JsonB(environment.clone()).into(), timestamp(counted_from).into()],
        )
        .map(drop)
    })
}

/// Writes samples in one transaction. Each may replace an earlier one, given by its elapsed seconds.
pub fn samples(run_id: i64, samples: &[(&RunSample, Option<f64>)]) -> Result<(), UserError> {
    let samples = std::panic::AssertUnwindSafe(samples);
    transaction(|| {
        hold()?;
        samples.iter().try_for_each(|&(sample, replaces)| write_sample(run_id, sample, replaces))
    })
}

fn write_sample(run_id: i64, sample: &RunSample, replaces: Option<f64>) -> Result<(), UserError> {
    let table = if sample.in_warmup { "bench.warmup_samples" } else { "bench.samples" };
    if let Some(elapsed) = replaces {
        let delete = format!("DELETE FROM {table} WHERE run_id = $1 AND elapsed = $2");
        run(&delete, &[run_id.into(), elapsed.into()])?;
        if !sample.in_warmup {
            let sql = "DELETE FROM bench.standbys WHERE run_id = $1 AND elapsed = $2";
            run(sql, &[run_id.into(), elapsed.into()])?;
        }
    }
    let totals = &sample.totals;
    let interval = json!({
        "elapsed": sample.elapsed_secs,
        "secs": sample.secs,
        "at": timestamp(sample.at),
        "clients": sample.clients,
        "transactions": totals.moments.count,
        "tps": sample.tps(),
        "latency_histogram": coarse(&totals.histogram),
    });
    let row = merged([interval, totals.columns().into(), sample.observed.columns().into()]);
    let columns: Vec<&str> = row.keys().map(String::as_str).collect();
    let insert = format!(
        "INSERT INTO {table} (run_id, lag_avg_ms, {}) \
         SELECT r.run_id, CASE WHEN r.rate IS NOT NULL THEN $2 END, s.{} \
         FROM bench_internal.run_log r, jsonb_populate_record(NULL::{table}, $3) s WHERE r.run_id = $1",
        columns.join(", "),
        columns.join(", s.")
    );
    let written = run(&insert, &[run_id.into(), totals.lag_avg_ms().into(), JsonB(row.into()).into()])?;
    if written == 0 {
        return Err(gone(run_id));
    }
    if sample.in_warmup || sample.observed.standbys.is_empty() {
        return Ok(());
    }
    totals::standby_lines(run_id, sample.elapsed_secs, &sample.observed.standbys)
}

/// A row of bench.transactions.
pub struct Logged {
    /// The time when it started or was skipped, a TimestampTz.
    pub started: i64,
    pub entry: LogRecord,
}

/// Writes logged transactions in one transaction.
pub fn transactions(run_id: i64, rows: &[Logged]) -> Result<(), UserError> {
    let latency_ms =
        |entry: &LogRecord| (entry.outcome != LoggedOutcome::Skipped).then(|| ms(entry.latency_ns as f64));
    let clients: Vec<i32> = rows.iter().map(|row| row.entry.client.cast_signed()).collect();
    let numbers: Vec<i64> = rows.iter().map(|row| row.entry.transaction.cast_signed()).collect();
    let scripts: Vec<i32> = rows.iter().map(|row| row.entry.script.cast_signed()).collect();
    let started: Vec<Option<TimestampWithTimeZone>> = rows.iter().map(|row| timestamp(row.started)).collect();
    let lags: Vec<f64> = rows.iter().map(|row| ms(row.entry.lag_ns as f64)).collect();
    let latencies: Vec<Option<f64>> = rows.iter().map(|row| latency_ms(&row.entry)).collect();
    let retries: Vec<i32> =
        rows.iter().map(|row| i32::try_from(row.entry.retries).unwrap_or(i32::MAX)).collect();
    let outcomes: Vec<&str> = rows.iter().map(|row| row.entry.outcome.as_str()).collect();
    let written = transaction(std::panic::AssertUnwindSafe(move || {
        hold()?;
        run(
            "INSERT INTO bench.transactions (run_id, client, transaction, script, started, lag_ms, latency_ms, retries, outcome) \
             SELECT r.run_id, x.client, x.transaction, x.script, x.started, CASE WHEN r.rate IS NOT NULL THEN x.lag_ms END, \
                 x.latency_ms, x.retries, x.outcome \
             FROM bench_internal.run_log r, ROWS FROM (unnest($2), unnest($3), unnest($4), \
                 unnest($5), unnest($6), unnest($7), unnest($8), unnest($9)) \
                 AS x (client, transaction, script, started, lag_ms, latency_ms, retries, outcome) \
             WHERE r.run_id = $1",
            &[
                run_id.into(),
                clients.into(),
                numbers.into(),
                scripts.into(),
                started.into(),
                lags.into(),
                latencies.into(),
                retries.into(),
                outcomes.into(),
            ],
        )
    }))?;
    if written < rows.len() { Err(gone(run_id)) } else { Ok(()) }
}

// The end of a run, in parts, each a transaction of its own, so that one that cannot be written does not affect the others. The
// status comes last: when it shows that a run is over, its results are there.

words! {
    /// How a run, or a sweep of them, ended, as the columns status have it.
    pub enum RunStatus {
        Completed = "completed",
        /// Clients were lost on the way, or runs of a sweep; the rest is there.
        Incomplete = "incomplete",
        Canceled = "canceled",
        /// Nothing was measured.
        Failed = "failed",
    }
}

/// A part of the end, named by the view that shows it.
pub type Part = &'static str;

/// The columns of a run's row that are written with its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunColumns {
    Whole,
    /// Only the status, the error and the time.
    StatusOnly,
}

/// The writing of a run's end.
pub struct RunEnd {
    run_id: i64,
    /// For all parts together.
    lock_timeout: LockTimeout,
    missing: UnwrittenParts,
}

impl RunEnd {
    /// Begins to write the end of a run.
    pub fn new(run_id: i64) -> Self {
        Self { run_id, lock_timeout: LockTimeout::new(), missing: UnwrittenParts::default() }
    }

    /// Records a part that cannot be written because it could not be read.
    pub fn miss(&mut self, part: Part, reason: UserError) {
        self.missing.add(part, reason);
    }

    /// Writes a part, or keeps its error for that of the run.
    pub fn part(&mut self, part: Part, write: impl Fn() -> Result<(), UserError>) {
        loop {
            let may_wait = self.lock_timeout.is_left();
            let result = transaction(AssertUnwindSafe(|| {
                if !may_wait {
                    set_local(c"lock_timeout", c"50ms");
                }
                hold()?;
                check_exists(self.run_id)?;
                write()
            }));
            match result {
                Ok(()) => return,
                Err(error) if self.lock_timeout.allows_retry(&error) => {}
                Err(error) => return self.missing.add(part, error),
            }
        }
    }

    /// Writes the status of the run with `write`, which returns the number of changed rows. A run with missing parts is not
    /// complete. If the status cannot be written for a while, writes it to the server's log instead, with `detail`, a summary
    /// of the results.
    ///
    /// # Errors
    /// That of the status, or of missing parts.
    pub fn close(
        mut self,
        status: RunStatus,
        error: Option<&UserError>,
        detail: &str,
        write: impl Fn(RunStatus, Option<&UserError>, RunColumns) -> Result<usize, UserError>,
    ) -> Result<(), UserError> {
        // A caller that has seen the status may start another run before this process has ended, which must not see it as active.
        report_idle();
        let began = Instant::now();
        let mut row = RunColumns::Whole;
        loop {
            let status = match status {
                RunStatus::Completed if !self.missing.is_empty() => RunStatus::Incomplete,
                status => status,
            };
            let error = self.missing.told_with(error.cloned());
            let written = try_to_write(began, status_timeout, || {
                transaction(AssertUnwindSafe(|| {
                    hold()?;
                    match write(status, error.as_ref(), row)? {
                        0 => Err(gone(self.run_id)),
                        _ => Ok(()),
                    }
                }))
            });
            let Err(reason) = written else {
                return if self.missing.is_empty() { Ok(()) } else { error.map_or(Ok(()), Err) };
            };
            // The run was deleted, or the extension dropped.
            if reason.sqlstate == sqlstate::UNDEFINED_OBJECT {
                return Err(reason);
            }
            if row == RunColumns::Whole && reason.sqlstate != sqlstate::LOCK_NOT_AVAILABLE {
                self.missing.add("the figures in bench.summary", reason);
                row = RunColumns::StatusOnly;
            } else {
                log_status(self.run_id, status, &reason, error.as_ref(), detail);
                return Err(reason);
            }
        }
    }
}

/// Returns how long to try to write a status; shorter during a shutdown.
fn status_timeout() -> Duration {
    Duration::from_secs(if termination_requested() { 2 } else { 10 })
}

/// Checks that the run's row exists: rows of a deleted run would stay forever.
///
/// # Errors
/// 42704 if it was deleted.
fn check_exists(run_id: i64) -> Result<(), UserError> {
    let sql = "SELECT true FROM bench_internal.run_log WHERE run_id = $1";
    fetch::<bool>(sql, &[run_id.into()])?.map(drop).ok_or_else(|| gone(run_id))
}

/// Returns the error for a run whose row was deleted.
pub fn gone(run_id: i64) -> UserError {
    UserError::new(sqlstate::UNDEFINED_OBJECT, format!("the row of run {run_id} is gone"))
}

fn log_status(run_id: i64, status: RunStatus, reason: &UserError, error: Option<&UserError>, detail: &str) {
    let run_error = error.map(|error| format!(" Its error: {error}.")).unwrap_or_default();
    let log = UserError::new(
        &reason.sqlstate,
        format!(
            "could not record in bench.runs that run {run_id} is {}: {}",
            status.as_str(),
            reason.message
        ),
    )
    .detail(format!("{detail}{run_error}"))
    .hint("bench.runs shows it as \"crashed\"; results recorded before that are kept.");
    crate::error::log(log);
}

/// The results of a run.
pub struct Closing<'a> {
    /// The status if all parts can be written.
    pub status: RunStatus,
    pub error: Option<&'a UserError>,
    /// Parts that could not be read, or not be written earlier.
    pub missing: Vec<(Part, UserError)>,
    pub horizon_held: bool,
    /// The totals, with the latencies of transactions under way at the end.
    pub measured: &'a Totals,
    /// Under a rate: transactions due before the end and neither started nor skipped.
    pub backlog: u64,
    /// Rows of bench.transactions, written and lost.
    pub logged: (u64, u64),
    /// Processes of clients that could not be ended.
    pub clients_stuck: &'a [i32],
    /// Processor time of the clients' processes for each committed transaction, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Latencies of connections opened during the measurement.
    pub connects: &'a Totals,
    pub spec: &'a RunSpec,
    /// One for each script.
    pub scripts: &'a [Totals],
    pub statements: &'a [CommandSummary],
    pub errors: &'a [ErrorRow],
    /// Counts of pg_stat_statements, by script.
    pub calls: &'a [(i32, Counts)],
    /// The results of a duel's arms; `None` for other runs.
    pub duel: Option<&'a DuelMeasured>,
    pub audit: &'a [AuditRow],
    /// Shares of the clients' measured time, by wait event.
    pub waits: &'a [(String, f64)],
    pub events: &'a [Event],
    /// Readings of `observe::relations`, before and after.
    pub relations: (&'a serde_json::Value, &'a serde_json::Value),
    /// Facts about the environment that are known only at the end.
    pub environment: &'a Environment,
    /// The length of the warm-up in seconds; `None` if the gate was not opened.
    pub warmup_took_secs: Option<f64>,
}

/// Writes the results part by part, and then the run's status.
///
/// # Errors
/// As [`RunEnd::close`].
pub fn finish(run_id: i64, closing: &Closing) -> Result<(), UserError> {
    let mut end = RunEnd::new(run_id);
    for (part, reason) in &closing.missing {
        end.miss(part, reason.clone());
    }
    end.part("bench.latencies", || {
        (0..)
            .zip(closing.scripts)
            .try_for_each(|(script, totals)| totals::latencies(run_id, script, &totals.histogram))
    });
    end.part("bench.scripts", || {
        let scripts = (0..).zip(closing.scripts.iter().zip(&closing.spec.scripts));
        let row = |(index, (totals, script))| totals::script_line(index, script, totals, closing.spec);
        put("bench_internal.script_log", run_id, scripts.map(row))
    });
    end.part("bench.statements", || put("bench_internal.statement_log", run_id, closing.statements));
    end.part("bench_internal.call_log", || {
        let calls = closing.calls.iter().map(|(script, counts)| totals::call_line(*script, counts));
        put("bench_internal.call_log", run_id, calls)
    });
    end.part("bench.duels", || closing.duel.map_or(Ok(()), |duel| put_duel(run_id, duel)));
    end.part("bench.errors", || put("bench_internal.error_log", run_id, closing.errors));
    end.part("bench.audit", || put("bench_internal.audit_log", run_id, closing.audit));
    end.part("bench.waits", || {
        let waits = closing.waits.iter().map(|(key, share)| totals::wait_line(key, *share));
        put("bench_internal.wait_log", run_id, waits)
    });
    end.part("bench.events", || {
        let events = (1..).zip(closing.events).map(|(event, what)| EventLine { event, what });
        put("bench_internal.event_log", run_id, events)
    });
    end.part("bench.relations", || totals::lines(run_id, closing.relations));
    let detail = format!(
        "It committed {} measured transactions, with a mean latency of {:.3} ms; {} failed.",
        closing.measured.transactions(),
        closing.measured.moments.mean_ns().map_or(0.0, ms),
        closing.measured.failed
    );
    end.close(closing.status, closing.error, &detail, |status, error, row| match row {
        RunColumns::Whole => whole_row(run_id, status, error, closing),
        RunColumns::StatusOnly => status_only(run_id, status, error),
    })
}

/// Writes rows of a run into a table.
fn put<T: Serialize>(table: &str, run_id: i64, rows: impl IntoIterator<Item = T>) -> Result<(), UserError> {
    insert(table, ("run_id", run_id.into()), rows)
}

/// Updates status and error of a run's row only.
pub fn status_only(run_id: i64, status: RunStatus, error: Option<&UserError>) -> Result<usize, UserError> {
    run(
        "UPDATE bench_internal.run_log SET status = $2, finished_at = clock_timestamp(), error = $3 WHERE run_id = $1",
        &[run_id.into(), status.as_str().into(), error.map(|e| pgrx::JsonB(json_of(e))).into()],
    )
}

fn whole_row(
    run_id: i64,
    status: RunStatus,
    error: Option<&UserError>,
    closing: &Closing,
) -> Result<usize, UserError> {
    let RunOptions { rate, log_rate, on_disconnect, .. } = &closing.spec.options;
    let (whole, connects) = (closing.measured, closing.connects);
    let (logged, log_lost) = closing.logged;
    let is_logged = *log_rate > 0.0;
    let figures = json!({
        "latency_p999_ms": percentile_ms(&whole.histogram, 0.999),
        "lag_avg_ms": rate.and(whole.lag_avg_ms()),
        "lag_max_ms": rate.map(|_| ms(whole.lag_max_ns as f64)),
        "backlog": rate.map(|_| closing.backlog),
        "horizon_held": closing.horizon_held,
        "logged": is_logged.then_some(logged),
        "log_lost": is_logged.then_some(log_lost),
        "server_cpu_us": closing.server_cpu_us,
        "connect_avg_ms": connects.moments.mean_ns().map(ms),
        "connect_p50_ms": percentile_ms(&connects.histogram, 0.5),
        "connect_p95_ms": percentile_ms(&connects.histogram, 0.95),
        "connect_p99_ms": percentile_ms(&connects.histogram, 0.99),
        "connect_max_ms": connects.latency_max_ms(),
        "unknown": (*on_disconnect == OnDisconnect::Reconnect).then_some(whole.unknown),
        "warmup_took": closing.warmup_took_secs,
        "clients_stuck": Some(closing.clients_stuck).filter(|stuck| !stuck.is_empty()),
    });
    let row = merged([whole.latencies(), figures]);
    let columns = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "UPDATE bench_internal.run_log SET status = $2, finished_at = clock_timestamp(), error = $3, \
             environment = environment || $4, \
             ({columns}) = (SELECT {columns} FROM jsonb_populate_record(NULL::bench_internal.run_log, $5)) \
         WHERE run_id = $1"
    );
    run(
        &sql,
        &[
            run_id.into(),
            status.as_str().into(),
            error.map(|e| pgrx::JsonB(json_of(e))).into(),
            pgrx::JsonB(without_empty_fields(closing.environment)).into(),
            pgrx::JsonB(row.into()).into(),
        ],
    )
}

/// Returns an environment without its empty fields, to be merged into the one recorded at the start.
fn without_empty_fields(environment: &Environment) -> serde_json::Value {
    let mut json = json_of(environment);
    if let Some(fields) = json.as_object_mut() {
        let is_empty = |value: &serde_json::Value| {
            value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        fields.retain(|_, value| !is_empty(value));
    }
    json
}
