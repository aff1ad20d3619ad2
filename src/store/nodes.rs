//! The rows of a run's nodes, and the results of a run on several nodes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::*;

use bench_base::error::UserError;
use bench_model::cluster::{NodeSpec, Tenant, machines};
use pgrx::{JsonB, pg_sys};
use serde_json::{Value, json};

use super::as_owner;
use super::extension_owner::with_lock_timeout;
use super::recorder::{RunColumns, RunEnd, RunStatus, hold, status_only};
use crate::observe::audit::SHARED;
use crate::observe::counters::Tuples;
use crate::observe::machine::NodeState;
use crate::server::rows::{select, select_one};
use crate::server::spi::{fetch, run};
use crate::server::transaction::transaction;
use crate::shm::NodeCell;

/// Returns schema and name of each table, in their order.
pub fn names_of(tables: &[pg_sys::Oid]) -> Result<Vec<(String, String)>, UserError> {
    select(
        "SELECT n.nspname::text, c.relname::text \
         FROM unnest($1) WITH ORDINALITY AS t (oid, place) \
         JOIN pg_class c ON c.oid = t.oid \
         JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY t.place",
        &[tables.to_vec().into()],
    )
}

/// Looks up a table by schema and name, regardless of the current role's privileges.
pub fn table_of(schema: &str, name: &str) -> Result<Option<pg_sys::Oid>, UserError> {
    fetch::<pg_sys::Oid>(
        "SELECT c.oid FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1::text AND c.relname = $2::text",
        &[schema.into(), name.into()],
    )
}

/// Whether the current role may start runs here.
pub fn may_run() -> Result<bool, UserError> {
    let may = "SELECT has_function_privilege('bench.run'::regproc, 'EXECUTE') \
               OR has_function_privilege('bench.start'::regproc, 'EXECUTE')";
    Ok(fetch::<bool>(may, &[])? == Some(true))
}

/// Whether a run is a part of another node's run.
pub fn is_part(run_id: i64) -> Result<bool, UserError> {
    as_owner(|| {
        let sql = "SELECT part_of IS NOT NULL FROM bench_internal.run_log WHERE run_id = $1";
        Ok(fetch::<bool>(sql, &[run_id.into()])? == Some(true))
    })
}

/// Reads the error of a run.
pub fn run_error(run_id: i64) -> Result<Option<Value>, UserError> {
    as_owner(|| {
        let sql = "SELECT error FROM bench_internal.run_log WHERE run_id = $1";
        Ok(fetch::<JsonB>(sql, &[run_id.into()])?.map(|json| json.0))
    })
}

/// The state of a node before and after the run, if it could be read.
type States = (Option<NodeState>, Option<NodeState>);

fn states(cell: &NodeCell) -> States {
    let state = |text: Option<String>| text.and_then(|text| serde_json::from_str::<NodeState>(&text).ok());
    (state(cell.before.get()), state(cell.after.get()))
}

/// Returns for each node the first node on the same machine.
fn machines_of(nodes: &[(&NodeSpec, &NodeCell)], states: &[States]) -> Vec<i32> {
    let identity = |(before, after): &'_ States| -> Option<String> {
        after.as_ref().or(before.as_ref())?.machine.clone()
    };
    let identities: Vec<Option<String>> = states.iter().map(identity).collect();
    let tenants: Vec<Tenant> = nodes
        .iter()
        .zip(&identities)
        .map(|((node, _), identity)| Tenant {
            node: node.node,
            host: &node.host,
            identity: identity.as_deref(),
        })
        .collect();
    machines(&tenants)
}

/// Returns the columns of bench_internal.node_log that come from a node's state; others stay NULL.
fn figures(node: &NodeSpec, cell: &NodeCell, (before, after): States, begins_us: i64, machine: i32) -> Value {
    let clock = cell.clock();
    let began_us = cell.began_us.load(Relaxed);
    let mut columns = json!({
        "name": node.name(),
        "is_coordinator": node.is_coordinator,
        "clients": node.clients,
        "machine": machine,
        "start_offset_ms": (began_us != 0).then(|| (began_us - begins_us) as f64 / 1e3),
        "clock_offset_ms": before.is_some().then_some(clock.offset_us / 1e3),
        "clock_error_ms": before.is_some().then_some(clock.error_us / 1e3),
        "error": cell.failure(),
    });
    let Value::Object(listed) = &mut columns else { return columns };
    if let Some(after) = after {
        listed.insert("processors".to_owned(), json!(after.processors));
        listed.insert("prepared_left".to_owned(), json!(after.prepared_left));
        listed.insert("settings".to_owned(), json!(after.settings));
        if let Some(before) = before {
            listed.extend(since(&before, &after));
        }
    }
    columns
}

