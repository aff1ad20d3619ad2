//! Feeders: rows of bench.feeders.

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::{Feeder, Pick};
use bench_model::spec::Role;
use pgrx::pg_sys;

use super::{Workload, as_owner};
use crate::server::roles;
use crate::server::rows::select;
use crate::server::spi::run;

/// A workload's feeders, by their prefixes.
pub fn feeders(workload: &str) -> Result<Vec<Feeder>, UserError> {
    let mut found = as_owner(|| {
        let sql = "SELECT prefix, query, pick, once, max_rows FROM bench.feeders WHERE workload = $1";
        select::<(String, String, String, bool, u32)>(sql, &[workload.into()])
    })?;
    found.sort();
    found
        .into_iter()
        .map(|(prefix, query, pick, once, max_rows)| {
            Ok(Feeder { prefix, query, pick: Pick::new(&pick)?, once, max_rows, rows: None })
        })
        .collect()
}

/// Stores a feeder of a workload, over an older one of the same prefix.
///
/// # Errors
/// 55006 when the workload has become another's, or has gone, since it was looked at.
pub fn put_feeder(workload: &Workload, feeder: &Feeder) -> Result<(), UserError> {
    as_owner(|| {
        hold(workload)?;
        run(
            "INSERT INTO bench.feeders (workload, prefix, query, pick, once, max_rows) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (workload, prefix) DO UPDATE SET query = EXCLUDED.query, pick = EXCLUDED.pick, \
                 once = EXCLUDED.once, max_rows = EXCLUDED.max_rows",
            &[
                workload.name.as_str().into(),
                feeder.prefix.as_str().into(),
                feeder.query.as_str().into(),
                feeder.pick.as_str().into(),
                feeder.once.into(),
                i32::try_from(feeder.max_rows).unwrap_or(i32::MAX).into(),
            ],
        )?;
        Ok(())
    })
}

/// Removes the feeder of a prefix; false where there is none.
///
/// # Errors
/// As [`put_feeder`].
pub fn delete_feeder(workload: &Workload, prefix: &str) -> Result<bool, UserError> {
    as_owner(|| {
        hold(workload)?;
        let sql = "DELETE FROM bench.feeders WHERE workload = $1 AND prefix = $2";
        Ok(run(sql, &[workload.name.as_str().into(), prefix.into()])? > 0)
    })
}

/// Gives a workload to the current role, which answers for what it adds to it.
///
/// # Errors
/// As [`put_feeder`].
pub fn take_over(workload: Workload) -> Result<Workload, UserError> {
    let Role { name: owner, oid } = roles::current();
    let owner_oid = pg_sys::Oid::from(oid);
    as_owner(|| {
        hold(&workload)?;
        let sql = "UPDATE bench.workloads SET owner = $2, owner_oid = $3 WHERE name = $1";
        run(sql, &[workload.name.as_str().into(), owner.as_str().into(), owner_oid.into()]).map(drop)
    })?;
    Ok(Workload { owner, owner_oid, ..workload })
}

/// Keeps a workload as it is until the transaction ends. A change, not a lock: whoever takes the workload over at the same
/// time, in whatever isolation level, either sees its feeders or fails.
fn hold(workload: &Workload) -> Result<(), UserError> {
    // The OID 0 is passed as NULL.
    let sql = "UPDATE bench.workloads SET owner = owner WHERE name = $1 AND owner_oid = coalesce($2, 0) AND NOT builtin";
    if run(sql, &[workload.name.as_str().into(), workload.owner_oid.into()])? > 0 {
        return Ok(());
    }
    let message = format!("workload \"{}\" has been changed by another session", workload.name);
    Err(UserError::new(sqlstate::OBJECT_IN_USE, message).hint("Check bench.workloads, then try again."))
}
