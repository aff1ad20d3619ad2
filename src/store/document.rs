//! The documents of runs and sweeps, read from the tables for findings and reports.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_questions::index_worth::{VariantDuels, index_worth};
use bench_questions::rehearsal::{RehearsedVariant, line};
use bench_questions::screen::{CombinedRun, ScreenMetric, ScreenRuns, above_limit, row_of, screen};
use bench_questions::sweep::{Question, SweepOptions};
use bench_results::experiment::{AskedIndex, IndexLine, IndexWorth};
use bench_results::experiment::{ExperimentDocument, ExperimentRun, Sweep, SweepChange};
use bench_results::experiment::{Screen, ScreenLine};
use bench_results::rehearsal::{Rehearsal, RehearsalLine};
use bench_results::{Document, NodeSamples, SCHEMA_VERSION, Samples, Series};
use bench_stats::histogram::LAST;
use pgrx::JsonB;

use super::duels::{self, duel_batches};
use super::extension_owner::read;
use super::sweeps::{reached, sweep_options, sweep_runs_of};
use super::work::check_visible;
use super::{as_owner, fidelity, visible};
use crate::error::internal;
use crate::server::spi::{self, fetch, fetch_all};
use crate::shm::Work;

/// The query for a run's row, its environment, and the figures of the whole.
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

/// The query for everything except [`HEADLINE`]'s fields and the samples. Nulls are removed, because the document has numbers
/// that cannot be null; those in users' JSON are kept.
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

/// The least number of transactions for a 99.9th percentile: ten are above it, and with fewer it would be noise.
const ENOUGH_FOR_P999: u64 = 10_000;

/// Reads the document of a run, without findings.
///
/// # Errors
/// As [`check_visible`], and XX000 for a value that the recorder does not write.
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

/// As [`headline`], and checks that the caller may see the run.
///
/// # Errors
/// As [`check_visible`].
pub fn visible_headline(run_id: i64) -> Result<Document, UserError> {
    check_visible(run_id)?;
    headline(run_id)
}

/// Reads a run's row, its environment and the figures of the whole.
pub fn headline(run_id: i64) -> Result<Document, UserError> {
    as_owner(|| parsed(HEADLINE, run_id))
}

fn parsed(sql: &str, run_id: i64) -> Result<Document, UserError> {
    let json = fetch::<JsonB>(sql, &[run_id.into()])?.map(|json| json.0).unwrap_or_default();
    serde_json::from_value(json).map_err(|e| internal(e.to_string()))
}

