//! The rows of runs, loads and sweeps: visibility, status, conflicts, results, and the history of runs.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::RunSpec;
use pgrx::datum::DatumWithOid;
use pgrx::{JsonB, pg_sys};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::extension_owner::read;
use super::{as_owner, may_see};
use crate::server::background_worker;
use crate::server::database::is_standby;
use crate::server::relations::OwnLock;
use crate::server::roles::{self, acts_for, current_role_oid, name_of};
use crate::server::rows::{select, select_one};
use crate::server::spi::fetch;
use crate::shm::{Segment, Work, build, is_under_way};

/// The row of a run, a load or a sweep, by which its leader is found.
pub struct WorkHandle {
    pub work: Work,
    pub segment: u32,
    /// The status in the row, which does not show crashes.
    pub status: String,
    /// The role's current name, or the recorded one of a dropped role.
    pub role: String,
    pub owner_oid: pg_sys::Oid,
}

impl WorkHandle {
    /// Checks that this session can communicate with the leader.
    ///
    /// # Errors
    /// 55000 if the leader uses another build of the library.
    pub fn check_build(&self) -> Result<(), UserError> {
        if is_open(&self.status) && build::is_led_by_other(self.segment, self.work) {
            return Err(build::started_by_other(self.work));
        }
        Ok(())
    }

    /// Checks that the caller may see it.
    ///
    /// # Errors
    /// 42501 if not.
    fn check_visible(&self) -> Result<(), UserError> {
        if may_see(self.owner_oid) {
            return Ok(());
        }
        let message = format!("permission denied for {}", self.work);
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .hint(format!("This requires the privileges of role \"{}\" or of pg_read_all_stats.", self.role)))
    }

    /// Checks that the caller may stop it.
    ///
    /// # Errors
    /// 42501 if not.
    pub fn check_may_stop(&self) -> Result<(), UserError> {
        if may_stop(self.owner_oid) {
            return Ok(());
        }
        Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("{} belongs to role \"{}\"", self.work, self.role),
        )
        .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."))
    }
}

/// Reads the row of a run, a load or a sweep.
///
/// # Errors
/// 42704 if it does not exist.
pub fn handle_of(work: Work) -> Result<WorkHandle, UserError> {
    let noun = work.noun();
    let found = as_owner(|| {
        let sql = format!(
            "SELECT segment, status, bench_internal.role_name(owner_oid, role), coalesce(owner_oid, 0) \
             FROM bench_internal.{noun}_log WHERE {noun}_id = $1"
        );
        select_one::<(i64, String, String, pg_sys::Oid)>(&sql, &[work.id().into()])
    })?;
    let (segment, status, role, owner_oid) = found.ok_or_else(|| missing(work))?;
    Ok(WorkHandle { work, segment: segment as u32, status, role, owner_oid })
}

/// Returns the error for a run, a load or a sweep that does not exist.
pub(super) fn missing(work: Work) -> UserError {
    UserError::new(sqlstate::UNDEFINED_OBJECT, format!("{work} does not exist"))
}

/// As [`handle_of`], and checks that the caller may see it.
///
/// # Errors
/// 42704 if it does not exist, 42501 if the caller may not see it.
pub fn visible(work: Work) -> Result<WorkHandle, UserError> {
    let handle = handle_of(work)?;
    handle.check_visible().map(|()| handle)
}

/// Checks that the caller may see a run.
///
/// # Errors
/// 42704 for a run that does not exist, 42501 for one that the caller may not see.
pub fn check_visible(run_id: i64) -> Result<(), UserError> {
    visible(Work::Run(run_id)).map(drop)
}

/// Returns the current status, including 'crashed'.
pub fn status(work: Work) -> Result<String, UserError> {
    let handle = handle_of(work)?;
    current_status(work, handle.status, handle.segment)
}

