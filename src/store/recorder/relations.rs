//! What became of each of a run's tables and indexes.

use bench_base::error::UserError;

use crate::server::spi::run;

/// Columns of a relation's reading that only ever grow.
const COUNTED: [&str; 11] = [
    "inserted",
    "updated",
    "hot_updated",
    "deleted",
    "seq_scan",
    "seq_tup_read",
    "idx_scan",
    "vacuums",
    "autovacuums",
    "analyzes",
    "autoanalyzes",
];

/// Writes the difference of two readings, a line for each name.
///
/// A relation may have been dropped meanwhile, or made, or both: an index that is created anew is another one of the same
/// name. Its sizes are told as before and after; its counts cannot be compared, and nor can a table's scans of its indexes,
/// which are a sum over them. A relation that was renamed has its new name. Should it be that of one that was dropped,
/// that one is not told.
pub fn lines(
    run_id: i64,
    (before, after): (&serde_json::Value, &serde_json::Value),
) -> Result<(), UserError> {
    let of = |reading: &serde_json::Value| pgrx::JsonB(reading.clone());
    // A reset of the statistics leaves fewer than there were before: then nobody knows.
    let since = |name: &&str| {
        let is_whole =
            if *name == "idx_scan" { " AND (a.kind <> 'table' OR c.all_indexes_stay)" } else { "" };
        format!("CASE WHEN a.oid = b.oid AND a.{name} >= b.{name}{is_whole} THEN a.{name} - b.{name} END")
    };
    let sql = format!(
        "WITH before AS MATERIALIZED (SELECT * FROM jsonb_populate_recordset(NULL::bench_internal.relation_reading, $2)), \
              after AS MATERIALIZED (SELECT * FROM jsonb_populate_recordset(NULL::bench_internal.relation_reading, $3)), \
              named AS (SELECT DISTINCT ON (coalesce(a.relation, b.relation)) b.*, coalesce(a.relation, b.relation) AS name \
                        FROM before b LEFT JOIN after a USING (oid) \
                        ORDER BY coalesce(a.relation, b.relation), a.oid IS NULL), \
              compared AS (SELECT NOT EXISTS (SELECT FROM before b LEFT JOIN after a USING (oid) \
                                              WHERE b.kind = 'index' AND a.oid IS NULL) AS all_indexes_stay) \
         INSERT INTO bench_internal.relation_log (run_id, relation, kind, bytes_before, bytes_after, live_before, live, dead_before, dead, \
             mod_since_analyze, last_vacuum, last_autovacuum, last_analyze, last_autoanalyze, {}) \
         SELECT $1, coalesce(a.relation, b.name), coalesce(a.kind, b.kind), b.bytes, a.bytes, b.live, a.live, b.dead, a.dead, \
             a.mod_since_analyze, a.last_vacuum, a.last_autovacuum, a.last_analyze, a.last_autoanalyze, {} \
         FROM named b FULL JOIN after a ON a.relation = b.name CROSS JOIN compared c",
        COUNTED.join(", "),
        COUNTED.iter().map(since).collect::<Vec<_>>().join(", "),
    );
    run(&sql, &[run_id.into(), of(before).into(), of(after).into()]).map(drop)
}
