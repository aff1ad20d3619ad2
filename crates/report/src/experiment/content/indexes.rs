//! What indexes are worth.

use bench_base::number::{MISSING, bytes, finite, fixed};
use bench_questions::index_worth::sentence;
use bench_results::experiment::ExperimentDocument;
use bench_results::index_worth::IndexLine;

use crate::content::{ColumnKind, Section, Table};

/// A row for each index, the one that earns most first.
pub fn indexes(document: &ExperimentDocument) -> Section {
    let us = |value: Option<f64>| finite(value).map_or(MISSING.to_owned(), |value| fixed(Some(value), 1));
    let runs = |line: &IndexLine| {
        let runs = [line.reads_run_id, line.writes_run_id].into_iter().flatten();
        runs.map(|run| run.to_string()).collect::<Vec<_>>().join(", ")
    };
    let table = Table::of(&document.indexes)
        .text("index", |line| &line.index)
        .number("size", |line| bytes(line.bytes.map(|bytes| bytes as f64)))
        .number("saves µs", |line| us(line.saved_us))
        .number("low", |line| us(line.saved_low))
        .number("high", |line| us(line.saved_high))
        .number("costs µs", |line| us(line.cost_us))
        .number("low", |line| us(line.cost_low))
        .number("high", |line| us(line.cost_high))
        .text("verdict", |line| &line.verdict)
        .column("runs", ColumnKind::Runs, runs)
        .text("remark", |line| line.error.as_deref().unwrap_or_default())
        .table();
    let note = format!(
        "{}. Microseconds of a transaction: what it would take longer if the planner did not see the index, and what it takes \
         longer because the index is maintained. The intervals hold together with 95 %.",
        sentence(&document.indexes)
    );
    Section::of_table("indexes", "What indexes are worth", table).with_note(note)
}
