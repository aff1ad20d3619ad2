//! Work on the extension's tables as its owner, who may see what is in them, and how long their locks are waited for.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use serde::de::DeserializeOwned;

use crate::error::internal;
use crate::guard::extension::{LIBRARY_VERSION, anchor};
use crate::guard::own_tables::on_own_tables;
use crate::guard::session_role::check_is_no_client;
use crate::guard::switch_role::as_role;
use crate::server::process::nap_until_canceled;
use crate::server::relations::{self, owner_of};
use crate::server::roles::{self, acts_for, is_superuser, name_of};
use crate::server::rows::select_one;
use crate::server::signals::termination_requested;
use crate::server::spi::{fetch, run};

/// Locks the anchor against DROP EXTENSION until the transaction ends.
///
/// # Errors
/// 42704 when the extension has gone. Without this a table that somebody made in its place, with
/// a trigger, would be written to as a superuser. 55000 when its SQL is another version's.
pub fn hold_extension() -> Result<pg_sys::Oid, UserError> {
    check_is_no_client()?;
    let table = anchor()?;
    relations::lock(table, pg_sys::AccessShareLock);
    if anchor()? != table {
        return Err(internal("the extension was replaced meanwhile"));
    }
    check_version()?;
    Ok(table)
}

/// Runs `body` as the extension's owner, with a search_path of pg_catalog, and goes back. An
/// error goes back as well: the end of the (sub)transaction restores role and settings.
///
/// # Errors
/// 42501 where something of the extension is not a superuser's; those of [`hold_extension`] and of `body`.
pub fn as_owner<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let table = hold_extension()?;
    let result = as_role(owner_of(table)?, || on_own_tables(body));
    // Not until the transaction ends: a caller that waits for its run must not stand in the
    // way of what waits for this table, and so of its own recorder. What was written keeps
    // the locks of its own tables.
    relations::unlock(table, pg_sys::AccessShareLock);
    result
}

/// Runs a statement as the extension's owner, for its effect.
///
/// # Errors
/// As [`as_owner`].
pub(super) fn write(sql: &str, arguments: &[DatumWithOid]) -> Result<(), UserError> {
    as_owner(|| run(sql, arguments).map(drop))
}

/// Reads the only column of the first row as the extension's owner; `None`: it is NULL, or there is no row.
///
/// # Errors
/// As [`as_owner`], and XX000 for a value that is not of this type.
pub(super) fn read<T: DeserializeOwned>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    let row = as_owner(|| select_one::<(Option<T>,)>(sql, arguments))?;
    Ok(row.and_then(|(value,)| value))
}

/// The extension's owner, for [`as_role`] when the extension may have gone.
pub fn extension_owner() -> Result<pg_sys::Oid, UserError> {
    owner_of(anchor()?)
}

/// The rule of who sees what belongs to a run, a load or a sweep of this role: who has its privileges or those of
/// pg_read_all_stats, and superusers. What a role has left that no longer exists is for the latter two.
pub fn may_see(role: pg_sys::Oid) -> bool {
    acts_for(role) || acts_for(roles::READ_ALL_STATS)
}

// Whether the SQL of the extension is this library's: `make install` replaces the library for all databases at once, and
// each of them has its SQL updated by itself, later.

/// Checks the version of the extension in this database.
///
/// # Errors
/// 55000 when it is another one: tables and functions may be others than this library knows.
fn check_version() -> Result<(), UserError> {
    let sql = "SELECT extversion FROM pg_extension \
               WHERE extname = 'pgbench_ext'::name";
    match fetch::<String>(sql, &[])? {
        Some(of_sql) if of_sql != LIBRARY_VERSION => Err(mismatch(&of_sql)),
        _ => Ok(()),
    }
}

fn mismatch(of_sql: &str) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        "the library of pgbench_ext and the extension in this database have different versions",
    )
    .detail(format!("The library has version {LIBRARY_VERSION}, the extension has version {of_sql}."))
    .hint("Run ALTER EXTENSION pgbench_ext UPDATE. If the extension is the newer one, install its library.")
}

// Whose rows are whose: a row of the tables below belongs to the role with the OID that it has, whatever its name.

