//! The install SQL is written by hand, so nothing but this test holds its function arguments and
//! results against those of the Rust functions behind them: a mismatch would read a Datum of one
//! type as another.

use std::collections::BTreeMap;

use crate::sources;

/// Argument names and SQL types, and the result's SQL type.
#[derive(Debug, PartialEq)]
struct Signature {
    arguments: Vec<(String, String)>,
    result: String,
}

fn read_all(folder: &str, ending: &str) -> String {
    sources::texts(folder, ending).collect::<Vec<_>>().join("\n")
}

/// The text up to the parenthesis that closes the one before `text`, and what follows it.
fn until_closing(text: &str) -> (&str, &str) {
    let mut depth = 1;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&text[..at], &text[at + 1..]);
        }
    }
    panic!("no closing parenthesis in {text:.60}")
}

fn split_arguments(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).filter(|argument| !argument.is_empty()).collect()
}

/// Functions of the install SQL that are written in Rust, by the name of their symbol.
fn sql_signatures(sql: &str) -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for piece in sql.split("CREATE FUNCTION ").skip(1) {
        let statement = piece.split("\nCOMMENT").next().unwrap_or(piece);
        let (_, rest) = statement.split_once('(').expect("arguments");
        let (arguments, rest) = until_closing(rest);
        let Some(symbol) = rest.split("'MODULE_PATHNAME', '").nth(1) else { continue };
        let symbol = symbol.split('\'').next().expect("a symbol").trim_end_matches("_wrapper").to_owned();
        let arguments = split_arguments(arguments)
            .into_iter()
            .map(|argument| {
                let declared = argument.split(" DEFAULT ").next().unwrap_or(argument);
                let (name, sql_type) = declared.split_once(' ').expect("a name and a type");
                // In quotes where it is a word of SQL's own.
                // A regclass is an oid that is shown as a name.
                (name.trim_matches('"').to_owned(), sql_type.trim().replace("regclass", "oid"))
            })
            .collect();
        let result = rest.split("RETURNS ").nth(1).expect("a result");
        // The columns are found by their names as a row is returned.
        let result = match result.starts_with("TABLE (") {
            true => "TABLE".to_owned(),
            false => result.split(" VOLATILE").next().unwrap_or(result).trim().to_owned(),
        };
        found.insert(symbol, Signature { arguments, result });
    }
    found
}

fn sql_type_of(rust: &str) -> String {
    let inner = rust.strip_prefix("Option<").and_then(|t| t.strip_suffix('>')).unwrap_or(rust);
    if let Some(element) = inner.strip_prefix("Vec<").and_then(|t| t.strip_suffix('>')) {
        return format!("{}[]", sql_type_of(element));
    }
    if let Some(row) = inner.strip_prefix("SetOfIterator<'static, ").and_then(|t| t.strip_suffix('>')) {
        return format!("SETOF {}", sql_type_of(row));
    }
    match inner {
        "String" | "&str" => "text",
        "i64" => "bigint",
        "i32" => "int",
        "f64" => "double precision",
        "bool" => "boolean",
        "Name" => "name",
        "pg_sys::Oid" => "oid",
        "Json" | "Jsonb" | "PartJsonb" | "CaptureJsonb" | "JsonB" | "pgrx::JsonB" | "StoredJsonb" => "jsonb",
        "TimestampWithTimeZone" => "timestamptz",
        "Interval" => "interval",
        "Rows" => "TABLE",
        "" => "void",
        other => panic!("no SQL type is known for {other}"),
    }
    .to_owned()
}

fn rust_signature(after_name: &str) -> Signature {
    let (arguments, rest) = until_closing(after_name);
    let arguments = split_arguments(arguments)
        .into_iter()
        .map(|argument| {
            let (name, rust) = argument.split_once(": ").expect("a name and a type");
            assert!(rust.starts_with("Option<"), "{name} would make the function STRICT");
            (name.to_owned(), sql_type_of(rust))
        })
        .collect();
    let result = rest.split('{').next().unwrap_or("").trim().trim_start_matches("->").trim();
    Signature { arguments, result: sql_type_of(result) }
}

