//! What the arms of a duel did: bench_internal.duel_log and its siblings.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{ARMS, MARGIN};
use bench_results::{Duel, DuelCommand, DuelMeasured, DuelWait, UsedAlone};
use bench_stats::duel::{ArmBatch, BATCHES};
use bench_stats::histogram;
use pgrx::JsonB;
use serde::Deserialize;
use serde_json::{Value, json};

use super::work::check_visible;
use super::{as_owner, statements};
use crate::server::rows::{insert, select};
use crate::server::spi::{fetch, fetch_all};

/// Writes what was measured of a duel.
pub fn put_duel(run_id: i64, duel: &DuelMeasured) -> Result<(), UserError> {
    let of_run = || ("run_id", Value::from(run_id));
    for ((arm, name), alone) in ARMS.into_iter().enumerate().zip(&duel.alone) {
        let batches = || duel.batches.iter().map(|batch| &batch[arm]);
        let counts = |of: fn(&ArmBatch) -> u64| -> Vec<u64> { batches().map(of).collect() };
        let sums = |of: fn(&ArmBatch) -> f64| -> Vec<f64> { batches().map(of).collect() };
        let row = json!({
            "arm": name,
            "transactions": counts(|of| of.transactions),
            "latency_ms": sums(|of| of.latency_ms),
            "failed": counts(|of| of.failed),
            "retried": counts(|of| of.retried),
            "timed": counts(|of| of.timed),
            "busy_us": sums(|of| of.cpu_us),
            "counted": counts(|of| of.counted),
            "blocks": counts(|of| of.blocks),
            "wal_bytes": counts(|of| of.wal_bytes),
            "rows": counts(|of| of.rows),
            "minor_faults": counts(|of| of.minor_faults),
            "alone": alone,
            "latencies": batches().map(|of| &of.latencies).collect::<Vec<_>>(),
        });
        insert("bench_internal.duel_log", of_run(), [row])?;
    }
    let commands = duel.commands.iter().map(|DuelCommand { script, command, batches }| {
        let (executions, latency_ms): (Vec<u64>, Vec<f64>) = batches.iter().copied().unzip();
        json!({ "script": script, "command": command, "executions": executions, "latency_ms": latency_ms })
    });
    insert("bench_internal.duel_statement_log", of_run(), commands)?;
    let shares = duel.waits.iter().flat_map(|wait| [(wait, ARMS[0], wait.a), (wait, ARMS[1], wait.b)]);
    let waits = shares.filter(|(.., share)| *share > 0.0).map(|(DuelWait { wait_event_type, wait_event, .. }, arm, share)| {
        json!({ "arm": arm, "wait_event_type": wait_event_type, "wait_event": wait_event, "share": share })
    });
    insert("bench_internal.duel_wait_log", of_run(), waits)
}

/// A duel whose arms are to be compared; `margin`: instead of the run's.
///
/// # Errors
/// 55000 for a run that is none, and those of a run that the caller may not see.
pub fn duel_of(run_id: i64, margin: Option<f64>) -> Result<Duel, UserError> {
    check_visible(run_id)?;
    find_duel(run_id, margin)?.ok_or_else(|| {
        let message = format!("run {run_id} is not a duel, or none of its transactions was measured");
        UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("bench.duel and bench.start_duel make duels.")
    })
}

/// Of each arm: clients have one for both, but where arms have targets of their own.
fn sessions(given: &Value) -> u32 {
    let clients = given.get("clients").and_then(Value::as_u64).and_then(|count| count.try_into().ok());
    let of_both = if given.get("versions").is_some() { 2 } else { 1 };
    clients.map_or(0, |clients: u32| clients / of_both)
}

/// As [`duel_of`], for a caller who may see the run; `None` for a run that is no duel.
pub fn find_duel(run_id: i64, margin: Option<f64>) -> Result<Option<Duel>, UserError> {
    as_owner(|| {
        let sql = "SELECT duel || jsonb_build_object('secs', secs, 'clients', clients) FROM bench_internal.run_log \
                   WHERE run_id = $1 AND duel IS NOT NULL";
        let Some(JsonB(given)) = fetch::<JsonB>(sql, &[run_id.into()])? else { return Ok(None) };
        let batches = batches(run_id)?;
        if batches.is_empty() {
            return Ok(None);
        }
        let measured = DuelMeasured {
            // Of an imported run it may be anything.
            a: given.get(ARMS[0]).cloned().unwrap_or_default(),
            b: given.get(ARMS[1]).cloned().unwrap_or_default(),
            sessions: sessions(&given),
            versions: given.get("versions").cloned().and_then(|of| serde_json::from_value(of).ok()),
            margin: given.get("margin").and_then(Value::as_f64),
            secs: given.get("secs").and_then(Value::as_f64).unwrap_or_default(),
            batches,
            commands: commands(run_id)?,
            waits: waits(run_id)?,
            alone: alone(run_id)?,
        };
        let margin = margin.or(measured.margin).unwrap_or(MARGIN);
        let (scripts, statements) = (statements::scripts(run_id)?, statements::commands(run_id)?);
        Ok(Some(Duel::new(measured, margin, &scripts, &statements)))
    })
}