/// Returns the row's status, or 'crashed' if it is open and the leader is gone.
///
/// # Errors
/// 42501 if `segment` is not the row's and the caller may not see the row.
pub fn current_status(work: Work, status: String, segment: u32) -> Result<String, UserError> {
    // On a standby, which does not know the leader, the row's status is returned.
    if !is_open(&status) || is_standby() || is_led(work, segment) {
        return Ok(status);
    }
    // The row may have been read before the work ended.
    if let Ok(latest) = handle_of(work) {
        // bench.audits reads other roles' runs as well, with the segment from the row, which users cannot see.
        if latest.segment != segment {
            latest.check_visible()?;
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

/// Whether the leader is active, by the segment in the row.
pub fn is_led(work: Work, segment: u32) -> bool {
    let is_led = |segment: &Segment| segment.is_of(work) && is_under_way(segment);
    Segment::peek(segment, is_led) == Some(true) || build::is_led_by_other(segment, work)
}

/// Whether the current role may stop work of a role.
pub fn may_stop(role: pg_sys::Oid) -> bool {
    // As for pg_terminate_backend, pg_signal_backend does not suffice for superusers.
    acts_for(role) || acts_for(roles::SIGNAL_BACKEND) && !roles::is_superuser(role)
}

/// Returns the runs with open rows and their segments; `condition` is a condition in SQL on bench_internal.run_log.
fn open_runs(condition: &str, arguments: &[DatumWithOid]) -> Result<Vec<(i64, u32)>, UserError> {
    as_owner(|| {
        let sql = format!(
            "SELECT run_id, segment FROM bench_internal.run_log WHERE status IN ('starting', 'running') AND {condition} ORDER BY run_id"
        );
        let runs = select::<(i64, i64)>(&sql, arguments)?;
        Ok(runs.into_iter().map(|(run_id, segment)| (run_id, segment as u32)).collect())
    })
}

/// Returns the current role's active runs that a job has started, by their tag `job`.
pub fn runs_of_job(job: &str) -> Result<Vec<i64>, UserError> {
    let role = current_role_oid();
    let mut open = open_runs("owner_oid = $1 AND tags ->> 'job' = $2", &[role.into(), job.into()])?;
    open.retain(|&(run_id, segment)| is_led(Work::Run(run_id), segment));
    Ok(open.into_iter().map(|(run_id, _)| run_id).collect())
}

/// Counts what a role has at a time: clients of its runs in this database, workers of its loads and sweeps, and workers in other
/// databases.
pub fn clients_of(role: pg_sys::Oid) -> Result<u64, UserError> {
    // For a run on several nodes, only this node's part counts.
    let mut open = open_runs("owner_oid = $1 AND (nodes = 'local' OR part_of IS NOT NULL)", &[role.into()])?;
    open.retain(|&(run_id, segment)| is_led(Work::Run(run_id), segment));
    let ids: Vec<i64> = open.into_iter().map(|(run_id, _)| run_id).collect();
    let sql = "SELECT sum(clients)::int8 FROM bench_internal.run_log WHERE run_id = ANY ($1)";
    let clients = as_owner(|| fetch::<i64>(sql, &[ids.into()]))?.unwrap_or_default().unsigned_abs();
    let (other_databases, others) = background_worker::workers_of_role(role);
    Ok(clients + other_databases + others)
}

/// Checks that a role with `more` additional clients stays within `limit`.
///
/// # Errors
/// 53300 if it does not.
pub fn check_clients(role: pg_sys::Oid, more: u64, limit: u64) -> Result<(), UserError> {
    let in_use = clients_of(role)?;
    if in_use + more <= limit {
        return Ok(());
    }
    let role = name_of(role).unwrap_or_default();
    Err(UserError::new(sqlstate::TOO_MANY_CONNECTIONS, format!("too many clients for role \"{role}\""))
        .detail(format!(
            "Needed: {more}; in its runs, loads and sweeps under way: {in_use}; pgbench_ext.max_clients_per_role: {limit}."
        ))
        .hint("Use fewer clients, end others of the role's runs with bench.stop, or have a superuser raise the limit."))
}

/// As [`check_clients`], for a run whose row is about to be written. Takes a lock until the transaction ends, because concurrent
/// transactions would not see each other's rows.
pub(super) fn check_clients_alone(spec: &RunSpec) -> Result<(), UserError> {
    let Some(limit) = spec.max_clients else { return Ok(()) };
    // Clients count for the caller, even in sessions of another role.
    let owner = spec.owner().oid;
    OwnLock::new(spec.database_oid, owner, CLIENTS_LOCK).acquire();
    check_clients(owner.into(), spec.options.clients.into(), limit)
}

/// The third number of the lock. It need not differ from those of the locks of pg_cron's jobs, which are hashes.
const CLIENTS_LOCK: u32 = 0x636c_6e74;

/// Checks that no active run uses a fixture's tables.
///
/// # Errors
/// 55006 with the run that uses one of them.
pub fn check_unused(fixture: &str, tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let open = open_runs("true", &[])?;
    let works_on_it = |run_id: i64, segment: &Segment| {
        segment.is_of(Work::Run(run_id))
            && is_under_way(segment)
            && serde_json::from_str::<RunSpec>(segment.spec()).is_ok_and(|spec| {
                let used = spec.fixtures.iter().flat_map(|f| &f.tables);
                used.copied().any(|used| tables.iter().any(|table| table.to_u32() == used))
            })
    };
    for (run_id, segment) in open {
        let is_used = Segment::peek(segment, |segment| works_on_it(run_id, segment)) == Some(true)
            || build::is_led_by_other(segment, Work::Run(run_id)) && is_named(run_id, fixture)?;
        if is_used {
            return Err(UserError::new(
                sqlstate::OBJECT_IN_USE,
                format!("fixture \"{fixture}\" is being used by run {run_id}"),
            )
            .hint(format!("Wait for it, or end it: SELECT bench.stop({run_id}).")));
        }
    }
    Ok(())
}

/// Whether a run uses a fixture of this name. Of runs of another build of the library only the name is known.
fn is_named(run_id: i64, fixture: &str) -> Result<bool, UserError> {
    let sql = "run_id = $1 AND $2 = ANY (string_to_array(fixture, ','))";
    Ok(!open_runs(sql, &[run_id.into(), fixture.into()])?.is_empty())
}

/// Returns the buckets of a run's histogram as (low ms, high ms, count), in ascending order.
pub fn histogram(run_id: i64) -> Result<Vec<(f64, f64, u64)>, UserError> {
    as_owner(|| {
        select(
            "SELECT low_ms, high_ms, sum(count)::int8 FROM bench.latencies \
             WHERE run_id = $1 GROUP BY low_ms, high_ms ORDER BY low_ms",
            &[run_id.into()],
        )
    })
}

/// Returns the number of a run's transactions that were counted in the sample of an earlier interval, if there are any.
pub fn misplaced(run_id: i64) -> Result<Option<i64>, UserError> {
    let sql = "SELECT harness FROM bench_internal.audit_log WHERE run_id = $1 AND counter = 'misplaced' AND harness > 0";
    read(sql, &[run_id.into()])
}

/// Returns a run's error with its detail as a line.
pub fn error_line(run_id: i64) -> Result<Option<String>, UserError> {
    let sql = "SELECT error ->> 'message' || coalesce(' (' || (error ->> 'detail') || ')', '') \
               FROM bench_internal.run_log WHERE run_id = $1";
    read(sql, &[run_id.into()])
}

/// Returns the hint of a run's error.
pub fn error_hint(run_id: i64) -> Result<Option<String>, UserError> {
    let sql = "SELECT error ->> 'hint' FROM bench_internal.run_log WHERE run_id = $1";
    read(sql, &[run_id.into()])
}

/// Returns the number of a run's failed transactions by SQLSTATE, the most frequent first.
pub fn failures(run_id: i64) -> Result<Vec<(String, i64)>, UserError> {
    let sql = "SELECT sqlstate, sum(failed)::int8 AS failed FROM bench_internal.error_log \
               WHERE run_id = $1 AND failed > 0 GROUP BY sqlstate ORDER BY failed DESC, sqlstate";
    as_owner(|| select(sql, &[run_id.into()]))
}

/// Whether errors of a run's transactions were recorded.
pub fn has_errors(run_id: i64) -> Result<bool, UserError> {
    let sql = "SELECT true FROM bench_internal.error_log WHERE run_id = $1 LIMIT 1";
    Ok(read::<bool>(sql, &[run_id.into()])?.is_some())
}

// Series of comparable runs, and sweeps of bench.calibrate, which measure their spread.

/// A run in a series.
#[derive(Deserialize)]
pub struct Past {
    /// Options and tags, which are the same for all runs of a series.
    pub group: String,
    pub run_id: i64,
    /// In the server's format.
    pub started_at: String,
    pub value: f64,
}

/// The metrics of bench.history for which there are series.
const METRICS: [&str; 6] =
    ["tps", "latency_avg_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "server_cpu_us"];

/// Returns the completed runs of a workload that the caller may see and whose tags include `tags`, series by series.
///
/// # Errors
/// 22023 for an unknown metric.
pub fn history(workload: &str, metric: &str, tags: Map<String, Value>) -> Result<Vec<Past>, UserError> {
    let Some(metric) = METRICS.into_iter().find(|known| *known == metric) else {
        let listed = METRICS.map(|known| format!("'{known}'")).join(", ");
        return Err(UserError::invalid(format!("unrecognized value for metric: \"{metric}\""))
            .hint(format!("Available values: {listed}.")));
    };
    // Executed as the caller, because the view shows each role its own runs.
    let sql = format!(
        "SELECT h.options::text || h.tags::text AS \"group\", h.run_id, h.started_at, h.{metric} AS value \
         FROM bench.history h \
         WHERE h.workload = $1 AND h.tags @> $2 AND h.{metric} IS NOT NULL \
           AND h.started_at IS NOT NULL ORDER BY 1, h.started_at, h.run_id"
    );
    select(&sql, &[workload.into(), JsonB(Value::Object(tags)).into()])
}

/// The number of the latest sweeps of bench.calibrate that are considered.
const MOST_CALIBRATIONS: i64 = 50;

/// Returns the latest sweep of bench.calibrate that the caller may see with at least `least` completed runs comparable to all of
/// `run_ids`, and these runs. Comparable runs have the same workload and options, and no tag that `run_ids` do not have.
pub fn calibration_of(run_ids: &[i64], least: usize) -> Result<Option<(i64, Vec<i64>)>, UserError> {
    let made = as_owner(|| {
        select::<(i64, pg_sys::Oid, Vec<i64>)>(
            "SELECT s.sweep_id, s.owner_oid, array_agg(l.run_id ORDER BY l.place) \
             FROM bench_internal.sweep_log s JOIN bench_internal.sweep_run_log l USING (sweep_id) JOIN bench_internal.run_log r USING (run_id) \
             WHERE s.options ->> 'calibrates' = 'true' AND l.error IS NULL AND r.status = 'completed' \
             GROUP BY s.sweep_id, s.owner_oid HAVING count(*) >= $1 ORDER BY s.sweep_id DESC LIMIT $2",
            &[(least as i64).into(), MOST_CALIBRATIONS.into()],
        )
    })?;
    for (sweep_id, role, runs) in made {
        pgrx::check_for_interrupts!();
        let Some(&first) = runs.first() else { continue };
        if may_see(role) && are_of_kind(run_ids, first)? {
            return Ok(Some((sweep_id, runs)));
        }
    }
    Ok(None)
}

/// Whether all of these runs are comparable to another.
fn are_of_kind(run_ids: &[i64], other: i64) -> Result<bool, UserError> {
    let found = as_owner(|| {
        fetch::<bool>(
            "SELECT bool_and(h.workload = o.workload AND h.options = o.options AND h.tags @> o.tags) \
                    AND count(*) = cardinality($1) \
             FROM bench.history h CROSS JOIN (SELECT workload, options, tags FROM bench.history WHERE run_id = $2) AS o \
             WHERE h.run_id = ANY ($1)",
            &[run_ids.to_vec().into(), other.into()],
        )
    })?;
    Ok(found == Some(true))
}
