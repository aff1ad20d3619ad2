use proptest::prelude::*;

use crate::lexer::MentionKind::{Glued, InIdentifier, Inert, Parameter, Quoted};
use crate::lexer::*;

fn statements(text: &str) -> Vec<StatementText> {
    let statement = |piece| match piece {
        CommandText::Sql(statement) => Some(statement),
        CommandText::Meta(_) => None,
    };
    split(ScriptText { name: "s", text }).unwrap().into_iter().filter_map(statement).collect()
}

/// The statements and meta commands of a script, as written.
fn pieces(text: &str) -> Vec<&str> {
    split(ScriptText { name: "s", text })
        .unwrap()
        .into_iter()
        .map(|piece| match piece {
            CommandText::Sql(statement) => &text[statement.range],
            CommandText::Meta(range) => &text[range],
        })
        .collect()
}

/// What a script's statements mention, in order.
fn mentions(text: &str) -> Vec<(&str, MentionKind)> {
    let mentions = statements(text).into_iter().flat_map(|statement| statement.mentions);
    mentions.map(|mention| (&text[mention.name], mention.kind)).collect()
}

/// The variables of a script's statements that can be parameters, in order.
fn parameters(text: &str) -> Vec<&str> {
    mentions(text).into_iter().filter(|&(_, kind)| kind == Parameter).map(|(name, _)| name).collect()
}

fn error(text: &str) -> String {
    split(ScriptText { name: "s", text }).unwrap_err().to_string()
}

#[test]
fn semicolons_end_statements() {
    assert_eq!(pieces("BEGIN; SELECT\n 1 ;\nEND"), ["BEGIN;", "SELECT\n 1 ;", "END"]);
    assert_eq!(pieces(""), [""; 0]);
}

#[test]
fn a_semicolon_alone_is_a_statement() {
    assert_eq!(pieces(" ;; \n -- c\n ; SELECT 1;;"), [";", ";", ";", "SELECT 1;", ";"]);
    let contents: Vec<bool> =
        statements("; SELECT 1; /* c */; \\; ;").iter().map(|s| s.has_content).collect();
    assert_eq!(contents, [false, true, false, false]);
}

#[test]
fn semicolons_inside_something_do_not() {
    for text in [
        "SELECT ';';",
        "SELECT 'it''s;';",
        r"SELECT E'\';';",
        "SELECT E'a'\n 'b\\';';",
        "SELECT E'a' -- c\n 'b\\';';",
        "SELECT B'1;', x'1''f;', n';', U&';', u&\";\", u&';';",
        "SELECT \";\";",
        "SELECT \"a\"\";\";",
        "SELECT $$;$$;",
        "SELECT $a$;$$;$b$;$a$;",
        "SELECT $a$;$b$a$;",
        "SELECT $é$;$é$;",
        "SELECT 1 /* ; /* ; */ ; */;",
        "SELECT 1 +/* ; */ 2;",
        "SELECT 1 -- ;\n + 2;",
        "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);",
        "SELECT 1 \\; SELECT 2;",
    ] {
        assert_eq!(pieces(&format!("{text} SELECT 2;")), [text, "SELECT 2;"], "{text}");
    }
}

#[test]
fn what_only_looks_like_a_quote_is_none() {
    assert_eq!(pieces("SELECT a$b; SELECT c$b;"), ["SELECT a$b;", "SELECT c$b;"]);
    assert_eq!(pieces("SELECT $1; SELECT $1;"), ["SELECT $1;", "SELECT $1;"]);
    assert_eq!(pieces(r"SELECT '\'; SELECT '\';"), [r"SELECT '\';", r"SELECT '\';"]);
    assert_eq!(pieces(r"SELECT type'\'; SELECT 2;"), [r"SELECT type'\';", "SELECT 2;"]);
    assert_eq!(pieces("SELECT $; SELECT $x;"), ["SELECT $;", "SELECT $x;"]);
    assert_eq!(pieces("SELECT 1); SELECT 2;"), ["SELECT 1);", "SELECT 2;"]);
    // A word behind a number without a blank belongs to it.
    for number in ["1", "1.", ".5", "1e5", "1_000", "1.5e+3", "$1"] {
        let statement = format!(r"SELECT {number}E'\';");
        assert_eq!(pieces(&format!("{statement} SELECT 2;")), [&statement, "SELECT 2;"]);
    }
}

