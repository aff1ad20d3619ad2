use super::*;
use proptest::prelude::*;

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

fn statement(source: &str) -> (String, Vec<String>) {
    let (script, symbols) = parsed(source);
    match &script.commands[..] {
        [Command::Sql(sql)] => {
            let names = sql.parameters.iter().map(|&id| symbols.name(id).to_owned()).collect();
            (sql.text.clone(), names)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn tpcb_like() {
    let (script, symbols) = parsed(TPCB_LIKE);
    assert_eq!(script.commands.len(), 11);
    let texts: Vec<&str> = script.commands.iter().map(Command::text).collect();
    assert_eq!(texts, TPCB_LIKE.lines().collect::<Vec<_>>());
    let lines: Vec<u32> = script.commands.iter().map(Command::line).collect();
    assert_eq!(lines, (1..=11).collect::<Vec<_>>());
    let Command::Sql(update) = &script.commands[5] else { panic!() };
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
    let mut random = client_generator(42, 0);
    for command in &script.commands {
        if let Command::Set(set) = command {
            let value = set.expression.evaluate(&variables, &mut random).unwrap();
            variables.set(set.target, value);
        }
    }
    // The first number that PostgreSQL 15's pg_prng.c gives client 0 of seed 42 for 1 to 100000.
    assert_eq!(variables.get(symbols.lookup("aid").unwrap()), Some(&Value::Integer(83532)));
    assert_eq!(variables.get(symbols.lookup("bid").unwrap()), Some(&Value::Integer(1)));
}

#[test]
fn each_mention_of_a_variable_is_a_parameter() {
    let (text, names) = statement("SELECT :b::int, :a, :b, ':a' /* :a */;");
    assert_eq!(text, "SELECT $1::int, $2, $3, ':a' /* :a */");
    assert_eq!(names, ["b", "a", "b"]);
    assert_eq!(statement("SELECT 1 ;").0, "SELECT 1");
    assert_eq!(statement("SELECT :é").0, "SELECT $1");
}

#[test]
fn commands_know_their_lines() {
    let (script, _) = parsed("-- a comment\n\n/* hint */\nSELECT\n  1;\n\n  \\set a 1 \\\n  + 2\nSELECT 2");
    let lines: Vec<(u32, &str)> = script.commands.iter().map(|c| (c.line(), c.text())).collect();
    assert_eq!(lines, [(3, "/* hint */\nSELECT\n  1;"), (7, "\\set a 1 \\\n  + 2"), (9, "SELECT 2")]);
}

#[test]
fn scripts_share_symbols() {
    let mut symbols = Symbols::new();
    parse("first", "\\set a 1", &mut symbols).unwrap();
    let second = parse("second", "SELECT :b, :a", &mut symbols).unwrap();
    let Command::Sql(sql) = &second.commands[0] else { panic!() };
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
    for source in ["", " \n", "-- nothing", "/* nothing */ ;"] {
        let error = error(source);
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("42601", "empty command list for script \"s\"")
        );
        assert!(error.hint.is_some());
    }
}

#[test]
fn meta_commands_that_are_not_set() {
    assert_eq!(error("\\sleep 1 ms").to_string(), "meta command \"\\sleep\" is not supported yet (0A000)");
    assert_eq!(
        error("SELECT 1 AS a \\gset").to_string(),
        "meta command \"\\gset\" is not supported yet (0A000)"
    );
    assert_eq!(error("\\IF 1").to_string(), "meta command \"\\IF\" is not supported yet (0A000)");
    assert_eq!(error("\\foo").to_string(), "invalid command \"\\foo\" (42601)");
    assert_eq!(error("SELECT 1; \\").to_string(), "invalid command \"\\\" (42601)");
}

#[test]
fn set_needs_a_name_and_an_expression() {
    assert_eq!(error("\\set").to_string(), "missing argument in command \"\\set\" (42601)");
    assert_eq!(error("\\set \\\n").to_string(), "missing argument in command \"\\set\" (42601)");
    assert_eq!(error("\\set 1a 1").to_string(), "invalid variable name \"1a\" (42601)");
    assert_eq!(error("\\set a\nSELECT 1;").to_string(), "syntax error at end of expression (42601)");
    assert!(parse("s", "\\SET a\\\n1", &mut Symbols::new()).is_ok());
}

#[test]
fn errors_show_where() {
    let error = error("SELECT 1;\n  \\set a 1 + foo(2)\nSELECT 2;");
    assert_eq!(error.message, "unexpected function name \"foo\"");
    let expected = "script \"s\", line 2, column 14:\n  \\set a 1 + foo(2)\n             ^";
    assert_eq!(error.detail.as_deref(), Some(expected));
}

proptest! {
    #[test]
    fn nothing_panics(source in any::<String>()) {
        let _ = parse("s", &source, &mut Symbols::new());
    }

    #[test]
    fn nothing_like_a_script_panics(
        source in "(\\\\set |\\\\|\n|\r\n|;|:|:a|'|\"|\\$|\\$a\\$|\\(|\\)|/\\*|\\*/|--|E'| |1|random\\(|é|\u{2003}|,){0,40}",
    ) {
        let mut symbols = Symbols::new();
        if let Ok(script) = parse("s", &source, &mut symbols) {
            script.undefined_variables(&symbols, &|_| false);
            for command in &script.commands {
                prop_assert!(source.contains(command.text()));
                prop_assert_eq!(command.text(), command.text().trim_matches([' ', '\n', '\r']));
            }
        }
    }
}
