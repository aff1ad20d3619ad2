//! The report for a terminal: what pgbench prints at its end, and more, in at most 100 columns. In tables numbers are to
//! the right and texts to the left, cut where the line is too short for them.

use bench_base::number::{duration, finite, tps};
use bench_results::{Finding, Samples};

use crate::downsample::{envelopes, per_column};
use crate::report::Report;
use crate::sanitize::{clean, cut, defused, one_line, width, wrapped};
use crate::section::{Body, ColumnKind, Section, StatementPlans, Table};

/// Writes the report.
pub fn render(report: &Report) -> String {
    let opening = || report.opening.iter().flat_map(|line| hanging("", line));
    let compared = report.compared.iter();
    let mut lines: Vec<String> = compared
        .flat_map(|(side, description)| hanging(&format!("{}: ", defused(&one_line(side))), description))
        .collect();
    // Where nothing is compared, the text begins as pgbench ends.
    let is_comparison = !lines.is_empty();
    if !is_comparison {
        lines.extend(opening());
    }
    if let Some(conclusion) = &report.conclusion {
        lines.extend(hanging("", &conclusion.sentence));
        lines.extend(conclusion.remarks.iter().flat_map(|remark| hanging("", remark)));
    }
    if is_comparison {
        lines.push(String::new());
        lines.extend(opening());
    }
    lines.extend(report.sparkline.iter().cloned());
    if let Some(findings) = report.findings {
        write_findings(&mut lines, findings);
    }
    report.sections.iter().for_each(|section| write_section(&mut lines, section));
    lines.join("\n") + "\n"
}

/// Findings, each with its advice: the sentence has the figures in it.
fn write_findings(lines: &mut Vec<String>, findings: &[Finding]) {
    write_title(lines, "Findings");
    if findings.is_empty() {
        lines.push("  none".to_owned());
    }
    for finding in findings {
        let severity = finding.severity.as_str();
        lines.extend(hanging(&format!("  {severity}: "), &finding.finding));
        if !finding.advice.is_empty() {
            lines.extend(hanging("    advice: ", &finding.advice));
        }
    }
}

