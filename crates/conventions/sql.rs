//! The install SQL is written by hand, so nothing but this test compares its function arguments and results with those of the Rust
//! functions behind them: a mismatch would read a Datum of one type as another.
//!
//! This project's statements run under a search_path of pg_catalog alone: here by `spi::restricted`, on a target by
//! `connection::with_catalog_path`; bare names are the server's there. Names have their schema only in texts that run under a
//! session's search_path, where a name without one can be made to mean something else by whoever may create objects in a schema
//! of that path: texts with a user's names in them, texts that are kept for later, those that a node of a cluster executes. A
//! text that names something with its schema is one of these, and so is each that is given to `in_session`; they have to name
//! everything so: every function, relation and type in them is read as text; exceptions are listed with their reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

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

/// What is named although it is elsewhere, by file: nothing else may be, and each of these has to be there.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "run/target_server/reached.rs",
        "pgbench_branches",
        "on another server, where a mapping's role asks as itself",
    ),
    ("capture/values/queries.rs", "{name}", FEEDER),
    ("capture/values/queries.rs", "{sql_type}", FEEDER),
    (
        "capture/log/table.rs",
        "{name}",
        "the table that the caller names, by its qualified name; read in a session without special rights",
    ),
    ("run/before/remote.rs", "{function}", "the qualified name of an extension's function on the target"),
];

/// A relation by its qualified name, in the query of a feeder: what it is, the role reads that has captured it.
const FEEDER: &str =
    "the relation of a captured statement, by its qualified name; read as the role that captured";

/// Words of SQL's own that a parenthesis may follow.
const CONSTRUCTS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "by",
    "case",
    "check",
    "coalesce",
    "conflict",
    "distinct",
    "else",
    "except",
    "exists",
    "filter",
    "from",
    "greatest",
    "group",
    "having",
    "in",
    "intersect",
    "is",
    "join",
    "key",
    "lateral",
    "least",
    "like",
    "limit",
    "not",
    "nullif",
    "offset",
    "on",
    "operator",
    "or",
    "order",
    "over",
    "returning",
    "row",
    "select",
    "set",
    "some",
    "then",
    "to",
    "union",
    "unique",
    "using",
    "values",
    "when",
    "where",
    "with",
    "within",
];

/// Words after which a relation stands.
const BEFORE_RELATIONS: &[&str] = &["from", "join", "into", "update", "truncate"];

fn root() -> PathBuf {
    sources::root().join("src")
}

/// Files of the server's side with statements that do not run under a search_path of pg_catalog alone, each by its path from
/// src: those in the session, and those that other servers execute.
fn server_side() -> Vec<(String, String)> {
    sources::files(&root())
        .iter()
        .map(|path| (path.strip_prefix(root()).expect("below src").to_string_lossy().into_owned(), path))
        .filter(|(name, _)| name.ends_with(".rs"))
        .map(|(name, path)| (name, fs::read_to_string(path).expect("text")))
        .filter(|(_, code)| code.contains("pg_catalog.") || code.contains("in_session"))
        .collect()
}

/// The string literals of Rust code, with continued lines joined.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let tail = &rest[at..];
        if tail.starts_with("//") {
            rest = tail.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(after) = tail.strip_prefix("'\"'") {
            rest = after;
        } else if let Some(text) = tail.strip_prefix('"') {
            let raw = rest[..at].ends_with('r') || rest[..at].ends_with("r#");
            let mut literal = String::new();
            let mut characters = text.char_indices();
            let mut end = text.len();
            while let Some((place, character)) = characters.next() {
                match character {
                    '"' => {
                        end = place + 1;
                        break;
                    }
                    '\\' if !raw => match characters.next() {
                        Some((_, '\n')) => {
                            let after = characters.as_str();
                            let blanks = after.len() - after.trim_start().len();
                            for _ in 0..after[..blanks].chars().count() {
                                characters.next();
                            }
                        }
                        Some((_, 'n')) => literal.push('\n'),
                        Some((_, other)) => literal.push(other),
                        None => {}
                    },
                    other => literal.push(other),
                }
            }
            found.push(literal);
            rest = &text[end..];
        } else {
            rest = &tail[1..];
        }
    }
    found
}

/// The queries that code gives to `in_session`, as literals there or in the `sql` before.
fn in_session(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, call) in code.match_indices("in_session::") {
        let (before, after) = (&code[..at], &code[at + call.len()..]);
        let Some((_, arguments)) = after.split_once('(').filter(|(name, _)| !name.contains([';', '}', '{']))
        else {
            continue;
        };
        let first = arguments.trim_start().trim_start_matches('&');
        let text = match first.starts_with("sql") {
            true => before.rfind("let sql = ").map_or("", |at| &before[at..]),
            false if first.starts_with(['"', 'r']) || first.starts_with("format!(") => first,
            false => "",
        };
        found.extend(literals(text).into_iter().take(1).filter(|sql| sql.starts_with("SELECT ")));
    }
    found
}

