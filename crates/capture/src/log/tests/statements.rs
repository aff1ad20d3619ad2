//! Statements apart from their constants, and the option mask: no constant is in a text that leaves the capture, in any form of
//! the grammar: gram.y's AexprConst and whatever else takes an Sconst, an Iconst, an FCONST, a BCONST or an XCONST.

use proptest::prelude::*;

use crate::log::event::{ParameterValue, Parameters, parameters};
use crate::log::normalise::{Normalised, Template, TemplatePart, TemplateValue, normalise};
use crate::log::tokens::{Class, TokenKind, classify, decode, statements, tokens};
use crate::log::*;

fn parts(sql: &str) -> (String, Vec<String>) {
    let Normalised { template, constants, numbers } = normalise(&tokens(sql), &[]).expect("no parameters");
    (
        template.shown(&numbers),
        constants.into_iter().map(|constant| constant.value.expect("a constant")).collect(),
    )
}

#[test]
fn constants_become_values_where_they_can() {
    for (sql, shown, values) in [
        ("SELECT  1", "SELECT $1", &["1"][..]),
        ("SELECT -1, 1.5e3, .5, 'a''b'", "SELECT $1, $2, $3, $4", &["-1", "1.5e3", ".5", "a'b"]),
        ("SELECT a - 1, (a) -2, b * -3 FROM t", "SELECT a - $1, (a) -$2, b * $3 FROM t", &["1", "2", "-3"]),
        (
            "SELECT * FROM t WHERE a = 5 ORDER BY 1, b LIMIT 3",
            "SELECT * FROM t WHERE a = $1 ORDER BY 1, b LIMIT $2",
            &["5", "3"],
        ),
        (
            "SELECT a, 2 FROM t GROUP BY 1, 2 HAVING count(*) > 7",
            "SELECT a, $1 FROM t GROUP BY 1, 2 HAVING count(*) > $2",
            &["2", "7"],
        ),
        ("SELECT x::numeric(10,2), y::varchar(5)", "SELECT x::numeric(10,2), y::varchar(5)", &[]),
        (
            "SELECT date '2026-01-01', interval '1' day",
            "SELECT date $1, interval $2 day",
            &["2026-01-01", "1"],
        ),
        ("SELECT timestamp  with time zone 'now'", "SELECT timestamp with time zone $1", &["now"]),
        ("SELECT double precision '1'", "SELECT double precision $1", &["1"]),
        ("SELECT extract('Year' FROM d)", "SELECT extract(year FROM d)", &[]),
        ("SELECT mood 'sad', shop.\"Mood\" 'ok'", "SELECT mood $1, shop.\"Mood\" $2", &["sad", "ok"]),
        ("SELECT char(9) 'a', bit 'b'", "SELECT char(9) $1, $2", &["a", "b"]),
        (
            "SELECT time(0) with time zone '1', name 'n'",
            "SELECT time(0) with time zone $1, name $2",
            &["1", "n"],
        ),
        (
            "SELECT interval(3) '1', interval '1' second(3)",
            "SELECT interval(3) $1, interval $2 second(3)",
            &["1", "1"],
        ),
        (
            "SELECT DISTINCT ON (a) 'x', a OPERATOR(+) 'y'",
            "SELECT DISTINCT ON (a) $1, a OPERATOR(+) $2",
            &["x", "y"],
        ),
        ("SELECT trim('a'), trim(both 'b' from c)", "SELECT trim($1), trim(both $2 from c)", &["a", "b"]),
        (
            "INSERT INTO t VALUES ('a') ON CONFLICT (lower(k), (b || 'x')) WHERE s = 'y' AND n = 1 DO UPDATE SET n = 2",
            "INSERT INTO t VALUES ($1) ON CONFLICT (lower(k), (b || 'x')) WHERE s = 'y' AND n = 1 DO UPDATE SET n = $2",
            &["a", "2"],
        ),
        (
            "SELECT 1 FROM a JOIN b ON (conflict) WHERE c = 'x'",
            "SELECT $1 FROM a JOIN b ON (conflict) WHERE c = $2",
            &["1", "x"],
        ),
        (
            "SELECT d::date = '2026-01-01' AT TIME ZONE 'UTC'",
            "SELECT d::date = $1 AT TIME ZONE $2",
            &["2026-01-01", "UTC"],
        ),
        (
            "SELECT E'a\\nb\\'c', E'\\x41\\102\\xc3\\xa9\\uD83D\\uDE00', E'\\xff', B'1', X'f', N'n'",
            "SELECT $1, $2, E'\\xff', $3, $4, $5",
            &["a\nb'c", "ABé😀", "1", "xf", "n"],
        ),
        (
            "SELECT U&'\\00e9\\+01F600\\\\''', U&'!D83D!DE00' UESCAPE /* x */ '!' AS a, U&'\\00'",
            "SELECT $1, $2 AS a, U&'\\00'",
            &["é😀\\'", "😀"],
        ),
        ("SELECT 'a'\n  'b'", "SELECT $1", &["ab"]),
        ("SELECT $x$it's$x$, $$$$", "SELECT $1, $2", &["it's", ""]),
        ("SELECT a1, \"b 2\", c_3 -- 4\n FROM t /* 5 /* 6 */ 7 */", "SELECT a1, \"b 2\", c_3 FROM t", &[]),
        ("SELECT /*+ SeqScan(t) */ 1", "SELECT /*+ SeqScan(t) */ $1", &["1"]),
        ("SELECT a[1:n], b[i:2]", "SELECT a[$1 : n], b[i : $2]", &["1", "2"]),
        ("SELECT f(a := 1, b => 2), 3::int", "SELECT f(a := $1, b => $2), $3::int", &["1", "2", "3"]),
        ("SELECT 0x1F, -0b11, 1_000", "SELECT $1, $2, $3", &["31", "-3", "1000"]),
        ("SELECT * FROM t FETCH FIRST 5 ROWS ONLY", "SELECT * FROM t FETCH FIRST ($1) ROWS ONLY", &["5"]),
        ("SELECT'x'AS y", "SELECT $1 AS y", &["x"]),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)",
            "INSERT INTO t (a, b) VALUES ($1, $2), ($3, NULL)",
            &["1", "x", "2"],
        ),
        ("SELECT j ->> 'a', x IN ('b', 'c')", "SELECT j ->> $1, x IN ($2, $3)", &["a", "b", "c"]),
    ] {
        let expected: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        assert_eq!(parts(sql), (shown.to_owned(), expected), "{sql}");
    }
}

