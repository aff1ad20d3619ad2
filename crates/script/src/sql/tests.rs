use proptest::prelude::*;

use crate::command::Action;
use crate::script::{Script, parse};
use crate::sql::*;
use crate::variables::Value;

/// A script, and values for some of its variables.
struct Given {
    script: Script,
    symbols: Symbols,
    values: Variables,
}

fn given(source: &str, values: &[(&str, &str)]) -> Given {
    let mut symbols = Symbols::new();
    let script = parse("s", source, &mut symbols).unwrap();
    let mut variables = Variables::new(symbols.len());
    for (name, value) in values {
        variables.set(symbols.intern(name), Value::Text((*value).into()));
    }
    Given { script, symbols, values: variables }
}

impl Given {
    fn statement(&self) -> &Sql {
        self.script.statements().next().unwrap().1
    }

    fn parameterized(&self) -> Result<(String, Vec<&str>), UserError> {
        let statement = self.statement().parameterized(&self.values)?;
        let names = statement.parameters.iter().map(|&id| self.symbols.name(id)).collect();
        Ok((statement.text, names))
    }

    fn substituted(&self) -> String {
        let mut text = String::new();
        self.statement().substitute(&self.values, &mut text).unwrap();
        text
    }

    /// With the variables that have values defined, and none assigned by other scripts.
    fn check(&self) -> Result<(), UserError> {
        let defined = |id| self.values.get(id).is_some();
        self.script.check_parameterized(&self.symbols, &|_| false, &defined)
    }
}

fn parameterized(source: &str) -> (String, Vec<String>) {
    let given = given(source, &[]);
    let (text, names) = given.parameterized().unwrap();
    (text, names.into_iter().map(str::to_owned).collect())
}

#[test]
fn each_mention_of_a_variable_is_a_parameter() {
    let (text, names) = parameterized("SELECT :b::int, :a, :b, ':a' /* :a */, $$:a$$, \\:a;");
    assert_eq!(text, "SELECT $1::int, $2, $3, ':a' /* :a */, $$:a$$, :a");
    assert_eq!(names, ["b", "a", "b"]);
    assert_eq!(parameterized("SELECT 1 ;").0, "SELECT 1");
    assert_eq!(parameterized("SELECT :é").0, "SELECT $1");
    assert_eq!(parameterized("SELECT 1 \\; SELECT a[1\\:2];").0, "SELECT 1 ; SELECT a[1:2]");
    assert_eq!(parameterized("SELECT \\:b \\; SELECT :a").0, "SELECT :b ; SELECT $1");
    assert_eq!(parameterized(";").0, "");
}

#[test]
fn a_glued_variable_becomes_part_of_the_identifier() {
    let source = "SELECT * FROM tbl_:n, \"tbl_:n\", tbl_:n:n WHERE id = :n;";
    let (text, names) =
        given(source, &[("n", "1é$_")]).parameterized().map(|(text, names)| (text, names.len())).unwrap();
    assert_eq!(text, "SELECT * FROM tbl_1é$_, \"tbl_1é$_\", tbl_1é$_1é$_ WHERE id = $1");
    assert_eq!(names, 1);
}

#[test]
fn a_glued_variable_needs_a_value_that_fits() {
    let error = given("SELECT * FROM t_:n", &[]).parameterized().unwrap_err();
    assert_eq!(
        error.to_string(),
        "variable \"n\" attached to an identifier has no value before the run (22023)"
    );
    assert!(error.hint.is_some());
    for value in ["", " ", "a b", "a\"b", "a'b", "-1", "1.5", "a;b", "a\0"] {
        let error = given("SELECT * FROM \"t_:n\"", &[("n", value)]).parameterized().unwrap_err();
        let message = format!("value \"{value}\" of variable \"n\" cannot be a part of an identifier");
        assert_eq!((&*error.sqlstate, error.message), ("22023", message));
    }
}

#[test]
fn substitution_reaches_everything_that_is_set() {
    let source = "SELECT :a, ':a', \":a\", $$:a$$, /* :a */ t_:a, \\:a, :b, x::a, ::a -- :a\n;";
    let expected = "SELECT 5, '5', \"5\", $$5$$, /* 5 */ t_5, 5, :b, x::a, ::a -- 5";
    assert_eq!(given(source, &[("a", "5")]).substituted(), expected);
    // A value is not looked at again.
    assert_eq!(given("SELECT :a:b;", &[("a", ":b"), ("b", "")]).substituted(), "SELECT :b");
    let given = given("-- :a\nSELECT 1 \\; SELECT :a \\; ;", &[("a", "null")]);
    assert_eq!(given.substituted(), "SELECT 1 ; SELECT null ;");
    let mut appended = String::from("x");
    given.statement().substitute(&given.values, &mut appended).unwrap();
    assert_eq!(appended, "xSELECT 1 ; SELECT null ;");
}

