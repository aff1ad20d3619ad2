//! The end of old runs.

use bench_base::error::UserError;
use pgrx::datum::{Interval, TimestampWithTimeZone};

use super::deletion::delete_runs;
use crate::server::roles::acts_for;
use crate::server::spi::fetch;
use crate::store::as_owner;
use crate::store::owners::settle_owners;

/// Since when the run `r` is here and over. Of one that crashed before it started only its place among the others is
/// known: ids are in the order in which runs are asked for.
const KEPT_SINCE: &str = "coalesce((r.origin ->> 'imported_at')::timestamptz, r.finished_at, r.started_at, \
     (SELECT min(later.started_at) FROM bench_internal.run_log later WHERE later.run_id > r.run_id AND later.origin IS NULL))";

/// Deletes the runs, of roles that the caller acts for, that have been here and over for longer than this; how many.
///
/// # Errors
/// 22023 for a negative interval.
pub fn prune(older_than: Interval) -> Result<i64, UserError> {
    let (before, mut roles) = as_owner(|| {
        settle_owners()?;
        // Months differ: an interval may be above zero by its own account and not from today.
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
