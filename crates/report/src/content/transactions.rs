//! What was measured of transactions: latencies, waits, statements, scripts, errors.

use bench_base::number;
use bench_base::number::{MISSING, ms};
use bench_results::{CommandSummary, Document, Wait};

use super::{ColumnKind, Plan, Section, Table, or_missing};

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
