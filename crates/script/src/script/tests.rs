use proptest::prelude::*;

use crate::command::Flow;
use crate::random::{Prng, client_seeds};
use crate::script::{parse, preview, *};
use crate::variables::{Symbols, Value, Variables};

/// pgbench's builtin "tpcb-like".
const TPCB_LIKE: &str = "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

fn parsed(source: &str) -> (Script, Symbols) {
    let mut symbols = Symbols::new();
    let script = parse("s", source, &mut symbols).unwrap();
    (script, symbols)
}

fn error(source: &str) -> UserError {
    parse("s", source, &mut Symbols::new()).unwrap_err()
}

fn sql(command: &Command) -> &Sql {
    let Action::Sql(sql) = &command.action else { panic!("{command:?}") };
    sql
}

#[test]
fn tpcb_like() {
    let (script, symbols) = parsed(TPCB_LIKE);
    assert_eq!(script.commands.len(), 11);
    let texts: Vec<&str> = script.commands.iter().map(|command| &*command.source).collect();
    assert_eq!(texts, TPCB_LIKE.lines().collect::<Vec<_>>());
    let lines: Vec<u32> = script.commands.iter().map(|command| command.line).collect();
    assert_eq!(lines, (1..=11).collect::<Vec<_>>());
    let update = sql(&script.commands[5]).parameterized(&Variables::default()).unwrap();
    assert_eq!(update.text, "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2");
    assert_eq!(update.parameters.iter().map(|&id| symbols.name(id)).collect::<Vec<_>>(), ["delta", "aid"]);

    let scale = symbols.lookup("scale").unwrap();
    assert_eq!(script.undefined_variables(&symbols, &|_| false), Some((1, scale)));
    assert_eq!(script.undefined_variables(&symbols, &|id| id == scale), None);
}

#[test]
fn tpcb_like_runs_its_meta_commands() {
    let (script, symbols) = parsed(TPCB_LIKE);
    let mut variables = Variables::new(symbols.len());
    variables.set(symbols.lookup("scale").unwrap(), Value::Text("1".into()));
    let mut random = client_seeds(42, 1, 0, false).functions;
    for command in &script.commands {
        let flow = command.action.perform(false, &mut variables, &mut random, &mut |_| {});
        assert_eq!(flow, Ok(Flow::Next));
    }
    // The first number that PostgreSQL 15's pg_prng.c gives client 0 of seed 42 for 1 to 100000.
    assert_eq!(variables.get(symbols.lookup("aid").unwrap()), Some(&Value::Integer(83532)));
    assert_eq!(variables.get(symbols.lookup("bid").unwrap()), Some(&Value::Integer(1)));
}

#[test]
fn commands_know_their_lines() {
    let (script, _) = parsed("-- a comment\n\n/* hint */\nSELECT\n  1;\n\n  \\set a 1 \\\n  + 2\nSELECT 2");
    let lines: Vec<(u32, &str)> = script.commands.iter().map(|c| (c.line, &*c.source)).collect();
    assert_eq!(lines, [(3, "/* hint */\nSELECT\n  1;"), (7, "\\set a 1 \\\n  + 2"), (9, "SELECT 2")]);
}

#[test]
fn scripts_share_symbols() {
    let mut symbols = Symbols::new();
    parse("first", "\\set a 1", &mut symbols).unwrap();
    let second = parse("second", "SELECT :b, :a", &mut symbols).unwrap();
    let sql = sql(&second.commands[0]).parameterized(&Variables::default()).unwrap();
    assert_eq!(sql.parameters, [symbols.lookup("b").unwrap(), symbols.lookup("a").unwrap()]);
    assert_eq!(symbols.len(), 2);
    assert_eq!(second.undefined_variables(&symbols, &|_| false), Some((1, sql.parameters[0])));
}

#[test]
fn a_variable_set_later_counts_as_set() {
    let (script, symbols) = parsed("SELECT :a;\n\\set a :c\nSELECT :b;");
    let undefined = script.undefined_variables(&symbols, &|_| false);
    assert_eq!(undefined, Some((2, symbols.lookup("c").unwrap())));
}

#[test]
fn an_empty_script_is_an_error() {
    for source in ["", " \n", "-- nothing", "\\"] {
        let error = error(source);
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("42601", "empty command list for script \"s\"")
        );
        assert!(error.hint.is_some());
    }
}

#[test]
fn commands_count_as_in_pgbench() {
    let (script, _) = parsed("SELECT 1 \\gset\n;\n/* c */ ;\n-- c\n\\set a 1\n\\\n/* c */");
    let sources: Vec<&str> = script.commands.iter().map(|command| &*command.source).collect();
    assert_eq!(sources, ["SELECT 1", ";", "/* c */ ;", "\\set a 1", "/* c */"]);
}

#[test]
fn what_a_query_may_set_is_not_undefined() {
    let undefined = |source: &str| {
        let (script, symbols) = parsed(source);
        script.undefined_variables(&symbols, &|_| false).map(|(line, id)| (line, symbols.name(id).to_owned()))
    };
    assert_eq!(undefined("SELECT :p_a, :q;\nSELECT 1 \\gset p_"), Some((1, "q".into())));
    assert_eq!(undefined("SELECT :a;\nSELECT 1 \\aset"), None);
    assert_eq!(undefined("\n\\if :a\n\\endif"), Some((2, "a".into())));
    assert_eq!(undefined("\\if 1\n\\elif :a\n\\endif"), Some((2, "a".into())));
    assert_eq!(undefined("\\sleep :a"), Some((1, "a".into())));
    assert_eq!(undefined("SELECT t_:a"), Some((1, "a".into())));
    assert_eq!(undefined("SELECT ':a', $$:b$$, \\:c /* :d */ -- :e"), None);
}