#[test]
fn the_bodies_of_routines_contain_statements() {
    for text in [
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END;",
        "create or replace procedure p() begin atomic select case when true then 1 end; select 2; END;",
        "/* c */ CREATE FUNCTION f() BEGIN ATOMIC BEGIN SELECT 1; END; SELECT 2; END;",
        "SELECT 1 \\; CREATE PROCEDURE p() BEGIN ATOMIC SELECT 1; END;",
    ] {
        assert_eq!(pieces(&format!("{text} SELECT 2;")), [text, "SELECT 2;"], "{text}");
    }
    for (text, first) in [
        ("BEGIN; SELECT 1; END;", "BEGIN;"),
        ("CREATE TABLE begin(); SELECT 1;", "CREATE TABLE begin();"),
        ("CREATE FUNCTION f(begin int); SELECT 1;", "CREATE FUNCTION f(begin int);"),
        ("CREATE FUNCTION \"begin\"(); SELECT 1;", "CREATE FUNCTION \"begin\"();"),
        ("CREATE FUNCTION f() CASE; SELECT 1;", "CREATE FUNCTION f() CASE;"),
        ("CREATE FUNCTION f() END; SELECT 1;", "CREATE FUNCTION f() END;"),
        ("CREATE OR FUNCTION f() BEGIN; SELECT 1;", "CREATE OR FUNCTION f() BEGIN;"),
    ] {
        assert_eq!(pieces(text)[0], first);
    }
}

#[test]
fn comments_before_a_statement() {
    assert_eq!(pieces("-- one\n/* two */ SELECT 1; -- three"), ["/* two */ SELECT 1;"]);
    assert_eq!(pieces("/* nothing */ ; -- at all"), ["/* nothing */ ;"]);
    assert_eq!(pieces("/* nothing */ -- at all"), ["/* nothing */ -- at all"]);
    assert_eq!(mentions("-- :a\n/* :b */ SELECT 1 -- :c"), [("b", Inert), ("c", Inert)]);
}

#[test]
fn meta_commands_end_with_their_line() {
    assert_eq!(
        pieces("\\set a 1\n  \\set b 2 \\\n + 3\nSELECT 1;\n\\set c \\\r\n4"),
        ["\\set a 1", "\\set b 2 \\\n + 3", "SELECT 1;", "\\set c \\\r\n4"]
    );
    assert_eq!(pieces("SELECT 1 \\gset\nSELECT 2"), ["SELECT 1", "\\gset", "SELECT 2"]);
    // At a line's end a backslash is a meta command without a name, and continues nothing.
    assert_eq!(pieces("SELECT 1 \\\n + 2;"), ["SELECT 1", "\\", "+ 2;"]);
}

#[test]
fn a_meta_command_ends_no_parentheses() {
    assert_eq!(
        pieces("SELECT (1 \\set a 1\n; 2); SELECT 3;"),
        ["SELECT (1", "\\set a 1", "; 2);", "SELECT 3;"]
    );
    let text = "CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; \\set a 1\n SELECT 2; END; SELECT 3;";
    let begin = "CREATE FUNCTION f() BEGIN ATOMIC SELECT 1;";
    assert_eq!(pieces(text), [begin, "\\set a 1", "SELECT 2; END;", "SELECT 3;"]);
}

#[test]
fn escapes_are_no_part_of_the_text() {
    let text = "SELECT 1 \\; SELECT a[1\\:2];";
    let statement = &statements(text)[0];
    assert_eq!(statement.escapes, [9, 22]);
    assert!(statement.is_compound);
    assert!(!statements("SELECT a[1\\:2];")[0].is_compound);
    // pgbench replaces what follows an escaped colon, where it has a value.
    assert_eq!(mentions("SELECT \\:a, \\::b, :\\:c, \\:1"), [("a", Inert)]);
}

#[test]
fn parameters_are_found_outside_quotes_only() {
    let text = "SELECT :a, ':b', \":c\", $$:d$$, /* :e */ :f_1 -- :g";
    assert_eq!(
        mentions(text),
        [
            ("a", Parameter),
            ("b", Quoted),
            ("c", InIdentifier),
            ("d", Quoted),
            ("e", Inert),
            ("f_1", Parameter),
            ("g", Inert)
        ]
    );
    assert_eq!(parameters("SELECT 1::int, x:::y, a := 1, [:b], :1c, :é+:a;"), ["b", "é", "a"]);
    assert_eq!(parameters("SELECT a[1:n], :\"x\", :'y'"), ["n"]);
    assert_eq!(mentions("SELECT '12:30::x:y'"), [("y", Quoted)]);
}

