//! Every place where a statement gets the rights of another role is listed in docs/architecture.md, with what it executes.

use std::collections::BTreeSet;
use std::fs;

use crate::sources;

/// What gives a statement another role's rights.
const WAYS: [&str; 7] = [
    "as_bootstrap_superuser(",
    "as_run_role(",
    "as_session_of(",
    "as_owner(",
    "as_role(",
    "connect_after_crash(",
    "coordinator::KIND, spec.database_oid, 0",
];

/// Where these ways are made, and not used.
const MAKERS: [&str; 3] =
    ["src/guard/switch_role.rs", "src/server/background_worker.rs", "src/worker/attachment.rs"];

#[test]
fn the_table_names_every_place_and_no_other() {
    let root = sources::root();
    let document = fs::read_to_string(root.join("docs/architecture.md")).expect("a document");
    let (_, section) = document.split_once("### Where rights change").expect("a section");
    let section = section.split_once("Tables of results").expect("an end").0;
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<String> = rows
        .flat_map(|row| row[2..].split(" | ").next().unwrap_or("").split(", "))
        .map(|place| place.trim_matches('`').to_owned())
        .collect();
    let mut used = BTreeSet::new();
    for path in sources::files(&root.join("src")) {
        let name = path.strip_prefix(&root).expect("inside").to_str().expect("UTF-8").to_owned();
        if !name.ends_with(".rs")
            || name.starts_with("crates/")
            || MAKERS.iter().any(|maker| name.starts_with(maker))
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let is_used = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.starts_with("//") && !line.starts_with("use "))
            .any(|line| WAYS.iter().any(|way| stands_in(way, line)));
        if is_used {
            used.insert(if name.starts_with("src/store/") { "src/store".to_owned() } else { name });
        }
    }
    assert!(used.len() > 10, "where is the code? {used:?}");
    let missing: Vec<_> = used.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&used).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not in the table: {missing:?}; no longer there: {gone:?}"
    );
}

/// Not as the end of a longer word.
fn stands_in(way: &str, line: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(way).any(|(at, _)| !line[..at].ends_with(is_word))
}