/// Of what an imported document has, no more than a run could have.
fn at_most<T>(values: Option<Vec<Option<T>>>) -> Vec<T>
where
    T: Default,
{
    values.into_iter().flatten().take(BATCHES).map(Option::unwrap_or_default).collect()
}

/// What was measured of a duel, batch by batch; none of a run that is no duel.
pub(super) fn duel_batches(run_id: i64) -> Result<Vec<[ArmBatch; 2]>, UserError> {
    as_owner(|| batches(run_id))
}

fn batches(run_id: i64) -> Result<Vec<[ArmBatch; 2]>, UserError> {
    let sql = "SELECT arm, latencies, latency_ms, busy_us, transactions, failed, retried, timed, counted, blocks, wal_bytes, rows, \
                   minor_faults \
               FROM bench_internal.duel_log WHERE run_id = $1";
    let arms = fetch_all(sql, &[run_id.into()], |row| {
        let arm = row.get::<String>(1)?.unwrap_or_default();
        let latencies = row.get::<JsonB>(2)?.map(|json| json.0).unwrap_or_default();
        let sums = |place| Ok::<_, pgrx::spi::Error>(at_most(row.get::<Vec<Option<f64>>>(place)?));
        let mut counts = Vec::new();
        for place in 5..=13 {
            counts.push(at_most(row.get::<Vec<Option<i64>>>(place)?));
        }
        Ok((arm, latencies, [sums(3)?, sums(4)?], counts))
    })?;
    let length = arms.iter().map(|(_, _, _, counts)| counts[0].len()).max().unwrap_or_default();
    let mut batches = vec![<[ArmBatch; 2]>::default(); length];
    for (name, latencies, [latency_ms, cpu_us], counts) in arms {
        let Some(arm) = ARMS.iter().position(|arm| *arm == name) else { continue };
        for (place, batch) in batches.iter_mut().enumerate() {
            let count = |of: usize| counts[of].get(place).copied().unwrap_or_default().unsigned_abs();
            batch[arm] = ArmBatch {
                transactions: count(0),
                latency_ms: latency_ms.get(place).copied().unwrap_or_default(),
                failed: count(1),
                retried: count(2),
                timed: count(3),
                cpu_us: cpu_us.get(place).copied().unwrap_or_default(),
                counted: count(4),
                blocks: count(5),
                wal_bytes: count(6),
                rows: count(7),
                minor_faults: count(8),
                latencies: latencies.get(place).map(buckets).unwrap_or_default(),
            };
        }
    }
    Ok(batches)
}

/// A histogram; what is not a bucket with a count is passed over.
fn buckets(json: &Value) -> BTreeMap<u32, u64> {
    let counts = json.as_object().into_iter().flatten().filter_map(|(bucket, count)| {
        let bucket = bucket.parse().ok().filter(|bucket| (*bucket as usize) < histogram::BUCKETS)?;
        Some((bucket, count.as_u64().filter(|count| *count > 0)?))
    });
    counts.collect()
}

fn commands(run_id: i64) -> Result<Vec<DuelCommand>, UserError> {
    let sql = "SELECT script, command, executions, latency_ms FROM bench_internal.duel_statement_log WHERE run_id = $1";
    fetch_all(sql, &[run_id.into()], |row| {
        let place = |at| Ok::<_, pgrx::spi::Error>(row.get::<i32>(at)?.unwrap_or_default().unsigned_abs());
        let executions = at_most(row.get::<Vec<Option<i64>>>(3)?).into_iter().map(i64::unsigned_abs);
        let latencies_ms = at_most(row.get::<Vec<Option<f64>>>(4)?);
        let batches = executions.zip(latencies_ms).collect();
        Ok(DuelCommand { script: place(1)?, command: place(2)?, batches })
    })
}

fn alone(run_id: i64) -> Result<[Option<UsedAlone>; 2], UserError> {
    let sql = "SELECT arm, alone FROM bench_internal.duel_log WHERE run_id = $1";
    let rows = fetch_all(sql, &[run_id.into()], |row| Ok((row.get::<String>(1)?, row.get::<JsonB>(2)?)))?;
    // Of an imported run it may be anything.
    Ok(ARMS.map(|name| {
        let (_, alone) = rows.iter().find(|(arm, _)| arm.as_deref() == Some(name))?;
        UsedAlone::deserialize(&alone.as_ref()?.0).ok()
    }))
}

fn waits(run_id: i64) -> Result<Vec<DuelWait>, UserError> {
    let sql = "SELECT wait_event_type, wait_event, coalesce(sum(share) FILTER (WHERE arm = 'a'), 0) AS a, \
                   coalesce(sum(share) FILTER (WHERE arm = 'b'), 0) AS b \
               FROM bench_internal.duel_wait_log WHERE run_id = $1 GROUP BY 1, 2 ORDER BY sum(share) DESC, 1, 2";
    select(sql, &[run_id.into()])
}
