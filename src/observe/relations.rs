//! The run's tables and their indexes: sizes and the server's statistics of them.

use bench_base::error::UserError;
use pgrx::{JsonB, pg_sys};
use serde_json::Value;

use crate::server::guc::set_local;
use crate::server::process::forget_statistics;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;

/// A reading of nothing.
pub fn none() -> Value {
    Value::Array(Vec::new())
}

/// The names of those of the tables that are unlogged.
pub fn unlogged(tables: &[pg_sys::Oid]) -> Result<Vec<String>, UserError> {
    let found = transaction(|| {
        fetch::<Vec<String>>(
            "SELECT array_agg(c.oid::regclass::text ORDER BY c.oid) \
             FROM pg_class c WHERE c.oid = ANY ($1) AND c.relpersistence = 'u'",
            &[tables.to_vec().into()],
        )
    })?;
    Ok(found.unwrap_or_default())
}

/// One reading, an array of objects; the recorder stores the difference of two.
pub fn read(tables: &[pg_sys::Oid]) -> Result<Value, UserError> {
    if tables.is_empty() {
        return Ok(none());
    }
    // A size needs a lock, which somebody's LOCK TABLE may keep for long; the counts are there without one.
    read_with(tables, true).or_else(|_| read_with(tables, false))
}

fn read_with(tables: &[pg_sys::Oid], sizes: bool) -> Result<Value, UserError> {
    let found = transaction(|| {
        set_local(c"lock_timeout", c"50ms");
        forget_statistics();
        fetch::<JsonB>(READ, &[tables.to_vec().into(), sizes.into()])
    })?;
    Ok(found.map_or_else(none, |json| json.0))
}

const READ: &str = "\
SELECT jsonb_agg(to_jsonb(r)) FROM ( \
    SELECT c.oid::int8 AS oid, c.oid::regclass::text AS relation, 'table' AS kind, \
           CASE WHEN $2 THEN pg_table_size(c.oid) END AS bytes, \
           pg_stat_get_live_tuples(c.oid) AS live, pg_stat_get_dead_tuples(c.oid) AS dead, \
           pg_stat_get_tuples_inserted(c.oid) AS inserted, pg_stat_get_tuples_updated(c.oid) AS updated, \
           pg_stat_get_tuples_hot_updated(c.oid) AS hot_updated, pg_stat_get_tuples_deleted(c.oid) AS deleted, \
           pg_stat_get_mod_since_analyze(c.oid) AS mod_since_analyze, \
           pg_stat_get_numscans(c.oid) AS seq_scan, pg_stat_get_tuples_returned(c.oid) AS seq_tup_read, \
           (SELECT sum(pg_stat_get_numscans(i.indexrelid))::int8 \
            FROM pg_index i WHERE i.indrelid = c.oid) AS idx_scan, \
           pg_stat_get_vacuum_count(c.oid) AS vacuums, pg_stat_get_autovacuum_count(c.oid) AS autovacuums, \
           pg_stat_get_analyze_count(c.oid) AS analyzes, pg_stat_get_autoanalyze_count(c.oid) AS autoanalyzes, \
           pg_stat_get_last_vacuum_time(c.oid) AS last_vacuum, \
           pg_stat_get_last_autovacuum_time(c.oid) AS last_autovacuum, \
           pg_stat_get_last_analyze_time(c.oid) AS last_analyze, \
           pg_stat_get_last_autoanalyze_time(c.oid) AS last_autoanalyze \
    FROM pg_class c WHERE c.oid = ANY ($1) \
    UNION ALL \
    SELECT i.indexrelid::int8, i.indexrelid::regclass::text, 'index', \
           CASE WHEN $2 THEN pg_relation_size(i.indexrelid) END, \
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, pg_stat_get_numscans(i.indexrelid), \
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
    FROM pg_index i WHERE i.indrelid = ANY ($1)) AS r";
