//! Documents and comments name files that exist; and tests are read in terminals and side by side, so that no line of their
//! SQL and shell is longer than 120 columns.

use std::fs;
use std::path::Path;

use crate::sources;

/// What a path in the repository begins with.
const ROOTS: [&str; 10] = [
    "src/",
    "crates/",
    "test/",
    "docs/",
    "sql/",
    "expected/",
    "benches/",
    "scripts/",
    "writeups/",
    "debian/",
];

/// PostgreSQL's own sources, which comments name too.
const POSTGRES: [&str; 6] =
    ["src/backend", "src/bin", "src/common", "src/fe_utils", "src/include", "src/test"];

/// Made by a build and removed by it.
const MADE: [&str; 1] = ["debian/control"];

/// Files that name others: documents, sources, tests, and what runs them.
const ENDINGS: [&str; 9] = ["md", "rs", "sql", "sh", "py", "toml", "yaml", "in", ""];

/// The paths that a text names, each up to the first character that no path has, and that character.
fn named(text: &str) -> impl Iterator<Item = (&str, char)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let pieces = text.split_inclusive(move |c| !is_part(c)).map(move |piece| {
        let path = piece.trim_end_matches(|c| !is_part(c));
        (path, piece[path.len()..].chars().next().unwrap_or('\n'))
    });
    pieces.filter(|(path, _)| ROOTS.iter().any(|root| path.starts_with(root)))
}

/// Whether a file of that name is there, with or without its ending; of a pattern, the folder; of a placeholder, which
/// is written in capitals, any.
fn exists(root: &Path, path: &str, after: char) -> bool {
    let path = match path.rsplit_once('/') {
        Some((folder, _)) if "*{<$%[".contains(after) => folder,
        _ => path,
    };
    let path = path.trim_end_matches(['.', '/', '-']);
    let stem = path.rsplit('/').next().unwrap_or(path);
    let is_placeholder =
        stem.split(['.', '_']).any(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase()));
    is_placeholder
        || MADE.contains(&path)
        || POSTGRES.iter().any(|folder| path.starts_with(folder))
        || ["", ".sql", ".sh", ".rs"].iter().any(|ending| root.join(format!("{path}{ending}")).exists())
}

#[test]
fn files_that_are_named_exist() {
    let root = sources::root();
    let mut missing = Vec::new();
    for folder in ["src", "crates", "test", "docs", "sql", "benches", "scripts", "writeups", ".ci", "."] {
        let files = match folder {
            "." => {
                fs::read_dir(&root).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
            }
            _ => sources::files(&root.join(folder)),
        };
        for file in files.iter().filter(|file| file.is_file() && !file.to_string_lossy().contains("/seeds/"))
        {
            let ending = file.extension().map_or("", |ending| ending.to_str().expect("a name"));
            let Some(text) = ENDINGS.contains(&ending).then(|| fs::read_to_string(file).ok()).flatten()
            else {
                continue;
            };
            for (path, _) in named(&text).filter(|(path, after)| !exists(&root, path, *after)) {
                let name = file.strip_prefix(&root).expect("a file below").display();
                missing.push(format!("{name}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "named, and not there:\n{}", missing.join("\n"));
}

#[test]
fn paths_are_found_in_texts() {
    let found = |text| named(text).collect::<Vec<_>>();
    assert_eq!(
        found("see `crates/base/src/lib.rs`, and src/driver/connection/*.rs."),
        [("crates/base/src/lib.rs", '`'), ("src/driver/connection/", '*')]
    );
    let root = sources::root();
    assert!(exists(&root, "crates/base/src/lib.rs", '`') && exists(&root, "src/driver/connection/", '*'));
    let nowhere = "src/".to_owned() + "nowhere/";
    assert!(!exists(&root, &(nowhere.clone() + "lib.rs"), '`') && !exists(&root, &nowhere, '*'));
}

/// Columns of a line, counted in characters.
const COLUMNS: usize = 120;

/// Where they are. `expected/` is output, and as wide as it is.
const FOLDERS_OF_TESTS: [&str; 2] = ["sql", "test"];

/// What their names end with. Scripts without an ending count as shell.
const ENDINGS_OF_TESTS: [&str; 4] = ["sql", "sh", "bash", ""];

#[test]
fn lines_of_tests_fit() {
    let root = sources::root();
    let mut long = Vec::new();
    for file in FOLDERS_OF_TESTS.iter().flat_map(|folder| sources::files(&root.join(folder))) {
        let ending = file.extension().map_or("", |ending| ending.to_str().expect("a name"));
        if !ENDINGS_OF_TESTS.contains(&ending) {
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
