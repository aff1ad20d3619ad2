//! The server's own counters around a run, for the [audit](super::audit).

use std::collections::HashMap;

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_model::spec::RunSpec;
use pgrx::pg_sys;

use super::statement_calls;
use crate::cluster::distributed;
use crate::server::process::{current_timestamp, forget_statistics};
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::shm::{CommandCounters, Segment};

/// One reading.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// When the reading began, a TimestampTz.
    pub at: i64,
    /// Rows of the tables inserted, updated and deleted.
    pub tuples: Tuples,
    pub index_scans: i64,
    /// The indexes whose scans are counted.
    pub indexes: Vec<pg_sys::Oid>,
    /// Whether an index is scanned, or its ends are looked up, for what no statement says: its own condition, or an
    /// exclusion constraint.
    pub hidden_scans: bool,
    /// Whether triggers or rules do what the statements do not show.
    pub side_effects: bool,
    /// Whether tables that are not the run's inherit from its tables: their rows are counted there.
    pub children: bool,
    /// Whether Citus has tables whose shards the run does not count.
    pub is_distributed: bool,
    /// Whether other sessions may have worked in this database and not yet handed in their statistics.
    pub unsent: bool,
    /// Tables that exist.
    pub tables: i64,
    pub commits: i64,
    pub rollbacks: i64,
    /// When statistics of this database were last reset, in seconds since 1970; `None`: never.
    pub reset: Option<f64>,
    /// What was counted of the run's statements, by their identifiers; `None` without pg_stat_statements.
    pub statements: Option<HashMap<i64, Counts>>,
}

/// Rows inserted, updated and deleted.
pub type Tuples = [i64; 3];

impl Counters {
    /// Calls of the run's statements; `None` without pg_stat_statements.
    pub fn calls(&self) -> Option<i64> {
        self.statements.as_ref().map(|all| all.values().map(|counts| counts.calls).sum())
    }
}

/// Reads the counters of the run's tables and statements, afresh.
pub fn read(spec: &RunSpec, query_ids: &[i64]) -> Result<Counters, UserError> {
    transaction(|| {
        let at = current_timestamp();
        forget_statistics();
        let tables: Vec<pg_sys::Oid> = spec.tables().map(pg_sys::Oid::from).collect();
        let sum = |function: &str| -> Result<i64, UserError> {
            let sql = format!(
                "SELECT sum({function}(t))::int8 FROM unnest($1) AS t"
            );
            Ok(fetch::<i64>(&sql, &[tables.clone().into()])?.unwrap_or_default())
        };
        let indexes = fetch::<Vec<pg_sys::Oid>>(
            "SELECT array_agg(indexrelid ORDER BY indexrelid) FROM pg_index \
             WHERE indrelid = ANY ($1)",
            &[tables.clone().into()],
        )?
        .unwrap_or_default();
        let index_scans = fetch::<i64>(
            "SELECT sum(pg_stat_get_numscans(i))::int8 FROM unnest($1) AS i",
            &[indexes.clone().into()],
        )?;
        let existing = fetch::<i64>(
            "SELECT count(*) FROM pg_class WHERE oid = ANY ($1)",
            &[tables.clone().into()],
        )?;
        let hidden_scans = fetch::<bool>(
            "SELECT EXISTS (SELECT FROM pg_index WHERE indrelid = ANY ($1) AND (indisexclusion OR indpred IS NOT NULL))",
            &[tables.clone().into()],
        )?;
        let children = fetch::<bool>(
            "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhparent = ANY ($1) AND inhrelid <> ALL ($1))",
            &[tables.clone().into()],
        )?;
        let side_effects = fetch::<bool>(
            // Citus has a trigger of its own on each of its tables, for TRUNCATE.
            "SELECT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = ANY ($1) \
                                AND NOT (p.proname = 'citus_truncate_trigger' AND p.pronamespace = 'pg_catalog'::regnamespace)) \
                 OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = ANY ($1))",
            &[tables.clone().into()],
        )?;
        let watched = spec.cluster.as_ref().map_or(0, |cluster| cluster.tables.len());
        let is_distributed = distributed::distributed(&tables)?.len() > watched;
        let database = pg_sys::Oid::from(spec.database_oid);
        let reset = fetch::<f64>(
            "SELECT date_part('epoch', pg_stat_get_db_stat_reset_time($1))",
            &[database.into()],
        )?;
        let of_database = |function: &str| -> Result<i64, UserError> {
            Ok(fetch::<i64>(&format!("SELECT {function}($1)"), &[database.into()])?
                .unwrap_or_default())
        };
        Ok(Counters {
            at,
            tuples: [
                sum("pg_stat_get_tuples_inserted")?,
                sum("pg_stat_get_tuples_updated")?,
                sum("pg_stat_get_tuples_deleted")?,
            ],
            index_scans: index_scans.unwrap_or_default(),
            indexes,
            hidden_scans: hidden_scans.unwrap_or_default(),
            side_effects: side_effects.unwrap_or_default(),
            children: children.unwrap_or_default(),
            is_distributed,
            unsent: spec.starter.has_unsent || has_unsent(database, spec.starter.pid)?,
            reset,
            tables: existing.unwrap_or_default(),
            commits: of_database("pg_stat_get_db_xact_commit")?,
            rollbacks: of_database("pg_stat_get_db_xact_rollback")?,
            statements: None,
        })
    })
    .map(|counters| Counters {
        // Its library may be missing, or its SQL of another version: then there is nothing to compare.
        statements: transaction(|| statement_calls::of_run(spec, query_ids)).ok().flatten(),
        ..counters
    })
}

/// Whether sessions of this database may have done what the server's counters do not show yet. A session hands in its
/// counts between two transactions, at most once a second, and after ten seconds of idleness at the latest
/// (PGSTAT_IDLE_INTERVAL, utils/activity/pgstat.c): one that is at work, or was a moment ago, may hold some back. The
/// `starter` of the run is left out: it has looked itself.
fn has_unsent(database: pg_sys::Oid, starter: i32) -> Result<bool, UserError> {
    let found = fetch::<bool>(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datid = $1 AND pid <> $2 \
             AND backend_type NOT LIKE 'pgbench\\_ext %' AND backend_type NOT IN ('autovacuum worker', 'parallel worker', 'walsender') \
             AND (state <> 'idle' OR state_change > clock_timestamp() - '15 s'::interval))",
        &[database.into(), starter.into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// Whether this session has read or changed these tables and not yet handed in its counts: those that it hands in while a
/// run measures would seem to be the run's.
pub fn has_unsent_itself(tables: &[pg_sys::Oid]) -> Result<bool, UserError> {
    // Runs with the caller's search_path.
    let found = fetch::<bool>(
        "SELECT EXISTS (SELECT FROM unnest($1) AS t WHERE 0 < greatest( \
                 pg_stat_get_xact_tuples_inserted(t), pg_stat_get_xact_tuples_updated(t), \
                 pg_stat_get_xact_tuples_deleted(t))) \
             OR EXISTS (SELECT FROM pg_index WHERE indrelid = ANY ($1) \
                 AND 0 < pg_stat_get_xact_numscans(indexrelid))",
        &[tables.to_vec().into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// The query identifiers of the run's statements: where each client has a table of its own, each client has others.
pub fn query_ids(segment: &Segment) -> Vec<i64> {
    let mut ids: Vec<i64> = (0..segment.shape().slots)
        .flat_map(|client| segment.commands(client))
        .flat_map(CommandCounters::query_ids)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
