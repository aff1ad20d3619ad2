//! Rows under named columns.

use bench_base::number::MISSING;
use bench_results::Document;

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
