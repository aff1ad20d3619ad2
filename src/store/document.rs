//! Everything that is known of a run, read back for findings and reports.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use bench_results::{Document, NodeSamples, SCHEMA_VERSION, Samples, Series};
use bench_stats::histogram::LAST;
use pgrx::JsonB;

use super::work::check_visible;
use super::{as_owner, duels, fidelity};
use crate::error::internal;
use crate::server::spi::{fetch, fetch_all, read};

/// How the run was asked for, what it ran on, and the figures of the whole.
const HEADLINE: &str = "\
SELECT jsonb_build_object( \
    'run', to_jsonb(r) || jsonb_build_object('script_hash', \
            md5(r.script || coalesce(jsonb_path_query_array(r.feeders, '$[*].keyvalue() ? (@.key != \"rows\").value', '{}', true)::text, '')), \
        'other_runs', (SELECT coalesce(jsonb_agg(o.run_id ORDER BY o.run_id), '[]') FROM bench_internal.run_log o \
            WHERE r.origin IS NULL AND o.origin IS NULL AND o.part_of IS NULL AND o.run_id <> r.run_id \
              AND o.started_at < r.finished_at \
              AND coalesce(o.finished_at, 'infinity') > r.started_at \
              AND tstzrange(least(o.counted_from, o.started_at), CASE WHEN o.finished_at IS NOT NULL \
                  THEN greatest(o.finished_at, least(o.counted_from, o.started_at)) END) \
                  && tstzrange(r.started_at, greatest(r.started_at, r.finished_at)))), \
    'summary', (SELECT jsonb_strip_nulls(to_jsonb(s)) FROM bench.summary s WHERE s.run_id = $1), \
    'scripts', (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(x)) ORDER BY x.script), '[]') FROM ( \
        SELECT script, min(workload) AS workload, \
            sum(latency_avg_ms * transactions) / nullif(sum(transactions), 0) AS latency_avg_ms \
        FROM bench.scripts WHERE run_id = $1 GROUP BY script) x), \
    'nodes', (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(to_jsonb(n)) ORDER BY n.node), '[]') FROM bench.nodes n \
              WHERE n.run_id = $1 AND EXISTS (SELECT FROM bench_internal.node_log l WHERE l.run_id = $1)), \
    'environment', jsonb_strip_nulls(r.environment)) \
FROM bench.runs r WHERE r.run_id = $1";

/// All but these and the samples. Nulls are left out where the document has a number that cannot be null; users' own JSON
/// keeps its own.
const DETAILS: &str = "\
SELECT jsonb_strip_nulls(jsonb_build_object( \
    'latencies', (SELECT jsonb_agg(l ORDER BY low_ms) FROM ( \
        SELECT low_ms, high_ms, sum(count) AS count FROM bench.latencies WHERE run_id = $1 GROUP BY low_ms, high_ms) l), \
    'scripts', (SELECT jsonb_agg(x ORDER BY x.script) FROM ( \
        SELECT script, min(workload) AS workload, min(weight) AS weight, min(fixture) AS fixture, \
            sum(transactions) AS transactions, sum(tps) AS tps, sum(failed) AS failed, sum(aborted) AS aborted, \
            sum(retried) AS retried, sum(skipped) AS skipped, sum(late) AS late, \
            sum(latency_avg_ms * transactions) / nullif(sum(transactions), 0) AS latency_avg_ms, \
            CASE WHEN count(*) = 1 THEN max(latency_stddev_ms) END AS latency_stddev_ms, \
            CASE WHEN count(*) = 1 THEN max(latency_p50_ms) END AS latency_p50_ms, \
            CASE WHEN count(*) = 1 THEN max(latency_p95_ms) END AS latency_p95_ms, \
            CASE WHEN count(*) = 1 THEN max(latency_p99_ms) END AS latency_p99_ms, \
            max(latency_max_ms) AS latency_max_ms \
        FROM bench.scripts WHERE run_id = $1 GROUP BY script) x), \
    'statements', (SELECT jsonb_agg(x ORDER BY x.script, x.command, x.node) FROM bench.statements x WHERE x.run_id = $1), \
    'waits', (SELECT jsonb_agg(x ORDER BY x.share DESC, x.wait_event, x.node) FROM bench.waits x WHERE x.run_id = $1), \
    'events', (SELECT jsonb_agg(x ORDER BY x.started, x.node, x.event) FROM bench.events x WHERE x.run_id = $1), \
    'relations', (SELECT jsonb_agg(x ORDER BY x.kind DESC, x.relation, x.node) FROM bench.relations x WHERE x.run_id = $1), \
    'errors', (SELECT jsonb_agg(x ORDER BY x.count DESC, x.sqlstate, x.node) FROM bench.errors x WHERE x.run_id = $1), \
    'audit', (SELECT jsonb_agg(x ORDER BY x.node, x.counter) FROM bench.audits x \
              WHERE x.run_id = $1 AND (x.node = 0 OR NOT x.ok))))";

/// So that ten of them are beyond the 99.9th percentile: of fewer it would be noise.
const ENOUGH_FOR_P999: u64 = 10_000;

