//! The audit: what the clients counted against what the server counted.
//!
//! Only what must be equal is judged. The server counts more than a statement's rows wherever it works by itself:
//! triggers, rows that are taken back or moved, looks of the planner. There the line says why it is not judged.

use std::sync::atomic::Ordering::*;

use bench_findings::UNSENT;
use bench_model::cluster::ClusterSpec;
use bench_model::spec::RunSpec;
use pgrx::pg_sys;
use serde::Serialize;

use super::counters::{self, Counters, Tuples};
use super::machine::NodeState;
use crate::server::transaction::transaction;
use crate::shm::{Segment, TotalsOf, unclear, untracked};

/// A line of bench.audit: what the harness counted against what the server counted.
#[derive(Clone, Debug, Serialize)]
pub struct AuditRow {
    pub counter: String,
    pub harness: Option<i64>,
    pub server: Option<i64>,
    /// Whether the two must be equal.
    pub judged: bool,
    pub reason: String,
}

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
    for client in 0..segment.shape().slots {
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

/// Why the counters of shards are not judged.
const SILENT: &str = "a node did not report its shards' counters";
const MOVED: &str = "shards were moved, copied or split during the run";

/// Rows inserted, updated and deleted in the shards of distributed tables, on all nodes together, by the nodes' own
/// readings: each row once, on however many nodes it is.
///
/// # Errors
/// Why that is not known: a reading is missing, or the shards were not on the same nodes all the time.
pub fn tuples_of_shards(cluster: &ClusterSpec, segment: &Segment) -> Result<Tuples, &'static str> {
    if cluster.silent > 0 {
        return Err(SILENT);
    }
    let read =
        |text: Option<String>| serde_json::from_str::<NodeState>(&text.ok_or(SILENT)?).map_err(|_| SILENT);
    let readings = segment
        .nodes()
        .map(|cell| Ok::<_, &'static str>((read(cell.before.get())?, read(cell.after.get())?)))
        .collect::<Result<Vec<_>, &'static str>>()?;
    // Each node learns of a move with the transaction that ends it, so that all of their readings show it.
    if readings.iter().any(|(before, after)| before.placements != after.placements) {
        return Err(MOVED);
    }
    let mut sum: Tuples = [0; 3];
    for (before, after) in readings {
        let differences = [
            (after.inserted, before.inserted),
            (after.updated, before.updated),
            (after.deleted, before.deleted),
        ];
        sum.iter_mut()
            .zip(differences)
            .for_each(|(sum, (now, then))| *sum += now.cast_signed() - then.cast_signed());
    }
    Ok(sum)
}

/// Why a part of a run does not judge its tables' counters.
pub const SHARED: &str = "the shards also serve clients on other nodes: node 0 compares the whole run";

/// The first of the reasons that hold.
fn first_of<'a>(reasons: &[(bool, &'a str)]) -> Option<&'a str> {
    reasons.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason)
}

/// Both sides of the comparison.
struct HarnessAndServer<'a> {
    spec: &'a RunSpec,
    harness: Harness,
    before: &'a Counters,
    after: &'a Counters,
    /// Rows written to the tables' shards, or why that is not known; `None` where the run has no such tables.
    shards: Option<Result<Tuples, &'static str>>,
    /// Bits of [`untracked`].
    untracked: u32,
    /// Whether every client has handed in its statistics.
    all_flushed: bool,
}

/// Compares what the clients counted with what the server counted. `recorded` is the sum of the samples' transactions;
/// `all_flushed` says whether every client has handed in its statistics.
pub fn audit(
    spec: &RunSpec,
    segment: &Segment,
    before: &Counters,
    after: &Counters,
    recorded: u64,
    all_flushed: bool,
) -> Vec<AuditRow> {
    let sides = HarnessAndServer {
        spec,
        harness: harness(segment),
        before,
        after,
        shards: spec.cluster.as_ref().map(|cluster| tuples_of_shards(cluster, segment)),
        untracked: segment.header().untracked.load(Relaxed),
        all_flushed,
    };
    if spec.target.is_some() {
        // Another server's counters are not read.
        let [_, _, samples, misplaced] = sides.transaction_lines(recorded);
        return [samples, misplaced].into_iter().chain(sides.own_lines()).collect();
    }
    let mut lines = sides.table_lines();
    lines.extend(sides.transaction_lines(recorded));
    lines.extend(sides.own_lines());
    lines.extend(sides.calls_line());
    lines
}

/// A line of which both sides have counted; judged where there is no reason not to.
fn line(counter: &str, harness: u64, server: i64, not_judged: Option<&str>, reason: &str) -> AuditRow {
    AuditRow {
        counter: counter.to_owned(),
        harness: Some(harness.cast_signed()),
        server: Some(server),
        judged: not_judged.is_none(),
        reason: not_judged.unwrap_or(reason).to_owned(),
    }
}

