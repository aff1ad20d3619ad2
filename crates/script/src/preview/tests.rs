use proptest::prelude::*;

use super::*;
use crate::{Symbols, Value, parse};

/// The lines of a preview, and the error that ended it.
fn lines(source: &str, transactions: u32) -> (Vec<PreviewLine>, Option<UserError>) {
    let mut symbols = Symbols::new();
    let script = parse("s", source, &mut symbols).unwrap();
    let mut variables = Variables::new(symbols.len());
    variables.set(symbols.intern("scale"), Value::Integer(1));
    let mut lines = Vec::new();
    let mut emit = |line| lines.push(line);
    let result = preview(
        &script,
        3,
        variables,
        Prng::from_seed(42),
        transactions,
        &mut |_, _| true,
        &mut emit,
        &mut || {},
    );
    (lines, result.err())
}

fn outputs(source: &str) -> Vec<String> {
    let (lines, error) = lines(source, 1);
    assert_eq!(error, None);
    lines.into_iter().map(|line| line.output).collect()
}

#[test]
fn statements_with_their_values() {
    let source =
        "\\set a :scale + 1\n-- c\nSELECT :a, ':a', :b;\n\\sleep 9 s\nSELECT 1 AS c \\gset\nSELECT :c \\; ;;";
    let (lines, error) = lines(source, 2);
    assert_eq!(error, None);
    let line = |transaction, command, line, output: &str| PreviewLine {
        transaction,
        command,
        line,
        output: output.into(),
    };
    assert_eq!(
        lines[..4],
        [
            line(1, 2, 3, "SELECT 2, '2', :b"),
            line(1, 4, 5, "SELECT 1 AS c"),
            line(1, 5, 6, "SELECT :c ;"),
            line(1, 6, 6, "")
        ]
    );
    assert_eq!(lines[4], line(2, 2, 3, "SELECT 2, '2', :b"));
    assert_eq!(lines.len(), 8);
}

#[test]
fn what_debug_shows() {
    let (lines, _) = lines("\\set a 1\n\\if debug(:a + 41) > 0\n\\set b debug(:a)\n\\endif", 1);
    let lines: Vec<(u32, u32, &str)> =
        lines.iter().map(|line| (line.command, line.line, line.output.as_str())).collect();
    assert_eq!(
        lines,
        [(2, 2, "debug(script=3,command=2): int 42"), (3, 3, "debug(script=3,command=3): int 1")]
    );
}

#[test]
fn one_branch_at_most() {
    let branches = "\\if :x = 1\n1;\n\\elif :x = 2\n2;\n\\elif :x = 3\n3;\n\\else\n4;\n\\endif\n5;";
    for (x, expected) in [(1, "1"), (2, "2"), (3, "3"), (4, "4")] {
        assert_eq!(outputs(&format!("\\set x {x}\n{branches}")), [expected, "5"]);
    }
    // What is not entered is not evaluated.
    assert_eq!(outputs("\\if 1\n1;\n\\elif 1/0\n2;\n\\else\n\\set a 1/0\n\\endif"), ["1"]);
    let first = "\\if 1\n1;\n\\else\n2;\n\\endif";
    let second = "\\if 0\n3;\n\\elif null\n\\else\n4;\n\\endif";
    assert_eq!(outputs(&format!("\\if 0\n{first}\n\\else\n{second}\n\\endif")), ["4"]);
    assert_eq!(outputs("\\if 0\n1;\n\\endif\n\\if 1\n\\endif\n2;"), ["2"]);
}

#[test]
fn variables_live_longer_than_transactions() {
    let (lines, _) = lines("SELECT :n;\n\\set n 1", 2);
    assert_eq!(lines.iter().map(|line| &*line.output).collect::<Vec<_>>(), ["SELECT :n", "SELECT 1"]);
}

#[test]
fn an_error_ends_it() {
    let (lines, error) = lines("SELECT 1;\n\\set a \\\n 1/0\nSELECT 2;", 2);
    assert_eq!(lines.len(), 1);
    let error = error.unwrap();
    assert_eq!(error.to_string(), "division by zero (22012)");
    assert_eq!(error.detail.as_deref(), Some("script \"s\", line 2:\n\\set a \\"));
}

proptest! {
    #[test]
    fn it_ends_and_does_not_panic(
        source in "(\\\\(if [01]|elif [01]|else|endif|set a :a \\+ 1|sleep :a)\n|SELECT :a;|;){0,30}",
    ) {
        let mut symbols = Symbols::new();
        if let Ok(script) = parse("s", &source, &mut symbols) {
            let mut last = (0, 0);
            let emit = &mut |line: PreviewLine| {
                assert!((line.transaction, line.command) > last);
                last = (line.transaction, line.command);
            };
            let _ = preview(&script, 0, Variables::default(), Prng::from_seed(1), 3, &mut |_, _| true, emit, &mut || {});
        }
    }
}

#[test]
fn pipelines_end_where_they_have_to() {
    let pipeline = "\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\nSELECT 3;";
    assert_eq!(outputs(pipeline), ["SELECT 1", "SELECT 2", "SELECT 3"]);
    let failure = |source: &str| {
        let error = lines(source, 1).1.unwrap();
        format!("{error} {}", error.detail.as_deref().unwrap())
    };
    assert_eq!(
        failure("\\startpipeline\n\\if 0\n\\endpipeline\n\\endif"),
        "end of script reached with pipeline open (55000) script \"s\", line 4:\n\\endif"
    );
    assert_eq!(failure("\\endpipeline"), "not in pipeline mode (55000) script \"s\", line 1:\n\\endpipeline");
    assert_eq!(
        failure("\\startpipeline\nSELECT 1 \\gset\n\\endpipeline"),
        "\\gset is not allowed in pipeline mode (55000) script \"s\", line 2:\nSELECT 1"
    );
}
