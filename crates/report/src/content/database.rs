//! What the run did to the database: sizes and rows of relations, vacuums and checkpoints.

use bench_base::number;
use bench_base::number::{MISSING, signed};
use bench_results::{Document, Event, Relation};

use super::{Section, Table, or_missing};

/// How many events are listed: a soak of a day has thousands of vacuums, and all of them are in the plots.
const EVENTS: usize = 40;

/// How many relations are listed: a table may have thousands of partitions.
const RELATIONS: usize = 60;

fn listed(document: &Document) -> &[Relation] {
    &document.relations[..document.relations.len().min(RELATIONS)]
}

/// The nodes of the relations that are listed.
fn with_nodes(document: &Document, table: Table) -> Table {
    let nodes: Vec<i32> = listed(document).iter().map(|relation| relation.node).collect();
    table.with_nodes(document, &nodes)
}

/// What is said under a table of relations.
fn note(document: &Document, text: &str) -> String {
    match document.relations.len().saturating_sub(RELATIONS) {
        0 => text.to_owned(),
        more => format!(
            "{text} The first {RELATIONS}; {} more are in bench.relations and in the JSON.",
            number::count(more as u64)
        ),
    }
}

/// Sizes and rows before and after.
pub fn sizes(document: &Document) -> Section {
    let size = |bytes: Option<i64>| number::bytes(bytes.map(|bytes| bytes as f64));
    let table = Table::of(listed(document))
        .text("relation", |relation| &relation.relation)
        .text("kind", |relation| &relation.kind)
        .number("size before", |relation| size(relation.bytes_before))
        .number("size after", |relation| size(relation.bytes_after))
        .number("growth", growth)
        .number("rows before", |relation| signed(relation.live_before))
        .number("rows after", |relation| signed(relation.live))
        .table();
    let table = with_nodes(document, table.without_idle(&["rows before", "rows after"]));
    Section::of_table("relations", "Relations", table)
        .with_note(note(document, "Live rows, as the server estimates them."))
}

/// By how much a relation grew.
fn growth(relation: &Relation) -> String {
    match (relation.bytes_before, relation.bytes_after) {
        (Some(before), Some(after)) if before > 0 => {
            let growth = number::fixed(Some((after as f64 / before as f64 - 1.0) * 100.0), 1);
            let sign = if growth.starts_with('-') || growth == "0.0" { "" } else { "+" };
            format!("{sign}{growth} %")
        }
        _ => MISSING.to_owned(),
    }
}

/// Rows changed and read.
pub fn changes(document: &Document) -> Section {
    let hot = |relation: &Relation| match (relation.hot_updated, relation.updated) {
        (Some(hot), Some(updated)) if updated > 0 => number::percent(Some(hot as f64 / updated as f64)),
        _ => MISSING.to_owned(),
    };
    let table = Table::of(listed(document))
        .text("relation", |relation| &relation.relation)
        .number("inserted", |relation| signed(relation.inserted))
        .number("updated", |relation| signed(relation.updated))
        .number("HOT", hot)
        .number("deleted", |relation| signed(relation.deleted))
        .number("seq scans", |relation| signed(relation.seq_scan))
        .number("rows by seq", |relation| signed(relation.seq_tup_read))
        .number("idx scans", |relation| signed(relation.idx_scan))
        .table();
    Section::of_table("changes", "Changes", with_nodes(document, of_figures(table)))
        .with_note(note(document, "Rows and scans of the run, all phases; HOT is of the updates."))
}

/// Dead rows and what was done about them.
pub fn upkeep(document: &Document) -> Section {
    let table = Table::of(listed(document))
        .text("relation", |relation| &relation.relation)
        .number("dead before", |relation| signed(relation.dead_before))
        .number("dead after", |relation| signed(relation.dead))
        .number("to analyze", |relation| signed(relation.mod_since_analyze))
        .number("vacuums", |relation| signed(relation.vacuums))
        .number("autovacuums", |relation| signed(relation.autovacuums))
        .number("analyzes", |relation| signed(relation.analyzes))
        .number("autoanalyzes", |relation| signed(relation.autoanalyzes))
        .table();
    let text = "Dead rows, and rows changed since the last analyze, as the server estimates them.";
    Section::of_table("upkeep", "Vacuum and analyze", with_nodes(document, of_figures(table)))
        .with_note(note(document, text))
}

/// A table of names and figures without the columns that say nothing, and without any row when none does.
fn of_figures(table: Table) -> Table {
    let figures: Vec<String> = table.columns.iter().skip(1).map(|(name, _)| name.clone()).collect();
    let table = table.without_idle(&figures.iter().map(String::as_str).collect::<Vec<_>>());
    let rows = if table.columns.len() > 1 { table.rows } else { Vec::new() };
    Table { rows, ..table }
}

/// Checkpoints, vacuums and other events.
pub fn events(document: &Document) -> Section {
    let subject = |event: &Event| event.relation.clone().or_else(|| event.detail.clone());
    let table = Table::of(document.events.iter().take(EVENTS))
        .text("event", |event| &event.kind)
        .text("of", |event| or_missing(&subject(event)).to_owned())
        .number("from s", |event| number::fixed(Some(event.started), 1))
        .number("to s", |event| number::fixed(event.ended, 1))
        .number("took", took)
        .table();
    let others = document.events.len().saturating_sub(EVENTS);
    let others = (others > 0).then(|| {
        format!("The first {EVENTS}; {} more are in the plots and in the JSON.", number::count(others as u64))
    });
    let nodes: Vec<i32> = document.events.iter().take(EVENTS).map(|event| event.node).collect();
    let table = table.with_nodes(document, &nodes);
    Section::of_table("events", "Checkpoints, vacuums and other events", table).with_note_if(others)
}

/// How long an event took, with a word for one that outlasted the run.
fn took(event: &Event) -> String {
    match number::finite(event.ended) {
        Some(ended) => number::duration(((ended - event.started) * 10.0).round() / 10.0),
        None => "not ended".to_owned(),
    }
}
