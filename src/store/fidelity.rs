//! The comparison of a capture's replay with the capture.

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::{
    Activity, Call, Counts, FidelityPart, ReplayShares, ReplayedCall, calls, likeness, parts, whole,
};
use bench_results::Unreplayed;
use pgrx::pg_sys;
use serde::Deserialize;

use super::work::check_visible;
use super::{as_owner, may_see};
use crate::server::rows::{select, select_one};
use crate::server::spi::{fetch, fetch_all};

/// Returns the parts of a run's fidelity; none for a run that replays no capture, or whose statements were not counted.
///
/// # Errors
/// The server's.
pub fn parts_of_replay(run_id: i64) -> Result<Vec<FidelityPart>, UserError> {
    let sql = "SELECT EXISTS (SELECT FROM bench_internal.run_log r JOIN bench_internal.capture_list k ON k.name = r.workload \
               WHERE r.run_id = $1 AND r.started_at > k.finished_at)";
    if as_owner(|| fetch::<bool>(sql, &[run_id.into()]))? != Some(true) {
        return Ok(Vec::new());
    }
    match of_run(run_id) {
        Err(error) if error.sqlstate == sqlstate::NOT_IN_PREREQUISITE_STATE => Ok(Vec::new()),
        fidelity => Ok(fidelity?.parts),
    }
}

/// Returns the statements of a capture that its replay leaves out; `None` for other runs, and if there are none.
///
/// # Errors
/// The server's.
pub fn unreplayed(run_id: i64) -> Result<Option<Unreplayed>, UserError> {
    // Scripts of a duel have their arm as a suffix of their name.
    let left_out = "FROM bench_internal.run_log r JOIN bench_internal.capture_list k ON k.name = r.workload \
        JOIN bench.capture_statements s ON s.capture = k.name \
        WHERE r.run_id = $1 AND r.started_at > k.finished_at AND NOT (s.kept AND EXISTS ( \
            SELECT FROM bench_internal.script_log l WHERE l.run_id = r.run_id \
                AND l.workload IN (s.workload, concat(s.workload, ' [a]'))))";
    let sums =
        format!("SELECT count(*), coalesce(sum(s.share), 0), coalesce(min(k.owner_oid), 0) {left_out}");
    let list = format!(
        "SELECT s.query, coalesce(s.reason, 'its workload was dropped') AS reason, s.share {left_out} \
         ORDER BY s.number LIMIT {MAX_LISTED}"
    );
    let row = as_owner(|| select_one::<(u64, f64, pg_sys::Oid)>(&sums, &[run_id.into()]))?;
    let Some((statements, share, owner_oid)) = row.filter(|(statements, ..)| *statements > 0) else {
        return Ok(None);
    };
    let listed = if may_see(owner_oid) { as_owner(|| select(&list, &[run_id.into()]))? } else { Vec::new() };
    Ok(Some(Unreplayed { statements, share, listed }))
}

/// As [`unreplayed`], for the first completed run of a sweep.
///
/// # Errors
/// The server's.
pub fn unreplayed_of_sweep(sweep_id: i64) -> Result<Option<Unreplayed>, UserError> {
    let sql = "SELECT r.run_id FROM bench_internal.sweep_run_log s JOIN bench_internal.run_log r USING (run_id) \
               WHERE s.sweep_id = $1 AND r.status = 'completed' ORDER BY s.place LIMIT 1";
    as_owner(|| fetch::<i64>(sql, &[sweep_id.into()]))?.map_or(Ok(None), unreplayed)
}

/// The most statements that are listed as not replayed.
const MAX_LISTED: usize = 1000;

/// A statement or transaction; without a workload, the whole run.
#[derive(Clone, Debug, Default)]
pub struct FidelityLine {
    pub workload: Option<String>,
    pub calls: i64,
    pub captured: Option<Call>,
    pub replayed: Option<Call>,
    pub score: Option<f64>,
    /// Transactions of the run that ended with errors.
    pub failed: i64,
    /// The reason for a low score of the whole.
    pub reason: Option<String>,
}

/// The fidelity of a run to its capture.
pub struct Fidelity {
    /// The statements or transactions, and last the whole.
    pub lines: Vec<FidelityLine>,
    /// The parts of the whole's score.
    pub parts: Vec<FidelityPart>,
}