/// Reads the intervals of a run, summed over its nodes if there are several, as one array for each column: there may be tens of
/// thousands.
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
    let waits = spi::read(|client| {
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

/// The query for the nodes' curves. Neighboring intervals are combined so that at most 360 are left, which suffice for a curve.
const CURVES: &str = "\
SELECT node, array_agg(elapsed ORDER BY elapsed), array_agg(secs ORDER BY elapsed), \
    array_agg(transactions / nullif(secs, 0) ORDER BY elapsed), array_agg(latency_p99_ms ORDER BY elapsed) \
FROM (SELECT node, max(elapsed) AS elapsed, sum(secs) AS secs, \
          sum(transactions)::float8 AS transactions, max(latency_p99_ms) AS latency_p99_ms \
      FROM (SELECT node, elapsed, secs, transactions, latency_p99_ms, \
                (row_number() OVER (PARTITION BY node ORDER BY elapsed) - 1) \
                    / ((count(*) OVER (PARTITION BY node) + 359) / 360) AS place \
            FROM bench.samples WHERE run_id = $1) s GROUP BY node, place) c GROUP BY node ORDER BY node";

/// Reads the curves of each node with clients.
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

/// Reads the document of a sweep and its runs.
///
/// # Errors
/// 42704 for a sweep that does not exist, 42501 for one that the caller may not see.
pub fn sweep_document(sweep_id: i64) -> Result<ExperimentDocument, UserError> {
    visible(Work::Sweep(sweep_id))?;
    const DOCUMENT: &str = "\
        SELECT jsonb_strip_nulls(jsonb_build_object( \
            'changes', (SELECT l.changes FROM bench_internal.sweep_log l WHERE l.sweep_id = $1), \
            'capacities', (SELECT l.answers FROM bench_internal.sweep_log l WHERE l.sweep_id = $1), \
            'sweep', (SELECT to_jsonb(s) FROM bench.sweeps s WHERE s.sweep_id = $1), \
            'runs', (SELECT jsonb_agg(r ORDER BY r.run_id IS NULL, r.place) FROM bench.sweep_runs r WHERE r.sweep_id = $1), \
            'environment', (SELECT r.environment FROM bench.runs r JOIN bench_internal.sweep_run_log s USING (run_id) \
                            WHERE s.sweep_id = $1 AND r.status = 'completed' ORDER BY s.place LIMIT 1)))";
    let document: ExperimentDocument = read(DOCUMENT, &[sweep_id.into()])?.unwrap_or_default();
    // Options of a later version that cannot be read are left out.
    let (sure_within, (screen, indexes)) = match sweep_options(sweep_id) {
        Ok(options) => {
            let answer = match &options.question {
                Some(Question::Screen(asked)) => {
                    (screened_lines(sweep_id, asked, &options, None, None)?, Vec::new())
                }
                Some(Question::IndexWorth(asked)) => (Vec::new(), lines_of_indexes(sweep_id, asked, None)?),
                _ => Default::default(),
            };
            (reached(sweep_id, &options)?, answer)
        }
        Err(_) => Default::default(),
    };
    let rehearsals = match sweep_options(sweep_id) {
        Ok(options) => lines_of_rehearsal(sweep_id, &options, &document.changes)?,
        Err(_) => Vec::new(),
    };
    let unreplayed = fidelity::unreplayed_of_sweep(sweep_id)?;
    let sweep = Sweep { sure_within, ..document.sweep };
    Ok(ExperimentDocument { schema_version: 1, sweep, unreplayed, screen, indexes, rehearsals, ..document })
}

/// Computes the effects of the settings that a sweep screens. The default for `metric` is tps, or latency in an open loop.
///
/// # Errors
/// Those of [`visible`], 55000 for a sweep that does not screen settings.
pub fn screen_lines(
    sweep_id: i64,
    metric: Option<ScreenMetric>,
    margin: Option<f64>,
) -> Result<Vec<ScreenLine>, UserError> {
    visible(Work::Sweep(sweep_id))?;
    let options = sweep_options(sweep_id)?;
    let Some(Question::Screen(asked)) = &options.question else {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("sweep {sweep_id} does not screen settings"),
        )
        .hint("bench.screen and bench.start_screen make such sweeps."));
    };
    screened_lines(sweep_id, asked, &options, metric, margin)
}

/// As [`screen_lines`], for a sweep that the caller may see.
fn screened_lines(
    sweep_id: i64,
    asked: &Screen,
    options: &SweepOptions,
    metric: Option<ScreenMetric>,
    margin: Option<f64>,
) -> Result<Vec<ScreenLine>, UserError> {
    let is_open_loop = options.setup.rate.is_some() || options.setup.run.contains_key("rates");
    let metric = metric.unwrap_or(if is_open_loop { ScreenMetric::Latency } else { ScreenMetric::Tps });
    let limit = options.setup.run.get("latency_limit").and_then(serde_json::Value::as_f64);
    let mut runs = ScreenRuns { latency_limit_ms: limit, ..ScreenRuns::default() };
    for run in sweep_runs_of(sweep_id)? {
        pgrx::check_for_interrupts!();
        let value = value_of(&run, metric, limit);
        match (row_of(&run.variant), value) {
            // The run has not been made yet.
            (_, None) => {}
            (Some(row), Some(value)) => runs.combined.push(CombinedRun { row, round: run.round, value }),
            (None, Some(Err(error))) => runs.failed_duels.push((run.variant, error)),
            (None, Some(Ok(_))) => {
                let batches = run.run_id.map_or_else(|| Ok(Vec::new()), duel_batches)?;
                runs.duels.push((run.variant, batches));
            }
        }
    }
    Ok(screen(asked, &runs, metric, margin.unwrap_or(asked.margin)))
}

