//! The results of a run's statements and of a duel's arms: bench_internal.duel_log and related tables.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{ARMS, MARGIN};
use bench_questions::statements::{PerCall, StatementsOfRun};
use bench_results::duel::metric_lines;
use bench_results::{
    CommandSummary, ComparisonLine, Document, Duel, DuelCommand, DuelMeasured, DuelWait, ScriptSummary,
    UsedAlone,
};
use bench_stats::compare::{Better, Terms};
use bench_stats::duel::{ArmBatch, BATCHES, CONFIDENCE, whole};
use bench_stats::histogram;
use pgrx::JsonB;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::as_owner;
use super::work::check_visible;
use crate::server::jsonb::json_of;
use crate::server::rows::{insert, select, select_one};
use crate::server::spi::fetch;

/// Reads the scripts of a run.
pub fn scripts(run_id: i64) -> Result<Vec<ScriptSummary>, UserError> {
    lines("SELECT jsonb_strip_nulls(jsonb_agg(x)) FROM bench.scripts x WHERE x.run_id = $1", run_id)
}

/// Reads the commands of a run's scripts, on each node that clients ran on.
pub fn commands(run_id: i64) -> Result<Vec<CommandSummary>, UserError> {
    lines("SELECT jsonb_strip_nulls(jsonb_agg(x)) FROM bench.statements x WHERE x.run_id = $1", run_id)
}

/// Reads a run's rows of a view whose columns are the fields of a document's lines.
fn lines<T: serde::de::DeserializeOwned>(sql: &str, run_id: i64) -> Result<Vec<T>, UserError> {
    let found = select_one::<(Option<Vec<T>>,)>(sql, &[run_id.into()])?;
    Ok(found.and_then(|(lines,)| lines).unwrap_or_default())
}

/// Returns the results of a run's statements for a comparison.
///
/// # Errors
/// As [`check_visible`].
pub fn statements_of(run_id: i64) -> Result<StatementsOfRun, UserError> {
    check_visible(run_id)?;
    as_owner(|| {
        let sql = "SELECT transactions FROM bench.summary WHERE run_id = $1";
        let transactions = fetch::<i64>(sql, &[run_id.into()])?.unwrap_or_default().unsigned_abs();
        // Summed over all nodes.
        let document = Document { statements: commands(run_id)?, ..Document::default() };
        Ok(StatementsOfRun {
            transactions,
            scripts: scripts(run_id)?,
            statements: document.merged_statements(),
            calls: calls_per_script(run_id)?,
        })
    })
}

/// Reads the counts of pg_stat_statements per call of each script's statements.
///
/// # Errors
/// The server's.
fn calls_per_script(run_id: i64) -> Result<BTreeMap<u32, PerCall>, UserError> {
    let sql = "SELECT script, coalesce(sum(rows)::float8 / sum(calls)::float8, 0), \
                   coalesce(sum(shared_blks_hit + shared_blks_read)::float8 / sum(calls)::float8, 0) \
               FROM bench_internal.call_log WHERE run_id = $1 GROUP BY script HAVING sum(calls) > 0";
    let found = as_owner(|| select::<(u32, f64, f64)>(sql, &[run_id.into()]))?;
    Ok(found.into_iter().map(|(script, rows, blocks)| (script, PerCall { rows, blocks })).collect())
}

/// Writes the results of a duel.
pub fn put_duel(run_id: i64, duel: &DuelMeasured) -> Result<(), UserError> {
    let of_run = || ("run_id", Value::from(run_id));
    for ((arm, name), alone) in ARMS.into_iter().enumerate().zip(&duel.alone) {
        let mut row = columns(duel.batches.iter().map(|batch| &batch[arm]));
        row.insert("arm".to_owned(), name.into());
        row.insert("alone".to_owned(), json!(alone));
        insert("bench_internal.duel_log", of_run(), [row])?;
    }
    let commands = duel.commands.iter().map(|DuelCommand { script, command, batches }| {
        let mut columns = columns(batches.iter());
        let [executions, latency_ms, timed, busy_us] =
            ["transactions", "latency_ms", "timed", "busy_us"].map(|name| columns.remove(name));
        json!({
            "script": script,
            "command": command,
            "executions": executions,
            "latency_ms": latency_ms,
            "timed": timed,
            "busy_us": busy_us,
        })
    });
    insert("bench_internal.duel_statement_log", of_run(), commands)?;
    let shares = duel.waits.iter().flat_map(|wait| [(wait, ARMS[0], wait.a), (wait, ARMS[1], wait.b)]);
    let waits = shares.filter(|(.., share)| *share > 0.0).map(|(DuelWait { wait_event_type, wait_event, .. }, arm, share)| {
        json!({ "arm": arm, "wait_event_type": wait_event_type, "wait_event": wait_event, "share": share })
    });
    insert("bench_internal.duel_wait_log", of_run(), waits)
}

