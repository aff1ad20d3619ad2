//! Statements apart from their constants.

use proptest::prelude::*;

use super::super::class::{Class, classify, statements};
use super::super::event::{ParameterValue, Parameters, parameters};
use super::super::normalise::{Normalised, Template, TemplatePart, TemplateValue, normalise};
use super::super::tokens::{TokenKind, decode, tokens};

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
        ("PREPARE TRANSACTION 'x'", Class::Other(super::super::class::TWO_PHASE)),
        ("COMMIT PREPARED 'x'", Class::Other(super::super::class::TWO_PHASE)),
        ("SET LOCAL work_mem = '1MB'", Class::InBlock),
        ("SET work_mem = '1MB'", Class::Other(super::super::class::UTILITY)),
        ("((SELECT 1))", reads),
        ("SELECT 1 FOR UPDATE", reads),
        ("SELECT 1 INTO t", Class::Other(super::super::class::UTILITY)),
        ("WITH a AS (SELECT 1 FOR UPDATE) SELECT 2 FOR NO KEY UPDATE", reads),
        ("WITH a AS (UPDATE t SET x = 1 RETURNING *) SELECT * FROM a", writes),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", writes),
        ("MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", writes),
        ("CALL p()", writes),
        ("COPY t FROM STDIN", Class::Other(super::super::class::COPY)),
        ("VACUUM", Class::Other(super::super::class::UTILITY)),
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
