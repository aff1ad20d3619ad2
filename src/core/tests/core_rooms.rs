//! The rooms of this crate stay as `lib.rs` lists them: each imports only from the ones above it, so that there is no
//! circle; and files and functions stay short enough to be read at once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a file.
const MOST_LINES: usize = 450;

/// The most lines of a function, from its `fn` to its closing brace.
const MOST_FUNCTION_LINES: usize = 80;

/// Longer files, each with the reason. Each of them has to be there and to be longer.
const LONG_FILES: &[(&str, &str)] = &[];

/// Longer functions, each with the reason. Each of them has to be there and to be longer.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("report/tests/example.rs", "believable", "a whole document, field by field"),
    ("report/tests/hostile.rs", "hostile", "a whole document, field by field"),
    ("tests/pgbench_oracle/scripts.rs", "statements", "the grammar of random statements, as one table"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The crate's sources: path from its root, and text.
fn sources() -> Vec<(String, String)> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    collect(root(), &mut paths);
    let name = |path: &Path| path.strip_prefix(root()).expect("inside").to_str().expect("UTF-8").to_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("a source"))).collect()
}

/// The rooms in the order of the table in `lib.rs`.
fn rooms() -> Vec<String> {
    let text = fs::read_to_string(root().join("lib.rs")).expect("lib.rs");
    let room = |line: &str| Some(line.strip_prefix("//! | `")?.split_once('`')?.0.to_owned());
    text.lines().filter_map(room).collect()
}

/// The room of a file: its folder, or its own name.
fn room_of(file: &str) -> &str {
    let name = file.split('/').next().unwrap_or(file);
    name.strip_suffix(".rs").unwrap_or(name)
}

/// The rooms that a source names behind `crate::`.
fn named_rooms(text: &str) -> BTreeSet<&str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|behind| &behind[..behind.find(|c| !is_name(c)).unwrap_or(behind.len())])
        .collect()
}

#[test]
fn each_room_imports_from_rooms_above_it_only() {
    let rooms = rooms();
    let place = |room: &str| rooms.iter().position(|listed| listed == room);
    let mut wrong = Vec::new();
    for (file, text) in &sources() {
        let room = room_of(file);
        if ["lib", "tests", "fuzz"].contains(&room) {
            continue;
        }
        let Some(own) = place(room) else {
            wrong.push(format!("{file}: lib.rs does not list room {room}"));
            continue;
        };
        for named in named_rooms(text) {
            match place(named) {
                None => {
                    wrong.push(format!("{file}: `crate::{named}` is no room; `use crate::a::b;` names one"))
                }
                Some(other) if other > own => {
                    wrong.push(format!("{file}: {named} is below {room} in lib.rs"))
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_of_rooms_is_that_of_the_modules() {
    let text = fs::read_to_string(root().join("lib.rs")).expect("lib.rs");
    let module = |line: &str| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned());
    let modules: BTreeSet<String> = text.lines().filter_map(module).collect();
    assert_eq!(rooms().into_iter().collect::<BTreeSet<_>>(), modules);
}

#[test]
fn files_are_short() {
    let sources = sources();
    let long = sources.iter().filter(|(_, text)| text.lines().count() > MOST_LINES);
    let long: BTreeSet<&str> = long.map(|(file, _)| file.as_str()).collect();
    assert_eq!(long, LONG_FILES.iter().map(|(file, _)| *file).collect());
}

/// The functions of a source with their lengths in lines, as rustfmt sets them: the closing brace stands under the `fn`.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (begin, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some((before, behind)) = line.split_once("fn ") else { continue };
        let is_item = before.split_whitespace().all(|word| {
            ["const", "unsafe", "async"].contains(&word)
                || word.starts_with("pub")
                || ["(in", "crate::script)"].contains(&word)
        });
        let name = &behind[..behind.find(['(', '<']).unwrap_or(behind.len())];
        if is_item && let Some(length) = lines[begin..].iter().position(|l| *l == format!("{indent}}}")) {
            found.push((name, length + 1));
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let sources = sources();
    let long: BTreeSet<(&str, &str)> = sources
        .iter()
        .flat_map(|(file, text)| functions(text).into_iter().map(move |found| (file, found)))
        .filter(|(_, (_, length))| *length > MOST_FUNCTION_LINES)
        .map(|(file, (name, _))| (file.as_str(), name))
        .collect();
    assert_eq!(long, LONG_FUNCTIONS.iter().map(|(file, name, _)| (*file, *name)).collect());
}
