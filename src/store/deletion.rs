//! The deletion of runs, single ones or old ones. A trigger deletes all results with the run's row of bench_internal.run_log.

use bench_base::error::{UserError, sqlstate};
use pgrx::datum::{Interval, TimestampWithTimeZone};
use pgrx::prelude::*;
use pgrx::trigger_support::PgTriggerOperation;

use super::export::{RESULT_TABLES, RUN_LOG, qualified};
use super::extension_owner::settle_owners;
use super::{as_owner, is_led};
use crate::guard::extension::anchor;
use crate::server::roles::acts_for;
use crate::server::spi::{fetch, fetch_all, fetch_as_of_statement, fetch_in_trigger, run};
use crate::shm::Work;

/// A run's row that is about to be deleted.
struct Leaving {
    run_id: i64,
    /// The segment, if the row is open.
    open_segment: Option<u32>,
    sweep_id: Option<i64>,
}

/// Deletes the results of runs whose rows a statement deletes: a trigger after DELETE, with a transition table, and before TRUNCATE of
/// bench_internal.run_log.
///
/// # Errors
/// 55006 for a run or a sweep under way, 39P01 on another table.
pub fn forget_runs(trigger: &PgTrigger) -> Result<(), UserError> {
    if trigger.relid().ok() != Some(anchor()?) {
        return Err(UserError::new(
            sqlstate::TRIGGER_PROTOCOL_VIOLATED,
            "this trigger function serves bench_internal.run_log only",
        ));
    }
    let truncates = matches!(trigger.op(), Ok(PgTriggerOperation::Truncate));
    as_owner(|| {
        let leaving = leaving(trigger, truncates)?;
        leaving.iter().try_for_each(check_over)?;
        check_sweeps(&leaving)?;
        let runs: Vec<i64> = leaving.iter().map(|run| run.run_id).collect();
        if !truncates {
            settle_audits(&runs)?;
        }
        for relation in RESULT_TABLES.map(qualified) {
            run(&format!("DELETE FROM {relation} WHERE run_id = ANY ($1)"), &[runs.clone().into()])?;
        }
        forget_in_sweeps(&runs)
    })
}

/// Returns the rows that the statement deletes: all of them for TRUNCATE.
fn leaving(trigger: &PgTrigger, truncates: bool) -> Result<Vec<Leaving>, UserError> {
    let source = if truncates { "bench_internal.run_log" } else { "deleted" };
    let sql = format!(
        "SELECT run_id, CASE WHEN status IN ('starting', 'running') THEN segment END, sweep_id FROM {source} ORDER BY run_id"
    );
    fetch_in_trigger(trigger, &sql, |row| {
        Ok(Leaving {
            run_id: row.get::<i64>(1)?.unwrap_or_default(),
            open_segment: row.get::<i64>(2)?.map(|segment| segment as u32),
            sweep_id: row.get(3)?,
        })
    })
}

/// Checks that a run is over; a crashed one is.
fn check_over(run: &Leaving) -> Result<(), UserError> {
    let Leaving { run_id, open_segment, .. } = *run;
    if open_segment.is_some_and(|segment| is_led(Work::Run(run_id), segment)) {
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, format!("run {run_id} is under way"))
            .hint(format!("End it before: SELECT bench.stop({run_id}).")));
    }
    Ok(())
}

/// Checks that no deleted run belongs to an active sweep, which counts its runs at its end.
fn check_sweeps(leaving: &[Leaving]) -> Result<(), UserError> {
    let sweeps: Vec<i64> = leaving.iter().filter_map(|run| run.sweep_id).collect();
    if sweeps.is_empty() {
        return Ok(());
    }
    let open = fetch_all(
        "SELECT sweep_id, segment FROM bench_internal.sweep_log WHERE sweep_id = ANY ($1) AND status = 'running' ORDER BY sweep_id",
        &[sweeps.into()],
        |row| Ok((row.get::<i64>(1)?.unwrap_or_default(), row.get::<i64>(2)?.unwrap_or_default() as u32)),
    )?;
    let mut open = open.into_iter();
    let Some((sweep_id, _)) = open.find(|&(id, segment)| is_led(Work::Sweep(id), segment)) else {
        return Ok(());
    };
    let run = leaving.iter().find(|run| run.sweep_id == Some(sweep_id)).map_or(0, |run| run.run_id);
    Err(UserError::new(
        sqlstate::OBJECT_IN_USE,
        format!("run {run} belongs to sweep {sweep_id}, which is under way"),
    )
    .hint(format!("End it before: SELECT bench.stop_sweep({sweep_id}).")))
}

