//! The holders of the xmin horizon, which keep VACUUM from removing dead rows.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::as_owner;
use crate::server::spi::fetch;

/// Returns the next transaction id as a text; those of all committed transactions are before it.
pub fn next_transaction_id() -> Result<String, UserError> {
    let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::xid::text";
    Ok(fetch::<String>(sql, &[])?.unwrap_or_default())
}

/// Returns the next transaction id as a 64-bit number, and as the text of [`next_transaction_id`], which wraps around.
pub fn next_transaction_ids() -> Result<(i64, String), UserError> {
    let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8";
    Ok((fetch::<i64>(sql, &[])?.unwrap_or_default(), next_transaction_id()?))
}

/// Returns the age of the oldest database in transaction ids, which decides when the server stops assigning them.
pub fn oldest_age() -> Result<Option<i64>, UserError> {
    fetch::<i64>("SELECT max(age(datfrozenxid))::int8 FROM pg_database", &[])
}

/// Returns a description of the holder of the oldest horizon before a transaction id. Vacuums hold back no horizon
/// (PROC_IN_VACUUM in ComputeXidHorizons, procarray.c).
pub fn horizon_holder(transaction_id: &str) -> Result<Option<String>, UserError> {
    as_owner(|| {
        fetch::<String>(
            "SELECT holder FROM ( \
                 SELECT 'the session with pid ' || pid AS holder, held AS xmin FROM pg_stat_activity a \
                 CROSS JOIN unnest(ARRAY[backend_xmin, backend_xid]) AS h (held) \
                 WHERE held IS NOT NULL AND (datname = current_database() OR datname IS NULL) \
                   AND pid <> pg_backend_pid() \
                   AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid) \
                 UNION ALL \
                 SELECT 'prepared transaction ' || quote_literal(gid), transaction FROM pg_prepared_xacts \
                 WHERE database = current_database() \
                 UNION ALL \
                 SELECT 'replication slot ' || slot_name, xmin FROM pg_replication_slots WHERE xmin IS NOT NULL \
             ) AS holders WHERE age(xmin) > age($1::xid) \
             ORDER BY age(xmin) DESC, holder LIMIT 1",
            &[transaction_id.into()],
        )
    })
}

/// Whether some pages of the tables, without partitions, were not all-visible after the last VACUUM.
pub fn has_invisible_pages(tables: &[pg_sys::Oid]) -> Result<bool, UserError> {
    let invisible = fetch::<bool>(
        "SELECT true FROM pg_class \
         WHERE oid = ANY ($1) AND relkind = 'r'::\"char\" \
           AND relallvisible < relpages LIMIT 1",
        &[tables.to_vec().into()],
    )?;
    Ok(invisible.is_some())
}
