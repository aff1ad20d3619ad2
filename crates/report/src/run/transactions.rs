//! What was measured of transactions: latencies, waits, statements, scripts, errors.

use bench_base::number;
use bench_base::number::{MISSING, ms};
use bench_results::{CommandSummary, Document, ScriptSummary, Wait};

use crate::section::{ColumnKind, Plan, Section, Table, or_missing};

/// How many wait events are named; the others are summed up.
const WAITS: usize = 12;

/// Average and percentiles of the whole.
pub fn latency(document: &Document) -> Section {
    let summary = &document.summary;
    let figures = [
        ("average", summary.latency_avg_ms),
        ("stddev", summary.latency_stddev_ms),
        ("p50", summary.latency_p50_ms),
        ("p95", summary.latency_p95_ms),
        ("p99", summary.latency_p99_ms),
        ("p99.9", summary.latency_p999_ms),
        ("max", summary.latency_max_ms),
    ];
    of_milliseconds("latency", "Latency, ms", &figures)
}

/// How long connections took, where each transaction had one of its own.
pub fn connections(document: &Document) -> Section {
    let summary = &document.summary;
    let figures = [
        ("average", summary.connect_avg_ms),
        ("p50", summary.connect_p50_ms),
        ("p95", summary.connect_p95_ms),
        ("p99", summary.connect_p99_ms),
        ("max", summary.connect_max_ms),
    ];
    of_milliseconds("connections", "Time to connect, ms", &figures)
}

