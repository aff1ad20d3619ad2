//! `bench.help` says of every function of schema `bench`, and of each argument, what the install SQL declares.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use bench_report::help::Help;

use crate::sources;

/// The functions of schema `bench` with the names of their arguments.
pub fn declared() -> BTreeMap<String, Vec<String>> {
    signatures().into_iter().map(|(name, (arguments, _))| (name, arguments)).collect()
}

/// The functions of schema `bench` with the names of their arguments and of the columns of their results.
fn signatures() -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let run_arguments = sources::run_arguments();
    let mut found = BTreeMap::new();
    for sql in sources::texts("src/schema", "sql") {
        let sql = sql.replace("@run_arguments@", &run_arguments);
        for piece in sql.split("CREATE FUNCTION bench.").skip(1) {
            let text: Vec<&str> = piece.split_whitespace().collect();
            let text = text.join(" ");
            let (signature, result) = text.split_once(") RETURNS ").expect("a result");
            let columns = result.strip_prefix("TABLE (").and_then(|columns| columns.split_once(')'));
            let columns = columns.map_or(Vec::new(), |(columns, _)| {
                columns.split(", ").filter_map(|of| of.split(' ').next()).map(str::to_owned).collect()
            });
            let (name, arguments) = signature.split_once('(').expect("arguments");
            let names = arguments.split(", ").filter(|argument| !argument.is_empty());
            let names = names.map(|argument| {
                argument
                    .trim()
                    .trim_start_matches("VARIADIC ")
                    .split(' ')
                    .next()
                    .unwrap_or("")
                    .trim_matches('"')
                    .to_owned()
            });
            found.insert(name.to_owned(), (names.collect(), columns));
        }
    }
    found
}

#[test]
fn every_function_is_documented() {
    let help = Help::default();
    let documented: Vec<&str> = help.names().collect();
    let declared = declared();
    assert!(declared["run"].len() >= 17 && declared["version"].is_empty(), "not understood: {declared:?}");
    for name in &documented {
        assert!(declared.contains_key(*name), "docs/functions.md has bench.{name}, which there is not");
    }
    for name in declared.keys() {
        assert!(documented.contains(&name.as_str()), "docs/functions.md lacks bench.{name}");
        assert!(!help.example(name).is_empty(), "bench.{name} has no example in docs/functions.md");
        assert!(
            help.example(name).join(" ").contains(&format!("bench.{name}(")),
            "an example of bench.{name}"
        );
    }
}

#[test]
fn every_column_of_a_result_is_documented() {
    let help = Help::default();
    let with_columns = signatures().into_iter().filter(|(_, (_, columns))| !columns.is_empty());
    let mut count = 0;
    for (name, (_, columns)) in with_columns {
        for column in &columns {
            let meaning = help.column(&name, column).unwrap_or_default();
            assert!(meaning.len() > 4, "no table of columns says what {column} of bench.{name} is");
        }
        count += 1;
    }
    assert!(count >= 13, "{count} functions return tables");
}

#[test]
fn every_argument_is_documented() {
    let help = Help::default();
    for (name, arguments) in declared() {
        for argument in &arguments {
            let meaning = help.meaning(&name, argument).unwrap_or_default();
            assert!(meaning.len() > 4, "no table of arguments says what {argument} of bench.{name} is");
        }
        for documented in help.arguments(&name) {
            assert!(
                arguments.iter().any(|argument| argument == documented),
                "bench.{name} has no {documented}"
            );
        }
    }
}

// Tests, benchmarks and documents name arguments that functions have: some run only where Citus is installed, and would go
// on with the name that an argument once had.

const FOLDERS_THAT_CALL: [&str; 6] = ["benches", "ci", "docs", "scripts", "sql", "test"];

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
    for file in FOLDERS_THAT_CALL.iter().flat_map(|folder| sources::files(&root.join(folder))) {
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
