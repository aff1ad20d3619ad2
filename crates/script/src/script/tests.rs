use proptest::prelude::*;

use super::*;
use crate::{Flow, Prng, Value, Variables, client_seeds, preview};

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
