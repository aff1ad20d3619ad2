//! What the run did to the database: sizes and rows of relations, vacuums and checkpoints.

use bench_base::number;
use bench_base::number::{MISSING, signed};
use bench_results::{Document, Event, Relation};

use super::{ColumnKind, Section, Table};

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
    let mut table = Table::new(&[
        ("relation", ColumnKind::Text),
        ("kind", ColumnKind::Text),
        ("size before", ColumnKind::Number),
        ("size after", ColumnKind::Number),
        ("growth", ColumnKind::Number),
        ("rows before", ColumnKind::Number),
        ("rows after", ColumnKind::Number),
    ]);
    let size = |bytes: Option<i64>| number::bytes(bytes.map(|bytes| bytes as f64));
    for relation in listed(document) {
        table.rows.push(vec![
            relation.relation.clone(),
            relation.kind.clone(),
            size(relation.bytes_before),
            size(relation.bytes_after),
            growth(relation),
            signed(relation.live_before),
            signed(relation.live),
        ]);
    }
    let table = with_nodes(document, table.without_idle(&["rows before", "rows after"]));
    Section::of_table("relations", "Relations", table)
        .with_note(Some(note(document, "Live rows, as the server estimates them.")))
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
    let mut table = Table::new(&[
        ("relation", ColumnKind::Text),
        ("inserted", ColumnKind::Number),
        ("updated", ColumnKind::Number),
        ("HOT", ColumnKind::Number),
        ("deleted", ColumnKind::Number),
        ("seq scans", ColumnKind::Number),
        ("rows by seq", ColumnKind::Number),
        ("idx scans", ColumnKind::Number),
    ]);
    for relation in listed(document) {
        let hot = match (relation.hot_updated, relation.updated) {
            (Some(hot), Some(updated)) if updated > 0 => number::percent(Some(hot as f64 / updated as f64)),
            _ => MISSING.to_owned(),
        };
        table.rows.push(vec![
            relation.relation.clone(),
            signed(relation.inserted),
            signed(relation.updated),
            hot,
            signed(relation.deleted),
            signed(relation.seq_scan),
            signed(relation.seq_tup_read),
            signed(relation.idx_scan),
        ]);
    }
    Section::of_table("changes", "Changes", with_nodes(document, of_figures(table)))
        .with_note(Some(note(document, "Rows and scans of the run, all phases; HOT is of the updates.")))
}

/// Dead rows and what was done about them.
pub fn upkeep(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("relation", ColumnKind::Text),
        ("dead before", ColumnKind::Number),
        ("dead after", ColumnKind::Number),
        ("to analyze", ColumnKind::Number),
        ("vacuums", ColumnKind::Number),
        ("autovacuums", ColumnKind::Number),
        ("analyzes", ColumnKind::Number),
        ("autoanalyzes", ColumnKind::Number),
    ]);
    for relation in listed(document) {
        table.rows.push(vec![
            relation.relation.clone(),
            signed(relation.dead_before),
            signed(relation.dead),
            signed(relation.mod_since_analyze),
            signed(relation.vacuums),
            signed(relation.autovacuums),
            signed(relation.analyzes),
            signed(relation.autoanalyzes),
        ]);
    }
    let text = "Dead rows, and rows changed since the last analyze, as the server estimates them.";
    Section::of_table("upkeep", "Vacuum and analyze", with_nodes(document, of_figures(table)))
        .with_note(Some(note(document, text)))
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
    let mut table = Table::new(&[
        ("event", ColumnKind::Text),
        ("of", ColumnKind::Text),
        ("from s", ColumnKind::Number),
        ("to s", ColumnKind::Number),
        ("took", ColumnKind::Number),
    ]);
    for event in document.events.iter().take(EVENTS) {
        table.rows.push(vec![
            event.kind.clone(),
            event.relation.clone().or_else(|| event.detail.clone()).unwrap_or_else(|| MISSING.to_owned()),
            number::fixed(Some(event.started), 1),
            number::fixed(event.ended, 1),
            took(event),
        ]);
    }
    let others = document.events.len().saturating_sub(EVENTS);
    let others = (others > 0).then(|| {
        format!("The first {EVENTS}; {} more are in the plots and in the JSON.", number::count(others as u64))
    });
    let nodes: Vec<i32> = document.events.iter().take(EVENTS).map(|event| event.node).collect();
    let table = table.with_nodes(document, &nodes);
    Section::of_table("events", "Checkpoints, vacuums and other events", table).with_note(others)
}

/// How long an event took, with a word for one that outlasted the run.
fn took(event: &Event) -> String {
    match number::finite(event.ended) {
        Some(ended) => number::duration(((ended - event.started) * 10.0).round() / 10.0),
        None => "not ended".to_owned(),
    }
}
