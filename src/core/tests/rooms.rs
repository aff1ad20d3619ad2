//! The rooms of the server's side, which are the folders and files of src: each uses what lies below it, unsafe code is in
//! four places, and files and functions can be read in one go.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground floor up. A room names only itself and those before it.
const ORDER: [&str; 12] = [
    "error",
    "server",
    "shm",
    "engine",
    "integration",
    "observe",
    "catalog",
    "fixture",
    "worker",
    "launch",
    "sweep",
    "api",
];

/// Where unsafe code may be: rooms, and files with their reasons.
const UNSAFE_ROOMS: [&str; 3] = ["server", "shm", "engine"];
const UNSAFE_FILES: [(&str, &str); 1] = [(
    "observe/waits.rs",
    "reads other processes' wait events a hundred times a second, as pg_stat_activity does",
)];

/// Lines that a file may have.
const LONGEST: usize = 450;

/// Lines that a function may have.
const LONGEST_FUNCTION: usize = 80;

/// Longer files, with their reasons.
const LONG_FILES: [(&str, &str); 0] = [];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rust files of the server's side, each by its path from src, without comments.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = path.strip_prefix(root()).expect("below src").to_string_lossy().into_owned();
        if path.is_dir() && name != "core" {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push((name, fs::read_to_string(&path).expect("text")));
        }
    }
}

fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    sources(&root(), &mut found);
    found.sort();
    assert!(found.len() > 80, "where is the code? {} files", found.len());
    found
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
fn rooms_use_what_lies_below_them() {
    let floor = |room: &str| ORDER.iter().position(|other| *other == room);
    let mut wrong = Vec::new();
    for (file, code) in all().iter().filter(|(file, _)| file != "lib.rs") {
        let Some(own) = floor(room_of(file)) else {
            wrong.push(format!("{file} is in none of the rooms"));
            continue;
        };
        for named in rooms_named(code) {
            match floor(&named) {
                Some(other) if other <= own => {}
                Some(_) => wrong.push(format!("{file} names crate::{named}, which lies above it")),
                None => wrong.push(format!("{file} names crate::{named}, which is none of the rooms")),
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
    let (allowed, others): (Vec<_>, Vec<_>) =
        all().into_iter().filter(|(_, code)| is_unsafe(code)).partition(|(file, _)| is_allowed(file));
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
        let is_excepted = LONG_FILES.iter().any(|(long, _)| *long == file);
        assert_eq!(lines > LONGEST, is_excepted, "{file} has {lines} lines");
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
    let long: Vec<_> = functions.iter().filter(|(_, (_, lines))| *lines > LONGEST_FUNCTION).collect();
    assert!(long.is_empty(), "more than {LONGEST_FUNCTION} lines: {long:?}");
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
