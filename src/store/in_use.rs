//! Active runs: by fixture and by job.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::RunSpec;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;

use super::{as_owner, is_led};
use crate::server::locks::OwnLock;
use crate::server::roles::{current_role_oid, name_of};
use crate::server::rows::select;
use crate::server::spi::fetch;
use crate::server::worker_slots;
use crate::shm::{Segment, Work, build, is_under_way};

/// Runs whose rows have not been closed, with their segments; `condition` is of SQL, on bench_internal.run_log.
fn open_runs(condition: &str, arguments: &[DatumWithOid]) -> Result<Vec<(i64, u32)>, UserError> {
    as_owner(|| {
        let sql = format!(
            "SELECT run_id, segment FROM bench_internal.run_log WHERE status IN ('starting', 'running') AND {condition} ORDER BY run_id"
        );
        let runs = select::<(i64, i64)>(&sql, arguments)?;
        Ok(runs.into_iter().map(|(run_id, segment)| (run_id, segment as u32)).collect())
    })
}

/// The current role's runs under way that a job has started, by the tag that it gives them.
pub fn runs_of_job(job: &str) -> Result<Vec<i64>, UserError> {
    let role = current_role_oid();
    let mut open = open_runs("owner_oid = $1 AND tags ->> 'job' = $2", &[role.into(), job.into()])?;
    open.retain(|&(run_id, segment)| is_led(Work::Run(run_id), segment));
    Ok(open.into_iter().map(|(run_id, _)| run_id).collect())
}

/// What a role has at a time: clients of its runs in this database, workers of its loads and sweeps, and workers in other
/// databases.
pub fn clients_of(role: pg_sys::Oid) -> Result<u64, UserError> {
    // Of a run on several nodes, this node's part counts.
    let mut open = open_runs("owner_oid = $1 AND (nodes = 'local' OR part_of IS NOT NULL)", &[role.into()])?;
    open.retain(|&(run_id, segment)| is_led(Work::Run(run_id), segment));
    let ids: Vec<i64> = open.into_iter().map(|(run_id, _)| run_id).collect();
    let sql = "SELECT sum(clients)::int8 FROM bench_internal.run_log WHERE run_id = ANY ($1)";
    let clients = as_owner(|| fetch::<i64>(sql, &[ids.into()]))?.unwrap_or_default().unsigned_abs();
    let (other_databases, others) = worker_slots::workers_of_role(role);
    Ok(clients + other_databases + others)
}

/// Sees that a role has at most `limit` with so many more.
///
/// # Errors
/// 53300.
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

/// As [`check_clients`], for a run that is about to be recorded, whose row counts as soon as this transaction has committed. Two
/// at a time would not see each other.
pub(super) fn check_clients_alone(spec: &RunSpec) -> Result<(), UserError> {
    let Some(limit) = spec.max_clients else { return Ok(()) };
    // Whoever calls has them, whosever sessions they are.
    let owner = spec.owner().oid;
    OwnLock::new(spec.database_oid, owner, CLIENTS_LOCK).acquire();
    check_clients(owner.into(), spec.options.clients.into(), limit)
}

/// The third number of the lock: another than those of jobs of pg_cron would not have to be, for they are hashes.
const CLIENTS_LOCK: u32 = 0x636c_6e74;

/// # Errors
/// 55006 with the run that works on one of the tables.
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

/// Whether a run works on a fixture of this name: all that is known of one of another build of the library.
fn is_named(run_id: i64, fixture: &str) -> Result<bool, UserError> {
    let sql = "run_id = $1 AND $2 = ANY (string_to_array(fixture, ','))";
    Ok(!open_runs(sql, &[run_id.into(), fixture.into()])?.is_empty())
}
