//! Access to the extension's tables as its owner, ownership of their rows, and the wait for their locks.

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

/// Locks the anchor table against DROP EXTENSION until the transaction ends. Otherwise a table that somebody created in place of
/// the extension's, with a trigger, could be written to as a superuser.
///
/// # Errors
/// 42704 if the extension was dropped, 55000 if its SQL has another version.
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

/// Runs `body` as the extension's owner, with pg_catalog as search_path. After an error the end of the (sub)transaction restores
/// role and settings.
///
/// # Errors
/// 42501 if an object of the extension is not a superuser's; those of [`hold_extension`] and of `body`.
pub fn as_owner<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let table = hold_extension()?;
    let result = as_role(owner_of(table)?, || on_own_tables(body));
    // Released before the transaction ends: a caller that waits for its run must not block a session that waits for this table,
    // behind which its own recorder would wait. Written tables stay locked.
    relations::unlock(table, pg_sys::AccessShareLock);
    result
}

/// Runs a statement as the extension's owner.
///
/// # Errors
/// As [`as_owner`].
pub(super) fn write(sql: &str, arguments: &[DatumWithOid]) -> Result<(), UserError> {
    as_owner(|| run(sql, arguments).map(drop))
}

/// Reads the only column of the first row as the extension's owner; `None` if it is NULL or there is no row.
///
/// # Errors
/// As [`as_owner`], and XX000 for a value of another type.
pub(super) fn read<T: DeserializeOwned>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    let row = as_owner(|| select_one::<(Option<T>,)>(sql, arguments))?;
    Ok(row.and_then(|(value,)| value))
}

/// Returns the extension's owner, for [`as_role`] when the extension may have been dropped.
pub fn extension_owner() -> Result<pg_sys::Oid, UserError> {
    owner_of(anchor()?)
}

/// Whether the caller may see runs, loads and sweeps of a role: members of the role or of pg_read_all_stats may, and superusers.
/// Those of a dropped role are visible to the latter two.
pub fn may_see(role: pg_sys::Oid) -> bool {
    acts_for(role) || acts_for(roles::READ_ALL_STATS)
}

/// Checks that this database's extension has the library's version: `make install` replaces the library for all databases at
/// once, but each database is updated separately.
///
/// # Errors
/// 55000 for another version, whose tables and functions may differ.
fn check_version() -> Result<(), UserError> {
    let sql = "SELECT extversion FROM pg_extension \
               WHERE extname = 'pgbench_ext'::name";
    match fetch::<String>(sql, &[])? {
        Some(version) if version != LIBRARY_VERSION => Err(mismatch(&version)),
        _ => Ok(()),
    }
}

fn mismatch(extension_version: &str) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        "the library of pgbench_ext and the extension in this database have different versions",
    )
    .detail(format!(
        "The library has version {LIBRARY_VERSION}, the extension has version {extension_version}."
    ))
    .hint("Run ALTER EXTENSION pgbench_ext UPDATE. If the extension is the newer one, install its library.")
}

/// The tables whose rows belong to roles, each with the column of the role's name; those whose rows contain code come last. The
/// owner is the role with the OID in column owner_oid, whatever its name.
const OWNED: [(&str, &str); 7] = [
    ("bench_internal.run_log", "role"),
    ("bench_internal.load_log", "role"),
    ("bench_internal.sweep_log", "role"),
    ("bench_internal.capture_list", "role"),
    ("bench.workloads", "owner"),
    ("bench.fixtures", "owner"),
    ("bench_internal.custom_fixtures", "owner"),
];

/// The number of tables in [`OWNED`] without code.
const WITHOUT_CODE: usize = 4;

/// Sets the owner of dropped roles' rows to 0: after a wraparound of OIDs a new role could get the OID of a dropped one. Runs as
/// the extension's owner.
pub(super) fn settle_owners() -> Result<(), UserError> {
    OWNED.iter().try_for_each(|(table, _)| {
        let sql = format!(
            "UPDATE {table} t SET owner_oid = 0 WHERE t.owner_oid <> 0 \
               AND NOT EXISTS (SELECT FROM pg_authid r WHERE r.oid = t.owner_oid)"
        );
        run(&sql, &[]).map(drop)
    })
}

/// Gives a role the rows of a dropped role by the name `old`, and returns their number. Runs that the new role has imported
/// already are left out, and, for a superuser of another name, rows with code, which the superuser should read before taking
/// them over.
pub fn reassign_owned(old: &str, new: pg_sys::Oid) -> Result<i64, UserError> {
    let name = name_of(new).unwrap_or_default();
    as_owner(|| {
        let mut count = 0;
        let is_to_be_read = is_superuser(new) && name != old;
        for (table, kept) in OWNED.into_iter().take(if is_to_be_read { WITHOUT_CODE } else { OWNED.len() }) {
            let condition = match table {
                "bench_internal.run_log" => {
                    "AND (t.origin IS NULL OR NOT EXISTS (SELECT FROM bench_internal.run_log o WHERE o.owner_oid = $3 \
                         AND o.origin @> (t.origin - '{exported_at,imported_at,parts}'::text[])))"
                }
                "bench.workloads" => "AND NOT t.builtin",
                // A resumed sweep executes its variants' statements.
                "bench_internal.sweep_log" if is_to_be_read => {
                    "AND NOT jsonb_path_exists(t.options, '$.**.apply')"
                }
                _ => "",
            };
            count += run(
                &format!(
                    "UPDATE {table} t SET {kept} = $2, owner_oid = $3 WHERE t.{kept} = $1 {condition} \
                       AND NOT EXISTS (SELECT FROM pg_authid r WHERE r.oid = t.owner_oid)"
                ),
                &[old.into(), name.as_str().into(), new.into()],
            )?;
        }
        Ok(count as i64)
    })
}

/// How long writers of results wait for locks on the tables: longer than VACUUM FULL of a small table takes.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The time limit of a writer of results for locks on the tables.
pub struct LockTimeout {
    until: Instant,
}

impl LockTimeout {
    /// Starts the time of [`LOCK_WAIT`].
    pub fn new() -> Self {
        Self { until: Instant::now() + LOCK_WAIT }
    }

    /// Whether to try again after this error.
    pub fn allows_retry(&self, error: &UserError) -> bool {
        error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE && self.is_left()
    }

    /// Whether to wait for a lock. False after a request for termination.
    pub fn is_left(&self) -> bool {
        Instant::now() < self.until && !termination_requested()
    }
}

/// Repeats `work` as long as a lock on the tables of results prevents it, for [`LOCK_WAIT`] at most.
pub fn with_lock_timeout(work: impl Fn() -> Result<(), UserError>) -> Result<(), UserError> {
    let lock_timeout = LockTimeout::new();
    loop {
        match work() {
            Err(error) if lock_timeout.allows_retry(&error) => {}
            result => return result,
        }
    }
}

/// Repeats `write` after any error until `timeout` has passed since `began`, except after the error that the row or the extension
/// is gone.
///
/// # Errors
/// The last one.
pub fn try_to_write(
    began: Instant,
    timeout: impl Fn() -> Duration,
    write: impl Fn() -> Result<(), UserError>,
) -> Result<(), UserError> {
    loop {
        match write() {
            Err(error) if error.sqlstate != sqlstate::UNDEFINED_OBJECT && began.elapsed() < timeout() => {
                // Cancels are ignored here. After a failed lock, the wait for it was the pause.
                if error.sqlstate != sqlstate::LOCK_NOT_AVAILABLE {
                    drop(nap_until_canceled(100));
                }
            }
            result => return result,
        }
    }
}
