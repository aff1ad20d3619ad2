use std::time::Duration;

use crate::command::{Flow, LONGEST_SLEEP};
use crate::meta::*;
use crate::random::Prng;
use crate::script::{Script, parse};
use crate::sql::Sql;
use crate::variables::{Value, Variables};

fn parsed(source: &str) -> (Script, Symbols) {
    let mut symbols = Symbols::new();
    let script = parse("s", source, &mut symbols).unwrap();
    (script, symbols)
}

fn error(source: &str) -> UserError {
    parse("s", source, &mut Symbols::new()).unwrap_err()
}

fn perform(action: &Action, otherwise: bool, variables: &mut Variables) -> Result<Flow, UserError> {
    action.perform(otherwise, variables, &mut Prng::from_seed(42), &mut |_| {})
}

/// What the only command of a script does when `x` has a value.
fn flow(source: &str, x: Option<Value>) -> Result<Flow, UserError> {
    let (script, mut symbols) = parsed(source);
    let mut variables = Variables::new(symbols.len());
    if let Some(value) = x {
        variables.set(symbols.intern("x"), value);
    }
    perform(&script.commands[0].action, false, &mut variables)
}

fn captures(source: &str) -> Vec<Option<(String, bool)>> {
    let capture = |sql: &Sql| sql.capture.clone().map(|capture| (capture.prefix, capture.every_query));
    let (script, _) = parsed(source);
    script.statements().map(|(_, sql)| capture(sql)).collect()
}

#[test]
fn sleeps() {
    for (source, micros) in [
        ("\\sleep 2", 2_000_000),
        ("\\sleep 2 s", 2_000_000),
        ("\\SLEEP 2 MS", 2_000),
        ("\\sleep 2us", 2),
        ("\\sleep +2ms", 2_000),
        ("\\sleep -2 ms", 0),
        ("\\sleep 0", 0),
        ("\\sleep +", 0),
        ("\\sleep \\\n2 \\\nus", 2),
        ("\\sleep 5000000000 us", 5_000_000_000),
    ] {
        assert_eq!(flow(source, None), Ok(Flow::Sleep(Duration::from_micros(micros))), "{source}");
    }
    for unit in ["us", "ms", "s"] {
        let sleep = format!("\\sleep {}{unit}", "9".repeat(99));
        assert_eq!(flow(&sleep, None), Ok(Flow::Sleep(LONGEST_SLEEP)));
    }
}

#[test]
fn sleeps_of_a_variable() {
    let text = |text: &str| Some(Value::Text(text.into()));
    for (value, millis) in [
        (Some(Value::Integer(3)), 3),
        (Some(Value::Integer(i64::MIN)), 0),
        (Some(Value::Double(3.9)), 3),
        (text("3"), 3),
        (text("3x"), 3),
        (text("0"), 0),
        (text("0.5"), 0),
        (text(" +3"), 3),
        (text("-3"), 0),
        (text("00"), 0),
    ] {
        let expected = Flow::Sleep(Duration::from_millis(millis));
        assert_eq!(flow("\\sleep :x ms", value.clone()), Ok(expected), "{value:?}");
    }
    for value in ["x", "", " ", "-", "-0", " 0", "é"] {
        let error = flow("\\sleep :x", text(value)).unwrap_err();
        let message = format!("sleep: invalid sleep time \"{value}\" for variable \"x\"");
        assert_eq!((&*error.sqlstate, error.message), ("22023", message));
    }
    assert!(flow("\\sleep :x", Some(Value::Null)).is_err());
    assert_eq!(flow("\\sleep :x", None).unwrap_err().to_string(), "sleep: undefined variable \"x\" (42703)");
}

