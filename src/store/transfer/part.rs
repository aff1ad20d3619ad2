//! A run's part on another node, taken over from the document that it comes as.

use bench_base::error::UserError;
use pgrx::JsonB;
use serde_json::Value;

use super::Imported;
use super::import::insert_results;
use super::tables::{RESULT_TABLES, RUN_LOG, qualified};
use crate::error::internal;
use crate::server::jsonb::StoredJsonb;
use crate::server::spi::{fetch, run};
use crate::store::as_owner;

/// Writes what a node has measured as that node's share of a run of this one's: a part of it, the first of which takes the
/// place of what an attempt before has left. Only with the last is the node's part there, by `bench.nodes.status`.
///
/// # Errors
/// 22xxx and 23xxx for what is not a document of bench.export with one run.
pub fn take_part(run_id: i64, node: i32, document: &str, (number, of): (i32, i32)) -> Result<(), UserError> {
    as_owner(|| {
        let document = fetch::<StoredJsonb>("SELECT $1::jsonb", &[document.into()])?
            .ok_or_else(|| internal("an empty document"))?;
        let id = format!("SELECT ($1 #>> '{{{RUN_LOG},0,run_id}}')::int8");
        let id_in_document = fetch::<i64>(&id, &[document.into()])?.unwrap_or_default();
        let runs = [Imported { id_in_document, run_id }];
        for table in RESULT_TABLES.into_iter().filter(|table| *table != NODES) {
            if number == 1 {
                let relation = qualified(table);
                let sql = format!("DELETE FROM {relation} WHERE run_id = $1 AND node = $2");
                run(&sql, &[run_id.into(), node.into()])?;
            }
            insert_results(document, table, &runs, Some(node))?;
        }
        if number == of { close_part(run_id, node, document) } else { Ok(()) }
    })
}

/// A run's samples with more than so many seconds elapsed, in their order, at most [`MOST_SAMPLES`]: an array of rows of
/// bench.samples. `None` if there are none.
pub fn samples_after(run_id: i64, elapsed_secs: f64) -> Result<Option<JsonB>, UserError> {
    as_owner(|| {
        fetch::<JsonB>(
            &format!(
                "SELECT jsonb_agg(to_jsonb(x)) FROM (SELECT s.* FROM bench.samples s \
                 WHERE s.run_id = $1 AND s.node = 0 AND s.elapsed > $2 ORDER BY s.elapsed LIMIT {MOST_SAMPLES}) x"
            ),
            &[run_id.into(), elapsed_secs.into()],
        )
    })
}

/// No node has more in the time between two questions: all together leave 100 a second.
const MOST_SAMPLES: u32 = 1000;

/// Writes what [`samples_after`] returned on a node as that node's samples of a run of this one's; [`take_part`] puts the
/// whole in their place. Returns the elapsed seconds of the last.
///
/// # Errors
/// 22xxx for what does not come from there.
pub fn take_samples(run_id: i64, node: i32, after_secs: f64, samples: &str) -> Result<f64, UserError> {
    let elapsed_of = |row: &Value| row.get("elapsed").and_then(Value::as_f64);
    let mut rows: Vec<Value> = serde_json::from_str(samples).map_err(|e| internal(e.to_string()))?;
    rows.retain(|row| elapsed_of(row).is_some_and(|elapsed_secs| elapsed_secs > after_secs));
    let Some(elapsed_secs) = rows.last().and_then(elapsed_of) else { return Ok(after_secs) };
    as_owner(|| {
        run(
            "INSERT INTO bench.samples SELECT r.* FROM jsonb_array_elements($1) e, \
             LATERAL jsonb_populate_record(NULL::bench.samples, \
                 e || jsonb_build_object('run_id', $2, 'node', $3)) r \
             ON CONFLICT DO NOTHING",
            &[JsonB(Value::Array(rows)).into(), run_id.into(), node.into()],
        )
        .map(drop)
    })?;
    Ok(elapsed_secs)
}

/// The table that has a row for each node.
const NODES: &str = "node_log";

/// The node's figures, with which its part is there.
fn close_part(run_id: i64, node: i32, document: StoredJsonb) -> Result<(), UserError> {
    run(
        &format!(
            "INSERT INTO bench_internal.node_log AS n (run_id, node, name, is_coordinator, clients, status, error, latency_avg_ms, \
                 latency_stddev_ms, latency_p50_ms, latency_p95_ms, latency_p99_ms, latency_p999_ms, latency_max_ms, \
                 lag_avg_ms, lag_max_ms, backlog, environment, secs, transactions, failed, retried, aborted, server_cpu_us, clients_stuck) \
             SELECT $2, $3, '', false, x.clients, x.status, x.error, x.latency_avg_ms, \
                 x.latency_stddev_ms, x.latency_p50_ms, x.latency_p95_ms, x.latency_p99_ms, x.latency_p999_ms, x.latency_max_ms, \
                 x.lag_avg_ms, x.lag_max_ms, x.backlog, x.environment, s.secs, s.transactions, s.failed, s.retried, s.aborted, x.server_cpu_us, x.clients_stuck \
             FROM jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}') x, \
                 (SELECT sum(secs) AS secs, sum(transactions)::int8 AS transactions, \
                         sum(failed)::int8 AS failed, sum(retried)::int8 AS retried, \
                         (SELECT sum(aborted)::int8 FROM ( \
                              SELECT aborted FROM bench.samples WHERE run_id = $2 AND node = $3 \
                              UNION ALL SELECT aborted FROM bench.warmup_samples WHERE run_id = $2 AND node = $3) AS a) AS aborted \
                  FROM bench.samples WHERE run_id = $2 AND node = $3) s \
             ON CONFLICT (run_id, node) DO UPDATE SET status = excluded.status, error = excluded.error, \
                 latency_avg_ms = excluded.latency_avg_ms, latency_stddev_ms = excluded.latency_stddev_ms, \
                 latency_p50_ms = excluded.latency_p50_ms, latency_p95_ms = excluded.latency_p95_ms, \
                 latency_p99_ms = excluded.latency_p99_ms, latency_p999_ms = excluded.latency_p999_ms, \
                 latency_max_ms = excluded.latency_max_ms, lag_avg_ms = excluded.lag_avg_ms, lag_max_ms = excluded.lag_max_ms, \
                 backlog = excluded.backlog, environment = excluded.environment, secs = excluded.secs, \
                 transactions = excluded.transactions, failed = excluded.failed, retried = excluded.retried, \
                 aborted = excluded.aborted, server_cpu_us = excluded.server_cpu_us, clients_stuck = excluded.clients_stuck"
        ),
        &[document.into(), run_id.into(), node.into()],
    )?;
    run(
        &format!(
            "UPDATE bench_internal.run_log r SET logged = coalesce(r.logged, 0) + x.logged, log_lost = coalesce(r.log_lost, 0) + x.log_lost \
             FROM jsonb_populate_recordset(NULL::bench_internal.{RUN_LOG}, $1 -> '{RUN_LOG}') x \
             WHERE r.run_id = $2 AND x.logged IS NOT NULL"
        ),
        &[document.into(), run_id.into()],
    )
    .map(drop)
}
