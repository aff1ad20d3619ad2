//! What indexes are worth.

use bench_base::number::{MISSING, bytes, finite, fixed};
use bench_questions::index_worth::sentence;
use bench_results::sweep::SweepDocument;

use crate::content::{Body, ColumnKind, Section, Table};

/// A row for each index, the one that earns most first.
pub fn indexes(document: &SweepDocument) -> Section {
    let mut table = Table::new(&[
        ("index", ColumnKind::Text),
        ("size", ColumnKind::Number),
        ("saves µs", ColumnKind::Number),
        ("low", ColumnKind::Number),
        ("high", ColumnKind::Number),
        ("costs µs", ColumnKind::Number),
        ("low", ColumnKind::Number),
        ("high", ColumnKind::Number),
        ("verdict", ColumnKind::Text),
        ("runs", ColumnKind::Runs),
        ("remark", ColumnKind::Text),
    ]);
    let us = |value: Option<f64>| finite(value).map_or(MISSING.to_owned(), |value| fixed(Some(value), 1));
    for line in &document.indexes {
        let runs = [line.reads_run_id, line.writes_run_id].into_iter().flatten();
        table.rows.push(vec![
            line.index.clone(),
            bytes(line.bytes.map(|bytes| bytes as f64)),
            us(line.saved_us),
            us(line.saved_low),
            us(line.saved_high),
            us(line.cost_us),
            us(line.cost_low),
            us(line.cost_high),
            line.verdict.clone(),
            runs.map(|run| run.to_string()).collect::<Vec<_>>().join(", "),
            line.error.clone().unwrap_or_default(),
        ]);
    }
    let note = format!(
        "{}. Microseconds of a transaction: what it would take longer if the planner did not see the index, and what it takes \
         longer because the index is maintained. The intervals hold together with 95 %.",
        sentence(&document.indexes)
    );
    Section { id: "indexes", title: "What indexes are worth", note: Some(note), body: Body::Table(table) }
}