/// Returns the columns of bench_internal.duel_log for an arm: arrays with an element for each batch.
fn columns<'a>(batches: impl Iterator<Item = &'a ArmBatch>) -> Map<String, Value> {
    let batches: Vec<Value> = batches.map(json_of).collect();
    let names = json_of(&ArmBatch::default()).as_object().cloned().unwrap_or_default();
    let column = |name: String| {
        let values = batches.iter().map(|batch| batch[&name].clone()).collect();
        (name, values)
    };
    names.into_iter().map(|(name, _)| column(name)).collect()
}

/// Reads a duel for a comparison of its arms. `margin` replaces the run's.
///
/// # Errors
/// 55000 for a run that is no duel, and those of [`check_visible`].
pub fn duel_of(run_id: i64, margin: Option<f64>) -> Result<Duel, UserError> {
    check_visible(run_id)?;
    find_duel(run_id, margin)?.ok_or_else(|| no_duel(run_id))
}

/// Returns the number of sessions of each arm: that of the clients, or half of it if the arms have different targets.
fn sessions(given: &Value) -> u32 {
    let clients = given.get("clients").and_then(Value::as_u64).and_then(|count| count.try_into().ok());
    let divisor = if given.get("versions").is_some() { 2 } else { 1 };
    clients.map_or(0, |clients: u32| clients / divisor)
}

/// Returns a part of a duel; `None` unless it has the form of one, as in an imported run that has any JSON.
fn stored<T: DeserializeOwned>(given: &Value, key: &str) -> Option<T> {
    given.get(key).cloned().and_then(|part| serde_json::from_value(part).ok())
}

/// As [`duel_of`], for a caller who may see the run; `None` for a run that is no duel.
pub fn find_duel(run_id: i64, margin: Option<f64>) -> Result<Option<Duel>, UserError> {
    as_owner(|| {
        let sql = "SELECT duel || jsonb_build_object('secs', secs, 'clients', clients) FROM bench_internal.run_log \
                   WHERE run_id = $1 AND duel IS NOT NULL";
        let Some(JsonB(given)) = fetch::<JsonB>(sql, &[run_id.into()])? else { return Ok(None) };
        let arms = arms(run_id)?;
        let batches = batches(&arms);
        if batches.is_empty() {
            return Ok(None);
        }
        let measured = DuelMeasured {
            // In an imported run it may be any JSON.
            a: given.get(ARMS[0]).cloned().unwrap_or_default(),
            b: given.get(ARMS[1]).cloned().unwrap_or_default(),
            sessions: sessions(&given),
            versions: stored(&given, "versions"),
            answers: stored(&given, "answers").unwrap_or_default(),
            margin: given.get("margin").and_then(Value::as_f64),
            secs: given.get("secs").and_then(Value::as_f64).unwrap_or_default(),
            batches,
            commands: commands_of_duel(run_id)?,
            waits: waits(run_id)?,
            alone: alone(&arms),
        };
        let margin = margin.or(measured.margin).unwrap_or(MARGIN);
        let (scripts, statements) = (scripts(run_id)?, commands(run_id)?);
        let calls = calls_per_script(run_id)?;
        Ok(Some(Duel::new(measured, margin, &scripts, &statements, &calls)))
    })
}

/// Compares the arms over several duels, each of which counts as one batch, so that the interval includes the variation between
/// sessions and between duels.
///
/// # Errors
/// 22023 for fewer than two duels, and for duels of other arms or workloads; else as [`duel_of`].
pub fn compare_duels(run_ids: &[i64], margin: f64) -> Result<Vec<ComparisonLine>, UserError> {
    let mut duels = Vec::new();
    let mut first: Option<JsonB> = None;
    for &run_id in run_ids {
        pgrx::check_for_interrupts!();
        check_visible(run_id)?;
        let batches = duel_batches(run_id)?;
        if batches.is_empty() {
            return Err(no_duel(run_id));
        }
        let sql = "SELECT jsonb_build_array(workload, script, duel -> 'a', duel -> 'b') \
                   FROM bench_internal.run_log WHERE run_id = $1";
        let arms = as_owner(|| fetch::<JsonB>(sql, &[run_id.into()]))?.ok_or_else(|| no_duel(run_id))?;
        if first.get_or_insert(JsonB(arms.0.clone())).0 != arms.0 {
            let message = format!("duels {} and {run_id} have other arms", run_ids[0]);
            return Err(UserError::invalid(message)
                .detail("A comparison is one of the same workload and the same arms.")
                .hint("bench.duels has the arms of each duel."));
        }
        duels.push(whole(&batches));
    }
    if duels.len() < 2 {
        return Err(UserError::invalid("run_ids has fewer than two duels")
            .hint("Of a single duel, bench.duel_results compares the arms."));
    }
    Ok(metric_lines(&duels, Terms { margin, confidence: CONFIDENCE, better: Better::Lower }))
}