/// Returns the metric of a run, or the reason why it does not count; `None` if it has not been made.
fn value_of(run: &ExperimentRun, metric: ScreenMetric, limit: Option<f64>) -> Option<Result<f64, String>> {
    if run.error.is_some() || run.status.as_deref() != Some("completed") {
        let is_over = !matches!(run.status.as_deref(), None | Some("starting" | "running"));
        let status = run.status.as_deref().filter(|_| is_over).map(|status| format!("the run is {status}"));
        return run.error.clone().or(status).map(Err);
    }
    // For duels, the limit is checked for each arm elsewhere.
    let is_combination = row_of(&run.variant).is_some();
    if let Some((p99, limit)) =
        run.figures.latency_p99_ms.zip(limit).filter(|(p99, limit)| is_combination && p99 > limit)
    {
        return Some(Err(above_limit(&run.variant, p99, limit)));
    }
    let value = match metric {
        ScreenMetric::Tps => run.tps,
        ScreenMetric::Latency => run.figures.latency_avg_ms,
        ScreenMetric::Cpu => run.figures.server_cpu_us,
    };
    Some(value.ok_or_else(|| format!("the run has no {}", metric.as_str())))
}

/// Computes what the indexes of a sweep are worth, in processor time or in latency; by default in latency, unless the machine was
/// busy.
///
/// # Errors
/// Those of [`visible`], 55000 for a sweep without indexes.
pub fn index_lines(
    sweep_id: i64,
    of_processor: Option<bool>,
    margin: Option<f64>,
) -> Result<Vec<IndexLine>, UserError> {
    visible(Work::Sweep(sweep_id))?;
    let Some(Question::IndexWorth(asked)) = sweep_options(sweep_id)?.question else {
        let message = format!("sweep {sweep_id} does not look at indexes");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("bench.index_worth and bench.start_index_worth make such sweeps."));
    };
    let margin = margin.unwrap_or(asked.margin);
    lines_of_indexes(sweep_id, &IndexWorth { margin, ..asked }, of_processor)
}

/// As [`index_lines`], for a sweep that the caller may see.
fn lines_of_indexes(
    sweep_id: i64,
    asked: &IndexWorth,
    of_processor: Option<bool>,
) -> Result<Vec<IndexLine>, UserError> {
    let of_processor = of_processor.map_or_else(|| was_busy(sweep_id), Ok)?;
    let mut duels: BTreeMap<String, VariantDuels> = BTreeMap::new();
    for run in sweep_runs_of(sweep_id)? {
        pgrx::check_for_interrupts!();
        let variant = duels.entry(run.variant.clone()).or_default();
        variant.variant.clone_from(&run.variant);
        match (run.run_id, run.error) {
            (_, Some(error)) => variant.error = Some(error),
            (Some(run_id), None) if run.status.as_deref() == Some("completed") => {
                variant.run_id = Some(run_id);
                match write_to_original(&asked.indexes, &run.variant, run_id)? {
                    Some(error) => variant.error = Some(error),
                    None => variant.batches.extend(duel_batches(run_id)?),
                }
            }
            _ => {}
        }
    }
    let duels: Vec<VariantDuels> = duels.into_values().collect();
    Ok(index_worth(asked, &duels, of_processor))
}

