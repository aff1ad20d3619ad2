//! Whole scripts: of meta commands, and of statements in which quotes, comments and variables get into each
//! other's way.

use bench_script as script;
use bench_script::Symbols;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::expressions::Expressions;

type Script = BoxedStrategy<String>;

/// Variables that every script of [`programs`] sets before it uses them.
const OWN: [&str; 4] = ["a", "b", "c", "d"];

/// A variable, an operator and a number.
fn with_small_number(operators: &[&'static str]) -> Script {
    (select(&OWN[..]), select(operators.to_vec()), -9..9_i32)
        .prop_map(|(name, operator, number)| format!(":{name} {operator} {number}"))
        .boxed()
}

/// Scripts of assignments, conditions and statements; seldom with conditions that do not fit.
pub fn programs() -> Script {
    let expressions = Expressions::new(2);
    // A script is refused for a single one that is wrong.
    let is_right = |text: &String| script::parse("", &format!("\\set a {text}"), &mut Symbols::new()).is_ok();
    let generated = prop_oneof![4 => expressions.integer, 2 => expressions.double, 1 => expressions.boolean];
    let expression = prop_oneof![
        7 => generated.prop_filter("an expression that is accepted", is_right),
        3 => with_small_number(&["+", "-", "*"]),
        1 => select(&OWN[..]).prop_map(|name| format!(":{name}")),
    ]
    .boxed();
    let condition = prop_oneof![
        4 => with_small_number(&["<", "=", "<>", ">="]),
        2 => Just("random(0, 1) = 0".to_owned()),
        1 => expression.clone(),
    ]
    .boxed();
    const OTHERS: [&str; 8] = [
        "\\sleep 0",
        "\\sleep 1 us",
        "\\sleep 1us",
        "\\SLEEP 0 ms",
        "\\sleep :scale us",
        "\\set  b\t1",
        "\\",
        ";",
    ];
    let own = || select(&OWN[..]);
    let line = prop_oneof![
        6 => (own(), expression.clone()).prop_map(|(name, value)| format!("\\set {name} debug({value})")),
        2 => (own(), expression).prop_map(|(name, value)| format!("\\set {name} {value}")),
        3 => (own(), own()).prop_map(|(first, second)| format!("SELECT :{first}, :{second} ;")),
        1 => select(&OTHERS[..]).prop_map(str::to_owned),
    ]
    .boxed();
    let body = line.clone().prop_recursive(3, 24, 4, move |inner| {
        let block = vec(inner, 0..4).prop_map(|lines| lines.join("\n"));
        let arms = vec((condition.clone(), block.clone()), 1..4);
        let nest = (arms, proptest::option::of(block)).prop_map(|(arms, otherwise)| {
            let mut text = String::new();
            for (at, (condition, block)) in arms.into_iter().enumerate() {
                let word = if at == 0 { "if" } else { "elif" };
                text += &format!("\\{word} {condition}\n{block}\n");
            }
            if let Some(block) = otherwise {
                text += &format!("\\else\n{block}\n");
            }
            text + "\\endif"
        });
        prop_oneof![2 => line.clone(), 3 => nest]
    });
    let stray = prop_oneof![
        30 => Just(String::new()),
        1 => select(vec!["\\if 1", "\\elif 1", "\\else", "\\endif", "\\else 1", "\\endif x", "\\if"])
            .prop_map(str::to_owned),
    ];
    (vec(body, 1..8), stray)
        .prop_map(|(body, stray)| {
            let own: String = OWN.iter().map(|name| format!("\\set {name} random(-9, 9)\n")).collect();
            format!("{own}{}\n{stray}\n", body.join("\n"))
        })
        .boxed()
}

/// Pieces of statements and meta commands in any order. `:v`, `:w_2` and `:é` are defined.
pub fn statements() -> Script {
    const PIECES: [&str; 140] = [
        "SELECT",
        "1",
        ",",
        ":v",
        ":w_2",
        ":é",
        ":nowhere",
        ";",
        ";\n",
        ";",
        "\n",
        "\r\n",
        "\t",
        "\\;",
        "\\; ",
        "\\:v",
        "\\:",
        "\\::v",
        ":\\:v",
        ":v:w_2",
        "::v",
        ":::v",
        "::int",
        ":v::int",
        ": v",
        ":1",
        ":1v",
        "12:34:v",
        "a[1:2]",
        "a[:v]",
        "a[:v:w_2]",
        "tbl_:v",
        "tbl_:v_2",
        ":v.x",
        ":nowhere:v",
        "(",
        ")",
        "(",
        ")",
        "((",
        "))",
        "(;",
        ");",
        "'it''s :v; '",
        "'",
        "'a\\'",
        "E'a\\'b;:v'",
        "e'\\\\'",
        "E'x' 'y",
        "'a'\n'b; :v'",
        "E'a'\n  'b\\'; :v'",
        "E'a' -- c\n '\\';'",
        "E'a' /* c */ 'b;'",
        "N'n; :v'",
        "n'\\'",
        "B'01;'",
        "x'1F;'",
        "U&'\\0041;'",
        "U&\"a;\"",
        "u&'",
        "\"id; :v\"",
        "\"a\"\"b;\"",
        "\"",
        "$$",
        "$$ ; :v $$",
        "$a$ ; $$ :v $b$ $a$",
        "$a$",
        "$é$ ; $é$",
        "$1",
        "$1a:v",
        "$",
        "$a",
        "$ $",
        "a$b$c",
        "1$a$",
        "-- x ; :v\n",
        "--",
        "--\n",
        "-- \\set x\n",
        "/* ; :v */",
        "/* /* ; */ ; */",
        "/*",
        "*/",
        "/**/",
        "/*/ */",
        "*/*",
        "+-",
        "<--",
        "<-- x\n",
        "@/* ; */",
        "=-1",
        "1.5",
        "1..2",
        "1e5",
        "1e:v",
        "1e+:v",
        "1.:v",
        "0x1F:v",
        "1_000:v",
        "1__:v",
        ".5e",
        "CREATE FUNCTION f()",
        "create or replace procedure p()",
        "CREATE",
        "FUNCTION",
        "BEGIN ATOMIC",
        "begin",
        "end",
        "END;",
        "CASE",
        "case when :v then 1 end",
        "atomic; SELECT 1; END;",
        "\\set x 1\n",
        "\n\\set y :v + 1\n",
        "\\set z 1 + \\\n 2\n",
        "\\set x 1 -- no\n",
        "\\set q '\n",
        "\\gset\n",
        "\\gset p_\n",
        "\\aset a_b\n",
        "SELECT 5 \\gset\n",
        "\\gset 1x\n",
        "\\if true\n",
        "\\endif\n",
        "\\else\n",
        "\\sleep 0 us\n",
        "\\\n",
        "\\ \n",
        "\\  set x 1\n",
        "\\SET x debug(:x)\n",
        "\\x\n",
        "\\;\\;",
        "\\\\",
        "é",
        "\u{a0}",
        "\u{2003}",
        "\u{b}",
        "\u{c}",
        "%",
        "?",
    ];
    let separator = prop_oneof![6 => Just(" "), 3 => Just(""), 1 => Just("\n")];
    let piece = prop_oneof![
        5 => select(PIECES.to_vec()),
        // What ends statements, so that most scripts have several.
        1 => select(vec![";", ";\n", "SELECT :v;\n", "\n", "/* :v */", "-- :v\n"]),
    ];
    vec((piece, separator), 1..14).prop_map(|pieces| joined(&pieces)).boxed()
}

/// Puts pieces together, with blanks where a variable would be the last of a statement without a semicolon:
/// there pgbench reads beyond the statement's end (`parseVariable` takes the zero there for a letter).
fn joined(pieces: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (at, (piece, separator)) in pieces.iter().enumerate() {
        text += piece;
        text += separator;
        let ends = pieces.get(at + 1).is_none_or(|(next, _)| next.starts_with('\\'));
        if ends && text.ends_with(|last: char| last == ':' || last == '_' || last.is_alphanumeric()) {
            text.push(' ');
        }
    }
    text
}

/// Statements without quotes that may stay open, so that fewer are refused.
pub fn tame_statements() -> Script {
    let is_tame = |text: &String| !text.contains("\\x") && !text.contains("\\\\");
    statements().prop_filter("nothing that is surely refused", is_tame).boxed()
}

/// Statements whose variables stand where values can, for the modes with parameters.
pub fn parameterized() -> Script {
    const OTHERS: [&str; 7] = [
        "\\set a :a + 1",
        "\\set a random(1, 1000)",
        "\\set a random(1, 1000) / 7.0",
        "\\set a :a > 5",
        "BEGIN;",
        "END;",
        ";",
    ];
    let value = select(vec![
        ":v",
        ":w_2",
        ":é",
        ":client_id",
        ":a",
        "1",
        "'text'",
        "$$ ; $$",
        ":v::int",
        "a[1]",
        "(:v)",
        "x.y",
        "12:34",
        "\"id\"",
    ]);
    let separator = select(vec![", ", ",", " + ", " ", "\n", " /* c */ ", " || "]);
    let statement = vec((value, separator), 1..6).prop_map(|parts| {
        let parts: String =
            parts.into_iter().map(|(value, separator)| format!("{value}{separator}")).collect();
        format!("SELECT {parts} 1")
    });
    let line = prop_oneof![
        4 => statement.prop_map(|statement| statement + ";"),
        1 => select(&OTHERS[..]).prop_map(str::to_owned),
    ];
    vec(line, 1..8).prop_map(|lines| format!("\\set a 1\n{}\n", lines.join("\n"))).boxed()
}

/// Lines of meta commands that are mostly wrong.
pub fn meta_lines() -> Script {
    const PIECES: [&str; 58] = [
        "\\set",
        "\\SeT",
        "\\if",
        "\\elif",
        "\\else",
        "\\endif",
        "\\sleep",
        "\\gset",
        "\\aset",
        "\\nope",
        "\\",
        "\\set_",
        "\\setx",
        "\\1",
        "x",
        "1x",
        "é",
        "1",
        "10",
        "-5",
        "+5",
        "5us",
        "5 us",
        "5ms",
        "1 s",
        "1s",
        "5 min",
        "us",
        "ms",
        ":x",
        ":",
        ":1",
        ":x us",
        "::x",
        "a b",
        "\"x\"",
        "'x'",
        "x;",
        "-- c",
        "/* c */",
        "1 + ",
        "(",
        "debug(1)",
        "true",
        "null",
        "SELECT 1",
        ";",
        "SELECT 1 AS a",
        "\n",
        "\n",
        "\\\n",
        "\r",
        "\t",
        "a-b",
        "a.b",
        "$x",
        "18446744073709551616",
        "\\\r\n",
    ];
    let separator = prop_oneof![6 => Just(" "), 1 => Just("")];
    vec((select(PIECES.to_vec()), separator), 1..7)
        .prop_map(|pieces| {
            pieces.into_iter().map(|(piece, separator)| format!("{piece}{separator}")).collect()
        })
        .boxed()
}