/// A table of one row with the figures that are known.
fn of_milliseconds(
    id: &'static str,
    title: &'static str,
    figures: &[(&'static str, Option<f64>)],
) -> Section {
    let known = || figures.iter().filter(|(_, value)| number::finite(*value).is_some());
    let columns = known().map(|(name, _)| ((*name).to_owned(), ColumnKind::Number)).collect();
    let row: Vec<String> = known().map(|(_, value)| ms(*value)).collect();
    let rows = if row.is_empty() { Vec::new() } else { vec![row] };
    let table = Table { columns, rows };
    Section::of_table(id, title, table)
}

/// Processor time for each transaction.
pub fn processor_time(document: &Document) -> Section {
    let server = number::finite(document.summary.server_cpu_us);
    Section::of_facts("processor-time", "Processor time")
        .fact("server, per transaction", server.map(|us| format!("{} µs", number::us(Some(us)))))
        .with_note("Of the clients' processes, user and system, without parallel workers.")
}

/// Shares of the clients' time.
pub fn waits(document: &Document) -> Section {
    // One that would be left over is named as well.
    let waits = document.merged_waits();
    let named = if waits.len() == WAITS + 1 { WAITS + 1 } else { waits.len().min(WAITS) };
    let (first, others) = waits.split_at(named);
    let name = |wait: &Wait| wait_name(&wait.wait_event_type, &wait.wait_event);
    let mut shares: Vec<(String, f64)> = first.iter().map(|wait| (name(wait), wait.share)).collect();
    if !others.is_empty() {
        shares.push((format!("{} others", others.len()), others.iter().map(|wait| wait.share).sum()));
    }
    let table = Table::of(&shares)
        .text("clients' time in", |(name, _)| name)
        .number("share", |(_, share)| number::percent(Some(*share)))
        .table();
    Section::of_table("waits", "Waits", table)
}

/// A wait event under its type; `CPU` and `Runnable` have but one name.
pub fn wait_name(class: &str, event: &str) -> String {
    match (class, event) {
        (class, event) if class == event || class.is_empty() => event.to_owned(),
        (class, "") => class.to_owned(),
        (class, event) => format!("{class}:{event}"),
    }
}

/// What pgbench -r prints, and more.
pub fn statements(document: &Document) -> Section {
    let statements = document.merged_statements();
    let table = Table::of(&statements)
        .number("script", |statement| statement.script)
        .number("line", |statement| statement.line)
        .number("avg ms", |statement| ms(statement.latency_avg_ms))
        .number("p95 ms", |statement| ms(statement.latency_p95_ms))
        .number("count", |statement| number::count(statement.count))
        .number("failed", |statement| number::count(statement.failed))
        .number("retried", |statement| number::count(statement.retried))
        .code("statement", |statement| &statement.statement)
        .table();
    let section = Section::of_table("statements", "Statements", table.without_idle(&["script"]))
        .with_note_if(greatest_p95(document));
    Section { plans: statements.iter().map(plan).collect(), ..section }
}

fn plan(statement: &CommandSummary) -> Option<Plan> {
    let CommandSummary { script, line, .. } = statement;
    let title = format!("script {script}, line {line}, executed {} times", number::count(statement.count));
    Some(Plan { title, plan: statement.plan.clone()? })
}

/// What is not as it would be of one node.
fn greatest_p95(document: &Document) -> Option<String> {
    (document.client_nodes() > 1).then(|| "All nodes together; p95 is the highest of any node.".to_owned())
}

/// How the statements were planned.
pub fn plans(document: &Document) -> Section {
    let statements = document.merged_statements();
    let is_known = |of: &&CommandSummary| {
        of.generic_plans > 0
            || of.custom_plans > 0
            || of.plan_changes > 0
            || of.workers_planned > 0
            || of.workers_launched > 0
    };
    let table = Table::of(statements.iter().filter(is_known))
        .number("script", |statement| statement.script)
        .number("line", |statement| statement.line)
        .number("generic plans", |statement| number::count(statement.generic_plans))
        .number("custom plans", |statement| number::count(statement.custom_plans))
        .number("plan changes", |statement| number::count(statement.plan_changes))
        .number("workers planned", |statement| number::count(statement.workers_planned))
        .number("workers launched", |statement| number::count(statement.workers_launched))
        .table();
    let table = table.without_idle(&["script", "workers planned", "workers launched"]);
    Section::of_table("plans", "Plans", table).with_note("Executions in all phases, by kind of plan.")
}

/// The scripts of a mix.
pub fn scripts(document: &Document) -> Section {
    // What there is to say of the only one is said of the run.
    let scripts = if document.scripts.len() > 1 { &document.scripts[..] } else { &[] };
    let table = Table::of(scripts)
        .number("script", |script| script.script)
        .text("workload", |script| &script.workload)
        .number("weight", |script| script.weight)
        .number("transactions", |script| number::count(script.transactions))
        .number("tps", |script| number::tps(script.tps))
        .number("avg ms", |script| ms(script.latency_avg_ms))
        .number("p50 ms", |script| ms(script.latency_p50_ms))
        .number("p95 ms", |script| ms(script.latency_p95_ms))
        .number("p99 ms", |script| ms(script.latency_p99_ms))
        .number("max ms", |script| ms(script.latency_max_ms))
        .number("failed", |script| number::count(script.failed))
        .number("retried", |script| number::count(script.retried))
        .number("skipped", |script| number::count(script.skipped))
        .number("late", |script| number::count(script.late))
        .table();
    Section::of_table("scripts", "Scripts", table.without_idle(&["failed", "retried", "skipped", "late"]))
}

/// Errors by SQLSTATE.
pub fn errors(document: &Document) -> Section {
    let table = Table::of(&document.errors)
        .text("sqlstate", |error| &error.sqlstate)
        .number("count", |error| number::count(error.count))
        .number("retried", |error| number::count(error.retried))
        .number("failed", |error| number::count(error.failed))
        .text("message", |error| &error.message)
        .text("detail", |error| or_missing(&error.detail))
        .table();
    let nodes: Vec<i32> = document.errors.iter().map(|error| error.node).collect();
    let table = table.without_idle(&["detail"]).with_nodes(document, &nodes);
    Section::of_table("errors", "Errors", table)
        .with_note("All phases. Message and detail are from the first error of each kind.")
}

/// How a replay resembles what was captured.
pub fn fidelity(document: &Document) -> Section {
    let figure = |value: Option<f64>| value.map_or(MISSING.to_owned(), number::significant);
    let table = Table::of(&document.fidelity)
        .text("part", |part| &part.part)
        .number("captured", |part| figure(part.captured))
        .number("replayed", |part| figure(part.replayed))
        .number("score", |part| figure(part.score))
        .text("reason", |part| part.reason.as_deref().unwrap_or_default())
        .table();
    Section::of_table("fidelity", "Fidelity", table)
        .with_note("Per transaction of the application. The run's fidelity is the lowest score.")
}

/// The harness's counters against the server's.
pub fn audit(document: &Document) -> Section {
    let equal = |ok: Option<bool>| ok.map_or(MISSING, |ok| if ok { "yes" } else { "no" });
    let table = Table::of(&document.audit)
        .text("counter", |line| &line.counter)
        .number("harness", |line| number::signed(line.harness))
        .number("server", |line| number::signed(line.server))
        .text("equal", |line| equal(line.ok))
        .text("reason", |line| &line.reason)
        .table();
    let nodes: Vec<i32> = document.audit.iter().map(|line| line.node).collect();
    Section::of_table("audit", "Audit", table.with_nodes(document, &nodes))
        .with_note("Counts of the harness beside the server's.")
}

/// What has to be said wherever the workload's figures are.
const NOT_COMPARABLE: &str = "Derived from TPC-C; not comparable with published TPC results.";

/// The transactions, in the order of the specification, with their response-time limits in milliseconds: TPC-C 5.2.5.3.
const LIMITS_MS: [(&str, f64); 5] = [
    ("new_order", 5000.0),
    ("payment", 5000.0),
    ("order_status", 5000.0),
    ("delivery", 5000.0),
    ("stock_level", 20_000.0),
];

/// The workloads whose scripts are these transactions.
const FORMS: [&str; 3] = ["orders", "orders_functions", "orders_keyed"];

/// The scripts of the workload in a run.
fn order_scripts(document: &Document) -> impl Iterator<Item = (&ScriptSummary, &'static str, f64)> {
    document.scripts.iter().filter_map(|script| {
        let name = FORMS.iter().find_map(|form| script.workload.strip_prefix(form)?.strip_prefix('/'))?;
        let (name, limit) = LIMITS_MS.iter().find(|(known, _)| *known == name)?;
        Some((script, *name, *limit))
    })
}

/// New orders per minute as a line of its own.
pub fn nopm_line(document: &Document) -> Option<String> {
    let nopm = number::finite(document.summary.nopm)?;
    Some(format!(
        "new orders per minute (NOPM) = {nopm:.1}; derived from TPC-C, not comparable with published TPC results"
    ))
}

/// Shares and response times of the transactions.
pub fn orders(document: &Document) -> Section {
    let scripts: Vec<_> = order_scripts(document).collect();
    let all: u64 = scripts.iter().map(|(script, ..)| script.transactions).fold(0, u64::saturating_add);
    let share = |script: &ScriptSummary| (all > 0).then(|| script.transactions as f64 / all as f64);
    let within = |p95_ms: Option<f64>, limit: f64| match number::finite(p95_ms) {
        Some(p95) if p95 <= limit => "yes",
        Some(_) => "no",
        None => MISSING,
    };
    let table = Table::of(&scripts)
        .text("transaction", |(_, name, _)| name)
        .number("share", |(script, ..)| number::percent(share(script)))
        .number("per minute", |(script, ..)| number::tps(script.tps.map(|tps| tps * 60.0)))
        .number("p95 ms", |(script, ..)| ms(script.latency_p95_ms))
        .number("limit ms", |(_, _, limit)| limit)
        .text("within", |(script, _, limit)| within(script.latency_p95_ms, *limit))
        .table();
    let nopm = number::finite(document.summary.nopm);
    let nopm = nopm.map(|nopm| format!("New orders per minute (NOPM): {}. ", number::tps(Some(nopm))));
    let note = format!(
        "{}{NOT_COMPARABLE} NOPM includes new orders that are rolled back intentionally. TPC-C's limits are for the \
         90th percentile.",
        nopm.unwrap_or_default()
    );
    Section::of_table("orders", "Orders", table).with_note(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Body;

    fn document(workloads: &[(&str, u64, f64)]) -> Document {
        let scripts = workloads.iter().map(|(workload, transactions, p95)| ScriptSummary {
            workload: (*workload).to_owned(),
            transactions: *transactions,
            tps: Some(*transactions as f64 / 60.0),
            latency_p95_ms: Some(*p95),
            ..ScriptSummary::default()
        });
        Document { scripts: scripts.collect(), ..Document::default() }
    }

    #[test]
    fn only_the_workload_has_the_section() {
        assert!(
            orders(&document(&[("tpcb", 5, 1.0), ("orders", 5, 1.0), ("orders/mine", 5, 1.0)])).is_empty()
        );
        assert_eq!(nopm_line(&document(&[("tpcb", 5, 1.0)])), None);
    }

    #[test]
    fn transactions_are_held_against_their_limits() {
        let section = orders(&document(&[
            ("orders/new_order", 40, 5000.0),
            ("orders_keyed/payment", 5, 1.0),
            ("orders_functions/stock_level", 5, 20_000.1),
            ("pk_select", 1000, 1.0),
        ]));
        let Body::Table(table) = &section.body else { panic!("a table") };
        let column = |index: usize| table.rows.iter().map(|row| row[index].as_str()).collect::<Vec<_>>();
        assert_eq!(column(0), ["new_order", "payment", "stock_level"]);
        assert_eq!(column(1), [Some(0.8), Some(0.1), Some(0.1)].map(number::percent));
        assert_eq!(column(5), ["yes", "yes", "no"]);
        assert!(section.note.expect("a note").contains("not comparable with published TPC results"));
    }
}
