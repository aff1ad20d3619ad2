//! A titled part of a report.

use super::table::Table;

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
