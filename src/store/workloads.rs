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
    /// Its present name, or the one that was kept.
    pub owner: String,
    #[serde(default)]
    pub owner_oid: pg_sys::Oid,
    pub fixture: Option<String>,
    pub script: String,
    /// What its name stands for, where that is a mix that comes with the extension; its own script is then empty.
    pub mix: Option<String>,
    pub builtin: bool,
    /// Whether it is a part of a capture.
    pub captured: bool,
    /// Whether only members of its owner see it.
    pub private: bool,
    /// How long clients wait around its transactions.
    pub terminal: Option<Terminal>,
}

/// A workload by its name.
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

/// The names of all workloads, but for the parts of mixes, which have a slash in theirs, and of this role's captures.
pub fn workload_names() -> Result<Vec<String>, UserError> {
    let role = current_role_oid();
    as_owner(|| {
        let names = "SELECT array_agg(name ORDER BY name) FROM ( \
                         SELECT name FROM bench.workloads WHERE strpos(name, '/') = 0 \
                         UNION SELECT name FROM bench_internal.capture_list WHERE owner_oid = $1) n";
        Ok(fetch::<Vec<String>>(names, &[role.into()])?.unwrap_or_default())
    })
}

/// Stores a workload of this owner's, over an older one of the same name.
///
/// It was another one's if that one's writer could be replaced. Feeders and captured values of another owner's go: whoever takes a
/// script over has not read the feeders' queries. Returns the number of those feeders.
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

/// Shows a workload to members of its owner only.
pub fn hide_workload(name: &str) -> Result<(), UserError> {
    as_owner(|| run("UPDATE bench.workloads SET private = true WHERE name = $1", &[name.into()]).map(drop))
}

/// Removes a workload with its feeders and captured values.
pub fn delete_workload(name: &str) -> Result<(), UserError> {
    as_owner(|| {
        run("DELETE FROM bench.workloads WHERE name = $1", &[name.into()])?;
        delete_feeders_and_values(name).map(drop)
    })
}

/// Removes what belongs to a workload; the number of feeders.
fn delete_feeders_and_values(workload: &str) -> Result<usize, UserError> {
    run("DELETE FROM bench.captured_rows WHERE workload = $1", &[workload.into()])?;
    run("DELETE FROM bench.feeders WHERE workload = $1", &[workload.into()])
}

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