fn call(counts: &Counts) -> Option<Call> {
    Call::of(counts.calls, counts.rows, counts.hit, counts.read, counts.exec_ms)
}

/// Compares a run with its capture.
///
/// # Errors
/// 55000 for a run without captured statements, or whose statements pg_stat_statements has not counted.
pub fn of_run(run_id: i64) -> Result<Fidelity, UserError> {
    check_visible(run_id)?;
    let pairs = calls_of_captured(run_id)?;
    let shapes = shapes_of_captured(run_id)?;
    if pairs.is_empty() && !shapes.is_empty() {
        return Ok(of_shapes(shapes));
    }
    if pairs.is_empty() {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("run {run_id} has no statements of a capture"),
        )
        .hint("bench.fidelity compares runs of captures that still exist with these captures."));
    }
    if pairs.iter().all(|pair| pair.replayed.is_none()) {
        let message = format!("pg_stat_statements has not counted the statements of run {run_id}");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint(
            "It must be loaded during the run. It cannot identify the statements of runs with driver => 'wire' or \
             query_mode => 'simple'.",
        ));
    }
    let mut lines: Vec<FidelityLine> = pairs.iter().map(line).collect();
    let mut all = parts_of_run(run_id, &pairs)?;
    all.push(calls(&replayed_calls(&lines, pairs.iter().map(|pair| pair.share))));
    // The whole is weighted as in the capture.
    let weighted = |call_of: fn(&FidelityLine) -> Option<&Call>| {
        let (mut sum, mut weights) = (Call::default(), 0.0);
        for (line, pair) in lines.iter().zip(&pairs).filter(|(line, _)| line.replayed.is_some()) {
            let weight = pair.captured.calls as f64;
            call_of(line).into_iter().for_each(|call| sum.add(call, weight));
            weights += weight;
        }
        (weights > 0.0).then(|| sum.times(1.0 / weights))
    };
    let (captured, replayed) =
        (weighted(|line| line.captured.as_ref()), weighted(|line| line.replayed.as_ref()));
    lines.push(FidelityLine { captured, replayed, ..total(&lines, &all) });
    Ok(Fidelity { lines, parts: all })
}

fn line(pair: &Replayed) -> FidelityLine {
    let captured = call(&pair.captured);
    // A captured call is a transaction of this many statements.
    let statements = pair.statements as f64;
    let replayed = pair.replayed.as_ref().and_then(call).map(|call| call.times(statements));
    let alike = captured.as_ref().zip(replayed.as_ref()).map(|(one, other)| likeness(one, other).score);
    FidelityLine {
        workload: Some(pair.workload.clone()),
        calls: pair.replayed.map_or(0, |counts| counts.calls / pair.statements.max(1)),
        captured,
        replayed,
        score: alike.map(|score| score * share_without_error(&pair.ended).unwrap_or(1.0)),
        failed: pair.ended.failed,
        reason: None,
    }
}

/// Returns the parts of the whole run if it replays one whole capture; otherwise none.
fn parts_of_run(run_id: i64, pairs: &[Replayed]) -> Result<Vec<FidelityPart>, UserError> {
    let Some(replay) = replay_of_capture(run_id)? else { return Ok(Vec::new()) };
    let (mut counted, mut transactions, mut measured, mut ended) =
        (Counts::default(), 0.0, 0, Ended::default());
    for pair in pairs {
        if let Some(counts) = &pair.replayed {
            counted.add(counts);
            transactions += counts.calls as f64 / pair.statements.max(1) as f64;
            measured += pair.ended.processed + pair.ended.failed;
        }
        ended.processed += pair.ended.processed;
        ended.failed += pair.ended.failed;
    }
    // Calls were counted in the warm-up, too: scale them to the measured transactions.
    let scale = measured as f64 / transactions;
    let part = |total: f64| (total * scale).round() as i64;
    let replayed = Activity {
        statements: part(counted.calls as f64),
        rows: Some(part(counted.rows as f64)),
        blocks: Some(part((counted.hit + counted.read) as f64)),
        exec_ms: Some(counted.exec_ms * scale),
        ..replay.replayed
    };
    let shares = ReplayShares {
        kept: Some(replay.kept),
        without_error: share_without_error(&ended),
        writes: replay.writes,
    };
    Ok(parts(replay.captured.as_ref(), &replayed, shares))
}