#[test]
fn nothing_to_execute() {
    for source in [";", " ; ", "/* c */;", "/* c */", "\\; \\; ;", "/* c */ -- c\n;"] {
        assert!(given(source, &[]).statement().is_empty(), "{source}");
    }
    for source in ["SELECT 1;", "\\; SELECT 1;", "''", ":a"] {
        assert!(!given(source, &[]).statement().is_empty(), "{source}");
    }
    assert!(given("SELECT 1 \\; SELECT 2;", &[]).statement().is_compound());
    assert!(!given("SELECT ';';", &[]).statement().is_compound());
}

#[test]
fn glued_variables_must_be_constant() {
    let message = "variable \"n\" attached to an identifier must be constant over the run (42601)";
    for source in
        ["\\set n 1\nSELECT * FROM t_:n;", "SELECT \"t_:n\"; SELECT 1 AS n \\gset n\n", "SELECT t:n \\aset n"]
    {
        let error = given(source, &[("n", "1")]).check().unwrap_err();
        assert_eq!(error.to_string(), message, "{source}");
        assert!(error.hint.unwrap().contains("query_mode => 'simple'"));
    }
    let error = given("\\set n 1\nSELECT * FROM t_:n;", &[]).check().unwrap_err();
    let detail = "script \"s\", line 2, column 17:\nSELECT * FROM t_:n;\n                ^";
    assert_eq!(error.detail.as_deref(), Some(detail));

    for source in
        ["SELECT t_:n;", "SELECT t_:n \\gset", "SELECT t_:n \\gset na_\n", "\\set m 1\nSELECT t_:n;"]
    {
        assert_eq!(given(source, &[("n", "1")]).check(), Ok(()), "{source}");
    }
    let given = given("SELECT t_:n", &[("n", "1")]);
    let error = given.script.check_parameterized(&given.symbols, &|_| true, &|_| true).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn string_constants_have_no_parameters() {
    for source in ["SELECT 'a :x';", "SELECT $$:x$$;", "SELECT ':x' \\gset x"] {
        let error = given(source, &[("x", "1")]).check().unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable \"x\" inside a string constant cannot be a parameter (42601)"
        );
        assert_eq!(error.hint.as_deref(), Some("Use query_mode => 'simple', or concatenate: 'text ' || :x."));
    }
    assert!(given("\\set x 1\nSELECT ':x'", &[]).check().is_err());
    // It is no variable, so it is text.
    assert_eq!(given("SELECT 'a :x';", &[]).check(), Ok(()));
    assert_eq!(given("SELECT 1 /* :x */ -- :x\n, \\:x, '::x', '1:2';", &[("x", "1")]).check(), Ok(()));
}

#[test]
fn statements_have_at_most_as_many_parameters_as_the_protocol_counts() {
    let least = |count: usize| format!("\\set i 0\nSELECT LEAST({})", vec![":i"; count].join(", "));
    assert_eq!(given(&least(65_535), &[]).check(), Ok(()));
    let error = given(&least(65_536), &[]).check().unwrap_err();
    assert!(
        error.message.starts_with("statement has too many arguments (maximum is 65535): SELECT LEAST(:i")
    );
    assert_eq!(error.sqlstate, "54023");
    assert!(error.message.len() < 300);
}

proptest! {
    #[test]
    fn what_is_not_set_stays(source in "SELECT([ :a1'\n]|\\\\:|\\\\;|::|\\$\\$|\"|é|/\\*|\\*/|--){0,20}") {
        let mut symbols = Symbols::new();
        if let Ok(script) = parse("s", &source, &mut symbols) {
            for command in &script.commands {
                let Action::Sql(sql) = &command.action else { continue };
                let mut text = String::new();
                sql.substitute(&Variables::default(), &mut text).unwrap();
                let written = command.source.strip_suffix(';').unwrap_or(&command.source);
                // Without what the escapes lose, the text is there as written.
                let without = |text: &str| text.replace(['\\', ' ', '\n'], "");
                if !source.contains("\\;") {
                    prop_assert_eq!(without(&text), without(written));
                }
                for mention in &sql.mentions {
                    prop_assert!(source[mention.at..].starts_with(&text[mention.range.clone()]));
                }
                let _ = sql.parameterized(&Variables::default());
            }
        }
    }
}

#[test]
fn endings_are_what_pgbench_sends_behind_the_text() {
    let endings = |source: &str| {
        let script = parse("test", source, &mut Symbols::new()).expect("a script");
        let ending = |command: &crate::command::Command| match &command.action {
            Action::Sql(sql) => Some(sql.ending().to_owned()),
            _ => None,
        };
        script.commands.iter().filter_map(ending).collect::<Vec<_>>()
    };
    assert_eq!(endings("SELECT 1;\nSELECT 2 -- two\n ;\n;\nSELECT ';'"), [";", "\n ;", ";", ""]);
    assert_eq!(
        endings("SELECT 1 \\gset\nSELECT 2; \\gset\nSELECT 3 \\; \t;\nSELECT 4 -- ;"),
        [" ", ";", " \t;", ""]
    );
}

