//! What was measured of transactions: latencies, waits, statements, scripts, errors.

use bench_base::number;
use bench_base::number::{MISSING, ms};
use bench_results::Document;

use super::{ColumnKind, Section, Table};

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
    let mut table = Table::new(&known().map(|(name, _)| (*name, ColumnKind::Number)).collect::<Vec<_>>());
    if !table.columns.is_empty() {
        table.rows.push(known().map(|(_, value)| ms(*value)).collect());
    }
    Section::of_table(id, title, table)
}

/// Processor time for each transaction.
pub fn processor_time(document: &Document) -> Section {
    let server = number::finite(document.summary.server_cpu_us);
    let facts = vec![("server, per transaction", server.map(|us| format!("{} µs", number::us(Some(us)))))];
    Section::of_facts("processor-time", "Processor time", facts)
        .with_note(Some("Of the clients' processes, user and system, without parallel workers.".to_owned()))
}

/// Shares of the clients' time.
pub fn waits(document: &Document) -> Section {
    let mut table = Table::new(&[("clients' time in", ColumnKind::Text), ("share", ColumnKind::Number)]);
    // One that would be left over is named as well.
    let waits = document.merged_waits();
    let named = if waits.len() == WAITS + 1 { WAITS + 1 } else { waits.len().min(WAITS) };
    let (first, others) = waits.split_at(named);
    for wait in first {
        let name = wait_name(&wait.wait_event_type, &wait.wait_event);
        table.rows.push(vec![name, number::percent(Some(wait.share))]);
    }
    if !others.is_empty() {
        let share = others.iter().map(|wait| wait.share).sum();
        table.rows.push(vec![format!("{} others", others.len()), number::percent(Some(share))]);
    }
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
    let mut table = Table::new(&[
        ("script", ColumnKind::Number),
        ("line", ColumnKind::Number),
        ("avg ms", ColumnKind::Number),
        ("p95 ms", ColumnKind::Number),
        ("count", ColumnKind::Number),
        ("failed", ColumnKind::Number),
        ("retried", ColumnKind::Number),
        ("statement", ColumnKind::Code),
    ]);
    for statement in document.merged_statements() {
        table.rows.push(vec![
            statement.script.to_string(),
            statement.line.to_string(),
            ms(statement.latency_avg_ms),
            ms(statement.latency_p95_ms),
            number::count(statement.count),
            number::count(statement.failed),
            number::count(statement.retried),
            statement.statement.clone(),
        ]);
    }
    Section::of_table("statements", "Statements", table.without_idle(&["script"]))
        .with_note(greatest_p95(document))
}

/// What is not as it would be of one node.
fn greatest_p95(document: &Document) -> Option<String> {
    (document.client_nodes() > 1).then(|| "All nodes together; p95 is the highest of any node.".to_owned())
}

/// How the statements were planned.
pub fn plans(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("script", ColumnKind::Number),
        ("line", ColumnKind::Number),
        ("generic plans", ColumnKind::Number),
        ("custom plans", ColumnKind::Number),
        ("plan changes", ColumnKind::Number),
        ("workers planned", ColumnKind::Number),
        ("workers launched", ColumnKind::Number),
    ]);
    for statement in document.merged_statements() {
        let figures = [
            statement.generic_plans,
            statement.custom_plans,
            statement.plan_changes,
            statement.workers_planned,
            statement.workers_launched,
        ];
        if figures.iter().any(|figure| *figure > 0) {
            let mut row = vec![statement.script.to_string(), statement.line.to_string()];
            row.extend(figures.map(number::count));
            table.rows.push(row);
        }
    }
    Section::of_table(
        "plans",
        "Plans",
        table.without_idle(&["script", "workers planned", "workers launched"]),
    )
    .with_note(Some("Executions in all phases, by kind of plan.".to_owned()))
}