fn no_duel(run_id: i64) -> UserError {
    let message = format!("run {run_id} is not a duel, or none of its transactions was measured");
    UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
        .hint("bench.duel and bench.start_duel make duels.")
}

/// Reads the batches of a duel; none for other runs.
pub(super) fn duel_batches(run_id: i64) -> Result<Vec<[ArmBatch; 2]>, UserError> {
    as_owner(|| Ok(batches(&arms(run_id)?)))
}

/// Whether the columns are those of the arm with this name.
fn is_of(columns: &Map<String, Value>, name: &str) -> bool {
    columns.get("arm").is_some_and(|arm| arm == name)
}

/// Reads the columns of each arm that are not NULL.
fn arms(run_id: i64) -> Result<Vec<Map<String, Value>>, UserError> {
    select("SELECT * FROM bench_internal.duel_log WHERE run_id = $1", &[run_id.into()])
}

fn batches(arms: &[Map<String, Value>]) -> Vec<[ArmBatch; 2]> {
    let mut batches: Vec<[ArmBatch; 2]> = Vec::new();
    for columns in arms {
        let Some(arm) = ARMS.iter().position(|name| is_of(columns, name)) else { continue };
        batches.resize(batches.len().max(batch_count(columns)), Default::default());
        for (place, batch) in batches.iter_mut().enumerate() {
            batch[arm] = batch_of(columns, place);
        }
    }
    batches
}

/// Returns the number of batches in the columns, limited to that of a run, because an imported run may have more.
fn batch_count(columns: &Map<String, Value>) -> usize {
    columns.get("transactions").and_then(Value::as_array).map_or(0, Vec::len).min(BATCHES)
}

/// Reads a batch of an arm, or of a statement, from the columns; an empty one if an imported run has other values.
fn batch_of(columns: &Map<String, Value>, place: usize) -> ArmBatch {
    let values = columns.iter().filter_map(|(name, values)| Some((name.clone(), values.get(place)?.clone())));
    let fields = values.filter(|(_, value)| !value.is_null()).collect();
    let mut batch: ArmBatch = serde_json::from_value(Value::Object(fields)).unwrap_or_default();
    batch.latencies.retain(|bucket, count| (*bucket as usize) < histogram::BUCKETS && *count > 0);
    batch
}

fn commands_of_duel(run_id: i64) -> Result<Vec<DuelCommand>, UserError> {
    let sql = "SELECT script, command, executions AS transactions, latency_ms, timed, busy_us \
               FROM bench_internal.duel_statement_log WHERE run_id = $1";
    let rows = select::<Map<String, Value>>(sql, &[run_id.into()])?;
    let number = |columns: &Map<String, Value>, name: &str| {
        columns
            .get(name)
            .and_then(Value::as_i64)
            .and_then(|number| number.try_into().ok())
            .unwrap_or_default()
    };
    let command = |columns: Map<String, Value>| DuelCommand {
        script: number(&columns, "script"),
        command: number(&columns, "command"),
        batches: (0..batch_count(&columns)).map(|place| batch_of(&columns, place)).collect(),
    };
    Ok(rows.into_iter().map(command).collect())
}

/// Reads the usage of each arm alone, before the measurement. In an imported run it may be any JSON.
fn alone(arms: &[Map<String, Value>]) -> [Option<UsedAlone>; 2] {
    ARMS.map(|name| {
        let columns = arms.iter().find(|columns| is_of(columns, name))?;
        UsedAlone::deserialize(columns.get("alone")?).ok()
    })
}

fn waits(run_id: i64) -> Result<Vec<DuelWait>, UserError> {
    let sql = "SELECT wait_event_type, wait_event, coalesce(sum(share) FILTER (WHERE arm = 'a'), 0) AS a, \
                   coalesce(sum(share) FILTER (WHERE arm = 'b'), 0) AS b \
               FROM bench_internal.duel_wait_log WHERE run_id = $1 GROUP BY 1, 2 ORDER BY sum(share) DESC, 1, 2";
    select(sql, &[run_id.into()])
}
