use super::*;
use proptest::prelude::*;

/// The statements and meta commands of a script, as written.
fn pieces(text: &str) -> Vec<&str> {
    split(Source { name: "s", text })
        .unwrap()
        .into_iter()
        .map(|piece| match piece {
            Piece::Sql { range, .. } => &text[range],
            Piece::Meta(range) => &text[range],
        })
        .collect()
}

/// The variables of a script's statements, in order.
fn variables(text: &str) -> Vec<&str> {
    split(Source { name: "s", text })
        .unwrap()
        .into_iter()
        .flat_map(|piece| match piece {
            Piece::Sql { variables, .. } => variables,
            Piece::Meta(_) => vec![],
        })
        .map(|name| &text[name])
        .collect()
}

fn error(text: &str) -> String {
    split(Source { name: "s", text }).unwrap_err().to_string()
}

#[test]
fn semicolons_end_statements() {
    assert_eq!(pieces("BEGIN; SELECT\n 1 ;\nEND"), ["BEGIN;", "SELECT\n 1 ;", "END"]);
    assert_eq!(pieces(" ;; \n ; SELECT 1;;"), ["SELECT 1;"]);
    assert_eq!(pieces(""), [""; 0]);
}

#[test]
fn semicolons_inside_something_do_not() {
    for text in [
        "SELECT ';';",
        "SELECT 'it''s;';",
        r"SELECT E'\';';",
        "SELECT E'a'\n 'b\\';';",
        "SELECT E'a' -- c\n 'b\\';';",
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
}

#[test]
fn comments_before_a_statement() {
    assert_eq!(pieces("-- one\n/* two */ SELECT 1; -- three"), ["/* two */ SELECT 1;"]);
    assert_eq!(pieces("/* nothing */ ; -- at all"), [""; 0]);
}

#[test]
fn meta_commands_end_with_their_line() {
    assert_eq!(
        pieces("\\set a 1\n  \\set b 2 \\\n + 3\nSELECT 1;\n\\set c \\\r\n4"),
        ["\\set a 1", "\\set b 2 \\\n + 3", "SELECT 1;", "\\set c \\\r\n4"]
    );
    assert_eq!(pieces("SELECT 1 \\gset\nSELECT 2"), ["SELECT 1", "\\gset", "SELECT 2"]);
}

#[test]
fn variables_are_found_outside_quotes_only() {
    assert_eq!(variables("SELECT :a, ':b', \":c\", $$:d$$, /* :e */ :f_1 -- :g"), ["a", "f_1"]);
    assert_eq!(variables("SELECT 1::int, x:::y, a := 1, [:b], :1c, :é+:a;"), ["b", "é", "a"]);
    assert_eq!(variables("SELECT a[1:n], :\"x\", :'y'"), ["n"]);
}

#[test]
fn only_ascii_blanks_separate() {
    assert_eq!(pieces("SELECT :a\u{a0} \\set a 1"), ["SELECT :a\u{a0}", "\\set a 1"]);
    assert_eq!(variables("SELECT :a\u{a0}"), ["a\u{a0}"]);
    assert_eq!(pieces("\x0b SELECT 1 \x0b"), ["SELECT 1"]);
}

#[test]
fn what_does_not_end_is_an_error() {
    assert_eq!(error("SELECT 'a"), "unterminated quoted string (42601)");
    assert_eq!(error("SELECT E'a\\'"), "unterminated quoted string (42601)");
    assert_eq!(error("SELECT \"a"), "unterminated quoted identifier (42601)");
    assert_eq!(error("SELECT $a$ $b$"), "unterminated dollar-quoted string (42601)");
    assert_eq!(error("SELECT /* /* */"), "unterminated /* comment (42601)");
    assert_eq!(error("SELECT 1 \\; SELECT 2"), "meta command \"\\;\" is not supported yet (0A000)");
}

proptest! {
    #[test]
    fn joining_undoes_splitting(
        statements in prop::collection::vec(
            "SELECT( 'a;''b'| \"c;\"| \\$q\\$;'\\$q\\$| /\\*;\\*/ 1| :x| \\(;\\)| -- ;\n 2){1,4}",
            0..6,
        ),
        separator in "( |\n|;| -- c;\n){0,3}",
    ) {
        let script: String = statements.iter().map(|statement| format!("{statement};{separator}\n")).collect();
        let expected: Vec<String> = statements.iter().map(|statement| format!("{statement};")).collect();
        prop_assert_eq!(pieces(&script), expected);
    }

    #[test]
    fn pieces_are_in_order_and_apart(text in "[ \n;:'\"$()/*a1é\\\\-]{0,60}") {
        let mut end_before = 0;
        for piece in split(Source { name: "s", text: &text }).unwrap_or_default() {
            let (Piece::Sql { range, .. } | Piece::Meta(range)) = piece;
            prop_assert!(end_before <= range.start && range.start < range.end);
            end_before = range.end;
        }
    }
}
