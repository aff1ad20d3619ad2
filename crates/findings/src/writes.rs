//! Statements that were to change rows and found none: a throughput of nothing.

use bench_base::sentence::{first_few, grouped, percent};
use bench_results::{CommandSummary, Document, Finding, Severity, Topic};
use serde_json::json;

use super::finding::finding;
use super::plans::place;

/// Shares of a statement's executions that affect no row, from which on they are worth a word, and from which on the
/// figures are hardly those of writes.
const NOTICE: f64 = 0.1;
const WARNING: f64 = 0.5;
/// Fewer executions do not tell a share.
const ENOUGH: u64 = 20;

/// The finding on writes without effect.
pub fn findings(document: &Document) -> Vec<Finding> {
    let mut told: Vec<WrittenStatement> =
        document.merged_statements().iter().filter_map(WrittenStatement::of).collect();
    told.sort_by_key(|told| told.severity);
    let Some(severity) = told.first().map(|told| told.severity) else { return Vec::new() };
    let lines: Vec<String> = told.iter().map(WrittenStatement::describe).collect();
    let variables = &document.run.variables;
    let given = ["scale", "rows"].into_iter().find(|name| variables.contains_key(*name));
    let advice = match given {
        Some(name) => format!(
            "The run sets the variable {name}: check that it does not exceed the size of the loaded tables. A \
             statement that finds no row costs far less than a write."
        ),
        None if told.iter().all(|told| told.is_conflict) => {
            "INSERT ... ON CONFLICT inserts no row whose key exists: check that this is the workload that you mean \
             to measure.".to_owned()
        }
        None => "Check that the script draws keys that exist, that the role can see the rows, and that no trigger \
                 drops them. A statement that affects no row costs far less than a write."
            .to_owned(),
    };
    vec![finding(
        severity,
        Topic::Writes,
        format!("Writes affected no rows: {}.", first_few(&lines)),
        json!({
            "statements": told
                .iter()
                .map(|told| json!({
                    "script": told.statement.script,
                    "command": told.statement.command,
                    "writes": told.writes,
                    "empty_writes": told.empty,
                }))
                .collect::<Vec<_>>(),
        }),
        advice,
    )]
}

/// A statement that is worth a word.
struct WrittenStatement {
    statement: CommandSummary,
    writes: u64,
    empty: u64,
    severity: Severity,
    /// INSERT … ON CONFLICT, which is meant to leave out rows.
    is_conflict: bool,
}

impl WrittenStatement {
    fn of(statement: &CommandSummary) -> Option<Self> {
        let writes = statement.writes.filter(|&writes| writes > 0)?;
        let empty = statement.empty_writes?.min(writes);
        let share = empty as f64 / writes as f64;
        let is_conflict = statement.statement.to_ascii_lowercase().contains("on conflict");
        let severity = match share {
            _ if empty < writes && writes < ENOUGH => return None,
            share if share >= WARNING && !is_conflict => Severity::Warning,
            share if share >= if is_conflict { WARNING } else { NOTICE } => Severity::Notice,
            _ => return None,
        };
        Some(Self { statement: statement.clone(), writes, empty, severity, is_conflict })
    }

    fn describe(&self) -> String {
        let Self { statement, writes, empty, .. } = self;
        let share = match writes - empty {
            0 => "all".to_owned(),
            // Not all, however near.
            _ => format!("{} of", percent((*empty as f64 / *writes as f64).min(0.99))),
        };
        format!("{} in {share} {} executions", place(statement), grouped(*writes as f64))
    }
}