#[test]
fn sleeps_that_are_none() {
    for (source, message) in [
        ("\\sleep", "missing argument in command \"sleep\""),
        ("\\sleep too many args", "too many arguments in command \"sleep\""),
        ("\\sleep 1 s s", "too many arguments in command \"sleep\""),
        ("\\sleep 1ms s", "invalid sleep time, must be an integer (1ms) in command \"sleep\""),
        ("\\sleep x", "invalid sleep time, must be an integer (x) in command \"sleep\""),
        ("\\sleep -x", "invalid sleep time, must be an integer (-x) in command \"sleep\""),
        ("\\sleep 1 week", "unrecognized time unit, must be us, ms or s (week) in command \"sleep\""),
        ("\\sleep 1.5 s", "invalid sleep time, must be an integer (1.5) in command \"sleep\""),
        ("\\sleep 1.5", "unrecognized time unit, must be us, ms or s (.5) in command \"sleep\""),
        ("\\sleep :x week", "unrecognized time unit, must be us, ms or s (week) in command \"sleep\""),
        ("\\sleep :", "invalid variable name \"\""),
        ("\\sleep :1x", "invalid variable name \"1x\""),
    ] {
        let error = error(source);
        assert_eq!((&*error.sqlstate, &*error.message), ("42601", message), "{source}");
        assert!(error.detail.unwrap().contains(source));
    }
}

#[test]
fn captures_belong_to_the_statement_before_them() {
    let some = |prefix: &str, every_query| Some((prefix.to_owned(), every_query));
    assert_eq!(captures("SELECT 1 \\gset\nSELECT 2;"), [some("", false), None]);
    assert_eq!(
        captures("SELECT 1; -- c\n\n\\GSET p_\nSELECT 2 \\; SELECT 3 \\aset \\\n q"),
        [some("p_", false), some("q", true)]
    );
    let (script, _) = parsed("SELECT 1 \\gset\n\\set a 1");
    assert_eq!(script.commands.len(), 2);
    assert_eq!(script.commands[0].source, "SELECT 1");
}

#[test]
fn captures_that_are_none() {
    for source in [
        "\\gset",
        "\\aset",
        "\\set i +1\n\\gset",
        "SELECT 1 AS i \\gset\n\\gset",
        "SELECT 1 \\aset\n\\gset",
        "\\if 1\n\\gset\n\\endif",
    ] {
        assert_eq!(error(source).to_string(), "\\gset must follow an SQL command (42601)", "{source}");
    }
    assert_eq!(error("SELECT 1 \\gset a b").to_string(), "too many arguments in command \"gset\" (42601)");
    assert_eq!(error("SELECT 1 \\aset a-b").to_string(), "invalid variable name prefix \"a-b\" (42601)");
    assert_eq!(error("SELECT 1 \\gset 1a").to_string(), "invalid variable name prefix \"1a\" (42601)");
}

#[test]
fn what_makes_no_sense_in_a_server() {
    for command in ["shell", "shell echo", "setshell a echo", "SHELL"] {
        let error = error(&format!("\\{command}"));
        assert_eq!(error.sqlstate, "0A000");
        assert!(
            error
                .message
                .ends_with("is not supported: the server does not run shell commands for a workload")
        );
    }
}

#[test]
fn pipelines() {
    let (script, _) = parsed("\\startpipeline\n\\SYNCPIPELINE\n\\endpipeline \n");
    let expected = [Pipeline::Start, Pipeline::Sync, Pipeline::End].map(Action::Pipeline);
    let actions: Vec<Action> = script.commands.into_iter().map(|command| command.action).collect();
    assert_eq!(actions, expected);
    for command in ["startpipeline", "endpipeline", "syncpipeline"] {
        let expected = format!("unexpected argument in command \"{command}\" (42601)");
        assert_eq!(error(&format!("\\{command} foo")).to_string(), expected);
        assert_eq!(
            error(&format!("\\{command}\n\\gset")).to_string(),
            "\\gset must follow an SQL command (42601)"
        );
    }
}

#[test]
fn unknown_commands() {
    assert_eq!(error("\\nosuchcommand").to_string(), "invalid command in command \"nosuchcommand\" (42601)");
    assert_eq!(error("\\setx a 1").to_string(), "invalid command in command \"setx\" (42601)");
    assert_eq!(error("SELECT 1 \\g").to_string(), "invalid command in command \"g\" (42601)");
    assert_eq!(error("\\\\").to_string(), "invalid command in command \"\\\" (42601)");
    // A backslash with nothing behind it is nothing, and blanks may stand before the name.
    assert_eq!(error("\\").message, "empty command list for script \"s\"");
    assert_eq!(parsed("SELECT 1; \\\n;").0.commands.len(), 2);
    assert_eq!(parsed("\\ set a 1").0.commands.len(), 1);
    assert_eq!(parsed("\\\\\nset a 1").0.commands.len(), 1);
}