/// Functions under `#[pg_extern]`, those under `#[pg_trigger]`, and those of `run_function!` and `run_functions!` with the
/// arguments of a run.
fn rust_signatures(rust: &str, run_arguments: &str) -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for piece in rust.split("#[pg_extern(").skip(1) {
        let (_, declaration) = piece.split_once("fn ").expect("a function");
        let (name, rest) = declaration.split_once('(').expect("arguments");
        if name != "$name" {
            found.insert(name.to_owned(), rust_signature(rest));
        }
    }
    for (macro_name, piece) in ["run_function", "run_functions"].into_iter().flat_map(|name| {
        let start = format!("\n{name}! {{\n");
        rust.split(start.as_str()).skip(1).map(move |piece| (name, piece.to_owned())).collect::<Vec<_>>()
    }) {
        let lines: Vec<_> = piece.lines().filter(|line| !line.trim().starts_with("///")).collect();
        let piece = lines.join("\n");
        let (names, rest) = piece.split_once('(').expect("arguments");
        let (own, rest) = until_closing(rest);
        let result =
            rest.trim_start().strip_prefix("-> [").expect("a result").split("] =").next().expect("its end");
        let own = own.replace(['[', ']'], "");
        // Of two functions the second one starts what the first one waits for, and returns its id.
        for (name, result) in names.split(',').zip([result, "i64"]) {
            let function = format!("{}, {run_arguments}) -> {result} {{", own.trim());
            found.insert(name.trim().to_owned(), rust_signature(&function));
        }
        assert_eq!(names.contains(','), macro_name == "run_functions", "{names}");
    }
    for piece in rust.split("#[pg_trigger(").skip(1) {
        let (_, declaration) = piece.split_once("fn ").expect("a function");
        let name = declaration.split(['<', '(']).next().unwrap_or("");
        found.insert(name.to_owned(), Signature { arguments: Vec::new(), result: "trigger".to_owned() });
    }
    found
}

/// The arguments of a run as they are declared in Rust, and their defaults.
fn run_arguments() -> Vec<(String, String, String)> {
    let source = read_all("crates/model/src/spec", "rs");
    let (_, list) = source.split_once("{ $($($given)*)? }").expect("the list");
    let (list, _) = list.split_once("\n        }\n").expect("its end");
    let lines = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("///"));
    lines
        .map(|line| {
            let (name, rest) = line.split_once(": ").expect("a name");
            let (kind, default) = rest.trim_end_matches(',').split_once(" = ").expect("a type");
            (name.to_owned(), kind.to_owned(), default.to_owned())
        })
        .collect()
}

/// The install SQL, as make joins it.
fn install_sql() -> String {
    read_all("src/schema/code", "sql").replace("@run_arguments@", &sources::run_arguments())
}

#[test]
fn defaults_of_a_run_agree() {
    let sql = sources::run_arguments();
    let sql: Vec<_> =
        split_arguments(&sql).iter().map(|line| line.rsplit(' ').next().expect("a default")).collect();
    let run_arguments = run_arguments();
    let rust = run_arguments.iter().map(|(_, _, default)| match default.as_str() {
        "None" => "NULL".to_owned(),
        "Some(empty())" => "'{}'".to_owned(),
        "Some(0.0)" => "0".to_owned(),
        given => {
            let given =
                given.trim_start_matches("Some(").trim_end_matches(')').trim_end_matches(".to_owned(");
            given.replace('"', "'")
        }
    });
    assert_eq!(rust.collect::<Vec<_>>(), sql);
}

#[test]
fn install_sql_and_rust_agree() {
    let run: Vec<_> =
        run_arguments().iter().map(|(name, kind, _)| format!("{name}: Option<{kind}>")).collect();
    let sql = sql_signatures(&install_sql());
    let rust = rust_signatures(&read_all("src/api", "rs"), &run.join(", "));
    assert!(sql.len() >= 11, "the install SQL was not understood: {:?}", sql.keys());
    assert_eq!(sql.keys().collect::<Vec<_>>(), rust.keys().collect::<Vec<_>>(), "functions on one side only");
    for (name, signature) in &sql {
        assert_eq!(signature, &rust[name], "{name}");
    }
}

#[test]
fn a_difference_is_found() {
    let sql = sql_signatures(
        "CREATE FUNCTION bench.f(a int DEFAULT 1) RETURNS bigint VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'f_wrapper';",
    );
    let rust = rust_signatures("#[pg_extern(sql = false)]\nfn f(a: Option<i64>) -> i64 {", "");
    assert_eq!(sql["f"].result, rust["f"].result);
    assert_ne!(sql["f"], rust["f"]);
}