#[test]
fn variables_behind_an_identifier_are_glued() {
    for text in ["tbl_:a", "é:a", "a$:a", "SELECT:a", "1x:a", "$1x:a", "1e5x:a", "1e5$:a", "$b:a"] {
        assert_eq!(mentions(text), [("a", Glued)], "{text}");
    }
    for text in ["\"b:a\"", "u&\"b:a\""] {
        assert_eq!(mentions(text), [("a", InIdentifier)], "{text}");
    }
    for text in
        ["1:a", "1.5:a", "1e5:a", "0 :a", "$1:a", "(:a", "tbl /**/:a", "\"b\":a", "'b':a", "+:a", "$$$$:a"]
    {
        assert_eq!(mentions(text), [("a", Parameter)], "{text}");
    }
    assert_eq!(mentions("t:a:b :c:d"), [("a", Glued), ("b", Glued), ("c", Parameter), ("d", Parameter)]);
}

#[test]
fn only_ascii_blanks_separate() {
    assert_eq!(pieces("SELECT :a\u{a0} \\set a 1"), ["SELECT :a\u{a0}", "\\set a 1"]);
    assert_eq!(parameters("SELECT :a\u{a0}"), ["a\u{a0}"]);
    assert_eq!(pieces("\x0b SELECT 1 \x0b"), ["SELECT 1"]);
}

#[test]
fn what_does_not_end_is_an_error() {
    assert_eq!(error("SELECT 'a"), "unterminated quoted string (42601)");
    assert_eq!(error("SELECT E'a\\'"), "unterminated quoted string (42601)");
    assert_eq!(error("SELECT E'a\\"), "unterminated quoted string (42601)");
    assert_eq!(error("SELECT \"a"), "unterminated quoted identifier (42601)");
    assert_eq!(error("SELECT $a$ $b$"), "unterminated dollar-quoted string (42601)");
    assert_eq!(error("SELECT /* /* */"), "unterminated /* comment (42601)");
}

/// Whether there are only blanks, and comments to the end of the line.
fn is_nothing(text: &str) -> bool {
    text.lines().map(str::trim_start).all(|line| line.is_empty() || line.starts_with("--"))
}

proptest! {
    #[test]
    fn joining_undoes_splitting(
        statements in prop::collection::vec(
            "SELECT( 'a;''b'| \"c;\"| \\$q\\$;'\\$q\\$| /\\*;\\*/ 1| :x| \\(;\\)| \\\\;| -- ;\n 2){1,4}",
            0..6,
        ),
        separator in "( |\n| -- c;\n){0,3}",
    ) {
        let script: String = statements.iter().map(|statement| format!("{statement};{separator}\n")).collect();
        let expected: Vec<String> = statements.iter().map(|statement| format!("{statement};")).collect();
        prop_assert_eq!(pieces(&script), expected);
    }

    #[test]
    fn nothing_is_lost_between_pieces(text in "([ \n;:'\"$()/*a1é-]|\\\\[;:\n]?){0,60}") {
        let Ok(pieces) = split(ScriptText { name: "s", text: &text }) else { return Ok(()) };
        let mut end_before = 0;
        for piece in pieces {
            let range = match &piece {
                CommandText::Sql(statement) => statement.range.clone(),
                CommandText::Meta(range) => range.clone(),
            };
            prop_assert!(range.start < range.end);
            prop_assert!(is_nothing(&text[end_before..range.start]));
            end_before = range.end;
            let CommandText::Sql(statement) = piece else { continue };
            prop_assert!(statement.escapes.is_sorted() && statement.escapes.iter().all(|at| range.contains(at)));
            let mut end_of_mention = range.start;
            for mention in statement.mentions {
                prop_assert!(end_of_mention < mention.name.start && mention.name.end <= statement.text_end);
                prop_assert_eq!(&text[mention.name.start - 1..mention.name.start], ":");
                end_of_mention = mention.name.end;
            }
        }
        prop_assert!(is_nothing(&text[end_before..]));
    }
}
