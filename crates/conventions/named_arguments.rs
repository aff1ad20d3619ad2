//! Tests, benchmarks and documents name arguments that functions have: some run only where Citus is installed, and would go
//! on with the name that an argument once had.

use std::collections::BTreeSet;
use std::fs;

use crate::help::declared;
use crate::sources;

const FOLDERS: [&str; 6] = ["benches", "ci", "docs", "scripts", "sql", "test"];

/// Arguments of functions of Citus, and of the server's extensions.
const OF_OTHERS: [&str; 5] =
    ["check_toast", "colocate_with", "heapallindexed", "shard_count", "shard_transfer_mode"];

/// The word that a text ends with, in quotes or not.
fn last_word(text: &str) -> &str {
    let text = text.trim_end_matches(['"', '\\']);
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    &text[start..]
}

#[test]
fn named_arguments_are_there() {
    let root = sources::root();
    let known: BTreeSet<String> = declared().into_values().flatten().collect();
    let mut unknown = Vec::new();
    for file in FOLDERS.iter().flat_map(|folder| sources::files(&root.join(folder))) {
        if file.extension().is_some_and(|ending| ending == "rs") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for word in text.match_indices(" => ").map(|(at, _)| last_word(&text[..at])) {
            if !word.is_empty() && !known.contains(word) && !OF_OTHERS.contains(&word) {
                unknown
                    .push(format!("{}: {word}", file.strip_prefix(&root).expect("a file below").display()));
            }
        }
    }
    assert!(unknown.is_empty(), "no function has these arguments:\n{}", unknown.join("\n"));
}
