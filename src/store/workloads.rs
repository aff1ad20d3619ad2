//! Workloads and feeders: rows of bench.workloads and bench.feeders.

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::{Feeder, Pick};
use bench_model::spec::{Role, Terminal};
use pgrx::pg_sys;
use serde::Deserialize;

use super::as_owner;
use crate::server::roles::{self, current_role_oid, name_of};
use crate::server::rows::{select, select_one};
use crate::server::spi::{fetch, locked_rows, run};

/// A row of bench.workloads.
#[derive(Deserialize)]
pub struct Workload {
    pub name: String,
    /// The owner's current name, or the recorded one of a dropped role.
    pub owner: String,
    #[serde(default)]
    pub owner_oid: pg_sys::Oid,
    pub fixture: Option<String>,
    pub script: String,
    /// The mix, for a built-in mix, whose script is empty.
    pub mix: Option<String>,
    pub builtin: bool,
    /// Whether it belongs to a capture.
    pub captured: bool,
    /// Whether only members of its owner see it.
    pub private: bool,
    /// Keying and think times.
    pub terminal: Option<Terminal>,
}

/// Reads a workload by its name.
pub fn workload(name: &str) -> Result<Option<Workload>, UserError> {
    as_owner(|| {
        let sql = "SELECT name, bench_internal.role_name(owner_oid, owner) AS owner, owner_oid, fixture, script, mix, builtin, \
                       EXISTS (SELECT FROM bench.capture_statements s WHERE s.workload = w.name AND s.kept) AS captured, \
                       private, CASE WHEN coalesce(keying_secs, think_secs) IS NOT NULL THEN jsonb_build_object( \
                           'keying_secs', coalesce(keying_secs, 0), 'think_secs', coalesce(think_secs, 0)) END AS terminal \
                   FROM bench.workloads w WHERE name = $1";
        select_one(sql, &[name.into()])
    })
}

/// Returns the names of all workloads, except parts of mixes (names with a slash), and of this role's captures.
pub fn workload_names() -> Result<Vec<String>, UserError> {
    let role = current_role_oid();
    as_owner(|| {
        let names = "SELECT array_agg(name ORDER BY name) FROM ( \
                         SELECT name FROM bench.workloads WHERE strpos(name, '/') = 0 \
                         UNION SELECT name FROM bench_internal.capture_list WHERE owner_oid = $1) n";
        Ok(fetch::<Vec<String>>(names, &[role.into()])?.unwrap_or_default())
    })
}

/// Stores a workload of this owner, and replaces an older one of the same name.
///
/// If that one had another owner, its feeders and captured values are deleted, because the new owner has not read the feeders'
/// queries. Returns the number of these feeders.
pub fn put_workload(
    name: &str,
    owner: pg_sys::Oid,
    fixture: Option<&str>,
    script: &str,
    description: Option<&str>,
) -> Result<usize, UserError> {
    as_owner(|| {
        let sql = "SELECT owner_oid FROM bench.workloads WHERE name = $1 FOR UPDATE";
        let old = locked_rows(sql, &[name.into()], |row| row.get::<pg_sys::Oid>(1))?;
        run(
            "INSERT INTO bench.workloads (name, owner, fixture, script, description, owner_oid) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, owner_oid = EXCLUDED.owner_oid, fixture = EXCLUDED.fixture, \
                 script = EXCLUDED.script, description = EXCLUDED.description, private = false",
            &[
                name.into(),
                name_of(owner).into(),
                fixture.into(),
                script.into(),
                description.into(),
                owner.into(),
            ],
        )?;
        if old.iter().flatten().any(|&old| old == owner) { Ok(0) } else { delete_feeders_and_values(name) }
    })
}

/// Makes a workload private: only members of its owner see it.
pub fn hide_workload(name: &str) -> Result<(), UserError> {
    as_owner(|| run("UPDATE bench.workloads SET private = true WHERE name = $1", &[name.into()]).map(drop))
}

/// Deletes a workload with its feeders and captured values.
pub fn delete_workload(name: &str) -> Result<(), UserError> {
    as_owner(|| {
        run("DELETE FROM bench.workloads WHERE name = $1", &[name.into()])?;
        delete_feeders_and_values(name).map(drop)
    })
}

/// Deletes a workload's feeders and captured values, and returns the number of feeders.
fn delete_feeders_and_values(workload: &str) -> Result<usize, UserError> {
    run("DELETE FROM bench.captured_rows WHERE workload = $1", &[workload.into()])?;
    run("DELETE FROM bench.feeders WHERE workload = $1", &[workload.into()])
}

/// Reads a workload's feeders, sorted by prefix.
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

/// Stores a feeder of a workload, and replaces an older one of the same prefix.
///
/// # Errors
/// 55006 if the workload has another owner, or was deleted, since it was read.
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

/// Deletes the feeder with a prefix; returns false if there is none.
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

/// Makes the current role the owner of a workload, because it answers for its additions.
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

/// Prevents changes of a workload until the transaction ends. It updates the row instead of locking it, so that a concurrent
/// transaction that takes the workload over, at any isolation level, either sees its feeders or fails.
fn hold(workload: &Workload) -> Result<(), UserError> {
    // The OID 0 is passed as NULL.
    let sql = "UPDATE bench.workloads SET owner = owner WHERE name = $1 AND owner_oid = coalesce($2, 0) AND NOT builtin";
    if run(sql, &[workload.name.as_str().into(), workload.owner_oid.into()])? > 0 {
        return Ok(());
    }
    let message = format!("workload \"{}\" has been changed by another session", workload.name);
    Err(UserError::new(sqlstate::OBJECT_IN_USE, message).hint("Check bench.workloads, then try again."))
}