/// Blanks between columns.
const GAP: usize = 2;
/// A text is not cut to less than this.
const NARROWEST: usize = 12;
/// A name in the first column that is not longer is not cut.
const LONGEST_NAME: usize = 16;
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
    let least = |column: usize| {
        // What a row is of comes first: without its whole name the row says nothing.
        let name_width = if column == 0 { natural[0].min(LONGEST_NAME) } else { 0 };
        NARROWEST.max(width(&table.columns[column].0)).max(name_width)
    };
    while widths.iter().sum::<usize>() > room {
        // The widest text gives way, down to the next widest one.
        let texts = || {
            (0..widths.len())
                .filter(|column| !matches!(table.columns[*column].1, ColumnKind::Number | ColumnKind::Run))
                .filter(|column| widths[*column] > least(*column))
        };
        let widest = texts().max_by_key(|column| widths[*column])?;
        let next = texts().filter(|column| *column != widest).map(|column| widths[column]).max().unwrap_or(0);
        let excess = widths.iter().sum::<usize>() - room;
        let wanted = widths[widest].saturating_sub(excess).max(next.min(widths[widest] - 1));
        widths[widest] = wanted.max(least(widest));
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

/// How wide a line is at most.
pub const WIDTH: usize = 100;

/// A title with a rule under it.
fn write_title(lines: &mut Vec<String>, title: &str) {
    lines.push(String::new());
    lines.push(title.to_owned());
    lines.push("─".repeat(width(title)));
}

/// How many lines of one value are shown: a setting or a message may be as long as a file.
const LINES: usize = 12;

/// A value after its name, in as many lines as it needs, the further ones indented.
fn hanging(name: &str, value: &str) -> Vec<String> {
    let indent = name.len() - name.trim_start().len() + 2;
    let value = defused(&one_line(&clean(value)));
    // The first line has the name in it, which is wrapped with the value: its own blanks are put back.
    let blanks = indent - 2;
    let mut wrapped = wrapped(&format!("{}{value}", &name[blanks..]), WIDTH - indent);
    if wrapped.len() > LINES {
        wrapped.truncate(LINES - 1);
        wrapped.push("…".to_owned());
    }
    let further = |index: usize| " ".repeat(if index == 0 { blanks } else { indent });
    wrapped.into_iter().enumerate().map(|(index, line)| further(index) + &line).collect()
}

/// How many blocks there are at most.
const COLUMNS: usize = 60;
/// From nothing to all.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The line, with its scale under it; `None` without any interval.
pub fn sparkline_of_tps(samples: &Samples) -> Option<Vec<String>> {
    let per_column = per_column(samples.tps.len(), COLUMNS);
    let thinned = envelopes(&samples.tps, per_column);
    let low = thinned.iter().flatten().map(|envelope| envelope.low).reduce(f64::min)?;
    let high = thinned.iter().flatten().map(|envelope| envelope.high).reduce(f64::max)?;
    let blocks = thinned.iter().map(|column| column.map_or(' ', |envelope| block(envelope.mean, high)));
    let line: String = blocks.collect();
    let interval = samples.secs.iter().filter_map(|secs| finite(*secs)).next();
    let interval = interval.map(|secs| duration((secs * per_column as f64 * 10.0).round() / 10.0));
    let each = interval.map(|interval| format!(", a block for each {interval}")).unwrap_or_default();
    let scale = format!(
        "   tps from 0 to {}, min {}, max {}{each}",
        tps(Some(high)),
        tps(Some(low)),
        tps(Some(high))
    );
    Some(vec![String::new(), format!("  {line}"), scale[1..].to_owned()])
}

/// The block for a value of a scale from 0: a dip to half the throughput is to look like one.
fn block(value: f64, high: f64) -> char {
    let share = if high > 0.0 { (value / high).clamp(0.0, 1.0) } else { 0.0 };
    BLOCKS[((share * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_looks_like_one() {
        let tps = vec![Some(100.0), Some(50.0), None, Some(0.0), Some(100.0)];
        let samples = Samples { elapsed: vec![None; 5], secs: vec![Some(1.0); 5], tps, ..Samples::default() };
        let lines = sparkline_of_tps(&samples).unwrap();
        assert_eq!(lines[1], "  █▅ ▁█");
        assert_eq!(lines[2], "  tps from 0 to 100.0, min 0.0, max 100.0, a block for each 1 s");
    }

    #[test]
    fn minutes_are_thinned_by_means() {
        let tps: Vec<_> = (0..6_000).map(|i| Some(if i % 100 == 0 { 0.0 } else { 100.0 })).collect();
        let samples = Samples { secs: vec![Some(1.0); 6_000], tps, ..Samples::default() };
        let lines = sparkline_of_tps(&samples).unwrap();
        assert_eq!(lines[1].trim(), "▇".repeat(60).replace('▇', "█"));
        assert!(lines[2].contains("min 0.0, max 100.0, a block for each 100 s"), "{}", lines[2]);
    }

    #[test]
    fn nothing_of_nothing() {
        assert_eq!(sparkline_of_tps(&Samples::default()), None);
        assert_eq!(block(0.0, 0.0), '▁');
    }

    #[test]
    fn a_long_remark_does_not_shorten_the_names_of_rows() {
        let rows = ["latency_p50_ms", "server_cpu_us"];
        let table = Table::of(&rows)
            .text("metric", |name| *name)
            .number("a", |_| "123,456.789")
            .number("b", |_| "123,456.789")
            .text("advice", |_| "measure for 1,234 s or more, ".repeat(20))
            .table();
        let lines = table_lines(&table);
        assert!(lines[1].starts_with("  latency_p50_ms  ") && lines[1].ends_with('…'), "{lines:?}");
        assert!(lines.iter().all(|line| width(line) <= WIDTH), "{lines:?}");
    }
}
