//! The server's cumulative counters of WAL, checkpoints and buffers, and how far its standbys are behind.

use bench_base::error::UserError;
use bench_model::views::{Replication, ServerCounters, counters_query, replication_query};
use pgrx::pg_sys;

use crate::server::spi::fetch;
use crate::server::transaction::transaction;

/// Reads the counters: of the whole server, buffers found and temporary files of this database.
pub fn read() -> Result<ServerCounters, UserError> {
    let query = counters_query(pg_sys::PG_VERSION_NUM.cast_signed(), &[]);
    let values = transaction(|| fetch::<Vec<Option<i64>>>(&query, &[]))?;
    Ok(ServerCounters::new(values.unwrap_or_default()))
}

/// Reads what replicates from this server.
pub fn replication() -> Result<Replication, UserError> {
    let query = format!("SELECT ({})::text", replication_query());
    let json = transaction(|| fetch::<String>(&query, &[]))?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

/// Whether a role may read who replicates from this server (pg_stat_replication).
pub fn shows_standbys_to(role_oid: u32) -> Result<bool, UserError> {
    let sql = "SELECT pg_has_role($1, 'pg_read_all_stats', 'USAGE')";
    Ok(transaction(|| fetch::<bool>(sql, &[pg_sys::Oid::from(role_oid).into()]))?.unwrap_or_default())
}
