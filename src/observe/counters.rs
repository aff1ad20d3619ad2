//! The server's own counters around a run, for the audit.

use std::sync::atomic::Ordering::*;

use bench_core::cluster::ClusterSpec;
use bench_core::error::UserError;
use bench_core::spec::RunSpec;
use pgrx::pg_sys;

use crate::catalog::recorder::AuditLine;
use crate::catalog::{self, fetch, transaction};
use crate::observe::node::NodeState;
use crate::observe::statement_calls;
use crate::shm::{Segment, TotalsOf};

/// One reading.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    inserted: i64,
    updated: i64,
    deleted: i64,
    index_scans: i64,
    /// The indexes whose scans are counted.
    indexes: Vec<pg_sys::Oid>,
    /// Whether triggers or rules do what the statements do not show.
    side_effects: bool,
    /// Whether some tables' rows are counted by others: by nodes that do not say so, as they do of distributed ones.
    elsewhere: bool,
    /// Tables that exist.
    tables: i64,
    commits: i64,
    rollbacks: i64,
    /// Calls of the run's statements; `None` without pg_stat_statements.
    calls: Option<i64>,
}

/// Reads the counters of the run's tables and statements, afresh.
pub fn read(spec: &RunSpec, query_ids: &[i64]) -> Result<Counters, UserError> {
    transaction(|| {
        // SAFETY: drops this backend's cached statistics, so that the shared ones are read.
        unsafe { pg_sys::pgstat_clear_snapshot() };
        let tables: Vec<pg_sys::Oid> = spec.tables().map(pg_sys::Oid::from).collect();
        let sum = |function: &str| -> Result<i64, UserError> {
            let sql = format!(
                "SELECT pg_catalog.sum(pg_catalog.{function}(t))::pg_catalog.int8 FROM pg_catalog.unnest($1) AS t"
            );
            Ok(fetch::<i64>(&sql, &[tables.clone().into()])?.unwrap_or_default())
        };
        let indexes = fetch::<Vec<pg_sys::Oid>>(
            "SELECT pg_catalog.array_agg(indexrelid ORDER BY indexrelid) FROM pg_catalog.pg_index \
             WHERE indrelid = ANY ($1)",
            &[tables.clone().into()],
        )?
        .unwrap_or_default();
        let index_scans = fetch::<i64>(
            "SELECT pg_catalog.sum(pg_catalog.pg_stat_get_numscans(i))::pg_catalog.int8 FROM pg_catalog.unnest($1) AS i",
            &[indexes.clone().into()],
        )?;
        let existing = fetch::<i64>(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_class WHERE oid = ANY ($1)",
            &[tables.clone().into()],
        )?;
        let side_effects = fetch::<bool>(
            // Citus has a trigger of its own on each of its tables, for TRUNCATE.
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = ANY ($1) \
                                AND NOT (p.proname = 'citus_truncate_trigger' AND p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace)) \
                 OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = ANY ($1))",
            &[tables.clone().into()],
        )?;
        // Reference tables: the rows are those of a shard on every node.
        let watched = spec.cluster.as_ref().map_or(0, |cluster| cluster.tables.len());
        let elsewhere = catalog::distributed(&tables)?.len() > watched;
        let of_database = |function: &str| -> Result<i64, UserError> {
            let database = pg_sys::Oid::from(spec.database_oid);
            Ok(fetch::<i64>(&format!("SELECT pg_catalog.{function}($1)"), &[database.into()])?
                .unwrap_or_default())
        };
        Ok(Counters {
            inserted: sum("pg_stat_get_tuples_inserted")?,
            updated: sum("pg_stat_get_tuples_updated")?,
            deleted: sum("pg_stat_get_tuples_deleted")?,
            index_scans: index_scans.unwrap_or_default(),
            indexes,
            side_effects: side_effects.unwrap_or_default(),
            elsewhere,
            tables: existing.unwrap_or_default(),
            commits: of_database("pg_stat_get_db_xact_commit")?,
            rollbacks: of_database("pg_stat_get_db_xact_rollback")?,
            calls: None,
        })
    })
    .map(|counters| Counters {
        // Its library may be missing, or its SQL of another version: then there is nothing to compare.
        calls: transaction(|| statement_calls::of_run(spec, query_ids)).ok().flatten(),
        ..counters
    })
}