impl HarnessAndServer<'_> {
    /// Whether work of the run was rolled back.
    fn had_trouble(&self) -> bool {
        let h = &self.harness;
        h.failed + h.retries + h.errors > 0
    }

    fn index_scans(&self) -> i64 {
        self.after.index_scans - self.before.index_scans
    }

    /// Why no counter of the tables is judged.
    fn reason_of_tables(&self) -> Option<&'static str> {
        let Self { harness: h, before, after, .. } = self;
        let fewer = (0..3).any(|kind| after.tuples[kind] < before.tuples[kind]) || self.index_scans() < 0;
        first_of(&[
            (self.spec.fixtures.is_empty(), "the workload has no fixture with tables to observe"),
            (self.untracked & untracked::COUNTS != 0, "track_counts is off in the clients' sessions"),
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
            (self.had_trouble(), "the server also counts work that was rolled back"),
            (!self.all_flushed, "a client ended before it reported its statistics"),
        ])
    }

    /// Why they are not judged in a run on a Citus cluster.
    fn reason_of_nodes(&self) -> Option<&'static str> {
        first_of(&[
            (self.spec.part_of.is_some(), SHARED),
            (
                self.before.is_distributed || self.after.is_distributed,
                "a table was distributed after the run was prepared",
            ),
        ])
        .or_else(|| self.shards.and_then(Result::err))
    }

    /// Why index scans are not judged.
    fn reason_of_indexes(&self) -> Option<&'static str> {
        let Self { harness: h, before, after, .. } = self;
        first_of(&[
            (before.indexes != after.indexes, "the tables' indexes changed during the run"),
            (self.spec.cluster.is_some(), "the shards count index scans, and they are not read"),
            (!h.index_scans_known, "the index scans of a plan cannot be determined"),
            (
                h.unclear & unclear::LOOKS_AT_ENDS != 0,
                "the planner reads the ends of an index for conditions other than equality, which counts as index scans",
            ),
            (
                before.hidden_scans || after.hidden_scans,
                "the tables have exclusion constraints or partial indexes, which add index scans",
            ),
        ])
    }

    /// Rows and index scans of the fixture's tables.
    fn table_lines(&self) -> Vec<AuditRow> {
        let h = &self.harness;
        // Those of the tables themselves, which stay as they are for distributed ones, and of the shards.
        let of_shards = self.shards.and_then(Result::ok).unwrap_or_default();
        let tuples: [i64; 3] =
            std::array::from_fn(|kind| self.after.tuples[kind] - self.before.tuples[kind] + of_shards[kind]);
        let taken_back = first_of(&[(
            h.unclear & unclear::TAKES_BACK != 0,
            "INSERT … ON CONFLICT removes its row when another session inserted the key first: both count",
        )]);
        let (tables_reason, nodes_reason) = (self.reason_of_tables(), self.reason_of_nodes());
        // Late counts of others make the server's number greater, never smaller.
        let late = |harness: u64, server: i64| {
            first_of(&[(self.before.unsent && server > harness.cast_signed(), UNSENT)])
        };
        let of_tables = |counter: &str, harness: u64, server: i64, special: Option<&str>, reason: &str| {
            let not_judged = tables_reason.or(special).or(nodes_reason).or_else(|| late(harness, server));
            line(counter, harness, server, not_judged, reason)
        };
        let rows = "rows of the fixture's tables, in all phases";
        vec![
            of_tables("n_tup_ins", h.inserted, tuples[0], taken_back, rows),
            of_tables("n_tup_upd", h.updated, tuples[1], None, rows),
            of_tables("n_tup_del", h.deleted, tuples[2], taken_back, rows),
            of_tables(
                "idx_scan",
                h.index_scans,
                self.index_scans(),
                self.reason_of_indexes(),
                "index scans of the fixture's tables, in all phases",
            ),
        ]
    }

    /// Transactions, on the server and in the samples.
    fn transaction_lines(&self, recorded: u64) -> [AuditRow; 4] {
        let Self { harness: h, before, after, .. } = self;
        [
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
        ]
    }

    /// What only the harness counts.
    fn own_lines(&self) -> [AuditRow; 6] {
        let h = &self.harness;
        let own = |counter: &str, count: u64, reason: &str| AuditRow {
            counter: counter.to_owned(),
            harness: Some(count.cast_signed()),
            server: None,
            judged: false,
            reason: reason.to_owned(),
        };
        let of = |phase: TotalsOf| h.committed[phase as usize];
        [
            own("committed: ramp", of(TotalsOf::Ramp), "before the first interval began"),
            own("committed: warm-up", of(TotalsOf::Warmup), "run but not counted"),
            own("committed: measured", of(TotalsOf::Measured), "what the samples show"),
            own(
                "committed: drain",
                of(TotalsOf::Drain),
                "ended after the measured time: among the latencies, not in the samples",
            ),
            own("failed", h.failed, "transactions that failed or ended with their client, in all phases"),
            own("retries", h.retries, "repeated tries, in all phases"),
        ]
    }

    /// Whether so many calls may have been counted under other identifiers than those that the statements began with.
    fn has_changed_identifiers(&self, missing: i64) -> bool {
        let Some(known) = self.after.statements.as_ref().filter(|_| missing > 0) else { return false };
        transaction(|| counters::of_other_identifiers(self.spec, known)).is_ok_and(|calls| calls >= missing)
    }

    /// Calls of the run's statements, where pg_stat_statements counts them.
    fn calls_line(&self) -> Option<AuditRow> {
        let (before, after) = (self.before.calls()?, self.after.calls()?);
        let not_judged = first_of(&[
            (self.had_trouble(), "failed executions are not calls"),
            (after < before, "the statistics of pg_stat_statements were reset during the run"),
            (!self.all_flushed, "a client was lost"),
            (
                self.untracked & untracked::CALLS != 0,
                "pg_stat_statements.track is none in the clients' sessions",
            ),
        ])
        .or_else(|| {
            self.has_changed_identifiers(self.harness.calls.cast_signed() - (after - before)).then_some(
                "the identifiers of statements changed during the run, for example with the type of a column",
            )
        });
        Some(line(
            "pg_stat_statements.calls",
            self.harness.calls,
            after - before,
            not_judged,
            "calls of the run's statements by its role",
        ))
    }
}