/// Returns the columns for the changes between two readings.
fn since(before: &NodeState, after: &NodeState) -> BTreeMap<String, Value> {
    let mut columns = BTreeMap::new();
    let mut put = |name: &str, value: Value| columns.insert(name.to_owned(), value);
    if let Some((now, then)) = after.cpu.zip(before.cpu) {
        let cpu = now.since(then);
        let share = |ticks: u64| (cpu.total() > 0).then(|| ticks as f64 / cpu.total() as f64);
        put("cpu_user", json!(share(cpu.user)));
        put("cpu_system", json!(share(cpu.system)));
        put("cpu_iowait", json!(share(cpu.iowait)));
        put("cpu_steal", json!(share(cpu.steal)));
        put("cpu_idle", json!(share(cpu.idle)));
    }
    let counted = |now: u64, then: u64| now.saturating_sub(then);
    put("prepared", json!(counted(after.prepared, before.prepared)));
    if let Some((now, then)) = after.connections_opened.zip(before.connections_opened) {
        put("connections_opened", json!(counted(now, then)));
    }
    if let Some((now, then)) = after.connections_reused.zip(before.connections_reused) {
        put("connections_reused", json!(counted(now, then)));
    }
    columns
}

/// Writes the rows of the nodes, in addition to the columns from [`super::take_part`]. `begins_us` is the agreed begin of the
/// run.
pub fn write_nodes<'a>(
    run_id: i64,
    nodes: impl Iterator<Item = (&'a NodeSpec, &'a NodeCell)>,
    begins_us: i64,
) -> Result<(), UserError> {
    let nodes: Vec<_> = nodes.collect();
    let states: Vec<States> = nodes.iter().map(|(_, cell)| states(cell)).collect();
    let machines = machines_of(&nodes, &states);
    let rows: Vec<(i32, Value)> = nodes
        .into_iter()
        .zip(states)
        .zip(machines)
        .map(|(((node, cell), states), machine)| (node.node, figures(node, cell, states, begins_us, machine)))
        .collect();
    with_lock_timeout(|| write_rows(run_id, &rows))
}

fn write_rows(run_id: i64, rows: &[(i32, Value)]) -> Result<(), UserError> {
    transaction(|| {
        hold()?;
        for (node, columns) in rows {
            run(
                "INSERT INTO bench_internal.node_log AS n (run_id, node, name, is_coordinator, clients, error, start_offset_ms, \
                     clock_offset_ms, clock_error_ms, processors, cpu_user, cpu_system, cpu_iowait, cpu_steal, cpu_idle, prepared, \
                     connections_opened, connections_reused, prepared_left, settings, machine) \
                 SELECT $1, $2, x.name, x.is_coordinator, x.clients, x.error, x.start_offset_ms, \
                     x.clock_offset_ms, x.clock_error_ms, x.processors, x.cpu_user, x.cpu_system, x.cpu_iowait, x.cpu_steal, x.cpu_idle, \
                     x.prepared, x.connections_opened, x.connections_reused, x.prepared_left, x.settings, x.machine \
                 FROM jsonb_populate_record(NULL::bench_internal.node_log, $3) x \
                 ON CONFLICT (run_id, node) DO UPDATE SET name = excluded.name, is_coordinator = excluded.is_coordinator, \
                     clients = excluded.clients, error = coalesce(n.error, excluded.error), \
                     start_offset_ms = excluded.start_offset_ms, clock_offset_ms = excluded.clock_offset_ms, \
                     clock_error_ms = excluded.clock_error_ms, processors = excluded.processors, cpu_user = excluded.cpu_user, \
                     cpu_system = excluded.cpu_system, cpu_iowait = excluded.cpu_iowait, cpu_steal = excluded.cpu_steal, \
                     cpu_idle = excluded.cpu_idle, prepared = excluded.prepared, connections_opened = excluded.connections_opened, \
                     connections_reused = excluded.connections_reused, prepared_left = excluded.prepared_left, settings = excluded.settings, \
                     machine = excluded.machine",
                &[run_id.into(), (*node).into(), JsonB(columns.clone()).into()],
            )?;
        }
        Ok(())
    })
}

