//! The rooms of the extension, the folders of src, use each other in the order of the table in `src/lib.rs`; within a room, and
//! within each crate, files use each other in one direction. Unsafe code is in few places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::modules::Crate;
use crate::sources;

/// Where unsafe code may be: folders, and files with their reasons.
const UNSAFE_FOLDERS: [&str; 6] =
    ["driver/parameters/", "driver/session/", "guard/", "load/bulk/", "server/", "shm/"];
const UNSAFE_FILES: [(&str, &str); 5] = [
    ("capture/values/trial_statement.rs", "executes a captured statement as a client's session would"),
    ("error/carried.rs", "is called by the server for each error, of which pgrx keeps only a part"),
    ("error/client_text.rs", "asks for the client's encoding for each message"),
    (
        "observe/waits.rs",
        "reads other processes' wait events a hundred times a second, as pg_stat_activity does",
    ),
    ("worker/drop_extension.rs", "holds the lock that DROP EXTENSION waits for"),
];

fn extension() -> PathBuf {
    sources::root().join("src")
}

/// The rooms in the order of the table in `src/lib.rs`, the ground first.
fn rooms() -> Vec<String> {
    let text = sources::text(extension().join("lib.rs"));
    let rooms: Vec<String> = text
        .lines()
        .filter_map(|line| Some(line.strip_prefix("//! | [`")?.split_once('`')?.0.to_owned()))
        .collect();
    let modules: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    assert_eq!(
        rooms.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        modules,
        "the table names each room"
    );
    rooms
}

fn room_of(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

#[test]
fn rooms_use_those_before_them() {
    let rooms = rooms();
    let place = |file: &str| rooms.iter().position(|room| room == room_of(file));
    let extension = Crate::read(&extension());
    let uses = extension.uses();
    assert!(uses.len() > 200, "where is the code? {} files", uses.len());
    let mut wrong = Vec::new();
    for (file, others) in uses.iter().filter(|(file, _)| **file != "lib.rs") {
        assert!(place(file).is_some(), "{file} is in none of the rooms");
        let above = others.iter().filter(|other| place(other) > place(file));
        wrong.extend(above.map(|other| format!("{file} uses {other}")));
    }
    assert!(wrong.is_empty(), "against the order of the rooms:\n{}", wrong.join("\n"));
}

/// All that a file reaches.
fn reached<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        waiting.extend(uses[file].iter().filter(|other| reached.insert(**other)));
    }
    reached
}

/// The circles among files, each with its files and what ties them.
fn circles(uses: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|file| (*file, reached(uses, file))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for file in uses.keys().filter(|file| reach[**file].contains(**file)) {
        let is_tied = |other: &&str| reach[file].contains(other) && reach[other].contains(file);
        let circle: Vec<&str> = uses.keys().copied().filter(is_tied).collect();
        if !seen.insert(circle.clone()) {
            continue;
        }
        let arrows = circle.iter().map(|file| {
            let others: Vec<&str> =
                uses[file].iter().copied().filter(|other| circle.contains(other)).collect();
            format!("  {file} uses {}", others.join(", "))
        });
        circles.push(arrows.collect::<Vec<_>>().join("\n"));
    }
    circles
}

#[test]
fn files_use_each_other_in_one_direction() {
    let root = sources::root();
    let crates = fs::read_dir(root.join("crates")).expect("a folder");
    let mut folders: Vec<_> = crates
        .map(|entry| entry.expect("an entry").path().join("src"))
        .filter(|folder| folder.exists())
        .collect();
    folders.push(extension());
    folders.sort();
    assert!(folders.len() > 10, "where are the crates? {folders:?}");
    let mut found = Vec::new();
    for folder in folders {
        let name = folder.strip_prefix(&root).expect("inside").display();
        found.extend(circles(&Crate::read(&folder).uses()).iter().map(|circle| format!("{name}:\n{circle}")));
    }
    assert!(found.is_empty(), "{} circles\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let uses = BTreeMap::from([
        ("a", BTreeSet::from(["b"])),
        ("b", BTreeSet::from(["c"])),
        ("c", BTreeSet::from(["b"])),
    ]);
    assert_eq!(circles(&uses), ["  b uses c\n  c uses b"]);
}

#[test]
fn unsafe_code_stays_in_its_places() {
    let is_allowed = |file: &str| {
        UNSAFE_FOLDERS.iter().any(|folder| file.starts_with(folder))
            || UNSAFE_FILES.iter().any(|(allowed, _)| *allowed == file)
    };
    let mut allowed = BTreeSet::new();
    for path in
        sources::files(&extension()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"))
    {
        let file = path.strip_prefix(extension()).expect("inside").to_str().expect("UTF-8").to_owned();
        let code = sources::text(path);
        let mut lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        let is_unsafe = lines.any(|line| {
            ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| line.contains(word))
        });
        assert!(!is_unsafe || is_allowed(&file), "unsafe code in {file}");
        allowed.extend(is_unsafe.then_some(file));
    }
    for (file, _) in UNSAFE_FILES {
        assert!(allowed.contains(file), "no longer unsafe: {file}");
    }
}