fn replayed_calls<'a>(lines: &'a [FidelityLine], shares: impl Iterator<Item = f64>) -> Vec<ReplayedCall<'a>> {
    let call = |(line, share): (&'a FidelityLine, f64)| ReplayedCall {
        workload: line.workload.as_deref().unwrap_or_default(),
        share,
        captured: line.captured,
        replayed: line.replayed,
        score: line.score,
    };
    lines.iter().zip(shares).map(call).collect()
}

/// Returns the line of the whole.
fn total(lines: &[FidelityLine], parts: &[FidelityPart]) -> FidelityLine {
    let (score, reason) = whole(parts).map_or((None, None), |(score, reason)| (Some(score), reason));
    FidelityLine {
        calls: lines.iter().map(|line| line.calls).sum(),
        failed: lines.iter().map(|line| line.failed).sum(),
        score,
        reason,
        ..FidelityLine::default()
    }
}

/// Returns the fidelity of transactions captured from a log alone, without rows and blocks: the share without errors.
fn of_shapes(shapes: Vec<ReplayedShape>) -> Fidelity {
    let mut lines: Vec<FidelityLine> = Vec::with_capacity(shapes.len() + 1);
    for shape in &shapes {
        lines.push(FidelityLine {
            workload: Some(shape.workload.clone()),
            calls: shape.ended.processed,
            failed: shape.ended.failed,
            score: share_without_error(&shape.ended),
            ..FidelityLine::default()
        });
    }
    // Shapes that the run has not drawn do not count.
    let mut drawn = replayed_calls(&lines, shapes.iter().map(|shape| shape.share));
    drawn.retain(|call| call.score.is_some());
    let parts = vec![calls(&drawn)];
    lines.push(total(&lines, &parts));
    Fidelity { lines, parts }
}

/// Returns the share of transactions without an error; `None` without transactions.
fn share_without_error(ended: &Ended) -> Option<f64> {
    let all = ended.processed + ended.failed;
    (all > 0).then(|| ended.processed as f64 / all as f64)
}

/// The counts of a captured statement, and of its replay in a run.
struct Replayed {
    workload: String,
    /// The captured execution time in milliseconds, as the statement's weight.
    share: f64,
    captured: Counts,
    replayed: Option<Counts>,
    ended: Ended,
    /// The number of statements in a transaction.
    statements: i64,
}

/// The numbers of a script's transactions by their end.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Ended {
    /// Those without an error.
    processed: i64,
    /// Those ended by errors.
    failed: i64,
}

/// Reads the statements of a run that belong to a capture.
fn calls_of_captured(run_id: i64) -> Result<Vec<Replayed>, UserError> {
    as_owner(|| {
        let sql = "SELECT s.workload, s.exec_ms, s.calls, s.rows, s.shared_blks_hit, s.shared_blks_read, \
                       c.calls, c.rows, c.shared_blks_hit, c.shared_blks_read, c.exec_ms, l.transactions, l.failed, s.statements \
                   FROM (SELECT run_id, script, workload, sum(transactions)::int8 AS transactions, \
                           sum(failed + coalesce(aborted, 0))::int8 AS failed \
                       FROM bench_internal.script_log WHERE run_id = $1 GROUP BY run_id, script, workload) l JOIN bench.capture_statements s ON s.workload = l.workload AND s.kept \
                       AND (s.rows IS NOT NULL OR s.statements IS NULL) \
                   LEFT JOIN (SELECT run_id, script, sum(calls)::int8 AS calls, \
                           sum(rows)::int8 AS rows, sum(shared_blks_hit)::int8 AS shared_blks_hit, \
                           sum(shared_blks_read)::int8 AS shared_blks_read, sum(exec_ms) AS exec_ms \
                       FROM bench_internal.call_log GROUP BY run_id, script) c ON c.run_id = l.run_id AND c.script = l.script \
                   ORDER BY l.script";
        fetch_all(sql, &[run_id.into()], |row| {
            let number = |column| row.get::<i64>(column);
            let counts = |calls, first, exec_ms: f64| -> pgrx::spi::Result<Counts> {
                let [rows, hit, read] =
                    [number(first)?, number(first + 1)?, number(first + 2)?].map(Option::unwrap_or_default);
                Ok(Counts { calls, rows, hit, read, exec_ms, ..Counts::default() })
            };
            let exec_ms = row.get::<f64>(2)?.unwrap_or_default();
            let replayed = match number(7)? {
                Some(calls) => Some(counts(calls, 8, row.get::<f64>(11)?.unwrap_or_default())?),
                None => None,
            };
            Ok(Replayed {
                workload: row.get::<String>(1)?.unwrap_or_default(),
                share: exec_ms,
                captured: counts(number(3)?.unwrap_or_default(), 4, exec_ms)?,
                replayed,
                ended: Ended {
                    processed: number(12)?.unwrap_or_default(),
                    failed: number(13)?.unwrap_or_default(),
                },
                statements: row.get::<i32>(14)?.map_or(1, i64::from),
            })
        })
    })
}

