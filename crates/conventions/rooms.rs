//! The rooms of the two houses, the server's side in src and the crate in crates, stay as each `lib.rs` lists them: a room
//! uses those that stand before it, so that there is no circle. Unsafe code is in four places of the server's side, and
//! files and functions can be read in one go.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources;

/// Where unsafe code may be: rooms, and files with their reasons.
const UNSAFE_ROOMS: [&str; 3] = ["server", "shm", "engine"];
const UNSAFE_FILES: [(&str, &str); 3] = [
    ("error/carried.rs", "is called by the server for each error, of which pgrx keeps only a part"),
    ("error/client_text.rs", "asks for the client's encoding for each message"),
    (
        "observe/waits.rs",
        "reads other processes' wait events a hundred times a second, as pg_stat_activity does",
    ),
];

/// Lines that a file may have.
const LONGEST: usize = 500;

/// Lines that a function may have.
const LONGEST_FUNCTION: usize = 80;

/// Longer functions, with their reasons. Each has to be there and to be longer.
const LONG_FUNCTIONS: [(&str, &str, &str); 3] = [
    ("crates/report/src/tests/example.rs", "believable", "a whole document, field by field"),
    ("crates/report/src/tests/hostile.rs", "hostile", "a whole document, field by field"),
    (
        "crates/protocol/tests/pgbench_oracle/scripts.rs",
        "statements",
        "the grammar of random statements, as one table",
    ),
];

/// What is a house's and in none of its rooms.
const OUTSIDE: [&str; 3] = ["lib", "tests", "fuzz"];

/// A crate: its sources, each by its path from the crate's folder, and its rooms in the order of the table in `lib.rs`.
struct House {
    sources: Vec<(String, String)>,
    rooms: Vec<String>,
}

fn root() -> PathBuf {
    sources::root().join("src")
}

impl House {
    fn new(folder: &Path, skips: impl Fn(&str) -> bool) -> Self {
        let name =
            |path: &Path| path.strip_prefix(folder).expect("inside").to_str().expect("UTF-8").to_owned();
        let sources: Vec<(String, String)> = sources::files(folder)
            .iter()
            .map(|path| (name(path), path))
            .filter(|(name, _)| name.ends_with(".rs") && !skips(name))
            .map(|(name, path)| (name, fs::read_to_string(path).expect("text")))
            .collect();
        assert!(sources.len() > 80, "where is the code? {} files", sources.len());
        let text = fs::read_to_string(folder.join("lib.rs")).expect("lib.rs");
        let room = |line: &str| {
            let (name, _) =
                line.strip_prefix("//! | ")?.trim_start_matches('[').strip_prefix('`')?.split_once('`')?;
            Some(name.to_owned())
        };
        let rooms: Vec<String> = text.lines().filter_map(room).collect();
        // A room may be a crate of its own.
        let module = |line: &str| {
            let line = line.trim_start_matches("pub ").strip_suffix(';')?;
            let name = line.strip_prefix("mod ").or_else(|| line.split_once(" as ").map(|(_, name)| name))?;
            Some(name.to_owned())
        };
        let modules: BTreeSet<String> = text.lines().filter_map(module).collect();
        assert_eq!(
            rooms.iter().cloned().collect::<BTreeSet<_>>(),
            modules,
            "the rooms of lib.rs are its modules"
        );
        Self { sources, rooms }
    }
}

/// The server's side.
fn server_side() -> House {
    House::new(&root(), |_| false)
}

/// All sources, each by its path from src.
fn all() -> Vec<(String, String)> {
    let crates = sources::root().join("crates");
    let name = |path: &Path| format!("crates/{}", path.strip_prefix(&crates).expect("inside").display());
    let pure = sources::files(&crates)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|has| has == "rs"))
        .map(|path| (name(&path), fs::read_to_string(&path).expect("text")));
    server_side().sources.into_iter().chain(pure).collect()
}

