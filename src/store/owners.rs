//! Whose rows are whose: a row of the tables below belongs to the role with the OID that it has, whatever its name.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::as_owner;
use crate::server::roles::{is_superuser, name_of};
use crate::server::spi::run;

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
