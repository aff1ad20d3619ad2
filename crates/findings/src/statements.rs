//! What statements and tables did: plans that changed, and throughput with them; writes that found no row; vacuums,
//! sequential scans and parallel workers.

use bench_base::sentence::{counted, first_few, grouped, percent, seconds, shortened};
use bench_results::{CommandSummary, Document, Event, Finding, Relation, Severity, Topic};
use bench_stats::robust::{median, sigma};
use serde_json::json;

use crate::dips::causes::is_vacuum;
use crate::dips::detect::Detected;
use crate::intervals::{Intervals, finding};

/// Seconds before and after a change that are compared at most, and intervals that each side has at least.
const MOST_SECS: f64 = 10.0;
const LEAST_INTERVALS: usize = 2;
/// The least fall of the median throughput, as a share and in standard deviations of the intervals before.
const LEAST_FALL: f64 = 0.2;
const LEAST_SIGMAS: f64 = 3.0;
/// From this share on a fall needs no more than so many intervals on each side: machines that others use vary by half of
/// their throughput, and medians do not fall to a quarter just when a plan changes.
const DEEP_FALL: f64 = 0.75;
const DEEP_INTERVALS: usize = 4;
/// Seconds, or intervals if they are longer, by which a dip may begin apart from the change that explains it.
const NEAR_SECS: f64 = 1.0;

/// A command by its first words, and its place in the script, for a sentence.
pub fn place(statement: &CommandSummary) -> String {
    let CommandSummary { command, script, .. } = statement;
    format!("{} (command {command} of script {script})", shortened(&statement.statement))
}

/// The finding on changed plans. Where throughput fell with one, that is the cause, and the dips that it explains are
/// taken out of what was detected.
pub fn plan_findings(document: &Document, intervals: &Intervals, detected: &mut Detected) -> Option<Finding> {
    let statements = document.merged_statements();
    let changed: Vec<&CommandSummary> =
        statements.iter().filter(|statement| statement.plan_changes > 0).collect();
    let falls = changed.iter().filter_map(|statement| Fall::of(statement, intervals));
    let deepest = falls.max_by(|one, other| one.share().total_cmp(&other.share()));
    if let Some(fall) = deepest {
        let near = NEAR_SECS.max(intervals.typical_secs() * 2.0);
        detected.dips.retain(|dip| (dip.start - fall.at).abs() > near);
        return Some(fall.finding());
    }
    if changed.is_empty() {
        return None;
    }
    let described: Vec<String> = changed
        .iter()
        .map(|statement| format!("{} {}", place(statement), counted(statement.plan_changes, "time")))
        .collect();
    Some(finding(
        Severity::Notice,
        Topic::Plan,
        format!("Plans changed during the run: {}.", first_few(&described)),
        json!({
            "statements": changed
                .iter()
                .map(|statement| json!({
                    "script": statement.script,
                    "command": statement.command,
                    "plan_changes": statement.plan_changes,
                }))
                .collect::<Vec<_>>(),
        }),
        "Compare the plans in bench.statements. Run ANALYZE before the run, so that statistics do not change \
         during it. If plans alternate with the parameters' values, set plan_cache_mode.",
    ))
}

/// Throughput that fell when a statement got another plan.
struct Fall<'a> {
    statement: &'a CommandSummary,
    /// Seconds since measuring began.
    at: f64,
    /// The lines of the plans' first scans, before and after.
    scans: Option<(String, String)>,
    tps_before: f64,
    tps_after: f64,
}

impl<'a> Fall<'a> {
    fn of(statement: &'a CommandSummary, intervals: &Intervals) -> Option<Self> {
        let (at, scans) = change(statement.plan.as_deref()?)?;
        let width = ((MOST_SECS / intervals.typical_secs()) as usize).max(LEAST_INTERVALS);
        let last_before = intervals.ends.partition_point(|&end| end <= at);
        let first_after = intervals.starts.partition_point(|&start| start < at);
        let before = &intervals.tps[last_before.saturating_sub(width)..last_before];
        let after = &intervals.tps[first_after..(first_after + width).min(intervals.len())];
        if before.len() < LEAST_INTERVALS || after.len() < LEAST_INTERVALS {
            return None;
        }
        let (tps_before, tps_after) = (median(before)?, median(after)?);
        let fall = Self { statement, at, scans, tps_before, tps_after };
        let noise = sigma(before)? / tps_before;
        // Written so that what is no number is no finding.
        let deep = fall.share() >= DEEP_FALL && before.len().min(after.len()) >= DEEP_INTERVALS;
        let tells = deep || fall.share() >= LEAST_FALL.max(LEAST_SIGMAS * noise);
        tells.then_some(fall)
    }

    /// The share of the throughput that was lost.
    fn share(&self) -> f64 {
        1.0 - self.tps_after / self.tps_before
    }

    fn finding(&self) -> Finding {
        let statement = self.statement;
        let from_to = match &self.scans {
            Some((before, after)) if before != after => format!(" from {before} to {after}"),
            _ => String::new(),
        };
        finding(
            Severity::Warning,
            Topic::Plan,
            format!(
                "From {} on throughput was {} lower, {} instead of {} tps: the plan of {} changed{from_to}.",
                seconds(self.at),
                percent(self.share()),
                grouped(self.tps_after),
                grouped(self.tps_before),
                place(statement)
            ),
            json!({
                "at": self.at,
                "depth": self.share(),
                "tps_before": self.tps_before,
                "tps_after": self.tps_after,
                "statements": [{
                    "script": statement.script,
                    "command": statement.command,
                    "plan_changes": statement.plan_changes,
                }],
            }),
            "Compare the plans in bench.statements. Look for an index that was dropped or became invalid, and for \
             statistics that changed: run ANALYZE before the run.",
        )
    }
}

