//! The end of old runs.

use bench_core::error::{UserError, sqlstate};
use pgrx::datum::{Interval, TimestampWithTimeZone};

use super::{RESULT_TABLES, RUN_LOG};
use crate::catalog::{acts_for, as_owner, fetch, run};

/// Since when the run `r` is here and over. Of one that crashed before it started only its place among the others is
/// known: ids are in the order in which runs are asked for.
const KEPT_SINCE: &str = "coalesce((r.origin ->> 'imported_at')::pg_catalog.timestamptz, r.finished_at, r.started_at, \
     (SELECT pg_catalog.min(later.started_at) FROM bench.run_log later WHERE later.run_id > r.run_id AND later.origin IS NULL))";

/// Deletes the runs, of roles that the caller acts for, that have been here and over for longer than this; how many.
///
/// # Errors
/// 22023 for a negative interval.
pub fn prune(older_than: Interval) -> Result<i64, UserError> {
    let (before, roles) = as_owner(|| {
        // Months differ: an interval may be above zero by its own account and not from today.
        let before = fetch::<TimestampWithTimeZone>(
            "SELECT CASE WHEN $1 >= '0' AND pg_catalog.now() - $1 <= pg_catalog.now() THEN pg_catalog.now() - $1 END",
            &[older_than.into()],
        )?;
        let roles =
            fetch::<Vec<String>>("SELECT pg_catalog.array_agg(DISTINCT role) FROM bench.run_log", &[])?;
        Ok((before, roles.unwrap_or_default()))
    })?;
    let Some(before) = before else {
        return Err(UserError::new(sqlstate::INVALID_PARAMETER_VALUE, "older_than must not be negative"));
    };
    let mut own_roles = Vec::new();
    for role in roles {
        if acts_for(&role)? {
            own_roles.push(role);
        }
    }
    as_owner(|| {
        let old = format!(
            "SELECT pg_catalog.array_agg(r.run_id) FROM bench.run_log r \
             WHERE r.role = ANY ($1) AND {KEPT_SINCE} < $2 \
               AND bench.status_of(r.status, r.segment, r.run_id) NOT IN ('starting', 'running') \
               AND NOT EXISTS (SELECT FROM bench.sweep_log s WHERE s.sweep_id = r.sweep_id \
                                   AND bench.sweep_status_of(s.status, s.segment, s.sweep_id) = 'running')"
        );
        let Some(old) = fetch::<Vec<i64>>(&old, &[own_roles.into(), before.into()])? else { return Ok(0) };
        settle_audits(&old)?;
        for table in RESULT_TABLES {
            run(&format!("DELETE FROM bench.{table} WHERE run_id = ANY ($1)"), &[old.clone().into()])?;
        }
        forget_in_sweeps(&old)?;
        let deleted = run(&format!("DELETE FROM bench.{RUN_LOG} WHERE run_id = ANY ($1)"), &[old.into()])?;
        Ok(deleted as i64)
    })
}

/// A sweep goes with the last of its runs, with what it has not come to; but not while it has something to put back.
fn forget_in_sweeps(old: &[i64]) -> Result<(), UserError> {
    let sweeps = fetch::<Vec<i64>>(
        "SELECT pg_catalog.array_agg(DISTINCT sweep_id) FROM bench.sweep_run_log WHERE run_id = ANY ($1)",
        &[old.to_vec().into()],
    )?;
    let Some(sweeps) = sweeps else { return Ok(()) };
    run("DELETE FROM bench.sweep_run_log WHERE run_id = ANY ($1)", &[old.to_vec().into()])?;
    let empty = fetch::<Vec<i64>>(
        "SELECT pg_catalog.array_agg(sweep_id) FROM bench.sweep_log s \
         WHERE sweep_id = ANY ($1) AND system_settings IS NULL AND NOT EXISTS ( \
             SELECT FROM bench.sweep_run_log l WHERE l.sweep_id = s.sweep_id AND l.run_id IS NOT NULL)",
        &[sweeps.into()],
    )?;
    let Some(empty) = empty else { return Ok(()) };
    run("DELETE FROM bench.sweep_run_log WHERE sweep_id = ANY ($1)", &[empty.clone().into()])?;
    run("DELETE FROM bench.sweep_log WHERE sweep_id = ANY ($1)", &[empty.into()]).map(drop)
}

/// Writes down, for runs that stay, which of those that go kept their audits from being judged: without them the view
/// would take the difference for an error.
fn settle_audits(old: &[i64]) -> Result<(), UserError> {
    let beside = fetch::<Vec<i64>>(
        "SELECT pg_catalog.array_agg(r.run_id) FROM bench.run_log r \
         WHERE r.origin IS NULL AND r.run_id <> ALL ($1) AND EXISTS (SELECT FROM bench.run_log o \
             WHERE o.run_id = ANY ($1) AND o.origin IS NULL \
               AND least(r.counted_from, r.started_at) < coalesce(o.finished_at, 'infinity') AND r.finished_at > least(o.counted_from, o.started_at))",
        &[old.to_vec().into()],
    )?;
    let Some(beside) = beside else { return Ok(()) };
    run(
        "UPDATE bench.audit_log a SET judged = false, reason = v.reason FROM bench.audits v \
         WHERE a.run_id = ANY ($1) AND v.run_id = ANY ($1) AND v.run_id = a.run_id AND v.node = a.node AND v.counter = a.counter \
           AND a.judged AND v.reason <> a.reason",
        &[beside.into()],
    )
    .map(drop)
}