/// Words, with dots and what is to be filled in, and single characters; without what stands in quotes.
fn tokens(sql: &str) -> Vec<String> {
    let sql = sql.replace('"', "");
    let is_of_word = |c: char| c.is_alphanumeric() || "_.{}$%".contains(c);
    let mut tokens = Vec::new();
    let mut rest = sql.as_str();
    while let Some(first) = rest.chars().next() {
        let length = if first == '\'' {
            let length = rest[1..].find('\'').map_or(rest.len(), |end| end + 2);
            tokens.push("''".to_owned());
            length
        } else if is_of_word(first) {
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn is_qualified(name: &str) -> bool {
    ["pg_catalog.", "bench.", "bench_internal."]
        .iter()
        .any(|schema| name.strip_prefix(schema).is_some_and(|name| !name.is_empty() && !name.contains('.')))
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '{')
}

/// The place of the parenthesis that closes the one at `open`.
fn closing(tokens: &[String], open: usize) -> Option<usize> {
    let mut depth = 0;
    (open..tokens.len()).find(|&place| {
        match tokens[place].as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// Names of common table expressions: `name AS (` and `name (columns) AS (`.
fn common(tokens: &[String]) -> BTreeSet<String> {
    let at = |place: usize| tokens.get(place).map_or("", String::as_str);
    let mut names = BTreeSet::new();
    for place in 0..tokens.len() {
        let after = if at(place + 1) == "(" { closing(tokens, place + 1) } else { Some(place) };
        let Some(after) = after else { continue };
        if is_name(at(place)) && at(after + 1) == "AS" && ["(", "MATERIALIZED"].contains(&at(after + 2)) {
            names.insert(at(place).to_owned());
        }
    }
    names
}

/// What a piece of SQL names that is neither in pg_catalog nor in the extension's schemas.
fn strangers(sql: &str) -> Vec<String> {
    let tokens = tokens(sql);
    let common = common(&tokens);
    let at = |place: usize| tokens.get(place).map_or("", String::as_str);
    let lower = |place: usize| at(place).to_lowercase();
    let mut found = Vec::new();
    for place in 0..tokens.len() {
        let before = if place > 0 { lower(place - 1) } else { String::new() };
        let name = at(place);
        // f(
        if is_name(name)
            && at(place + 1) == "("
            && !CONSTRUCTS.contains(&lower(place).as_str())
            && !is_qualified(name)
            && !common.contains(name)
            // The columns of an alias.
            && before != "as"
        {
            found.push(name.to_owned());
        }
        // FROM t, but not IS DISTINCT FROM, FOR UPDATE and DO UPDATE
        let is_relation = BEFORE_RELATIONS.contains(&before.as_str())
            && tokens[place - 1].chars().all(char::is_uppercase)
            && (place < 2 || !["distinct", "for", "do", "rows"].contains(&lower(place - 2).as_str()));
        let is_word = ["(", "lateral", "rows", "only", "set", "of", "where", "table", "skip", "nowait"];
        if is_relation
            && !is_word.contains(&lower(place).as_str())
            && is_name(name)
            && !is_qualified(name)
            && !common.contains(name)
            && at(place + 1) != "("
        {
            found.push(name.to_owned());
        }
        // ::t
        if place > 1 && at(place - 1) == ":" && at(place - 2) == ":" && is_name(name) && !is_qualified(name) {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn the_server_side_names_only_its_own() {
    let files = server_side();
    assert!(files.len() > 20, "where is the code? {} files", files.len());
    let mut statements = 0;
    let mut wrong = Vec::new();
    let mut met = BTreeSet::new();
    for (file, code) in &files {
        let qualified = literals(code)
            .into_iter()
            .filter(|literal| tokens(literal).iter().any(|token| token.starts_with("pg_catalog.")));
        for literal in &qualified.chain(in_session(code)).collect::<BTreeSet<_>>() {
            statements += 1;
            for name in strangers(literal) {
                match ALLOWED.iter().position(|allowed| allowed.0 == file && allowed.1 == name) {
                    Some(place) => {
                        met.insert(place);
                    }
                    None => wrong.push(format!("{file}: {name} in: {literal}")),
                }
            }
        }
    }
    assert!(statements > 50, "the SQL was not found: {statements} statements");
    assert!(wrong.is_empty(), "{} names:\n{}", wrong.len(), wrong.join("\n"));
    let unused: Vec<_> =
        (0..ALLOWED.len()).filter(|place| !met.contains(place)).map(|place| ALLOWED[place]).collect();
    assert!(unused.is_empty(), "no longer there: {unused:?}");
}

#[test]
fn what_runs_in_a_session_is_found() {
    for code in [
        "in_session::fetch::<bool>(\"SELECT f()\", &[])",
        "spi::in_session::run(&format!(\"SELECT f({x})\"), &[])",
        "let sql = \"SELECT 1\"; fetch(sql); let sql = \"SELECT f()\"; in_session::fetch(sql, &[])",
    ] {
        assert!(in_session(code).iter().any(|sql| strangers(sql) == ["f"]), "{code}");
    }
    assert_eq!(in_session("use spi::in_session::{call, fetch}; fn a() { fetch(\"SELECT f()\") }"), [""; 0]);
}

#[test]
fn others_are_found() {
    for (sql, expected) in [
        ("SELECT public.f()", "public.f"),
        ("SELECT f(1)", "f"),
        ("SELECT {schema}.pg_stat_statements(false)", "{schema}.pg_stat_statements"),
        ("SELECT {function}({}::pg_catalog.regclass)", "{function}"),
        ("SELECT pg_catalog.max(x) FROM public.t", "public.t"),
        ("SELECT x FROM t", "t"),
        ("DELETE FROM samples WHERE run_id = $1", "samples"),
        ("UPDATE run_log SET x = 1", "run_log"),
        ("INSERT INTO samples (x) VALUES (1)", "samples"),
        ("SELECT x FROM bench.runs r JOIN s USING (x)", "s"),
        ("SELECT $1::text", "text"),
        ("SELECT 'x'::public.t", "public.t"),
        ("SELECT bench.f.g()", "bench.f.g"),
        ("SELECT bench_other.f()", "bench_other.f"),
    ] {
        assert_eq!(strangers(sql)[..1], [expected.to_owned()], "{sql}");
    }
    for sql in [
        "WITH a (x) AS (SELECT 1), b AS (SELECT x FROM a) INSERT INTO bench.samples AS s (x) SELECT x FROM b ON CONFLICT (x) DO UPDATE SET x = 1",
        "SELECT pg_catalog.count(*) FILTER (WHERE x IS DISTINCT FROM y) FROM pg_catalog.pg_class AS c (x, y) WHERE x IN ('f(x)', '::t')",
        "SELECT x FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS t (x, y) FOR UPDATE OF t",
    ] {
        assert_eq!(strangers(sql), [""; 0], "{sql}");
    }
}

/// Functions that run what they put together themselves, and after what: pgTAP's and amcheck's functions, questions to the
/// tables of a fixture that a run of the caller would use, grants of what a function bound at its making has listed, and the
/// extension's triggers on the tables that are named there; and the one that lists the grants, in whose words EXECUTE is a
/// privilege.
const RUNS_MORE: [(&str, &str); 6] = [
    ("bench_internal.tap", "PERFORM bench_internal.check_extension('pgtap');"),
    ("bench_internal.check_index", "PERFORM bench_internal.check_extension('amcheck');"),
    ("bench.check", "FROM bench_internal.usable_fixture(fixture);"),
    ("bench_internal.change_rights", "FOREACH changed IN ARRAY rights LOOP"),
    ("bench_internal.create_triggers", "FOR owned IN VALUES ('bench_internal.run_log'::regclass, 'role')"),
    ("bench_internal.rights", "format('EXECUTE ON FUNCTION %s', p.oid::regprocedure)"),
];

/// Functions of the install SQL run in the caller's session: with a search_path of their own, or with a body that was parsed when
/// they were made. What they put together themselves is seen here alone.
#[test]
fn the_install_sql_names_only_its_own() {
    let mut functions = 0;
    for sql in sources::texts("src/schema", "sql") {
        let lines: Vec<_> =
            sql.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code)).collect();
        let sql = lines.join("\n");
        for piece in sql.split("CREATE FUNCTION ").skip(1) {
            let function = piece.split("\nCOMMENT").next().unwrap_or(piece);
            let name = function.split('(').next().unwrap_or_default();
            assert!(name.starts_with("bench.") || name.starts_with("bench_internal."), "{name}");
            if function.contains("LANGUAGE c ") {
                continue;
            }
            functions += 1;
            assert!(!function.contains("SECURITY DEFINER"), "{name} runs as its owner");
            // A body in quotes is parsed at each call.
            let is_parsed = !function.contains("$$");
            let has_path = function.contains("SET search_path = pg_catalog, pg_temp");
            assert!(is_parsed || has_path, "{name} has no search_path of its own");
            let is_checked = RUNS_MORE.iter().any(|(of, after)| *of == name && function.contains(after));
            assert!(is_checked || !function.contains("EXECUTE "), "{name} runs what is not seen here");
            for call in tokens(function).windows(2).filter(|two| two[1] == "(" && two[0].contains('.')) {
                assert!(is_qualified(&call[0]), "{name} calls {}", call[0]);
            }
        }
    }
    assert!(functions > 6, "the functions were not found: {functions}");
}