#[test]
fn set_needs_a_name_and_an_expression() {
    assert_eq!(error("\\set").to_string(), "missing argument in command \"set\" (42601)");
    assert_eq!(error("\\set \\\n").to_string(), "missing argument in command \"set\" (42601)");
    assert_eq!(error("\\set 1a 1").to_string(), "invalid variable name \"1a\" (42601)");
    assert_eq!(error("\\set a-b 1").to_string(), "invalid variable name \"a-b\" (42601)");
    assert_eq!(error("\\set . 1").to_string(), "invalid variable name \".\" (42601)");
    for source in ["\\set a\nSELECT 1;", "\\set i 1 +", "\\if\n\\endif", "\\if 0\n\\elif +\n\\endif"] {
        assert!(error(source).message.starts_with("syntax error"), "{source}");
    }
    assert!(parse("s", "\\SET a\\\n1", &mut Symbols::new()).is_ok());
}

#[test]
fn set_sets() {
    let (script, symbols) = parsed("\\set a 1 + 2");
    let mut variables = Variables::new(symbols.len());
    assert_eq!(perform(&script.commands[0].action, false, &mut variables), Ok(Flow::Next));
    assert_eq!(variables.get(symbols.lookup("a").unwrap()), Some(&Value::Integer(3)));
    assert!(flow("\\set a 1 / 0", None).is_err());
}

#[test]
fn conditions_say_where_to_go_on() {
    let (script, symbols) = parsed("\\if :x\n1;\n\\elif :x\n2;\n\\elif :x\n3;\n\\else\n4;\n\\endif");
    let run = |index: usize, otherwise: bool, x: i64| {
        let mut variables = Variables::new(symbols.len());
        variables.set(symbols.lookup("x").unwrap(), Value::Integer(x));
        perform(&script.commands[index].action, otherwise, &mut variables).unwrap()
    };
    assert_eq!([run(0, false, 1), run(0, false, 0)], [Flow::Next, Flow::Otherwise(2)]);
    assert_eq!(
        [run(2, true, 1), run(2, true, 0), run(2, false, 1)],
        [Flow::Next, Flow::Otherwise(4), Flow::Jump(8)]
    );
    assert_eq!(
        [run(4, true, 1), run(4, true, 0), run(4, false, 1)],
        [Flow::Next, Flow::Otherwise(6), Flow::Jump(8)]
    );
    assert_eq!([run(6, true, 0), run(6, false, 0)], [Flow::Next, Flow::Jump(8)]);
    assert_eq!([run(8, true, 0), run(8, false, 0)], [Flow::Next, Flow::Next]);
}

#[test]
fn conditions_that_do_not_fit() {
    for (source, number, message) in [
        ("\\if 1", 2, "\\if without matching \\endif"),
        ("\\if 1\n\\if 1\n\\endif", 4, "\\if without matching \\endif"),
        ("\\elif 1", 1, "\\elif without matching \\if"),
        ("SELECT 1;\n\\else", 2, "\\else without matching \\if"),
        ("\\endif", 1, "\\endif without matching \\if"),
        ("\\if 1\n\\endif\n\\endif", 3, "\\endif without matching \\if"),
        ("\\if 1\n\\else\n\\elif 0\n\\endif", 3, "\\elif after \\else"),
        ("\\if 1\n\\else\n\\else\n\\endif", 3, "\\else after \\else"),
    ] {
        let error = error(source);
        let expected = format!("condition error in script \"s\" command {number}: {message}");
        assert_eq!((&*error.sqlstate, error.message), ("42601", expected), "{source}");
        assert!(error.detail.unwrap().starts_with("script \"s\", line "));
    }
    assert_eq!(
        error("\\if 0\n\\else BAD\n\\endif\n").to_string(),
        "unexpected argument in command \"else\" (42601)"
    );
    assert_eq!(
        error("\\if 0\n\\endif BAD\n").to_string(),
        "unexpected argument in command \"endif\" (42601)"
    );
}