#[test]
fn classes() {
    let class = |sql: &str| {
        let parts = statements(sql);
        assert_eq!(parts.len(), 1, "{sql}");
        classify(&parts[0])
    };
    let (reads, writes) = (Class::Query { writes: false }, Class::Query { writes: true });
    for (sql, expected) in [
        ("begin isolation level serializable", Class::Begin),
        ("START TRANSACTION READ ONLY", Class::Begin),
        ("/* x */ COMMIT", Class::Commit),
        ("END", Class::Commit),
        ("ROLLBACK", Class::Rollback),
        ("ROLLBACK TO SAVEPOINT a", Class::InBlock),
        ("COMMIT AND CHAIN", Class::Other("AND CHAIN")),
        ("COMMIT AND NO CHAIN", Class::Commit),
        ("DEALLOCATE ALL", Class::Ignored),
        ("PREPARE TRANSACTION 'x'", Class::Other(super::super::tokens::TWO_PHASE)),
        ("COMMIT PREPARED 'x'", Class::Other(super::super::tokens::TWO_PHASE)),
        ("SET LOCAL work_mem = '1MB'", Class::InBlock),
        ("SET work_mem = '1MB'", Class::Other(super::super::tokens::UTILITY)),
        ("((SELECT 1))", reads),
        ("SELECT 1 FOR UPDATE", reads),
        ("SELECT 1 INTO t", Class::Other(super::super::tokens::UTILITY)),
        ("WITH a AS (SELECT 1 FOR UPDATE) SELECT 2 FOR NO KEY UPDATE", reads),
        ("WITH a AS (UPDATE t SET x = 1 RETURNING *) SELECT * FROM a", writes),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", writes),
        ("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", writes),
        ("CALL p()", writes),
        ("COPY t FROM STDIN", Class::Other(super::super::tokens::COPY)),
        ("VACUUM", Class::Other(super::super::tokens::UTILITY)),
    ] {
        assert_eq!(class(sql), expected, "{sql}");
    }
}