/// The activity of a run that replays one whole capture, during its measurement.
#[derive(Deserialize)]
struct ReplayOfCapture {
    /// The capture's activity.
    captured: Option<Activity>,
    /// The run's activity, without the counts of pg_stat_statements.
    #[serde(flatten)]
    replayed: Activity,
    /// The share of the captured execution time that the run's statements have.
    #[serde(default)]
    kept: f64,
    /// Whether statements of the run write.
    #[serde(default)]
    writes: bool,
}

/// Reads the activity of a run of a whole capture; `None` for other runs.
fn replay_of_capture(run_id: i64) -> Result<Option<ReplayOfCapture>, UserError> {
    as_owner(|| {
        let sql = "SELECT k.activity AS captured, \
                (SELECT sum(l.transactions + l.failed + coalesce(l.aborted, 0))::int8 \
                 FROM bench_internal.script_log l WHERE l.run_id = r.run_id) AS transactions, \
                (SELECT sum(s.wal_bytes)::int8 FROM bench.samples s WHERE s.run_id = r.run_id) AS wal_bytes, \
                (SELECT sum(s.wal_syncs)::int8 FROM bench.samples s WHERE s.run_id = r.run_id) AS wal_syncs, \
                (SELECT sum(s.wal_fpi)::int8 FROM bench.samples s WHERE s.run_id = r.run_id) AS wal_fpi, \
                (SELECT sum(c.count * c.latency_avg_ms) FROM bench_internal.statement_log c \
                 WHERE c.run_id = r.run_id AND c.rows IS NOT NULL) AS active_ms, \
                (SELECT jsonb_object_agg(CASE w.wait_event_type WHEN w.wait_event THEN w.wait_event \
                     ELSE concat(w.wait_event_type, ':', w.wait_event) END, w.share) \
                 FROM bench_internal.wait_log w WHERE w.run_id = r.run_id AND w.node = (SELECT min(node) \
                     FROM bench_internal.wait_log WHERE run_id = r.run_id)) AS waits, \
                (SELECT sum(s.share) FROM bench.capture_statements s WHERE s.capture = k.name AND s.kept \
                     AND s.workload IN (SELECT l.workload FROM bench_internal.script_log l WHERE l.run_id = r.run_id)) AS kept, \
                (SELECT sum(c.writes) > 0 FROM bench_internal.statement_log c WHERE c.run_id = r.run_id) AS writes \
            FROM bench_internal.run_log r JOIN bench_internal.capture_list k ON k.name = r.workload WHERE r.run_id = $1";
        select_one(sql, &[run_id.into()])
    })
}

/// The replay of the transactions of one shape of a log.
#[derive(Deserialize)]
struct ReplayedShape {
    workload: String,
    /// The share of the captured transactions.
    share: f64,
    #[serde(flatten)]
    ended: Ended,
}

/// Reads the scripts of a run that belong to a capture from a log.
fn shapes_of_captured(run_id: i64) -> Result<Vec<ReplayedShape>, UserError> {
    as_owner(|| {
        let sql = "SELECT s.workload, min(s.share) AS share, sum(l.transactions)::int8 AS processed, \
                       sum(l.failed + coalesce(l.aborted, 0))::int8 AS failed \
                   FROM bench_internal.script_log l JOIN bench.capture_statements s ON s.workload = l.workload AND s.kept \
                   JOIN bench_internal.capture_list k ON k.name = s.capture AND k.source = 'log' \
                   WHERE l.run_id = $1 GROUP BY s.workload, l.script ORDER BY l.script";
        select(sql, &[run_id.into()])
    })
}