/// Returns what a rehearsal showed, a line for each way to make the change.
///
/// # Errors
/// Those of [`visible`], 55000 for a sweep without a rehearsal.
pub fn rehearsal_lines(sweep_id: i64) -> Result<Vec<RehearsalLine>, UserError> {
    let document = sweep_document(sweep_id)?;
    if sweep_options(sweep_id)?.rehearsal().is_none() {
        let message = format!("sweep {sweep_id} does not rehearse a change");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("bench.rehearse and bench.start_rehearse make such sweeps."));
    }
    Ok(document.rehearsals)
}

/// As [`rehearsal_lines`], for a sweep that the caller may see.
fn lines_of_rehearsal(
    sweep_id: i64,
    options: &SweepOptions,
    changes: &[SweepChange],
) -> Result<Vec<RehearsalLine>, UserError> {
    let Some(plan) = options.rehearsal() else { return Ok(Vec::new()) };
    let runs = sweep_runs_of(sweep_id)?;
    let mut lines = Vec::new();
    for variant in options.setup.variants.iter().filter(|variant| variant.sql.is_some()) {
        let run = runs.iter().find(|run| run.variant == variant.name);
        // Of several attempts the last one counts.
        let change = changes.iter().rev().find(|change| change.variant == variant.name);
        let rehearsal = change.and_then(|change| change.rehearsal.as_ref());
        let document = match run.and_then(|run| run.run_id) {
            Some(run_id) if rehearsal.is_some_and(|rehearsal| rehearsal.run_id == run_id) => {
                Some(document(run_id)?)
            }
            _ => None,
        };
        let rehearsed = RehearsedVariant {
            name: &variant.name,
            sql: variant.sql.as_ref(),
            change,
            document: document.as_ref(),
            waited: rehearsal.map_or(Ok(0), waited)?,
            error: run.and_then(|run| run.error.clone()),
        };
        lines.push(line(plan, &rehearsed));
    }
    Ok(lines)
}

/// Counts the logged transactions that ended after a change began. Only those that waited too long or failed are logged.
fn waited(rehearsal: &Rehearsal) -> Result<u64, UserError> {
    let sql = "SELECT count(*) FROM bench.transactions \
               WHERE run_id = $1 AND outcome = 'processed' \
                 AND started + make_interval(secs => (latency_ms - coalesce(lag_ms, 0)) / 1000) >= $2::timestamptz";
    let began_at = rehearsal.change_began_at.as_deref();
    Ok(read::<i64>(sql, &[rehearsal.run_id.into(), began_at.into()])?.unwrap_or_default().unsigned_abs())
}

/// The share of their time for which clients wait for a processor, from which on other processes affect latencies.
const BUSY: f64 = 0.05;

/// Whether clients of a sweep's runs waited for processors that other processes had, by [`BUSY`].
fn was_busy(sweep_id: i64) -> Result<bool, UserError> {
    let sql = "SELECT sum(w.share) FILTER (WHERE 'Runnable' IN (w.wait_event_type, w.wait_event)) / count(DISTINCT w.run_id) \
               FROM bench_internal.sweep_run_log s JOIN bench_internal.wait_log w USING (run_id) WHERE s.sweep_id = $1";
    Ok(read::<f64>(sql, &[sweep_id.into()])?.is_some_and(|share| share > BUSY))
}

/// Returns the error of a run on copies that wrote to the table itself, so that it says nothing about the copies.
fn write_to_original(
    indexes: &[AskedIndex],
    variant: &str,
    run_id: i64,
) -> Result<Option<String>, UserError> {
    let Some(index) = indexes.iter().find(|index| index.writes == variant) else { return Ok(None) };
    let sql = "SELECT true FROM bench_internal.relation_log WHERE run_id = $1 AND relation = $2 \
               AND COALESCE(inserted, 0) + COALESCE(updated, 0) + COALESCE(deleted, 0) > 0 LIMIT 1";
    let has_written = read::<bool>(sql, &[run_id.into(), index.table.as_str().into()])?;
    Ok(has_written.map(|_| {
        format!("the workload wrote to {} itself, and not to its copies: it names the schema", index.table)
    }))
}