#[test]
fn what_a_script_assigns_and_glues() {
    let (script, symbols) = parsed("\\set a 1\nSELECT t_:b, :c \\gset p\n\\set d 1\nSELECT \":b\" \\aset");
    let mut names = Vec::new();
    script.for_each_assigned(&mut |id| names.push(symbols.name(id)));
    assert_eq!(names, ["a", "d"]);
    assert_eq!(script.capture_prefixes().collect::<Vec<_>>(), ["p", ""]);
    let mut glued = Vec::new();
    script.for_each_glued(&mut |line, id| glued.push((line, symbols.name(id))));
    assert_eq!(glued, [(2, "b"), (4, "b")]);
}

#[test]
fn errors_at_run_time_say_where() {
    let (script, _) = parsed(&format!("SELECT 1;\nSELECT\n2;\nSELECT '{}';", "é".repeat(200)));
    let error = || UserError::new("22012", "division by zero");
    assert_eq!(script.at(1, error()).detail.unwrap(), "script \"s\", line 2:\nSELECT");
    let with_detail = script.at(1, error().detail("More."));
    assert_eq!(with_detail.detail.unwrap(), "script \"s\", line 2:\nMore.");
    assert!(script.at(2, error()).detail.unwrap().len() < 250);
    assert_eq!(script.at(3, error()), error());
}

#[test]
fn errors_show_where() {
    let error = error("SELECT 1;\n  \\set a 1 + foo(2)\nSELECT 2;");
    assert_eq!(error.message, "unexpected function name \"foo\"");
    let expected = "script \"s\", line 2, column 14:\n  \\set a 1 + foo(2)\n             ^";
    assert_eq!(error.detail.as_deref(), Some(expected));
}

#[test]
fn a_client_inside_the_server_has_no_connection() {
    parsed("SELECT 1;").0.check_without_connection().unwrap();
    for command in ["startpipeline", "endpipeline", "syncpipeline"] {
        let error = parsed(&format!("SELECT 1;\n\\{command}")).0.check_without_connection().unwrap_err();
        let reason = "a client inside the server has no connection to pipeline";
        let expected = format!("meta command \"\\{command}\" is not supported: {reason} (0A000)");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.detail, Some(format!("script \"s\", line 2:\n\\{command}")));
        assert_eq!(error.hint.as_deref(), Some("Use driver => 'wire'."));
    }
}

#[test]
fn statements_up_to_the_next_end() {
    let source = "SELECT 0;\n\\startpipeline\nSELECT 2;\n\\if 1\nSELECT 4;\n\\syncpipeline\n\\endif\nSELECT 7 \\; SELECT 8;
        \\endpipeline\nSELECT 9;\n\\startpipeline\nSELECT 11;";
    let (script, _) = parsed(source);
    let indexes = |start| script.statements_in_pipeline(start).map(|(index, _)| index).collect::<Vec<_>>();
    assert_eq!(indexes(1), [2, 4, 7]);
    assert_eq!(indexes(10), [11]);
    assert_eq!(indexes(11), [0_usize; 0]);
}

proptest! {
    #[test]
    fn nothing_panics(source in any::<String>()) {
        let _ = parse("s", &source, &mut Symbols::new());
    }

    #[test]
    fn nothing_like_a_script_panics(
        source in concat!(
            "(\\\\(set |if |elif |else|endif|gset |aset |sleep |;|:|\n)|\n|\r\n|;|:|:a|'|\"|\\$|\\$a\\$|\\(|\\)|",
            "/\\*|\\*/|--|E'| |1|random\\(|é|\u{2003}|,|t_|::){0,40}",
        ),
    ) {
        let mut symbols = Symbols::new();
        if let Ok(script) = parse("s", &source, &mut symbols) {
            script.undefined_variables(&symbols, &|_| false);
            let _ = script.check_parameterized(&symbols, &|_| false, &|_| true);
            for command in &script.commands {
                let text = &*command.source;
                prop_assert!(source.contains(text));
                prop_assert_eq!(text, text.trim_matches([' ', '\n', '\r']));
            }
            let mut emitted = 0;
            let generator = Prng::from_seed(1);
            let _ = preview(&script, 0, Variables::default(), generator, 2, &mut |_, _| true, &mut |_| emitted += 1, &mut || {});
            prop_assert!(emitted <= 2 * script.commands.len() * 10);
        }
    }
}

#[test]
fn long_scripts_look_at_interrupts() {
    let source = format!("SELECT {}1;\n{}", ":a + ".repeat(200_000), "SELECT 1;\n".repeat(50_000));
    let mut symbols = Symbols::new();
    let (parsed, looks) =
        bench_base::interrupts::testing::checks_during(|| parse("s", &source, &mut symbols));
    assert_eq!(parsed.expect("a script").commands.len(), 50_001);
    assert!(looks > 100, "{looks}");
    // Each mention of a feeder's variable is looked at, the whole text once.
    let script = parse("s", &source, &mut symbols).expect("a script");
    assert_eq!(script.check_fed(&symbols, &|_| true, true), Ok(()));
}

#[test]
fn an_empty_prefix_begins_everything() {
    assert!(Prefixes::from_iter([""]).begin(""));
    assert!(Prefixes::from_iter(["a", "", "b"]).begin("c"));
    assert!(!Prefixes::from_iter([]).begin("a"));
}

proptest! {
    #[test]
    fn any_of_them_counts(prefixes in prop::collection::vec("[ab]{1,3}", 0..6), name in "[ab]{0,5}") {
        let expected = prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
        prop_assert_eq!(prefixes.iter().map(String::as_str).collect::<Prefixes>().begin(&name), expected);
    }
}

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