fn without_comments(code: &str) -> String {
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn room_of(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

/// The rooms that a text names: `crate::room` and `crate::{room, room::…}`.
fn rooms_named(code: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for tail in without_comments(code).split("crate::").skip(1) {
        let Some(list) = tail.strip_prefix('{') else {
            found.push(word(tail));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (place, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                _ if begins && depth == 0 && character.is_alphabetic() => {
                    found.push(word(&list[place..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn rooms_use_those_before_them() {
    let mut wrong = Vec::new();
    for House { sources, rooms } in [server_side()] {
        let place = |room: &str| rooms.iter().position(|other| other == room);
        for (file, code) in sources.iter().filter(|(file, _)| !OUTSIDE.contains(&room_of(file))) {
            let Some(own) = place(room_of(file)) else {
                wrong.push(format!("{file} is in none of the rooms"));
                continue;
            };
            for named in rooms_named(code) {
                match place(&named) {
                    Some(other) if other <= own => {}
                    Some(_) => wrong.push(format!("{file} names crate::{named}, which comes after its room")),
                    None => wrong.push(format!("{file} names crate::{named}, which is none of the rooms")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_stays_in_its_rooms() {
    let is_allowed = |file: &str| {
        UNSAFE_ROOMS.contains(&room_of(file)) || UNSAFE_FILES.iter().any(|(allowed, _)| *allowed == file)
    };
    let is_unsafe = |code: &str| {
        let code = without_comments(code);
        ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| code.contains(word))
    };
    let (allowed, others): (Vec<_>, Vec<_>) = server_side()
        .sources
        .into_iter()
        .filter(|(_, code)| is_unsafe(code))
        .partition(|(file, _)| is_allowed(file));
    let others: Vec<&str> = others.iter().map(|(file, _)| file.as_str()).collect();
    assert!(others.is_empty(), "unsafe code in {}", others.join(", "));
    for (file, _) in UNSAFE_FILES {
        assert!(allowed.iter().any(|(there, _)| there == file), "no longer unsafe: {file}");
    }
}

#[test]
fn files_are_short() {
    for (file, code) in all() {
        let lines = code.lines().count();
        assert!(lines <= LONGEST, "{file} has {lines} lines");
    }
}

/// The functions of a file as rustfmt lays them out, with their numbers of lines.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let is_function = text.starts_with("fn ") || (text.contains(" fn ") && !text.starts_with("//"));
        let Some((_, rest)) = text.split_once("fn ").filter(|_| is_function) else { continue };
        let head = (start..lines.len()).find(|&place| lines[place].ends_with(['{', ';', '}']));
        let Some(head) = head.filter(|&head| lines[head].ends_with('{')) else { continue };
        let end = format!("{}}}", &line[..line.len() - text.len()]);
        let length =
            (head..lines.len()).find(|&place| lines[place] == end).map_or(0, |last| last - start + 1);
        found.push((rest.split(['(', '<']).next().unwrap_or(rest), length));
    }
    found
}

#[test]
fn functions_are_short() {
    let all = all();
    let functions: Vec<_> =
        all.iter().flat_map(|(file, code)| functions(code).into_iter().map(move |f| (file, f))).collect();
    assert!(functions.len() > 800, "where are the functions? {}", functions.len());
    let long: BTreeSet<(&str, &str)> = functions
        .iter()
        .filter(|(_, (_, lines))| *lines > LONGEST_FUNCTION)
        .map(|(file, (name, _))| (file.as_str(), *name))
        .collect();
    assert_eq!(long, LONG_FUNCTIONS.iter().map(|(file, name, _)| (*file, *name)).collect());
}

#[test]
fn names_are_found() {
    assert_eq!(rooms_named("use crate::catalog::{self, x};"), ["catalog"]);
    assert_eq!(rooms_named("use crate::{api::runs::{a, b}, shm};"), ["api", "shm"]);
    assert_eq!(rooms_named("crate::worker::nap(1); // crate::api"), ["worker"]);
    assert_eq!(room_of("catalog/recorder/mod.rs"), "catalog");
    assert_eq!(room_of("error.rs"), "error");
    assert_eq!(functions("pub fn f(\n    x: i32,\n) {\n    x;\n}\nfn g();\n"), [("f", 5)]);
}
