//! What a report says, apart from how it looks: titled sections of facts and tables, in the order of interest.

mod database;
mod duel;
mod headline;
mod latency_limit;
mod machine;
mod nodes;
mod open_loop;
mod orders;
mod transactions;

use bench_base::number;
use bench_base::number::MISSING;
use bench_results::{Document, Finding};
use serde_json::{Map, Value};

pub use duel::duel_sentence;
pub use headline::{clients_noun, closing_lines, outcome, run_outcome, subtitle, unreplayed};
pub use machine::{environment, settings};
pub use open_loop::OpenLoop;
pub use transactions::wait_name;

use latency_limit::LatencyLimit;

/// A part of a report under a title of its own.
#[derive(Clone, Debug)]
pub struct Section {
    /// One word, for links.
    pub id: &'static str,
    pub title: &'static str,
    /// A sentence on how to read it.
    pub note: Option<String>,
    pub body: Body,
}

/// What is in a section.
#[derive(Clone, Debug)]
pub enum Body {
    /// Names with their values.
    Facts(Vec<(String, String)>),
    Table(Table),
    /// A table that may be too wide for a line of text, and the same in parts, each under its name.
    Wide {
        whole: Table,
        parts: Vec<(String, Table)>,
    },
}

/// What a column holds, for its alignment and its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Number,
    Text,
    /// Part of a script.
    Code,
    /// The id of a run, which has its row here.
    Run,
    /// Ids of runs that have their rows in another table of the report, separated by commas.
    Runs,
}

/// Rows under named columns. Cells are as their users wrote them: each format escapes them in its own way.
#[derive(Clone, Debug)]
pub struct Table {
    pub columns: Vec<(String, ColumnKind)>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, ColumnKind)]) -> Table {
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        Table { columns, rows: Vec::new() }
    }

    /// Leaves out those of the named columns that say nothing in any row.
    pub fn without_idle(mut self, names: &[&str]) -> Table {
        for column in (0..self.columns.len()).rev() {
            let says_nothing = |row: &Vec<String>| row[column] == MISSING || row[column] == "0";
            if names.contains(&self.columns[column].0.as_str()) && self.rows.iter().all(says_nothing) {
                self.remove(column);
            }
        }
        self
    }

    /// Leaves out a column.
    pub fn without(mut self, name: &str) -> Table {
        if let Some(column) = self.columns.iter().position(|(column, _)| column == name) {
            self.remove(column);
        }
        self
    }

    /// Puts the rows' nodes after the first column, where there are several.
    pub fn with_nodes(mut self, document: &Document, nodes: &[i32]) -> Table {
        if nodes.iter().any(|node| *node != 0) {
            self.columns.insert(1, ("node".to_owned(), ColumnKind::Text));
            for (row, node) in self.rows.iter_mut().zip(nodes) {
                row.insert(1, document.node_name(*node).unwrap_or_else(|| MISSING.to_owned()));
            }
        }
        self
    }

    fn remove(&mut self, column: usize) {
        self.columns.remove(column);
        self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
    }
}

/// What is looked for first, where there is such: whether the run kept its limit, or which arm of a duel is faster. The verdict,
/// with the sentence.
pub fn conclusion(document: &Document) -> Option<(String, String)> {
    if let Some(duel) = &document.duel {
        let verdict = duel.metric("latency_avg_ms").map(|line| line.verdict.clone()).unwrap_or_default();
        return Some((verdict, duel_sentence(duel)?));
    }
    let limit = LatencyLimit::of(document)?;
    let verdict = if limit.is_kept { "kept" } else { "missed" };
    Some((verdict.to_owned(), limit.sentence()))
}

/// All sections that have something to say.
pub fn sections(document: &Document) -> Vec<Section> {
    let all = [
        duel::metrics(document),
        duel::statements(document),
        duel::waits(document),
        transactions::latency(document),
        transactions::fidelity(document),
        orders::orders(document),
        transactions::connections(document),
        transactions::processor_time(document),
        open_loop::open_loop(document),
        nodes::nodes(document),
        transactions::waits(document),
        machine::server(document),
        transactions::statements(document),
        transactions::plans(document),
        transactions::scripts(document),
        database::sizes(document),
        database::changes(document),
        database::upkeep(document),
        database::events(document),
        transactions::errors(document),
        transactions::audit(document),
        headline::run(document),
        environment(&document.environment).with_note(asked(document)),
        settings(&document.environment).with_note(asked(document)),
    ];
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

/// Whose environment it is, where there are others.
fn asked(document: &Document) -> Option<String> {
    (document.client_nodes() > 1).then(|| "On the node that started the run.".to_owned())
}

impl Section {
    /// A section of facts; those that are not known are left out.
    pub fn of_facts(id: &'static str, title: &'static str, facts: Vec<(&str, Option<String>)>) -> Section {
        let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let known = known.filter(|(_, value)| !value.is_empty()).collect();
        Section { id, title, note: None, body: Body::Facts(known) }
    }

    /// A section of a table.
    pub fn of_table(id: &'static str, title: &'static str, table: Table) -> Section {
        Section { id, title, note: None, body: Body::Table(table) }
    }

    /// This section with a note.
    pub fn with_note(self, note: Option<String>) -> Section {
        Section { note, ..self }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match &self.body {
            Body::Facts(facts) => facts.is_empty(),
            Body::Table(table) | Body::Wide { whole: table, .. } => table.rows.is_empty(),
        }
    }
}

/// A JSON value as its user wrote it: a string without quotes, anything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Figures of a finding, of which four digits say enough where they are not whole. Lists are for programs: the
/// sentence tells what is in them.
pub fn figures(finding: &Finding) -> impl Iterator<Item = (&String, String)> {
    let shown = |value: &Value| match value.as_f64() {
        Some(number) if !value.is_i64() && !value.is_u64() => number::significant(number),
        _ => plain(value),
    };
    let single = finding
        .figures
        .iter()
        .filter(|(_, value)| !value.is_array() && !value.is_object() && !value.is_null());
    single.map(move |(name, value)| (name, shown(value)))
}

/// Names and values in one line; `None` of none.
pub fn pairs(map: &Map<String, Value>) -> Option<String> {
    let pairs: Vec<_> = map.iter().map(|(name, value)| format!("{name} = {}", plain(value))).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

/// A text, unless there is none.
pub fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
