//! Documents are complete, and describe nothing that does not exist: `bench.help` every function of schema `bench` and each
//! argument; `docs/schema` of every key of the reports; META.json has what PGXN requires
//! (<https://pgxn.org/meta/spec.txt>, version 1), whose server refuses an archive without a valid one. Documents and comments name
//! files that exist; and tests are read in terminals and side by side, so that no line of their SQL and shell is longer than 120
//! columns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use bench_report::help::Help;
use serde_json::{Map, Value};

use crate::sources;

/// The functions of schema `bench` with the names of their arguments.
fn declared() -> BTreeMap<String, Vec<String>> {
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

fn schemas() -> [(&'static str, String); 2] {
    [("report", bench_report::schema()), ("experiment", bench_report::experiment::schema())]
}

#[test]
fn the_files_have_the_schemas_of_the_documents() {
    for (name, schema) in schemas() {
        let path = sources::root().join(format!("docs/schema/{name}.json"));
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&path, format!("{schema}\n")).expect("the folder can be written");
        }
        let file = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            file,
            format!("{schema}\n"),
            "UPDATE_SCHEMAS=1 cargo test -p conventions schemas writes {path:?}"
        );
    }
}

#[test]
fn every_key_is_described() {
    for (name, schema) in schemas() {
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        let definitions = schema["$defs"].as_object().expect("definitions");
        for (kind, object) in definitions.iter().chain([(&name.to_owned(), &schema)]) {
            for (key, property) in object["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{key} of {kind} in the schema of {name}");
            }
        }
    }
}

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

const REQUIRED: [&str; 7] = ["name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"];
const OPTIONAL: [&str; 7] =
    ["description", "generated_by", "no_index", "prereqs", "release_status", "resources", "tags"];

fn metadata() -> Map<String, Value> {
    let text = fs::read_to_string(sources::root().join("META.json")).expect("META.json");
    serde_json::from_str(&text).expect("an object")
}

/// What is wrong with required and unknown fields of an object. Custom fields begin with `x_`.
fn wrong_fields(object: &Map<String, Value>, required: &[&str], optional: &[&str]) -> Vec<String> {
    let absent = required
        .iter()
        .filter(|name| object.get(**name).is_none_or(is_empty))
        .map(|name| format!("no {name}"));
    let unknown = object
        .keys()
        .filter(|name| {
            !name.to_lowercase().starts_with("x_") && !required.iter().chain(optional).any(|k| k == name)
        })
        .map(|name| format!("unknown: {name}"));
    absent.chain(unknown).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => value.is_null(),
    }
}

/// Three numbers without leading zeros, as Semantic Versioning has them; this project makes no pre-releases.
fn is_version(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let numbers: Vec<_> = text.split('.').collect();
    numbers.len() == 3
        && numbers.iter().all(|n| {
            !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) && (*n == "0" || !n.starts_with('0'))
        })
}

#[test]
fn metadata_has_the_fields_of_the_specification_and_no_others() {
    let meta = metadata();
    assert_eq!(wrong_fields(&meta, &REQUIRED, &OPTIONAL), [""; 0]);
    let spec = meta["meta-spec"].as_object().expect("an object");
    assert_eq!(wrong_fields(spec, &["version"], &["url"]), [""; 0]);
    assert!(spec["version"].as_str().is_some_and(|version| version.starts_with("1.0.")));
    assert!(["stable", "testing", "unstable"].contains(&meta["release_status"].as_str().expect("a text")));
    assert_eq!(meta["license"], "postgresql");
    // Names and tags are parts of addresses.
    let tags = meta["tags"].as_array().expect("a list").iter().map(|tag| tag.as_str().expect("a text"));
    for term in tags.chain([meta["name"].as_str().expect("a text")]) {
        assert!(term.len() >= 2 && !term.contains(['/', '\\', ' ']), "{term}");
    }
}

#[test]
fn metadata_provides_files_that_are_there_at_the_version_of_the_crates() {
    let meta = metadata();
    assert_eq!(meta["version"], env!("CARGO_PKG_VERSION"));
    for (name, extension) in meta["provides"].as_object().expect("an object") {
        let extension = extension.as_object().expect("an object");
        assert_eq!(
            wrong_fields(extension, &["file", "version"], &["abstract", "docfile"]),
            [""; 0],
            "{name}"
        );
        assert_eq!(extension["version"], meta["version"], "{name}");
        for file in [&extension["file"], &extension["docfile"]] {
            assert!(sources::root().join(file.as_str().expect("a text")).is_file(), "{name}: {file}");
        }
    }
}

#[test]
fn metadata_has_prerequisites_by_phase_and_relation() {
    let meta = metadata();
    for (phase, relations) in meta["prereqs"].as_object().expect("an object") {
        assert!(["configure", "build", "test", "runtime", "develop"].contains(&phase.as_str()), "{phase}");
        for (relation, versions) in relations.as_object().expect("an object") {
            assert!(
                ["requires", "recommends", "suggests", "conflicts"].contains(&relation.as_str()),
                "{relation}"
            );
            for (name, version) in versions.as_object().expect("an object") {
                assert!(version == "0" || is_version(version), "{name}: {version}");
            }
        }
    }
}

#[test]
fn fields_that_are_missing_empty_or_unknown_are_seen() {
    let object = serde_json::json!({"version": "", "colour": "red", "x_own": 1});
    let object = object.as_object().expect("an object");
    assert_eq!(
        wrong_fields(object, &["version", "file"], &["abstract"]),
        ["no version", "no file", "unknown: colour"]
    );
    assert!(is_version(&"0.2.0".into()) && !is_version(&"0.02.0".into()) && !is_version(&"0.2".into()));
}