/// The scripts of a mix.
pub fn scripts(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("script", ColumnKind::Number),
        ("workload", ColumnKind::Text),
        ("weight", ColumnKind::Number),
        ("transactions", ColumnKind::Number),
        ("tps", ColumnKind::Number),
        ("avg ms", ColumnKind::Number),
        ("p50 ms", ColumnKind::Number),
        ("p95 ms", ColumnKind::Number),
        ("p99 ms", ColumnKind::Number),
        ("max ms", ColumnKind::Number),
        ("failed", ColumnKind::Number),
        ("retried", ColumnKind::Number),
        ("skipped", ColumnKind::Number),
        ("late", ColumnKind::Number),
    ]);
    // What there is to say of the only one is said of the run.
    let scripts = if document.scripts.len() > 1 { &document.scripts[..] } else { &[] };
    for script in scripts {
        table.rows.push(vec![
            script.script.to_string(),
            script.workload.clone(),
            script.weight.to_string(),
            number::count(script.transactions),
            number::tps(script.tps),
            ms(script.latency_avg_ms),
            ms(script.latency_p50_ms),
            ms(script.latency_p95_ms),
            ms(script.latency_p99_ms),
            ms(script.latency_max_ms),
            number::count(script.failed),
            number::count(script.retried),
            number::count(script.skipped),
            number::count(script.late),
        ]);
    }
    Section::of_table("scripts", "Scripts", table.without_idle(&["failed", "retried", "skipped", "late"]))
}

/// Errors by SQLSTATE.
pub fn errors(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("sqlstate", ColumnKind::Text),
        ("count", ColumnKind::Number),
        ("retried", ColumnKind::Number),
        ("failed", ColumnKind::Number),
        ("message", ColumnKind::Text),
        ("detail", ColumnKind::Text),
    ]);
    for error in &document.errors {
        table.rows.push(vec![
            error.sqlstate.clone(),
            number::count(error.count),
            number::count(error.retried),
            number::count(error.failed),
            error.message.clone(),
            error.detail.clone().unwrap_or_else(|| MISSING.to_owned()),
        ]);
    }
    let nodes: Vec<i32> = document.errors.iter().map(|error| error.node).collect();
    let table = table.without_idle(&["detail"]).with_nodes(document, &nodes);
    Section::of_table("errors", "Errors", table)
        .with_note(Some("All phases. Message and detail are from the first error of each kind.".to_owned()))
}

/// How a replay resembles what was captured.
pub fn fidelity(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("part", ColumnKind::Text),
        ("captured", ColumnKind::Number),
        ("replayed", ColumnKind::Number),
        ("score", ColumnKind::Number),
        ("reason", ColumnKind::Text),
    ]);
    for part in &document.fidelity {
        let figure = |value: Option<f64>| value.map_or(MISSING.to_owned(), number::significant);
        table.rows.push(vec![
            part.part.clone(),
            figure(part.captured),
            figure(part.replayed),
            figure(part.score),
            part.reason.clone().unwrap_or_default(),
        ]);
    }
    let note = "Per transaction of the application. The run's fidelity is the lowest score.";
    Section::of_table("fidelity", "Fidelity", table).with_note(Some(note.to_owned()))
}

/// The harness's counters against the server's.
pub fn audit(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("counter", ColumnKind::Text),
        ("harness", ColumnKind::Number),
        ("server", ColumnKind::Number),
        ("equal", ColumnKind::Text),
        ("reason", ColumnKind::Text),
    ]);
    for line in &document.audit {
        let equal = match line.ok {
            Some(true) => "yes",
            Some(false) => "no",
            None => MISSING,
        };
        table.rows.push(vec![
            line.counter.clone(),
            number::signed(line.harness),
            number::signed(line.server),
            equal.to_owned(),
            line.reason.clone(),
        ]);
    }
    let nodes: Vec<i32> = document.audit.iter().map(|line| line.node).collect();
    Section::of_table("audit", "Audit", table.with_nodes(document, &nodes))
        .with_note(Some("Counts of the harness beside the server's.".to_owned()))
}