/// When a plan changed for good for the last time while measuring, in seconds since that began, and the first scans of
/// the two forms. The forms lie under lines of their own, `from 5.250 s on:` (see [`CommandSummary::plan`]).
fn change(plan: &str) -> Option<(f64, Option<(String, String)>)> {
    let lines: Vec<&str> = plan.lines().collect();
    let time_of = |line: &str| line.strip_prefix("from ")?.strip_suffix(" s on:")?.parse::<f64>().ok();
    let place = lines.iter().rposition(|line| time_of(line).is_some())?;
    let at = time_of(lines[place])?;
    let is_head = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
    let begin = lines[..place].iter().rposition(is_head).map_or(0, |head| head + 1);
    let scan = |lines: &[&str]| lines.iter().find(|line| line.contains(" Scan")).map(|line| bare_line(line));
    Some((at, scan(&lines[begin..place]).zip(scan(&lines[place + 1..]))))
}

/// A plan's line without its arrow and costs.
fn bare_line(line: &str) -> String {
    let line = line.trim().trim_start_matches("->").trim_start();
    line.split("  (").next().unwrap_or(line).to_owned()
}

/// Shares of a statement's executions that affect no row, from which on they are worth a word, and from which on the
/// figures are hardly those of writes.
const EMPTY_NOTICE: f64 = 0.1;
const EMPTY_WARNING: f64 = 0.5;
/// Fewer executions do not tell a share.
const ENOUGH_WRITES: u64 = 20;

/// The finding on writes without effect.
pub fn write_findings(document: &Document) -> Vec<Finding> {
    let mut told: Vec<WrittenStatement> =
        document.merged_statements().iter().filter_map(WrittenStatement::of).collect();
    told.sort_by_key(|told| told.severity);
    let Some(severity) = told.first().map(|told| told.severity) else { return Vec::new() };
    let lines: Vec<String> = told.iter().map(WrittenStatement::describe).collect();
    let variables = &document.run.variables;
    let given = ["scale", "rows"].into_iter().find(|name| variables.contains_key(*name));
    let advice = match given {
        Some(name) => format!(
            "The run sets the variable {name}: check that it does not exceed the size of the loaded tables. A \
             statement that finds no row costs far less than a write."
        ),
        None if told.iter().all(|told| told.is_conflict) => {
            "INSERT ... ON CONFLICT inserts no row whose key exists: check that this is the workload that you mean \
             to measure.".to_owned()
        }
        None => "Check that the script draws keys that exist, that the role can see the rows, and that no trigger \
                 drops them. A statement that affects no row costs far less than a write."
            .to_owned(),
    };
    vec![finding(
        severity,
        Topic::Writes,
        format!("Writes affected no rows: {}.", first_few(&lines)),
        json!({
            "statements": told
                .iter()
                .map(|told| json!({
                    "script": told.statement.script,
                    "command": told.statement.command,
                    "writes": told.writes,
                    "empty_writes": told.empty,
                }))
                .collect::<Vec<_>>(),
        }),
        advice,
    )]
}

/// A statement that is worth a word.
struct WrittenStatement {
    statement: CommandSummary,
    writes: u64,
    empty: u64,
    severity: Severity,
    /// INSERT … ON CONFLICT, which is meant to leave out rows.
    is_conflict: bool,
}

impl WrittenStatement {
    fn of(statement: &CommandSummary) -> Option<Self> {
        let writes = statement.writes.filter(|&writes| writes > 0)?;
        let empty = statement.empty_writes?.min(writes);
        let share = empty as f64 / writes as f64;
        let is_conflict = statement.statement.to_ascii_lowercase().contains("on conflict");
        let severity = match share {
            _ if empty < writes && writes < ENOUGH_WRITES => return None,
            share if share >= EMPTY_WARNING && !is_conflict => Severity::Warning,
            share if share >= if is_conflict { EMPTY_WARNING } else { EMPTY_NOTICE } => Severity::Notice,
            _ => return None,
        };
        Some(Self { statement: statement.clone(), writes, empty, severity, is_conflict })
    }

    fn describe(&self) -> String {
        let Self { statement, writes, empty, .. } = self;
        let share = match writes - empty {
            0 => "all".to_owned(),
            // Not all, however near.
            _ => format!("{} of", percent((*empty as f64 / *writes as f64).min(0.99))),
        };
        format!("{} in {share} {} executions", place(statement), grouped(*writes as f64))
    }
}

/// Rows per sequential scan from which on an index is worth a thought.
const LARGE_SCAN: f64 = 1000.0;

/// Seconds below which a vacuum's duration is not known: it ended when it was first seen.
const SHORTEST_VACUUM: f64 = 1e-3;

/// The findings on tables.
pub fn table_findings(document: &Document) -> Vec<Finding> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_counts() {
        let plan = "generic plan:\nat first:\nLimit\n  ->  Index Scan using i on t  (cost=1)\n    Index Cond: (id = $1)\n\
                    from 3.250 s on:\nSeq Scan on t\n  Filter: (id = $1)";
        let scans = ("Index Scan using i on t".to_owned(), "Seq Scan on t".to_owned());
        assert_eq!(change(plan), Some((3.25, Some(scans))));
        assert_eq!(change("custom plan:\nSeq Scan on t"), None);
        assert_eq!(change("custom plan:\nat first:\nA\nby turns, first at 1.000 s:\nB"), None);
    }
}