/// A statement of random tokens, some of them constants, with the values of these.
fn statement() -> impl Strategy<Value = (String, Vec<String>)> {
    let string = "[a-z' :;$\\\\é-]{0,8}"
        .prop_map(|value: String| (format!("'{}'", value.replace('\'', "''")), Some(value)));
    let dollar = "[a-z' :;\\\\-]{0,8}".prop_map(|value: String| (format!("$q${value}$q$"), Some(value)));
    let number = (0..100_000_u32).prop_map(|value| (value.to_string(), Some(value.to_string())));
    let other = prop::sample::select(vec![
        "x",
        "\"a'b\"",
        "/* it's; */",
        "-- 'c'\n",
        "f(y)",
        "NULL",
        "now()",
        "a.b",
        "\n",
        "U&'\\0'",
        "t1",
        "ü",
    ])
    .prop_map(|text| (text.to_owned(), None));
    let operand = prop_oneof![string, dollar, number, other];
    prop::collection::vec(operand, 1..8).prop_map(|operands| {
        let texts: Vec<&str> = operands.iter().map(|(text, _)| text.as_str()).collect();
        let values = operands.iter().filter_map(|(_, value)| value.clone()).collect();
        (format!("SELECT {}", texts.join(" , ")), values)
    })
}

/// The statement with constants in the places of the slots.
fn filled(template: &Template, values: &[String]) -> String {
    let fill = |part: &TemplatePart| match part {
        TemplatePart::Text(text) => text.clone(),
        TemplatePart::Slot { slot, .. } if template.slots[*slot] == TemplateValue::String => {
            format!("'{}'", values[*slot].replace('\'', "''"))
        }
        TemplatePart::Slot { slot, .. } => values[*slot].clone(),
        TemplatePart::Number(_) | TemplatePart::Setting { .. } => unreachable!("a query without relations"),
    };
    template.parts.iter().map(fill).collect()
}

