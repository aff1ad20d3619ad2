//! The audit: what the clients counted against what the server counted.
//!
//! Only what must be equal is judged. The server counts more than a statement's rows wherever it works by itself:
//! triggers, rows that are taken back or moved, looks of the planner. There the line says why it is not judged.

use std::sync::atomic::Ordering::*;

use bench_core::cluster::ClusterSpec;
use bench_core::findings::UNSENT;
use bench_core::spec::RunSpec;
use pgrx::pg_sys;

use super::counters::{Counters, Tuples};
use crate::catalog::recorder::AuditLine;
use crate::observe::node::NodeState;
use crate::shm::{Segment, TotalsOf, unclear};

/// What the clients counted, over all phases.
struct Harness {
    inserted: u64,
    updated: u64,
    deleted: u64,
    index_scans: u64,
    index_scans_known: bool,
    /// Why rows or scans need not be those that the server counts, of any command: bits of [`unclear`].
    unclear: u32,
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
        unclear: 0,
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
            h.unclear |= command.unclear.load(Relaxed);
            if command.query_id.load(Relaxed) != 0 {
                h.calls += command.executions.get();
            }
            h.errors += command.errors.get();
        }
        h.misplaced += segment.intervals(client).misplaced.get();
        for (phase, totals) in segment.slot(client).totals.iter().enumerate() {
            h.committed[phase] += totals.committed.get();
            h.failed += totals.failed.get();
            h.retries += totals.retries.get();
        }
    }
    h
}

/// Rows inserted, updated and deleted in the shards of distributed tables, on all nodes together, by the nodes' own
/// readings; `None` where one of them is missing.
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
pub const SHARED: &str = "the shards also serve clients on other nodes: node 0 compares the whole run";

/// The first of the reasons that hold.
fn first_of<'a>(reasons: &[(bool, &'a str)]) -> Option<&'a str> {
    reasons.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason)
}

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
    let of_shards = shards.unwrap_or_default();
    let tuples: [i64; 3] =
        std::array::from_fn(|kind| after.tuples[kind] - before.tuples[kind] + of_shards[kind]);
    let index_scans = after.index_scans - before.index_scans;
    let untracked = segment.header().untracked.load(Relaxed);
    let trouble = h.failed + h.retries + h.errors > 0;
    let fewer = (0..3).any(|kind| after.tuples[kind] < before.tuples[kind]) || index_scans < 0;
    let tables_reason = first_of(&[
        (spec.fixtures.is_empty(), "the workload has no fixture with tables to observe"),
        (untracked & 1 != 0, "track_counts is off in the clients' sessions"),
        (before.tables != after.tables, "the fixture was replaced or dropped during the run"),
        (before.reset != after.reset || fewer, "the server's statistics were reset during the run"),
        (before.side_effects || after.side_effects, "the tables have triggers or rules"),
        (
            before.children || after.children,
            "other tables inherit from the fixture's tables, and their rows count there",
        ),
        (
            h.unclear & unclear::OUTSIDE != 0,
            "a statement does more than read or change the fixture's tables directly",
        ),
        (
            h.unclear & unclear::MOVES != 0,
            "an UPDATE that moves a row to another partition counts as a row deleted and one inserted",
        ),
        (trouble, "the server also counts work that was rolled back"),
        (!all_flushed, "a client ended before it reported its statistics"),
    ]);
    let nodes_reason = first_of(&[
        (spec.part_of.is_some(), SHARED),
        (
            before.elsewhere || after.elsewhere,
            "not all of the tables are distributed, and the rows of reference tables are not counted",
        ),
        (spec.cluster.is_some() && shards.is_none(), "a node did not report its shards' counters"),
    ]);
    let taken_back = first_of(&[(
        h.unclear & unclear::TAKES_BACK != 0,
        "INSERT … ON CONFLICT removes its row when another session inserted the key first: both count",
    )]);
    let index_reason = first_of(&[
        (before.indexes != after.indexes, "the tables' indexes changed during the run"),
        (spec.cluster.is_some(), "the shards count index scans, and they are not read"),
        (!h.index_scans_known, "the index scans of a plan cannot be determined"),
        (
            h.unclear & unclear::LOOKS_AT_ENDS != 0,
            "the planner reads the ends of an index for conditions other than equality, which counts as index scans",
        ),
        (
            before.hidden_scans || after.hidden_scans,
            "the tables have exclusion constraints or partial indexes, which add index scans",
        ),
    ]);
    // Late counts of others make the server's number greater, never smaller.
    let late =
        |harness: u64, server: i64| first_of(&[(before.unsent && server > harness.cast_signed(), UNSENT)]);
    let line = |counter: &str, harness: u64, server: i64, not_judged: Option<&str>, reason: &str| AuditLine {
        counter: counter.to_owned(),
        harness: Some(harness.cast_signed()),
        server: Some(server),
        judged: not_judged.is_none(),
        reason: not_judged.unwrap_or(reason).to_owned(),
    };
    let of_tables = |counter: &str, harness: u64, server: i64, special: Option<&str>, reason: &str| {
        let not_judged = tables_reason.or(special).or(nodes_reason).or_else(|| late(harness, server));
        line(counter, harness, server, not_judged, reason)
    };
    let rows = "rows of the fixture's tables, in all phases";
    let mut lines = vec![
        of_tables("n_tup_ins", h.inserted, tuples[0], taken_back, rows),
        of_tables("n_tup_upd", h.updated, tuples[1], None, rows),
        of_tables("n_tup_del", h.deleted, tuples[2], taken_back, rows),
        of_tables(
            "idx_scan",
            h.index_scans,
            index_scans,
            index_reason,
            "index scans of the fixture's tables, in all phases",
        ),
        line(
            "xact_commit",
            h.committed.iter().sum(),
            after.commits - before.commits,
            Some("the server counts the whole database, including this run's setup and recording"),
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
            "measured transactions: the clients' totals and the sum of the samples",
        ),
        line(
            "misplaced",
            h.misplaced,
            0,
            None,
            "transactions in the sample of an earlier interval, because the coordinator was delayed",
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
        own("failed", h.failed, "failed transactions, in all phases"),
        own("retries", h.retries, "repeated tries, in all phases"),
    ]);
    if let (Some(before), Some(after)) = (before.calls, after.calls) {
        let not_judged = trouble
            .then_some("failed executions are not calls")
            .or((after < before).then_some("the statistics of pg_stat_statements were reset during the run"))
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
