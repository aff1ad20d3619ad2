//! `bench.help` says of every function of schema `bench`, and of each argument, what the install SQL declares.

use std::collections::BTreeMap;

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
