//! This project's statements run under a search_path of pg_catalog alone: here by `spi::restricted`, on a target by
//! `connection::under_own_path`; bare names are the server's there. Names have their schema only in texts that run under a
//! session's search_path, where a name without one can be made to mean something else by whoever may create objects in a schema
//! of that path: texts with a user's names in them, texts that are kept for later, those that a node of a cluster executes. A
//! text that names something with its schema is one of these, and so is each that is given to `in_session`; they have to name
//! everything so: every function, relation and type in them is read as text; exceptions are listed with their reasons.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::sources;

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
        "capture/log/table_rows.rs",
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