/// Everything that is known of a run, without findings.
///
/// # Errors
/// As [`check_visible`], and for a value that is not one of the recorder's.
pub fn document(run_id: i64) -> Result<Document, UserError> {
    check_visible(run_id)?;
    let fidelity = fidelity::parts_of_replay(run_id)?;
    let unreplayed = fidelity::unreplayed(run_id)?;
    let duel = duels::find_duel(run_id, None)?;
    as_owner(|| {
        let Document { run, summary, nodes, environment, .. } = parsed(HEADLINE, run_id)?;
        let mut document = Document { run, summary, nodes, environment, ..parsed(DETAILS, run_id)? };
        if document.summary.transactions < ENOUGH_FOR_P999 {
            document.summary.latency_p999_ms = None;
        }
        let is_of_several = document.nodes.iter().filter(|node| node.clients > 0).count() > 1;
        Ok(Document {
            schema_version: SCHEMA_VERSION,
            fidelity: fidelity.clone(),
            unreplayed,
            duel: duel.clone(),
            samples: samples(run_id, "samples", is_of_several)?,
            warmup_samples: samples(run_id, "warmup_samples", is_of_several)?,
            node_samples: if is_of_several { node_samples(run_id)? } else { Vec::new() },
            ..document
        })
    })
}

/// A run's [`headline`], for a caller who may see it.
///
/// # Errors
/// As [`check_visible`].
pub fn visible_headline(run_id: i64) -> Result<Document, UserError> {
    check_visible(run_id)?;
    headline(run_id)
}

/// How a run was asked for, what it ran on and the figures of the whole, and nothing else.
pub fn headline(run_id: i64) -> Result<Document, UserError> {
    as_owner(|| parsed(HEADLINE, run_id))
}

fn parsed(sql: &str, run_id: i64) -> Result<Document, UserError> {
    let json = fetch::<JsonB>(sql, &[run_id.into()])?.map(|json| json.0).unwrap_or_default();
    serde_json::from_value(json).map_err(|e| internal(e.to_string()))
}

/// The intervals of a run, of all nodes together where there are several. Column by column: there may be tens of thousands.
fn samples(run_id: i64, name: &str, is_of_several: bool) -> Result<Samples, UserError> {
    let (table, waits) = if is_of_several {
        (format!("bench.total_{name}"), "NULL::jsonb")
    } else {
        (format!("bench.{name}"), "waits")
    };
    let columns: Vec<String> =
        Samples::COLUMNS.iter().map(|name| format!("array_agg({name}::float8 ORDER BY elapsed)")).collect();
    let sql = format!(
        "SELECT {}, json_agg({waits} ORDER BY elapsed)::text FROM {table} WHERE run_id = $1",
        columns.join(", ")
    );
    let mut samples = Samples::default();
    let waits = read(|client| {
        let row = client.select(&sql, Some(1), &[run_id.into()])?.first();
        for (place, column) in (1..).zip(samples.columns_mut()) {
            *column = row.get(place)?.unwrap_or_default();
        }
        row.get::<String>(Samples::COLUMNS.len() + 1)
    })?;
    let waits: Vec<Option<BTreeMap<String, f64>>> =
        serde_json::from_str(waits.as_deref().unwrap_or("[]")).map_err(|e| internal(e.to_string()))?;
    let count = waits.len();
    for (interval, shares) in waits.into_iter().enumerate() {
        for (event, share) in shares.into_iter().flatten() {
            samples.waits.entry(event).or_insert_with(|| vec![0.0; count])[interval] = share;
        }
    }
    samples.latency_histogram = latency_histogram(run_id, name, count)?;
    Ok(samples)
}

/// Intervals of a node that are put together where there are many: as many as leave 360, enough for a curve.
const CURVES: &str = "\
SELECT node, array_agg(elapsed ORDER BY elapsed), array_agg(secs ORDER BY elapsed), \
    array_agg(transactions / nullif(secs, 0) ORDER BY elapsed), array_agg(latency_p99_ms ORDER BY elapsed) \
FROM (SELECT node, max(elapsed) AS elapsed, sum(secs) AS secs, \
          sum(transactions)::float8 AS transactions, max(latency_p99_ms) AS latency_p99_ms \
      FROM (SELECT node, elapsed, secs, transactions, latency_p99_ms, \
                (row_number() OVER (PARTITION BY node ORDER BY elapsed) - 1) \
                    / ((count(*) OVER (PARTITION BY node) + 359) / 360) AS place \
            FROM bench.samples WHERE run_id = $1) s GROUP BY node, place) c GROUP BY node ORDER BY node";

/// The curves of each node that clients ran on.
fn node_samples(run_id: i64) -> Result<Vec<NodeSamples>, UserError> {
    fetch_all(CURVES, &[run_id.into()], |row| {
        let series = |place| row.get::<Series>(place).map(Option::unwrap_or_default);
        Ok(NodeSamples {
            node: row.get::<i32>(1)?.unwrap_or_default(),
            elapsed: series(2)?,
            secs: series(3)?,
            tps: series(4)?,
            latency_p99_ms: series(5)?,
        })
    })
}

/// The histogram of each of so many intervals, of all nodes together: by bucket, as in the document. What is not a bucket
/// with a count is passed over.
fn latency_histogram(
    run_id: i64,
    table: &str,
    intervals: usize,
) -> Result<BTreeMap<u32, Vec<f64>>, UserError> {
    let sql = format!(
        "SELECT json_agg(latency_histogram ORDER BY elapsed)::text FROM bench.{table} \
         WHERE run_id = $1 GROUP BY node"
    );
    let mut together: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for of_node in fetch_all(&sql, &[run_id.into()], |row| row.get::<String>(1))? {
        let of_node: Vec<serde_json::Value> =
            serde_json::from_str(of_node.as_deref().unwrap_or("[]")).map_err(|e| internal(e.to_string()))?;
        for (interval, counts) in of_node.iter().take(intervals).enumerate() {
            for (bucket, count) in counts.as_object().into_iter().flatten() {
                let (Ok(bucket), Some(count)) = (bucket.parse(), count.as_f64()) else { continue };
                if bucket <= LAST && count > 0.0 {
                    together.entry(bucket).or_insert_with(|| vec![0.0; intervals])[interval] += count;
                }
            }
        }
    }
    Ok(together)
}