#[test]
fn what_may_have_committed() {
    let mut symbols = Symbols::new();
    let mut of = |text: &str, in_block| {
        let script = crate::script::parse("test", text, &mut symbols).expect("a script");
        let crate::command::Action::Sql(sql) = &script.commands[0].action else { panic!("{text}") };
        sql.may_commit(in_block)
    };
    for text in
        ["UPDATE t SET n = 1;", "select 1", "CALL p();", "/* one */ -- two\nINSERT INTO t VALUES (1);"]
    {
        assert_eq!((of(text, false), of(text, true)), (true, false), "{text}");
    }
    for text in
        ["COMMIT;", "/* c */ end;", "Prepare Transaction 'x';", "BEGIN \\; UPDATE t SET n = 1 \\; COMMIT;"]
    {
        assert_eq!((of(text, false), of(text, true)), (true, true), "{text}");
    }
    for text in ["BEGIN;", "START TRANSACTION;", "ROLLBACK;", "BEGIN \\; SELECT 1;"] {
        assert_eq!((of(text, false), of(text, true)), (false, false), "{text}");
    }
    assert!(of("ROLLBACK \\; UPDATE t SET n = 1;", true));
}

#[test]
fn a_feeders_value_is_a_literal_where_a_value_can_stand_and_nothing_elsewhere() {
    let hostile = "\\'); DROP TABLE t; --\\\n*/";
    let mut given = given("SELECT :x, -:x::text /* :x */, ':y' -- :x\n;", &[("x", hostile), ("y", "b")]);
    let x = given.symbols.lookup("x").unwrap();
    given.values.feed(x);
    let literal = " E'\\\\''); DROP TABLE t; --\\\\\n*/' ";
    assert_eq!(given.substituted(), format!("SELECT {literal}, -{literal}::text /* :x */, 'b' -- :x"));
    given.values.set(x, Value::Null);
    assert_eq!(given.substituted(), "SELECT  NULL , - NULL ::text /* :x */, 'b' -- :x");
    given.values.set(x, Value::Integer(-5));
    assert_eq!(given.substituted(), "SELECT  '-5' , - '-5' ::text /* :x */, 'b' -- :x");
}

#[test]
fn a_feeders_value_is_no_part_of_identifiers_and_strings() {
    let check = |source: &str, in_text: bool| {
        let given = given(source, &[]);
        let x = given.symbols.lookup("x");
        given.script.check_fed(&given.symbols, &|id| Some(id) == x, in_text).map_err(|error| error.message)
    };
    for in_text in [false, true] {
        assert_eq!(check("SELECT :x, ':y', t_:y, \"t_:y\" /* :x */;", in_text), Ok(()));
        let identifier = "variable \"x\" of a feeder cannot be a part of an identifier";
        assert_eq!(check("SELECT * FROM t_:x;", in_text), Err(identifier.to_owned()));
        assert_eq!(check("SELECT \"t_:x\";", in_text), Err(identifier.to_owned()));
        let string = "variable \"x\" of a feeder cannot stand inside a string constant";
        assert_eq!(check("SELECT 'a:x';", in_text), Err(string.to_owned()));
        assert_eq!(check("SELECT $$a:x$$;", in_text), Err(string.to_owned()));
    }
    // Without standard_conforming_strings the first string constant ends behind the variable.
    assert_eq!(check("SELECT '\\' || :x || '\\';", false), Ok(()));
    let backslash = "a statement with a feeder's values must not have a backslash before a single quote";
    assert_eq!(check("SELECT '\\' || :x || '\\';", true), Err(backslash.to_owned()));
    assert_eq!(check("SELECT '\\' || :y || '\\';", true), Ok(()));
}

#[test]
fn an_error_of_a_parameter_has_a_hint_in_every_language() {
    let hint = |state, message| hint_of_prepared(state, message).map(|hint| &hint[..10]);
    assert_eq!(hint("42601", "syntax error at or near \"$1\""), Some("A variable"));
    assert_eq!(hint("42601", "Syntaxfehler bei »\"$12\"«"), Some("A variable"));
    assert_eq!(hint("42601", "syntax error at or near \"$$\""), None);
    assert_eq!(hint("42601", "syntax error at or near \"FORM\""), None);
    assert_eq!(hint("42P01", "relation \"$1\" does not exist"), None);
    assert_eq!(
        hint("42601", "cannot insert multiple commands into a prepared statement"),
        Some("\\; sends s")
    );
}
