//! Tests are read in terminals and side by side: no line of their SQL and shell is longer than 120 columns.

use std::fs;

use crate::sources;

/// Columns of a line, counted in characters.
const COLUMNS: usize = 120;

/// Where they are. `expected/` is output, and as wide as it is.
const FOLDERS: [&str; 2] = ["sql", "test"];

/// What their names end with. Scripts without an ending count as shell.
const ENDINGS: [&str; 4] = ["sql", "sh", "bash", ""];

#[test]
fn lines_of_tests_fit() {
    let root = sources::root();
    let mut long = Vec::new();
    for file in FOLDERS.iter().flat_map(|folder| sources::files(&root.join(folder))) {
        let ending = file.extension().map_or("", |ending| ending.to_str().expect("a name"));
        if !ENDINGS.contains(&ending) {
            continue;
        }
        for (number, line) in fs::read_to_string(&file).expect("text").lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                let name = file.strip_prefix(&root).expect("a file below").display();
                long.push(format!("{name}:{}: {columns} columns", number + 1));
            }
        }
    }
    assert!(long.is_empty(), "lines longer than {COLUMNS} columns:\n{}", long.join("\n"));
}