/// Returns the error of a part that did not complete, with its node's name: that with the most telling status, and among these
/// that of the node that was the `first` to end. `None` if all have completed.
pub fn part_error(run_id: i64, first: Option<i32>) -> Result<Option<UserError>, UserError> {
    let row = transaction(|| {
        hold()?;
        select_one::<(String, Option<UserError>)>(
            "SELECT name, error FROM bench_internal.node_log WHERE run_id = $1 AND status <> 'completed' \
             ORDER BY array_position('{crashed,failed,incomplete}', status), \
                 coalesce(node <> $2, true), node LIMIT 1",
            &[run_id.into(), first.into()],
        )
    })?;
    Ok(row.map(|(name, error)| {
        let error = error.unwrap_or_else(|| crate::error::internal("its part of the run ended unexpectedly"));
        UserError { message: format!("node {name}: {}", error.message), ..error }
    }))
}

/// Writes the results of all nodes together, and the end of the run. `written` is the result of writing the nodes' own rows.
pub fn finish(
    run_id: i64,
    status: RunStatus,
    error: Option<&UserError>,
    written: Result<(), UserError>,
    shards: Option<Result<Tuples, &'static str>>,
) -> Result<(), UserError> {
    let mut end = RunEnd::new(run_id);
    if let Err(reason) = written {
        end.miss("bench.nodes", reason);
    }
    end.part("bench.audit", || audit_of_nodes(run_id, shards));
    let detail = "bench.nodes has the results of each node.";
    end.close(status, error, detail, |status, error, row| match row {
        RunColumns::Whole => {
            let error = error.map(|error| serde_json::to_value(error).unwrap_or_default());
            row_of_nodes(run_id, status.as_str(), error)
        }
        RunColumns::StatusOnly => status_only(run_id, status, error),
    })
}

/// Sums the nodes' counters for the audit of the whole run.
fn audit_of_nodes(run_id: i64, shards: Option<Result<Tuples, &'static str>>) -> Result<(), UserError> {
    run(
        "INSERT INTO bench_internal.audit_log (run_id, node, counter, harness, server, judged, reason) \
         SELECT $1, 0, counter, sum(harness)::int8, \
             CASE WHEN bool_and(server IS NOT NULL) THEN sum(server)::int8 END, \
             bool_and(judged), min(reason) \
         FROM bench_internal.audit_log WHERE run_id = $1 AND node <> 0 GROUP BY counter",
        &[run_id.into()],
    )?;
    match shards {
        None => Ok(()),
        Some(Err(reason)) => run(
            "UPDATE bench_internal.audit_log SET server = NULL, reason = $2 WHERE run_id = $1 AND node = 0 AND reason = $3",
            &[run_id.into(), reason.into(), SHARED.into()],
        )
        .map(drop),
        Some(Ok(shards)) => run(
            "UPDATE bench_internal.audit_log a SET server = t.server, judged = true, reason = 'rows of the tables'' shards on all nodes, in all phases' \
             FROM ROWS FROM (unnest('{n_tup_ins,n_tup_upd,n_tup_del}'::text[]), unnest($2)) AS t (counter, server) \
             WHERE a.run_id = $1 AND a.node = 0 AND a.counter = t.counter \
               AND NOT EXISTS (SELECT FROM bench_internal.audit_log p WHERE p.run_id = $1 AND p.node <> 0 AND p.counter = a.counter AND p.reason <> $3) \
               AND (SELECT count(*) FROM bench_internal.audit_log p WHERE p.run_id = $1 AND p.node <> 0 AND p.counter = a.counter) \
                   = (SELECT count(*) FROM bench_internal.node_log n WHERE n.run_id = $1 AND n.clients > 0)",
            &[run_id.into(), shards.to_vec().into(), SHARED.into()],
        )
        .map(drop),
    }
}

