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