/// Deletes sweeps with the last of their runs, together with planned runs, unless they have settings or changes to restore.
fn forget_in_sweeps(runs: &[i64]) -> Result<(), UserError> {
    let sweeps = fetch::<Vec<i64>>(
        "SELECT array_agg(DISTINCT sweep_id) FROM bench_internal.sweep_run_log WHERE run_id = ANY ($1)",
        &[runs.to_vec().into()],
    )?;
    let Some(sweeps) = sweeps else { return Ok(()) };
    run("DELETE FROM bench_internal.sweep_run_log WHERE run_id = ANY ($1)", &[runs.to_vec().into()])?;
    let empty = fetch::<Vec<i64>>(
        "SELECT array_agg(sweep_id) FROM bench_internal.sweep_log s \
         WHERE sweep_id = ANY ($1) AND system_settings IS NULL AND NOT EXISTS ( \
             SELECT FROM bench_internal.sweep_run_log l WHERE l.sweep_id = s.sweep_id AND l.run_id IS NOT NULL)",
        &[sweeps.into()],
    )?;
    let Some(empty) = empty else { return Ok(()) };
    run("DELETE FROM bench_internal.sweep_run_log WHERE sweep_id = ANY ($1)", &[empty.clone().into()])?;
    run("DELETE FROM bench_internal.sweep_log WHERE sweep_id = ANY ($1)", &[empty.into()]).map(drop)
}

/// Records for remaining runs that a deleted run kept their audits from being judged: without its row, the view would take the
/// difference for an error.
fn settle_audits(runs: &[i64]) -> Result<(), UserError> {
    let unjudged = fetch_as_of_statement(
        "WITH beside AS MATERIALIZED ( \
             SELECT r.run_id FROM bench_internal.run_log r \
             WHERE r.origin IS NULL AND r.run_id <> ALL ($1) AND EXISTS (SELECT FROM bench_internal.run_log o \
                 WHERE o.run_id = ANY ($1) AND o.origin IS NULL \
                   AND least(r.counted_from, r.started_at) < coalesce(o.finished_at, 'infinity') \
                   AND r.finished_at > least(o.counted_from, o.started_at))) \
         SELECT jsonb_agg(v)::text FROM ( \
             SELECT a.run_id, a.node, a.counter, a.reason FROM bench.audits a JOIN bench_internal.audit_log l USING (run_id, node, counter) \
             WHERE a.run_id = ANY (ARRAY(SELECT b.run_id FROM beside b)) AND l.judged AND a.reason <> l.reason) v",
        runs,
    )?;
    let Some(unjudged) = unjudged else { return Ok(()) };
    run(
        "UPDATE bench_internal.audit_log a SET judged = false, reason = v.reason \
         FROM jsonb_to_recordset($1::jsonb) AS v (run_id int8, node int4, \
             counter text, reason text) \
         WHERE v.run_id = a.run_id AND v.node = a.node AND v.counter = a.counter",
        &[unjudged.into()],
    )
    .map(drop)
}

/// Deletes runs, and returns their number.
///
/// # Errors
/// As [`forget_runs`].
pub fn delete_runs(runs: Vec<i64>) -> Result<usize, UserError> {
    as_owner(|| run(&format!("DELETE FROM bench_internal.{RUN_LOG} WHERE run_id = ANY ($1)"), &[runs.into()]))
}

/// The expression for the time since when an ended run `r` has been on this server. For a run that crashed before its start, it comes
/// from neighboring runs: ids are in the order of the calls.
const KEPT_SINCE: &str = "coalesce((r.origin ->> 'imported_at')::timestamptz, r.finished_at, r.started_at, \
     (SELECT min(later.started_at) FROM bench_internal.run_log later WHERE later.run_id > r.run_id AND later.origin IS NULL))";

/// Deletes the runs of roles that the caller acts for that ended or were imported longer ago than this, and returns their number.
///
/// # Errors
/// 22023 for a negative interval.
pub fn prune(older_than: Interval) -> Result<i64, UserError> {
    let (before, mut roles) = as_owner(|| {
        settle_owners()?;
        // Months have different lengths: an interval may be positive by itself, but not counted from today.
        let before = fetch::<TimestampWithTimeZone>(
            "SELECT CASE WHEN $1 >= '0' AND now() - $1 <= now() THEN now() - $1 END",
            &[older_than.into()],
        )?;
        let roles = "SELECT array_agg(DISTINCT owner_oid::int8) FROM bench_internal.run_log";
        let roles = fetch::<Vec<i64>>(roles, &[])?;
        Ok((before, roles.unwrap_or_default()))
    })?;
    let Some(before) = before else {
        return Err(UserError::invalid("older_than must not be negative"));
    };
    roles.retain(|&role| acts_for((role as u32).into()));
    let old = as_owner(|| {
        let old = format!(
            "SELECT array_agg(r.run_id) FROM bench_internal.run_log r \
             WHERE r.owner_oid::int8 = ANY ($1) AND {KEPT_SINCE} < $2 \
               AND bench_internal.status_of(r.status, r.segment, r.run_id) NOT IN ('starting', 'running') \
               AND NOT EXISTS (SELECT FROM bench_internal.sweep_log s WHERE s.sweep_id = r.sweep_id \
                                   AND bench_internal.sweep_status_of(s.status, s.segment, s.sweep_id) = 'running')"
        );
        fetch::<Vec<i64>>(&old, &[roles.into(), before.into()])
    })?;
    Ok(old.map_or(Ok(0), delete_runs)? as i64)
}