proptest! {
    #[test]
    fn nothing_is_lost(text in "[ -~\\né]{0,60}") {
        let all: String = tokens(&text).iter().map(|token| token.text).collect();
        prop_assert_eq!(all, text);
    }

    #[test]
    fn no_text_makes_it_fail(text in "\\PC{0,60}") {
        for part in statements(&text) {
            let _ = (classify(&part), normalise(&part, &[]));
        }
        let _ = parameters(&text);
    }

    #[test]
    fn values_are_those_of_the_constants((sql, values) in statement()) {
        prop_assert_eq!(parts(&sql).1, values);
    }

    #[test]
    fn values_do_not_change_the_shape((sql, values) in statement()) {
        let Normalised { template, constants, .. } = normalise(&tokens(&sql), &[]).unwrap();
        prop_assert_eq!(constants.len(), values.len());
        let others: Vec<String> = template
            .slots
            .iter()
            .map(|slot| if *slot == TemplateValue::String { "o'ther".to_owned() } else { "7".to_owned() })
            .collect();
        let Normalised { template: again, constants, .. } =
            normalise(&tokens(&filled(&template, &others)), &[]).unwrap();
        prop_assert_eq!(&again, &template);
        let found: Vec<ParameterValue> = constants.into_iter().map(|constant| constant.value).collect();
        prop_assert_eq!(found, others.into_iter().map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn parameters_are_read_as_they_were_written(values in prop::collection::vec(prop::option::of("[ -~é]{0,9}x"), 1..6)) {
        let list: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(place, value)| match value {
                None => format!("${} = NULL", place + 1),
                Some(value) => format!("${} = '{}'", place + 1, value.replace('\'', "''")),
            })
            .collect();
        for word in ["parameters", "Parameters"] {
            prop_assert_eq!(parameters(&format!("{word}: {}", list.join(", "))), Parameters::Known(values.clone()));
        }
    }

    #[test]
    fn strings_are_decoded(value in "[ -~\\né]{0,20}") {
        let text = format!("'{}'", value.replace('\'', "''"));
        prop_assert_eq!(tokens(&text).first().map(|token| token.kind), Some(TokenKind::String));
        prop_assert_eq!(decode(&text), Some(value.clone()));
        let escaped = format!("E'{}'", value.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"));
        prop_assert_eq!(decode(&escaped), Some(value));
    }
}

/// Expressions with a constant that `{}` stands for, which is of letters.
const TEXTS: [&str; 66] = [
    "'{}'",
    "'x''{}'",
    "'x'\n'{}'",
    "E'{}\\x41'",
    "E'{}\\xff'",
    "E'x\\'{}'",
    "$${}$$",
    "$q$it's {}$q$",
    "N'{}'",
    "U&'{}\\0041'",
    "U&'{}!0041' UESCAPE '!'",
    "U&'{}!00zz' UESCAPE '!'",
    "U&'{}'\n'x' UESCAPE /* {} */ '!'",
    "date '{}'",
    "date E'{}'",
    "date $${}$$",
    "date U&'{}'",
    "timestamp '{}'",
    "timestamp(3) '{}'",
    "timestamp(3) with time zone '{}'",
    "timestamp without time zone '{}'",
    "time(0) with time zone '{}'",
    "interval '{}'",
    "interval '{}' day",
    "interval '{}' day to second(3)",
    "interval(3) '{}'",
    "name '{}'",
    "char '{}'",
    "char(9) '{}'",
    "character varying(9) '{}'",
    "national character varying '{}'",
    "nchar(9) '{}'",
    "varchar '{}'",
    "bpchar(9) '{}'",
    "bit(3) '{}'",
    "bit varying '{}'",
    "numeric(10, 2) '{}'",
    "double precision '{}'",
    "float(24) '{}'",
    "dec '{}'",
    "boolean '{}'",
    "json '{}'",
    "jsonb '{\"{}\": 1}'",
    "mood '{}'",
    "int4range '[{}]'",
    "shop.\"Mood\" '{}'",
    "\"char\" '{}'",
    "geometry(Point, 4326) '{}'",
    "'{}'::text",
    "'{}'::interval day",
    "CAST('{}' AS char(3))",
    "trim('{}')",
    "trim(both '{}' from a)",
    "trim(leading from '{}')",
    "a LIKE '{}' ESCAPE '{}'",
    "a SIMILAR TO '{}'",
    "a IS DISTINCT FROM '{}'",
    "a OPERATOR(pg_catalog.=) '{}'",
    "extract('{}' FROM a)",
    "position('{}' IN a)",
    "overlay(a PLACING '{}' FROM 2)",
    "a AT TIME ZONE '{}'",
    "xmlparse(DOCUMENT '{}')",
    "json_object('{}' VALUE '{}')",
    "sum(a) OVER (ORDER BY a RANGE '{}' PRECEDING)",
    "f(variadic ARRAY['{}'], b => '{}', c := '{}')",
];

/// Of digits.
const NUMBERS: [&str; 21] = [
    "{}",
    "-{}",
    "- {}",
    "+{}",
    "{}.5",
    ".{}",
    "{}e3",
    "1e{}",
    "{}_000",
    "0x{}",
    "0o{}",
    "0b{}",
    "0x{}{}{}{}{}{}{}{}{}{}{}",
    "B'{}'",
    "X'{}'",
    "b'1'\n'{}'",
    "a[{}]",
    "a[{}:{}]",
    "sum(a) OVER (ROWS {} PRECEDING)",
    "(SELECT b FROM t FETCH FIRST {} ROWS ONLY)",
    "(SELECT b FROM t TABLESAMPLE bernoulli ({}) REPEATABLE ({}) LIMIT {} OFFSET {})",
];

/// Whole statements.
const STATEMENTS: [&str; 14] = [
    "SELECT /*+ Set(work_mem '{}') */ a FROM t",
    "SELECT a FROM t -- {}\nWHERE b",
    "SELECT DISTINCT ON (a) '{}' FROM t",
    "INSERT INTO t VALUES ('{}'), ('{}')",
    "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE s = '{}' DO UPDATE SET a = '{}' WHERE t.b = '{}'",
    "INSERT INTO t VALUES (1) ON CONFLICT (lower(a || '{}')) DO NOTHING",
    "WITH RECURSIVE x AS (SELECT 1) CYCLE a SET b TO '{}' DEFAULT '{}' USING c SELECT 1 FROM x",
    "SELECT * FROM xmltable('{}' PASSING a COLUMNS b text PATH '{}' DEFAULT '{}')",
    "SELECT * FROM json_table(a, '$.{}' COLUMNS (b text PATH '$.{}'))",
    "SET LOCAL app.tenant = '{}'",
    "SET LOCAL transaction_isolation = '{}'",
    "SET LOCAL TIME ZONE INTERVAL '{}' HOUR TO MINUTE",
    "CALL p('{}')",
    "COMMENT ON TABLE t IS '{}'",
];

fn entry(message: String, severity: &str, query: &str) -> LogEntry {
    LogEntry {
        at_ms: 1.0,
        session: "s".into(),
        severity: severity.into(),
        virtual_transaction: "3/0".into(),
        message,
        query: query.into(),
        ..LogEntry::default()
    }
}

/// What leaves a masked capture of a statement: of one that succeeded, and of one that failed.
fn left(statement: &str) -> Vec<String> {
    let given = serde_json::json!({ "mask": true, "writes": true });
    let mut capture = LogCapture::new(LogOptions::new(String::new(), &given).expect("known options"));
    let message = format!("duration: 1.0 ms  statement: {statement}");
    for entry in [entry(message, "LOG", ""), entry("failed".into(), "ERROR", statement)] {
        capture.take(entry).expect("within the limits");
    }
    let captured = capture.finish().expect("within the limits");
    assert_eq!(captured.figures.transactions, 2, "{statement}");
    let kept = captured.shapes.into_iter().flat_map(|shape| {
        let omits = shape.omits.unwrap_or_default();
        [shape.script, shape.shown, omits]
    });
    let skipped = captured.skipped.into_iter().flat_map(|(reason, skipped)| [reason, skipped.example]);
    kept.chain(skipped).collect()
}

#[test]
fn no_constant_leaves_a_masked_capture() {
    let expressions = |forms: &'static [&str], constant: &'static str| {
        forms.iter().map(move |form| format!("SELECT {} FROM t", form.replace("{}", constant)))
    };
    let texts =
        expressions(&TEXTS, "secret").chain(STATEMENTS.iter().map(|form| form.replace("{}", "secret")));
    let numbers = expressions(&NUMBERS, "101101");
    for (statement, secret) in texts.map(|text| (text, "secret")).chain(numbers.map(|text| (text, "101101")))
    {
        for text in left(&statement) {
            assert!(!text.contains(secret), "{statement}: {text}");
        }
    }
}

/// What is left out for want of a variable: all else is kept.
#[test]
fn masked_captures_keep_what_can_have_variables() {
    let is_kept = |statement: &str| left(statement).iter().any(|text| text.ends_with(";\n"));
    let refused: Vec<&str> = (TEXTS.iter().chain(&NUMBERS))
        .filter(|form| !is_kept(&format!("SELECT {} FROM t", form.replace("{}", "101"))))
        .copied()
        .collect();
    assert_eq!(
        refused,
        ["E'{}\\xff'", "U&'{}!00zz' UESCAPE '!'", "extract('{}' FROM a)", "0x{}{}{}{}{}{}{}{}{}{}{}",]
    );
}
