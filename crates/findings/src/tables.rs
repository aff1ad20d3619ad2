//! What the run did to its tables and how it read them.

use bench_base::sentence::{counted, first_few, grouped, seconds, shortened};
use bench_results::{CommandSummary, Document, Event, Finding, Relation, Severity, Topic};
use serde_json::json;

use super::dips::is_vacuum;
use super::finding::finding;
use super::plans::place;

/// Rows per sequential scan from which on an index is worth a thought.
const LARGE_SCAN: f64 = 1000.0;

/// Seconds below which a vacuum's duration is not known: it ended when it was first seen.
const SHORTEST_VACUUM: f64 = 1e-3;

/// The findings on tables.
pub fn findings(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(horizon(document));
    findings.extend(workers(document));
    findings.extend(vacuumed(document));
    findings.extend(scans(document));
    findings
}

fn horizon(document: &Document) -> Option<Finding> {
    let changed = |relation: &Relation| {
        relation.updated.unwrap_or(0).max(0) as f64 + relation.deleted.unwrap_or(0).max(0) as f64
    };
    let dead: f64 = document.relations.iter().filter(|relation| relation.kind != "index").map(changed).sum();
    let held = document.run.horizon_held;
    let holder = document.environment.horizon_holder.as_ref();
    if dead <= 0.0 || (!held && holder.is_none()) {
        return None;
    }
    let mut who = Vec::new();
    if held {
        who.push("the session that waited for the run".to_owned());
    }
    who.extend(holder.cloned());
    let advice = if held {
        "Start the run with bench.start, or call bench.run in a single SELECT outside a transaction block."
    } else {
        "End the old transaction, prepared transaction or replication slot, and run again. Tables bloat as long as \
         it exists."
    };
    Some(finding(
        Severity::Warning,
        Topic::Horizon,
        format!(
            "{} rows were updated or deleted, and not all dead row versions could be removed: {} held back the \
             xmin horizon.",
            grouped(dead),
            who.join(" and ")
        ),
        json!({ "horizon_held": held, "holder": holder, "updated_or_deleted": dead }),
        advice,
    ))
}

/// Vacuums while measuring.
fn vacuumed(document: &Document) -> Option<Finding> {
    let end = document.summary.secs.unwrap_or(f64::INFINITY);
    let meanwhile = |event: &&Event| {
        is_vacuum(event) && event.started < end && event.ended.is_none_or(|ended| ended > 0.0)
    };
    let events: Vec<&Event> = document.events.iter().filter(meanwhile).collect();
    let described: Vec<String> = events
        .iter()
        .map(|event| {
            let table = event.relation.as_deref().unwrap_or("a table");
            let place = document.on_node(event.node);
            let began = if event.started < 0.0 {
                "before the start".to_owned()
            } else {
                format!("at {}", seconds(event.started))
            };
            let ended = match event.ended {
                // It began and ended between two looks.
                Some(ended) if ended - event.started < SHORTEST_VACUUM => "for an unknown time".to_owned(),
                Some(ended) if ended <= end => format!("for {}", seconds(ended - event.started)),
                _ => "until after the end".to_owned(),
            };
            format!("{} of {table}{place} {began} {ended}", event.kind)
        })
        .collect();
    if described.is_empty() {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Vacuum,
        format!("Tables were vacuumed during the measurement: {}.", first_few(&described)),
        json!({
            "vacuums": events
                .iter()
                .map(|event| json!({
                    "node": event.node,
                    "kind": event.kind,
                    "relation": event.relation,
                    "started": event.started,
                    "ended": event.ended,
                }))
                .collect::<Vec<_>>(),
        }),
        "Long runs include vacuum, as production does. Compare short runs only with runs that had as much vacuum, \
         or VACUUM the tables before each run.",
    ))
}

/// The relation's name without its schema, as plans show it.
fn bare(relation: &str) -> &str {
    relation.rsplit('.').next().unwrap_or(relation).trim_matches('"')
}

/// Whether a plan has a line that scans the relation in a way, as `Seq Scan on `.
fn scans_it(plan: &str, scan: &str, relation: &str) -> bool {
    plan.lines().filter_map(|line| line.split_once(scan)).any(|(_, scanned)| {
        let scanned = scanned.split([' ', '(']).next().unwrap_or_default();
        bare(scanned) == bare(relation)
    })
}

fn scans(document: &Document) -> Option<Finding> {
    let mut described = Vec::new();
    let mut figures = Vec::new();
    for relation in document.relations.iter().filter(|relation| relation.kind != "index") {
        let (Some(scans), Some(rows)) = (relation.seq_scan, relation.seq_tup_read) else { continue };
        let scan = |statement: &&CommandSummary| {
            statement.plan.as_deref().is_some_and(|plan| scans_it(plan, "Seq Scan on ", &relation.relation))
        };
        let by = document.statements.iter().find(scan);
        // Each parallel worker counts the scan that it takes part in as its own.
        let in_parallel = |statement: &&CommandSummary| {
            let plan = statement.plan.as_deref();
            statement.node == relation.node
                && plan.is_some_and(|plan| scans_it(plan, "Parallel Seq Scan on ", &relation.relation))
        };
        let workers =
            document.statements.iter().filter(in_parallel).map(|statement| statement.workers_launched);
        let workers = workers.fold(0u64, u64::saturating_add).min(i64::MAX as u64).cast_signed();
        let scans = scans.saturating_sub(workers).max(scans.min(1));
        let per_scan = rows as f64 / scans.max(1) as f64;
        let (true, Some(statement)) = (scans > 0 && per_scan >= LARGE_SCAN, by) else { continue };
        described.push(format!(
            "{}{} {}, {} rows each, by {}",
            relation.relation,
            document.on_node(relation.node),
            counted(scans.unsigned_abs(), "time"),
            grouped(per_scan),
            shortened(&statement.statement)
        ));
        figures.push(json!({
            "node": relation.node,
            "relation": relation.relation,
            "scans": scans,
            "rows_per_scan": per_scan,
            "script": statement.script,
            "command": statement.command,
        }));
    }
    if described.is_empty() {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Scan,
        format!("Sequential scans read large tables: {}.", first_few(&described)),
        json!({ "relations": figures }),
        "If the statement needs few of the rows, create an index on the columns of its WHERE clause. If there is \
         one, check that the table is analyzed and that the types match.",
    ))
}

fn workers(document: &Document) -> Option<Finding> {
    let statements = document.merged_statements();
    let short: Vec<&CommandSummary> = statements
        .iter()
        .filter(|statement| statement.workers_launched < statement.workers_planned)
        .collect();
    let planned: u64 = short.iter().fold(0, |sum, statement| sum.saturating_add(statement.workers_planned));
    let launched: u64 = short.iter().fold(0, |sum, statement| sum.saturating_add(statement.workers_launched));
    let described: Vec<String> = short.iter().map(|statement| place(statement)).collect();
    if described.is_empty() {
        return None;
    }
    Some(finding(
        Severity::Warning,
        Topic::Workers,
        format!(
            "{} of {} did not start: {}.",
            grouped((planned - launched) as f64),
            counted(planned, "planned parallel worker"),
            first_few(&described)
        ),
        json!({ "planned": planned, "launched": launched }),
        "Raise max_parallel_workers and max_worker_processes, or lower max_parallel_workers_per_gather or the \
         number of clients. A parallel plan without its workers is slow.",
    ))
}