/// The tables whose rows belong to roles, each with the column that keeps the name; then those whose rows run code.
const OWNED: [(&str, &str); 7] = [
    ("bench_internal.run_log", "role"),
    ("bench_internal.load_log", "role"),
    ("bench_internal.sweep_log", "role"),
    ("bench_internal.capture_list", "role"),
    ("bench.workloads", "owner"),
    ("bench.fixtures", "owner"),
    ("bench_internal.custom_fixtures", "owner"),
];

/// How many of them come first.
const WITHOUT_CODE: usize = 4;

/// Leaves to superusers what belongs to roles that no longer exist, once and for all: when the server's OIDs have wrapped
/// around, a new role can get that of a dropped one. As the extension's owner.
pub(super) fn settle_owners() -> Result<(), UserError> {
    OWNED.iter().try_for_each(|(table, _)| {
        let sql = format!(
            "UPDATE {table} t SET owner_oid = 0 WHERE t.owner_oid <> 0 \
               AND NOT EXISTS (SELECT FROM pg_authid r WHERE r.oid = t.owner_oid)"
        );
        run(&sql, &[]).map(drop)
    })
}

/// Gives a role the rows that have this name and whose role does not exist; how many. Runs that the role has imported
/// already stay, and what runs code stays before a superuser of another name: who takes that over is to read it first.
pub fn reassign_owned(old: &str, new: pg_sys::Oid) -> Result<i64, UserError> {
    let name = name_of(new).unwrap_or_default();
    as_owner(|| {
        let mut count = 0;
        let is_to_be_read = is_superuser(new) && name != old;
        for (table, kept) in OWNED.into_iter().take(if is_to_be_read { WITHOUT_CODE } else { OWNED.len() }) {
            let also = match table {
                "bench_internal.run_log" => {
                    "AND (t.origin IS NULL OR NOT EXISTS (SELECT FROM bench_internal.run_log o WHERE o.owner_oid = $3 \
                         AND o.origin @> (t.origin - '{exported_at,imported_at,parts}'::text[])))"
                }
                "bench.workloads" => "AND NOT t.builtin",
                // One that can be resumed executes what its variants apply and revert.
                "bench_internal.sweep_log" if is_to_be_read => {
                    "AND NOT jsonb_path_exists(t.options, '$.**.apply')"
                }
                _ => "",
            };
            count += run(
                &format!(
                    "UPDATE {table} t SET {kept} = $2, owner_oid = $3 WHERE t.{kept} = $1 {also} \
                       AND NOT EXISTS (SELECT FROM pg_authid r WHERE r.oid = t.owner_oid)"
                ),
                &[old.into(), name.as_str().into(), new.into()],
            )?;
        }
        Ok(count as i64)
    })
}

// How long writers of results wait for locks in their way.

/// How long the recorder waits for a lock on the tables of results.
pub struct LockTimeout {
    until: Instant,
}

impl LockTimeout {
    /// Ten seconds from now: VACUUM FULL of a small table passes, a forgotten session does not.
    pub fn new() -> Self {
        Self { until: Instant::now() + Duration::from_secs(10) }
    }

    /// Whether to try again after this error.
    pub fn allows_retry(&self, error: &UserError) -> bool {
        error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE && self.is_left()
    }

    /// Whether to wait for a lock. Not when the server wants the recorder gone.
    pub fn is_left(&self) -> bool {
        Instant::now() < self.until && !termination_requested()
    }
}

/// Runs `work` until no lock on the tables of results is in its way, for ten seconds at most.
pub fn with_lock_timeout(work: impl Fn() -> Result<(), UserError>) -> Result<(), UserError> {
    let lock_timeout = LockTimeout::new();
    loop {
        match work() {
            Err(error) if lock_timeout.allows_retry(&error) => {}
            result => return result,
        }
    }
}

/// Tries again and again to write how something ended, whatever is in the way, until `timeout` has passed since it
/// `began`. When what the row belongs to has gone, there is nothing to wait for.
///
/// # Errors
/// What the last try has met.
pub fn try_to_write(
    began: Instant,
    timeout: impl Fn() -> Duration,
    write: impl Fn() -> Result<(), UserError>,
) -> Result<(), UserError> {
    loop {
        match write() {
            Err(error) if error.sqlstate != sqlstate::UNDEFINED_OBJECT && began.elapsed() < timeout() => {
                // A cancel hurries nobody here. A lock has been waited for already.
                if error.sqlstate != sqlstate::LOCK_NOT_AVAILABLE {
                    drop(nap_until_canceled(100));
                }
            }
            result => return result,
        }
    }
}
