//! The holders of the xmin horizon, which keep VACUUM from removing dead rows.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::as_owner;
use crate::server::spi::fetch;

/// The transaction id that comes next, as text: those of all that has committed until now are before it.
pub fn next_transaction_id() -> Result<String, UserError> {
    let sql = "SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.xid::pg_catalog.text";
    Ok(fetch::<String>(sql, &[])?.unwrap_or_default())
}

/// The transaction id that comes next as a number that does not wrap, and as the text of [`next_transaction_id`], which
/// does.
pub fn next_transaction_ids() -> Result<(i64, String), UserError> {
    let sql = "SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::pg_catalog.text::pg_catalog.int8";
    Ok((fetch::<i64>(sql, &[])?.unwrap_or_default(), next_transaction_id()?))
}

/// Transaction ids since the oldest that the oldest database has not frozen: by that one the server stops.
pub fn oldest_age() -> Result<Option<i64>, UserError> {
    fetch::<i64>(
        "SELECT pg_catalog.max(pg_catalog.age(datfrozenxid))::pg_catalog.int8 FROM pg_catalog.pg_database",
        &[],
    )
}

/// Whoever has the oldest horizon that is before a transaction id. A vacuum's is nobody's hindrance (PROC_IN_VACUUM
/// in ComputeXidHorizons, procarray.c).
pub fn horizon_holder(transaction_id: &str) -> Result<Option<String>, UserError> {
    as_owner(|| {
        fetch::<String>(
            "SELECT holder FROM ( \
                 SELECT 'the session with pid ' || pid AS holder, held AS xmin FROM pg_catalog.pg_stat_activity a \
                 CROSS JOIN pg_catalog.unnest(ARRAY[backend_xmin, backend_xid]) AS h (held) \
                 WHERE held IS NOT NULL AND (datname = pg_catalog.current_database() OR datname IS NULL) \
                   AND pid <> pg_catalog.pg_backend_pid() \
                   AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum v WHERE v.pid = a.pid) \
                 UNION ALL \
                 SELECT 'prepared transaction ' || pg_catalog.quote_literal(gid), transaction FROM pg_catalog.pg_prepared_xacts \
                 WHERE database = pg_catalog.current_database() \
                 UNION ALL \
                 SELECT 'replication slot ' || slot_name, xmin FROM pg_catalog.pg_replication_slots WHERE xmin IS NOT NULL \
             ) AS holders WHERE pg_catalog.age(xmin) > pg_catalog.age($1::pg_catalog.xid) \
             ORDER BY pg_catalog.age(xmin) DESC, holder LIMIT 1",
            &[transaction_id.into()],
        )
    })
}

/// Whether the last VACUUM could not mark all pages of the tables as all-visible; partitions are not looked at.
pub fn has_invisible_pages(tables: &[pg_sys::Oid]) -> Result<bool, UserError> {
    let found = fetch::<bool>(
        "SELECT true FROM pg_catalog.pg_class \
         WHERE oid OPERATOR(pg_catalog.=) ANY ($1) AND relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" \
           AND relallvisible OPERATOR(pg_catalog.<) relpages LIMIT 1",
        &[tables.to_vec().into()],
    )?;
    Ok(found.is_some())
}