/// The query identifiers of the run's statements: where each client has a table of its own, each client has others.
pub fn query_ids(segment: &Segment) -> Vec<i64> {
    let mut ids: Vec<i64> = (0..segment.shape().clients)
        .flat_map(|client| segment.commands(client))
        .map(|command| command.query_id.load(Relaxed).cast_signed())
        .filter(|&id| id != 0)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What the clients counted, over all phases.
struct Harness {
    inserted: u64,
    updated: u64,
    deleted: u64,
    index_scans: u64,
    index_scans_known: bool,
    /// No statement touches a table outside the fixture.
    inside: bool,
    calls: u64,
    /// Committed transactions by phase, see `TotalsOf`.
    committed: [u64; 4],
    failed: u64,
    /// Tries beyond each transaction's first.
    retries: u64,
    /// Statements that ended with an error.
    errors: u64,
    /// Transactions in the sample of an earlier interval.
    misplaced: u64,
}

fn harness(segment: &Segment) -> Harness {
    let mut h = Harness {
        inserted: 0,
        updated: 0,
        deleted: 0,
        index_scans: 0,
        index_scans_known: true,
        inside: true,
        calls: 0,
        committed: [0; 4],
        failed: 0,
        retries: 0,
        errors: 0,
        misplaced: 0,
    };
    for client in 0..segment.shape().clients {
        for command in segment.commands(client) {
            let rows = command.rows.get();
            match command.command_type.load(Relaxed) {
                pg_sys::CmdType::CMD_INSERT => h.inserted += rows,
                pg_sys::CmdType::CMD_UPDATE => h.updated += rows,
                pg_sys::CmdType::CMD_DELETE => h.deleted += rows,
                _ => {}
            }
            h.index_scans += command.index_scans.get();
            h.index_scans_known &= command.index_scans_unknown.load(Relaxed) == 0;
            h.inside &= command.outside.load(Relaxed) == 0;
            if command.query_id.load(Relaxed) != 0 {
                h.calls += command.executions.get();
            }
            h.errors += command.errors.get();
        }
        h.misplaced += segment.slot(client).misplaced.get();
        for (phase, totals) in segment.slot(client).totals.iter().enumerate() {
            h.committed[phase] += totals.committed.get();
            h.failed += totals.failed.get();
            h.retries += totals.retries.get();
        }
    }
    h
}

/// Rows inserted, updated and deleted in the shards of distributed tables, on all nodes together.
pub type Tuples = [i64; 3];

/// What the nodes' own readings say of that; `None` where one of them is missing.
pub fn tuples_of_shards(cluster: &ClusterSpec, segment: &Segment) -> Option<Tuples> {
    if cluster.silent > 0 {
        return None;
    }
    let read = |text: Option<String>| serde_json::from_str::<NodeState>(&text?).ok();
    segment.nodes().try_fold([0; 3], |sum: Tuples, cell| {
        let (before, after) = (read(cell.before.get())?, read(cell.after.get())?);
        let differences = [
            (after.inserted, before.inserted),
            (after.updated, before.updated),
            (after.deleted, before.deleted),
        ];
        let mut sum = sum;
        sum.iter_mut()
            .zip(differences)
            .for_each(|(sum, (now, then))| *sum += now.cast_signed() - then.cast_signed());
        Some(sum)
    })
}

/// Why a part of a run does not judge its tables' counters.
pub const SHARED: &str =
    "the tables' shards serve the clients of other nodes as well: the whole run's line compares them";

/// Compares the two. `recorded` is the sum of the samples' transactions; `all_flushed` says whether
/// every client has handed in its statistics.
pub fn audit(
    spec: &RunSpec,
    segment: &Segment,
    before: &Counters,
    after: &Counters,
    recorded: u64,
    all_flushed: bool,
) -> Vec<AuditLine> {
    let h = harness(segment);
    let shards = spec.cluster.as_ref().and_then(|cluster| tuples_of_shards(cluster, segment));
    // Those of the tables themselves, which stay as they are for distributed ones, and of the shards.
    let mut tuples =
        [after.inserted - before.inserted, after.updated - before.updated, after.deleted - before.deleted];
    tuples.iter_mut().zip(shards.unwrap_or_default()).for_each(|(tuples, of_shards)| *tuples += of_shards);
    let untracked = segment.header().untracked.load(Relaxed);
    let trouble = h.failed + h.retries + h.errors > 0;
    let tables_reason = if spec.fixtures.is_empty() {
        Some("the workload has no fixture whose tables could be watched")
    } else if untracked & 1 != 0 {
        Some("track_counts is off in the clients' sessions")
    } else if before.tables != after.tables {
        Some("the fixture was replaced or dropped meanwhile")
    } else if before.side_effects || after.side_effects {
        Some("the tables have triggers or rules")
    } else if !h.inside {
        Some("a statement does more than read or change the fixture's tables directly")
    } else if trouble {
        Some("work that was rolled back counts on the server as well")
    } else if !all_flushed {
        Some("a client was lost before it had flushed its statistics")
    } else if spec.part_of.is_some() {
        Some(SHARED)
    } else if before.elsewhere || after.elsewhere {
        Some("not all of the tables are distributed, and the rows of reference tables are not counted")
    } else if spec.cluster.is_some() && shards.is_none() {
        Some("a node of the cluster has not told of its shards' counters")
    } else {
        None
    };
    let line = |counter: &str, harness: u64, server: i64, not_judged: Option<&str>, reason: &str| AuditLine {
        counter: counter.to_owned(),
        harness: Some(harness.cast_signed()),
        server: Some(server),
        judged: not_judged.is_none(),
        reason: not_judged.unwrap_or(reason).to_owned(),
    };
    let rows = "rows of the fixture's tables, in all phases";
    let index_reason = tables_reason
        .or_else(|| {
            (before.indexes != after.indexes).then_some("the tables' indexes are not those of the beginning")
        })
        .or_else(|| {
            spec.cluster.is_some().then_some("the index scans are those of the shards, which are not read")
        })
        .or_else(|| (!h.index_scans_known).then_some("a plan is not simple enough to tell its index scans"));
    let mut lines = vec![
        line("n_tup_ins", h.inserted, tuples[0], tables_reason, rows),
        line("n_tup_upd", h.updated, tuples[1], tables_reason, rows),
        line("n_tup_del", h.deleted, tuples[2], tables_reason, rows),
        line(
            "idx_scan",
            h.index_scans,
            after.index_scans - before.index_scans,
            index_reason,
            "index scans of the fixture's tables, in all phases",
        ),
        line(
            "xact_commit",
            h.committed.iter().sum(),
            after.commits - before.commits,
            Some("the server counts the whole database, this run's own set-up and recording included"),
            "",
        ),
        line(
            "xact_rollback",
            h.failed + h.retries,
            after.rollbacks - before.rollbacks,
            Some("the server counts the whole database"),
            "",
        ),
        line(
            "samples",
            h.committed[TotalsOf::Measured as usize],
            recorded.cast_signed(),
            None,
            "transactions measured: the clients' totals against the sum of the samples",
        ),
        line(
            "misplaced",
            h.misplaced,
            0,
            None,
            "transactions in the sample of an earlier interval than their own, because the coordinator was held up",
        ),
    ];
    let own = |counter: &str, count: u64, reason: &str| AuditLine {
        counter: counter.to_owned(),
        harness: Some(count.cast_signed()),
        server: None,
        judged: false,
        reason: reason.to_owned(),
    };
    lines.extend([
        own("committed: ramp", h.committed[TotalsOf::Ramp as usize], "before the first interval began"),
        own("committed: warm-up", h.committed[TotalsOf::Warmup as usize], "run but not counted"),
        own("committed: measured", h.committed[TotalsOf::Measured as usize], "what the samples show"),
        own("committed: drain", h.committed[TotalsOf::Drain as usize], "ended after the measured time"),
        own("failed", h.failed, "transactions given up, in all phases"),
        own("retries", h.retries, "tries beyond each transaction's first, in all phases"),
    ]);
    if let (Some(before), Some(after)) = (before.calls, after.calls) {
        let not_judged = trouble
            .then_some("executions that failed are not calls")
            .or((!all_flushed).then_some("a client was lost"))
            .or((untracked & 2 != 0).then_some("pg_stat_statements.track is none in the clients' sessions"));
        lines.push(line(
            "pg_stat_statements.calls",
            h.calls,
            after - before,
            not_judged,
            "calls of the run's statements by its role",
        ));
    }
    lines
}