/// Updates the run's row from those of its nodes.
fn row_of_nodes(run_id: i64, status: &str, error: Option<Value>) -> Result<usize, UserError> {
    let changed = run(
        "UPDATE bench_internal.run_log r SET status = $2, finished_at = coalesce(r.finished_at, clock_timestamp()), error = $3, \
             latency_avg_ms = t.mean, latency_stddev_ms = CASE WHEN t.squares IS NOT NULL THEN sqrt(greatest(t.squares - t.mean ^ 2, 0)) END, \
             latency_max_ms = t.latency_max_ms, lag_max_ms = t.lag_max_ms, backlog = t.backlog, lag_avg_ms = t.lag_avg_ms, \
             server_cpu_us = t.server_cpu_us, environment = coalesce(t.environment, '{}'), \
             warmup_took = CASE WHEN r.started_at IS NOT NULL THEN coalesce((SELECT max(w.elapsed) FROM bench.warmup_samples w WHERE w.run_id = $1), 0) END \
         FROM (SELECT sum(n.transactions * n.latency_avg_ms) / nullif(sum(n.transactions), 0) AS mean, \
                   sum(n.transactions * (n.latency_stddev_ms ^ 2 + n.latency_avg_ms ^ 2)) / nullif(sum(n.transactions), 0) AS squares, \
                   max(n.latency_max_ms) AS latency_max_ms, max(n.lag_max_ms) AS lag_max_ms, \
                   sum(n.backlog)::int8 AS backlog, \
                   sum(n.transactions * n.lag_avg_ms) / nullif(sum(n.transactions), 0) AS lag_avg_ms, \
                   CASE WHEN bool_and(n.server_cpu_us IS NOT NULL) FILTER (WHERE n.transactions > 0) \
                        THEN sum(n.transactions * n.server_cpu_us) / nullif(sum(n.transactions), 0) END AS server_cpu_us, \
                   (array_agg(n.environment ORDER BY n.node) FILTER (WHERE n.environment IS NOT NULL))[1] AS environment \
               FROM bench_internal.node_log n WHERE n.run_id = $1) t \
         WHERE r.run_id = $1",
        &[run_id.into(), status.into(), error.map(JsonB).into()],
    )?;
    let histogram = super::histogram(run_id)?;
    let percentile = |p| bench_stats::histogram::percentile_of(histogram.iter().copied(), p);
    run(
        "UPDATE bench_internal.run_log SET latency_p50_ms = $2, latency_p95_ms = $3, latency_p99_ms = $4, latency_p999_ms = $5 WHERE run_id = $1",
        &[
            run_id.into(),
            percentile(0.5).into(),
            percentile(0.95).into(),
            percentile(0.99).into(),
            percentile(0.999).into(),
        ],
    )?;
    Ok(changed)
}

/// The nodes of a run whose parts are here.
pub fn fetched(run_id: i64) -> Result<Vec<i32>, UserError> {
    as_owner(|| {
        let sql =
            "SELECT array_agg(node) FROM bench_internal.node_log WHERE run_id = $1 AND status IS NOT NULL";
        Ok(fetch::<Vec<i32>>(sql, &[run_id.into()])?.unwrap_or_default())
    })
}

/// Whether clients of a run ran on several nodes, or were to, of which this one was asked.
pub fn is_of_several_nodes(run_id: i64) -> Result<bool, UserError> {
    as_owner(|| {
        let sql = "SELECT nodes <> 'local' AND part_of IS NULL FROM bench_internal.run_log WHERE run_id = $1";
        Ok(fetch::<bool>(sql, &[run_id.into()])? == Some(true))
    })
}

/// Adds up the nodes again, after the parts of these have been fetched: with all of them a run is complete that was not.
pub fn add_up_again(run_id: i64, fetched: &[NodeSpec], status: &str) -> Result<(), UserError> {
    as_owner(|| {
        for node in fetched {
            run(
                "UPDATE bench_internal.node_log SET name = $3, is_coordinator = $4 WHERE run_id = $1 AND node = $2",
                &[run_id.into(), node.node.into(), node.name().into(), node.is_coordinator.into()],
            )?;
        }
        let complete = "SELECT bool_and(status IS NOT DISTINCT FROM 'completed') FROM bench_internal.node_log WHERE run_id = $1 AND clients > 0";
        let is_complete = fetch::<bool>(complete, &[run_id.into()])? == Some(true);
        let (status, error) = match status {
            "incomplete" if is_complete => ("completed", None),
            status => (status, run_error(run_id)?),
        };
        run("DELETE FROM bench_internal.audit_log WHERE run_id = $1 AND node = 0", &[run_id.into()])?;
        audit_of_nodes(run_id, None)?;
        row_of_nodes(run_id, status, error).map(drop)
    })
}
