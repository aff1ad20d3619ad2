//! The report in Markdown.

use super::documents;
use super::hostile::hostile;
use crate::{Format, render};

/// The cells of a table's line, as GitHub takes it apart: at bars without a backslash before them.
fn cells(line: &str) -> usize {
    let bars = line.char_indices().filter(|(at, c)| *c == '|' && !line[..*at].ends_with('\\'));
    bars.count() - 1
}

/// The lines that are not in a block of code.
fn prose(markdown: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut prose = Vec::new();
    for line in markdown.lines() {
        let quotes = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            None if quotes.len() >= 3 && quotes.len() == line.len() => fence = Some(quotes),
            None => prose.push(line),
            Some(open) if line == open => fence = None,
            Some(_) => {}
        }
    }
    assert_eq!(fence, None, "a block of code is not closed");
    prose
}

/// Whether there are tables and all rows of each have as many cells.
pub fn check_tables(name: &str, markdown: &str) {
    let mut tables = 0;
    for table in prose(markdown).chunk_by(|one, next| one.starts_with('|') == next.starts_with('|')) {
        if table[0].starts_with('|') {
            tables += 1;
            assert!(table.len() > 2 && table[1].contains("---"), "{name}: {}", table[0]);
            for row in table {
                assert_eq!(cells(row), cells(table[0]), "{name}: {row}");
                assert!(row.ends_with('|'), "{name}: {row}");
            }
        }
    }
    assert!(tables > 0, "{name}");
}

#[test]
fn all_rows_of_a_table_have_as_many_cells() {
    for (name, document) in documents() {
        check_tables(name, &render(&document, Format::Markdown));
    }
}

#[test]
fn input_stays_text() {
    check_input(&render(&hostile(), Format::Markdown));
}

/// Whether hostile input is but text.
pub fn check_input(markdown: &str) {
    let is_code = |line: &str| line.contains("` ");
    for line in prose(markdown).into_iter().filter(|line| !is_code(line)) {
        assert!(!line.contains("[x]("), "{line}");
    }
    // Not even in code: others render it, too.
    for tag in ["<script", "</script", "</style", "</td", "<!--"] {
        assert!(!markdown.contains(tag), "{tag}");
    }
    assert!(!markdown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
}
