//! What reports are put together from: titled sections of facts and tables, and the texts of single values.

use bench_base::number;
use bench_base::number::MISSING;
use bench_results::{Document, Finding, plain};
use serde_json::{Map, Value};

/// A part of a report under a title of its own.
#[derive(Clone, Debug)]
pub struct Section {
    /// One word, for links.
    pub id: &'static str,
    pub title: &'static str,
    /// A sentence on how to read it.
    pub note: Option<String>,
    pub body: Body,
    /// Under the rows of a table, where there is one.
    pub plans: Vec<Option<Plan>>,
}

/// A plan of a statement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it is of, where it stands alone.
    pub title: String,
    pub plan: String,
}

/// The plans of a statement that sides executed in their own ways.
#[derive(Clone, Debug)]
pub struct StatementPlans {
    pub statement: String,
    pub sides: [(&'static str, Vec<String>); 2],
}

/// What is in a section.
#[derive(Clone, Debug)]
pub enum Body {
    /// Names with their values.
    Facts(Vec<(String, String)>),
    Table(Table),
    /// A table of sentences, and what the text has instead: its lines are too narrow for them.
    Sentences {
        table: Table,
        lines: Vec<String>,
    },
    Plans(Vec<StatementPlans>),
    /// A table that may be too wide for a line of text, and the same in parts, each under its name.
    Wide {
        whole: Table,
        parts: Vec<(String, Table)>,
    },
}

impl Section {
    /// A section of facts, of which it has none yet.
    pub fn of_facts(id: &'static str, title: &'static str) -> Section {
        Section::of(id, title, Body::Facts(Vec::new()))
    }

    /// This section of facts with another one, if it is known.
    pub fn fact(mut self, name: &str, value: Option<String>) -> Section {
        if let (Body::Facts(facts), Some(value)) = (&mut self.body, value)
            && !value.is_empty()
        {
            facts.push((name.to_owned(), value));
        }
        self
    }

    /// A section of a table.
    pub fn of_table(id: &'static str, title: &'static str, table: Table) -> Section {
        Section::of(id, title, Body::Table(table))
    }

    /// A section without a note.
    pub fn of(id: &'static str, title: &'static str, body: Body) -> Section {
        Section { id, title, note: None, body, plans: Vec::new() }
    }

    /// This section with a note.
    pub fn with_note(self, note: impl ToString) -> Section {
        Section { note: Some(note.to_string()), ..self }
    }

    /// This section with a note where there is one.
    pub fn with_note_if(self, note: Option<String>) -> Section {
        Section { note, ..self }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match &self.body {
            Body::Facts(facts) => facts.is_empty(),
            Body::Plans(plans) => plans.is_empty(),
            Body::Table(table) | Body::Sentences { table, .. } | Body::Wide { whole: table, .. } => {
                table.rows.is_empty()
            }
        }
    }
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

/// A table under construction: a row for each subject, to which columns are added.
pub struct TableOf<'a, T> {
    subjects: Vec<&'a T>,
    table: Table,
}

impl<'a, T> TableOf<'a, T> {
    /// Adds a column with a cell of each subject.
    pub fn column<C: ToString>(mut self, name: &str, kind: ColumnKind, cell: impl Fn(&'a T) -> C) -> Self {
        self.table.columns.push((name.to_owned(), kind));
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            row.push(cell(subject).to_string());
        }
        self
    }

    pub fn number<C: ToString>(self, name: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(name, ColumnKind::Number, cell)
    }

    pub fn text<C: ToString>(self, name: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(name, ColumnKind::Text, cell)
    }

    pub fn code<C: ToString>(self, name: &str, cell: impl Fn(&'a T) -> C) -> Self {
        self.column(name, ColumnKind::Code, cell)
    }

    pub fn table(self) -> Table {
        self.table
    }
}

impl Table {
    /// A table with a row for each subject, and no column yet.
    pub fn of<'a, T>(subjects: impl IntoIterator<Item = &'a T>) -> TableOf<'a, T> {
        let subjects: Vec<&T> = subjects.into_iter().collect();
        let rows = vec![Vec::new(); subjects.len()];
        TableOf { subjects, table: Table { columns: Vec::new(), rows } }
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

/// Figures of a finding, of which four digits say enough where they are not whole. Lists are for programs: the
/// sentence tells what is in them. What does not hold is no figure.
pub fn figures(finding: &Finding) -> impl Iterator<Item = (&String, String)> {
    let shown = |value: &Value| match value.as_f64() {
        Some(number) if !value.is_i64() && !value.is_u64() => number::significant(number),
        _ => plain(value),
    };
    let single = finding
        .figures
        .iter()
        .filter(|(_, value)| !value.is_array() && !value.is_object() && !value.is_null() && **value != false);
    single.map(move |(name, value)| (name, shown(value)))
}

/// Names and values in one line; `None` of none.
pub fn pairs(map: &Map<String, Value>) -> Option<String> {
    let pairs: Vec<_> = map.iter().map(|(name, value)| format!("{name} = {}", plain(value))).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

/// Milliseconds in the unit that fits.
pub fn latency(ms: f64) -> String {
    let (value, unit) = number::short_ms(Some(ms));
    format!("{value} {unit}")
}

/// A text, unless there is none.
pub fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A text, or what stands for one that is not there.
pub fn or_missing(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or(MISSING)
}

/// A sentence on the rows that are not shown, where only the first of all are.
pub fn more_in_json(shown: usize, all: usize) -> Option<String> {
    let more = all.checked_sub(shown).filter(|more| *more > 0)?;
    Some(format!("The first {shown}; {} more are in the JSON.", number::count(more as u64)))
}
