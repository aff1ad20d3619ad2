//! A section in plain text. In tables numbers are to the right and texts to the left, cut where the line is too short for
//! them.

use super::lines::{WIDTH, hanging, write_title};
use crate::content::{Body, ColumnKind, Section, StatementPlans, Table};
use crate::sanitize::{clean, cut, defused, one_line, width, wrapped};

/// Blanks between columns.
const GAP: usize = 2;
/// A text is not cut to less than this.
const NARROWEST: usize = 12;
/// Blanks before the first column.
const INDENT: usize = 2;

/// A section under its title, after an empty line.
pub fn write_section(lines: &mut Vec<String>, section: &Section) {
    write_title(lines, section.title);
    match &section.body {
        Body::Facts(facts) => {
            for (name, value) in facts {
                lines.extend(hanging(&format!("  {}: ", defused(&one_line(name))), value));
            }
        }
        Body::Table(table) => lines.extend(table_lines(table)),
        Body::Sentences { lines: sentences, .. } => {
            lines.extend(sentences.iter().flat_map(|line| hanging("  ", line)));
        }
        Body::Plans(plans) => plans.iter().for_each(|plans| write_plans(lines, plans)),
        Body::Wide { whole, .. } if fits(whole) => lines.extend(table_lines(whole)),
        Body::Wide { parts, .. } => {
            for (index, (name, part)) in parts.iter().enumerate() {
                if index > 0 {
                    lines.push(String::new());
                }
                lines.extend(hanging("  ", name));
                lines.extend(table_lines(part));
            }
        }
    }
    if let Some(note) = &section.note {
        lines.extend(
            wrapped(&defused(&one_line(note)), WIDTH - 2).into_iter().map(|line| format!("  {line}")),
        );
    }
}

/// How many lines of a plan are shown.
const PLAN_LINES: usize = 60;

/// A statement and the plans of each side.
fn write_plans(lines: &mut Vec<String>, plans: &StatementPlans) {
    lines.extend(hanging("  ", &plans.statement));
    for (side, plans) in &plans.sides {
        lines.push(format!("    {side}:"));
        let shown = |line: &str| cut(&defused(&clean(line)).replace('\t', " "), WIDTH - 6);
        let plans = plans.iter().flat_map(|plan| plan.lines().take(PLAN_LINES));
        lines.extend(plans.map(|line| format!("      {}", shown(line))));
    }
}

/// The lines of a table. One whose numbers alone are too wide has a line for each cell, as psql's expanded display.
fn table_lines(table: &Table) -> Vec<String> {
    let rows = cells(table);
    match fitted(table, &natural_widths(&rows)) {
        Some(widths) => rows.iter().map(|row| line(table, row, &widths)).collect(),
        None => {
            rows[1..].iter().enumerate().flat_map(|(index, row)| expanded(&rows[0], index, row)).collect()
        }
    }
}

/// Whether a table has room for all of its texts.
fn fits(table: &Table) -> bool {
    let widths = natural_widths(&cells(table));
    INDENT + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1) <= WIDTH
}

/// The names of the columns and the rows under them, each cell on a line.
fn cells(table: &Table) -> Vec<Vec<String>> {
    let shown = |text: &str| defused(&one_line(text));
    let names = table.columns.iter().map(|(name, _)| shown(name)).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| shown(cell)).collect());
    std::iter::once(names).chain(rows).collect()
}

/// How wide each column would like to be.
fn natural_widths(rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    (0..rows[0].len()).map(widest).collect()
}

/// The columns' widths, texts shortened as far as needed; `None` when that is not far enough.
fn fitted(table: &Table, natural: &[usize]) -> Option<Vec<usize>> {
    let room = WIDTH.checked_sub(INDENT + GAP * natural.len().saturating_sub(1))?;
    let mut widths = natural.to_vec();
    while widths.iter().sum::<usize>() > room {
        // The widest text gives way, down to the next widest one.
        let texts = || {
            (0..widths.len())
                .filter(|column| !matches!(table.columns[*column].1, ColumnKind::Number | ColumnKind::Run))
        };
        let widest = texts().max_by_key(|column| widths[*column])?;
        let next = texts().filter(|column| *column != widest).map(|column| widths[column]).max().unwrap_or(0);
        let excess = widths.iter().sum::<usize>() - room;
        let least = NARROWEST.max(width(&table.columns[widest].0));
        if widths[widest] <= least {
            return None;
        }
        let wanted = widths[widest].saturating_sub(excess).max(next.min(widths[widest] - 1));
        widths[widest] = wanted.max(least);
    }
    Some(widths)
}

/// A row on one line.
fn line(table: &Table, row: &[String], widths: &[usize]) -> String {
    let mut line = " ".repeat(INDENT);
    for (column, cell) in row.iter().enumerate() {
        if column > 0 {
            line.push_str(&" ".repeat(GAP));
        }
        let cell = cut(cell, widths[column]);
        let blanks = " ".repeat(widths[column] - width(&cell));
        match table.columns[column].1 {
            ColumnKind::Number | ColumnKind::Run => line.extend([blanks, cell]),
            ColumnKind::Text | ColumnKind::Code | ColumnKind::Runs => line.extend([cell, blanks]),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// A row with a line for each cell, after the name of its column.
fn expanded(names: &[String], index: usize, row: &[String]) -> Vec<String> {
    let mut lines = vec![format!("  {}.", index + 1)];
    for (name, cell) in names.iter().zip(row) {
        lines.extend(hanging(&format!("    {name}: "), &cut(cell, 3 * WIDTH)));
    }
    lines
}
