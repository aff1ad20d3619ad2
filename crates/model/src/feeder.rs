//! Feeders: queries whose rows give a script's variables their values, a row for each transaction.

mod pack;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_script::is_variable_name;
use serde::{Deserialize, Serialize};

use bench_base::words;
use bench_base::words::Word;

pub use pack::{Collector, FeederRows, FeederValue, MAX_BYTES, RowSource, Stride, ValueKind, unpack};

/// The column of a weighted feeder that says how often its row is to come.
const WEIGHT: &str = "weight";

/// The most columns: those that a SELECT of PostgreSQL may have (MaxTupleAttributeNumber). Another server may say that it has
/// more.
pub const MAX_COLUMNS: usize = 1664;

/// Characters of a column's name that messages show: another server may give it any.
const SHOWN: usize = 100;

words! {
    /// Which row of a feeder a transaction takes.
    pub enum Pick {
        /// Any, each as likely as the others.
        Random = "random",
        /// The one after the row that was taken last by whichever client.
        Sequence = "sequence",
        /// Any, each as likely as its weight says.
        Weighted = "weighted",
    }
}

impl Pick {
    /// # Errors
    /// 22023 for another word.
    pub fn new(word: &str) -> Result<Self, UserError> {
        Self::from_word(word).ok_or_else(|| {
            UserError::invalid(format!("unrecognized pick: \"{word}\""))
                .hint("Available orders: \"random\", \"sequence\" and \"weighted\".")
        })
    }
}

/// A feeder, as it is defined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feeder {
    /// Stands before each column's name in the variable's; may be empty.
    pub prefix: String,
    /// One SELECT.
    pub query: String,
    pub pick: Pick,
    /// With [`Pick::Sequence`]: the run ends when each row has been taken.
    pub once: bool,
    /// As many rows are kept at most.
    pub max_rows: u32,
    /// Rows that a run has kept; `None`: it has not read any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u32>,
}

impl Feeder {
    /// A feeder whose query has not been looked at.
    ///
    /// # Errors
    /// 22023 for a prefix that no variable can begin with, an unknown pick, `once` with another pick than `sequence`,
    /// and for less than one row.
    pub fn new(
        prefix: String,
        query: String,
        pick: &str,
        once: bool,
        max_rows: i32,
    ) -> Result<Self, UserError> {
        let pick = Pick::new(pick)?;
        if !prefix.is_empty() && !is_variable_name(&prefix) {
            return Err(UserError::invalid(format!("invalid prefix: \"{prefix}\"")).hint(
                "A prefix is the beginning of variables' names: a letter or underscore, followed by letters, digits and underscores.",
            ));
        }
        if prefix.len() > 63 {
            return Err(UserError::invalid("prefix must not be longer than 63 bytes"));
        }
        if once && pick != Pick::Sequence {
            return Err(UserError::invalid(format!(
                "once cannot be combined with pick \"{}\"",
                pick.as_str()
            ))
            .hint("Use pick => 'sequence', which takes each row once before it takes any row again."));
        }
        let max_rows = u32::try_from(max_rows)
            .ok()
            .filter(|&rows| rows > 0)
            .ok_or_else(|| UserError::invalid(format!("max_rows must be at least 1, not {max_rows}")))?;
        Ok(Self { prefix, query, pick, once, max_rows, rows: None })
    }

    /// Its query, for the details of errors.
    pub fn named(&self) -> String {
        let start: String = self.query.chars().take(200).collect();
        let more = if start.len() < self.query.len() { "…" } else { "" };
        format!("Feeder with prefix \"{}\": {start}{more}", self.prefix)
    }

    /// The columns' variables, in their order; `None` for the weight.
    ///
    /// # Errors
    /// 22023 for a column whose name is none of a variable with the prefix before it, for two of the same name, for no column
    /// at all, and for a weighted feeder without weight; 54000 for more than [`MAX_COLUMNS`].
    pub fn variables(&self, columns: &[&str]) -> Result<Vec<Option<String>>, UserError> {
        if columns.len() > MAX_COLUMNS {
            let message = format!("a feeder's query must not have more than {MAX_COLUMNS} columns");
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                .detail(format!("It has {}.", columns.len()))
                .hint("Select only the columns that the script reads."));
        }
        let is_weight = |column: &str| self.pick == Pick::Weighted && column == WEIGHT;
        let mut seen = HashSet::new();
        let mut variables: Vec<Option<String>> = Vec::with_capacity(columns.len());
        for column in columns {
            let shown = column.chars().take(SHOWN).collect::<String>();
            if !seen.insert(*column) {
                return Err(UserError::invalid(format!(
                    "column \"{shown}\" of the feeder's query appears twice"
                ))
                .hint("Give each column a name of its own: SELECT … AS name."));
            }
            let variable = format!("{}{column}", self.prefix);
            if !is_weight(column) && !is_variable_name(&variable) {
                return Err(UserError::invalid(format!(
                    "column \"{shown}\" of the feeder's query cannot be a variable"
                ))
                .hint(
                    "Give it the name of a variable, of letters, digits and underscores: SELECT … AS name.",
                ));
            }
            variables.push((!is_weight(column)).then_some(variable));
        }
        if self.pick == Pick::Weighted && variables.iter().all(Option::is_some) {
            return Err(UserError::invalid(format!(
                "the query of a weighted feeder has no column \"{WEIGHT}\""
            ))
            .hint("For example: SELECT id, count(*) AS weight FROM … GROUP BY id."));
        }
        if variables.iter().all(Option::is_none) {
            return Err(UserError::invalid("the feeder's query has no column that could be a variable"));
        }
        Ok(variables)
    }
}
